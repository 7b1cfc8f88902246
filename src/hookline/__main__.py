"""``hookline`` and ``python -m hookline``: the way to the command in as few imports.

``hookline bridge`` runs at every step of a coding agent. If the resident helper answers
(``hosts/client.py``), nothing else of Hookline is loaded.
"""

import sys


def main() -> int:
    """Run one command and return its exit status."""
    if sys.argv[1:2] == ["bridge"]:
        from hookline.hosts.client import ask

        ask(sys.argv[2:])
    from hookline.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
