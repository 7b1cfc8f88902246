"""For hook authors' tests."""
