"""Settings: where the files are, how they are read, and what they may hold."""
