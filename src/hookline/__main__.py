"""``hookline`` and ``python -m hookline``: the way to the command in as few imports.

``hookline bridge`` runs at every step of a coding agent. If the resident helper answers
(``hosts/client.py``), nothing else of Hookline is loaded.
"""

import os
import sys


def main() -> int:
    """Run one command and return its exit status."""
    if sys.argv[1:2] != ["bridge"]:
        return _run()
    from hookline.hosts.failsafe import failsafe

    failsafe.start(sys.argv[2:])
    try:
        if sys.platform == "linux":
            from hookline.hosts.client import ask

            place = ask(failsafe)
            if place is not None:
                from hookline.hosts.resident import start

                start(place, failsafe)
        return _run()
    # Also where the installation is damaged: a host must not run a tool for that.
    except BaseException as error:  # noqa: BLE001
        failsafe.fail(f"internal error: {error!r}")


def _run() -> int:
    from hookline.cli.main import main as run

    return run()


def _leave_out_cwd() -> None:
    """No module of the folder that ``python -m`` is run in takes the place of ours."""
    home = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120
    try:
        here = os.getcwd()  # noqa: PTH109
    except OSError:
        return  # it was deleted
    if not sys.flags.safe_path and sys.path[0] == here != home:
        del sys.path[0]


if __name__ == "__main__":
    _leave_out_cwd()
    sys.exit(main())
