"""The demo behind ``hookline demo``: a scripted model, real hooks."""
