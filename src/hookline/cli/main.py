"""``hookline``: one command line, one module per command.

Only the module of the command in use is imported: ``hookline fire`` must start fast.
Exit status 1 is a mistake of the user's, with a message on stderr.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from importlib import import_module
from typing import Protocol, cast

from hookline.errors import HooklineError, nearest

COMMANDS = (
    *("demo", "init", "recipes", "migrate", "trust"),
    *("fire", "list", "explain", "check", "schema", "test"),
    *("log", "stats", "replay"),
    *("serve", "request"),
)
"""In the order in which one meets them; each is a module of this package."""

_COLUMNS = 80
_USAGE = "hookline COMMAND [OPTIONS]"


class Command(Protocol):
    """What a module of this package has."""

    SUMMARY: str
    DESCRIPTION: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        ...

    def run(self, options: argparse.Namespace) -> int:
        """Do it and return the exit status."""
        ...


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in {"-h", "--help", "help"}:
        print(_overview())
        return 0 if words else 1
    if words[0] in {"-V", "--version"}:
        print(f"hookline {_version()}")
        return 0
    if words[0] not in COMMANDS:
        return _complain(_unknown(words[0]))
    if argv is None and words[0] == "fire":
        # One event and then the end: looking for garbage on the way is a waste.
        gc.disable()
    try:
        return _run(words[0], words[1:])
    except HooklineError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has left; there is nobody to tell.
        sys.stderr.close()
        return 141
    # The edge of the house: a person is told, and no exit status is left to chance.
    except Exception:  # noqa: BLE001
        import traceback

        traceback.print_exc()
        return _complain("the above is a fault in Hookline itself: please report it")


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Asks for the terminal's width itself: argparse loads shutil to do so."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said) > 0:
        return int(said)
    try:
        return os.get_terminal_size(1).columns or _COLUMNS
    except OSError:
        return _COLUMNS


def _run(name: str, words: list[str]) -> int:
    command = _module(name)
    parser = argparse.ArgumentParser(
        prog=f"hookline {name}",
        description=command.DESCRIPTION,
        formatter_class=_HelpFormatter,
        exit_on_error=True,
    )
    command.add_arguments(parser)
    try:
        options = parser.parse_args(words)
    except SystemExit as leaving:
        # argparse leaves with 2, which means "blocked" here.
        return 1 if leaving.code else 0
    status = command.run(options)
    sys.stdout.flush()
    return status


def _module(name: str) -> Command:
    return cast("Command", import_module(f"hookline.cli.{name}"))


def _overview() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:{width}}  {_module(name).SUMMARY}" for name in COMMANDS)
    return (
        f"usage: {_USAGE}\n\nHooks for AI agents: your own checks at every step, able "
        f"to block, change, add or stop.\n\ncommands:\n{rows}\n\n"
        "'hookline COMMAND --help' explains each with examples."
    )


def _unknown(name: str) -> str:
    near = nearest(name, COMMANDS)
    hint = f"did you mean 'hookline {near}'?" if near else "see 'hookline --help'"
    return f"{name!r} is no command: {hint}"


def _version() -> str:
    from importlib.metadata import version

    return version("hookline")


def _complain(message: str) -> int:
    print(f"hookline: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
