"""``hookline``: the command line, with one module per command.

The module of a command has ``SUMMARY``, ``DESCRIPTION``, ``add_arguments(parser)`` and
``run(options)``, which returns the exit status or None. Only the module in use is
imported: ``hookline fire`` must start fast.
Exit status 1 is a usage error, with a message on stderr.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from importlib import import_module

from hookline.errors import HooklineError, nearest

COMMANDS = (
    *("demo", "init", "recipes", "migrate", "trust"),
    *("fire", "list", "explain", "check", "schema", "test"),
    *("log", "stats", "replay"),
    *("serve", "request"),
)
"""In the order of the overview; each is a module of this package."""

_DEFAULT_COLUMNS = 80


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    name = arguments[0] if arguments else "--help"
    if name in {"-h", "--help", "help"}:
        print(_overview())
        return 0 if arguments else 1
    if name in {"-V", "--version"}:
        from importlib.metadata import version

        print(f"hookline {version('hookline')}")
        return 0
    if name not in COMMANDS:
        return _fail(_unknown(name))
    if argv is None and name == "fire":
        # The process ends after one event: collecting garbage is wasted time.
        gc.disable()
    try:
        return _run(name, arguments[1:])
    except HooklineError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whatever reads our output has exited, so an error message has no reader.
        sys.stderr.close()
        return 141
    # Without this an unexpected exception could exit with a status that means
    # something else.
    except Exception:  # noqa: BLE001
        import traceback

        traceback.print_exc()
        return _fail("this is a bug in Hookline: please report it with the above")


def _run(name: str, arguments: list[str]) -> int:
    from .common import Parser

    command = import_module(f"hookline.cli.{name}")
    parser = Parser(
        prog=f"hookline {name}",
        description=command.DESCRIPTION,
        formatter_class=_help_formatter,
    )
    command.add_arguments(parser)
    try:
        options = parser.parse_args(arguments)
    except SystemExit:  # after --help
        return 0
    status: int | None = command.run(options)
    sys.stdout.flush()
    return status or 0


def _help_formatter(prog: str) -> argparse.HelpFormatter:
    """Find the width of the terminal here: argparse would import shutil."""
    given = os.environ.get("COLUMNS", "")
    columns = int(given) if given.isdecimal() else 0
    try:
        columns = columns or os.get_terminal_size(1).columns or _DEFAULT_COLUMNS
    except OSError:
        columns = _DEFAULT_COLUMNS
    return argparse.RawDescriptionHelpFormatter(prog, width=columns - 2)


def _overview() -> str:
    width = max(map(len, COMMANDS))
    modules = {name: import_module(f"hookline.cli.{name}") for name in COMMANDS}
    found = (f"  {name:{width}}  {one.SUMMARY}" for name, one in modules.items())
    rows = "\n".join(found)
    return (
        "usage: hookline COMMAND [OPTIONS]\n\n"
        "Hooks for AI agents: your own checks at every step, which can block, change, "
        f"add or stop.\n\ncommands:\n{rows}\n\n"
        "Run 'hookline COMMAND --help' for options and examples."
    )


def _unknown(name: str) -> str:
    near = nearest(name, COMMANDS)
    hint = f"did you mean 'hookline {near}'?" if near else "see 'hookline --help'"
    return f"unknown command {name!r}: {hint}"


def _fail(message: str) -> int:
    print(f"hookline: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
