"""The callers: they await the verdict and apply it."""
