"""A small service."""


def main() -> str:
    """Say that it is there."""
    return "ready"
