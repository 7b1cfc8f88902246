"""A small service."""


def main() -> str:
    """Return the state."""
    return "ready"
