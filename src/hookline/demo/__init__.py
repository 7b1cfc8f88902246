"""The demonstration behind ``hookline demo``: a scripted model, real hooks."""
