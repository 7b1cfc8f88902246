"""``hookline``: the command line, with one module per command.

The module of a command has ``SUMMARY``, ``DESCRIPTION``, ``add_arguments(parser)`` and
``run(options)``, which returns the exit status or None. Only the module in use is
imported: ``hookline fire`` must start fast.
Exit status 1 is a usage error, with a message on stderr.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import TextIO

from hookline.errors import HooklineError, nearest
from hookline.hosts.failsafe import failsafe

GROUPS = {
    "start here": ("demo", "init", "recipes", "trust"),
    "write and test hooks": ("fire", "list", "explain", "check", "schema", "test"),
    "see what happened": ("log", "stats", "replay", "inspect"),
    "connect agents": (
        *("install", "uninstall", "bridge", "migrate"),
        *("serve", "request"),
    ),
    "this installation": ("paths", "completion"),
}
"""The commands as the overview shows them; each is a module of this package."""

COMMANDS = tuple(name for names in GROUPS.values() for name in names)


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
        if name in {"-h", "--help", "help"}:
            return _help(arguments)
        if name in {"-V", "--version"}:
            print(f"hookline {import_module('hookline').__version__}")
            return 0
        return _fail(_unknown(name), arguments)
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
        status = _fail(f"{bug} the traceback", arguments, error)
        return failsafe.fail(f"internal error: {error!r}") if failsafe.words else status


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
    """Write what is buffered; if that fails, only a status of 0 changes."""
    try:
        stream.flush()
    except OSError as error:
        from .terminal import discard

        discard(stream)
        if stream is sys.stdout and status == 0:
            if isinstance(error, BrokenPipeError):
                return 141
            return _fail(f"standard output: {error.strerror}", sys.argv[1:])
    return status


def _run(name: str, arguments: list[str], *, own_process: bool = False) -> int:
    from .options import Parser
    from .signals import end_hooks_on_signals

    command = import_module(f"hookline.cli.{name}")
    parser = Parser(prog=f"hookline {name}", description=command.DESCRIPTION)
    command.add_arguments(parser)
    if own_process:
        if name == "bridge":
            failsafe.start(arguments)
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


def _help(arguments: list[str]) -> int:
    """Describe one command, or all of them."""
    name = next((word for word in arguments[1:] if not word.startswith("-")), "help")
    if arguments[:1] == ["help"] and name != "help":
        if name not in COMMANDS:
            return _fail(_unknown(name), arguments)
        return _run(name, ["--help"])
    from .help_text import overview

    print(overview(GROUPS))
    return 0 if arguments else 1


def _unknown(name: str) -> str:
    near = nearest(name, COMMANDS)
    hint = f"did you mean 'hookline {near}'?" if near else "see 'hookline --help'"
    return f"unknown command {name!r}: {hint}"


def _fail(message: str, arguments: list[str], error: Exception | None = None) -> int:
    """Say why the command failed; with the traceback of an error, if that is given."""
    with suppress(OSError):  # nobody can be told
        if any(word.startswith("--log") for word in arguments):
            from .messages import asks_for_json, json_message

            if asks_for_json(arguments):
                line = json_message("error", message, error)
                print(line, file=sys.stderr, flush=True)
                return 1
        if error is not None:
            import traceback

            traceback.print_exception(error)
        from .terminal import printable_text

        print(f"hookline: {printable_text(message)}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
