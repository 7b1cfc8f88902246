"""One file per hook type: how a hook is run and what comes back."""
