"""``hookline`` and ``python -m hookline``: the way to the command in as few imports.

``hookline bridge`` runs at every step of a coding agent. If the resident helper answers
(``hosts/client.py``), nothing else of Hookline is loaded.
"""

import sys


def main() -> int:
    """Run one command and return its exit status."""
    if sys.platform == "linux" and sys.argv[1:2] == ["bridge"]:
        from hookline.hosts.client import ask

        ask(sys.argv[2:])
    from hookline.errors import UnsupportedPlatformError

    try:
        from hookline.cli.main import main as run
    except UnsupportedPlatformError as error:
        sys.stderr.write(f"hookline: {error}\n")
        return 1
    return run()


if __name__ == "__main__":
    sys.exit(main())
