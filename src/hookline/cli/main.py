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
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import TextIO

from hookline.errors import HooklineError, nearest

COMMANDS = (
    *("demo", "init", "recipes", "migrate", "trust"),
    *("fire", "list", "explain", "check", "schema", "test"),
    *("log", "stats", "replay", "inspect"),
    *("serve", "request"),
    *("install", "uninstall", "bridge"),
)
"""In the order of the overview; each is a module of this package."""

_DEFAULT_COLUMNS = 80


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    if argv is not None:
        return _dispatch(argv)
    _open_streams()
    status = _dispatch(sys.argv[1:], own_process=True)
    return _flushed(sys.stdout, _flushed(sys.stderr, status))


def _dispatch(arguments: list[str], *, own_process: bool = False) -> int:
    name = arguments[0] if arguments else "--help"
    try:
        if name in COMMANDS:
            return _run(name, arguments[1:], own_process=own_process)
        return _print_overview_or_version(name, arguments)
    except HooklineError as error:
        return _fail(str(error), arguments)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141  # whatever reads our output has exited
    except OSError as error:
        # The file system's fault: full, read-only, not allowed.
        where = error.filename or "standard output"
        return _fail(f"{where}: {error.strerror}", arguments)
    # Without this an unexpected exception could exit with a status that means
    # something else.
    except Exception as error:  # noqa: BLE001
        bug = "this is a bug in Hookline: please report it with"
        return _fail(f"{bug} the traceback", arguments, error)


def _open_streams() -> None:
    """Make sure that no output can raise for want of a stream or a character."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        # Opened in this order they get the numbers of the closed ones.
        sys.stdin = sys.stdin or open(os.devnull)  # noqa: PTH123, SIM115
        sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115
        sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _flushed(stream: TextIO, status: int) -> int:
    """Write what is left; if that fails, only a status of 0 changes."""
    try:
        stream.flush()
    except OSError as error:
        from .terminal import discard

        discard(stream)
        if stream is sys.stdout and status == 0:
            broken = isinstance(error, BrokenPipeError)
            problem = f"standard output: {error.strerror}"
            return 141 if broken else _fail(problem, sys.argv[1:])
    return status


def _print_overview_or_version(name: str, arguments: list[str]) -> int:
    if name in {"-h", "--help", "help"}:
        print(_overview())
        return 0 if arguments else 1
    if name in {"-V", "--version"}:
        from importlib.metadata import version

        print(f"hookline {version('hookline')}")
        return 0
    return _fail(_unknown(name), arguments)


def _run(name: str, arguments: list[str], *, own_process: bool) -> int:
    from .common import Parser, end_hooks_on_signals

    command = import_module(f"hookline.cli.{name}")
    parser = Parser(
        prog=f"hookline {name}",
        description=command.DESCRIPTION,
        formatter_class=_help_formatter,
    )
    command.add_arguments(parser)
    if own_process:
        if name in {"fire", "bridge"}:
            # The process ends after one event: collecting garbage is wasted time.
            gc.disable()
        end_hooks_on_signals(signal.SIGTERM, signal.SIGHUP)
    try:
        options = parser.parse_args(arguments)
    except SystemExit:  # after --help
        return 0
    status: int | None = command.run(options)
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


def _fail(
    message: str, arguments: Iterable[str] = (), error: Exception | None = None
) -> int:
    """Say why the command failed; with the traceback of an error, if that is given."""
    with suppress(OSError):  # nobody can be told
        _tell(message, [*arguments], error)
    return 1


def _tell(message: str, arguments: list[str], error: Exception | None) -> None:
    if any(word.startswith("--log") for word in arguments):
        from .log_format import asks_for_json, fatal_line, write_line

        if asks_for_json(arguments):
            write_line(fatal_line(message, error))
            return
    if error is not None:
        import traceback

        traceback.print_exception(error)
    print(f"hookline: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
