"""A module that a hook names, and that ends when it is imported."""

raise SystemExit
