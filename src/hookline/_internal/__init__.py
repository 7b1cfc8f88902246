"""What nobody looks for: the log, state files, what to type to install something."""
