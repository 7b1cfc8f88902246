"""``hookline inspect``: look at the journal and the hooks in the browser."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import subprocess
import sys

from hookline.errors import HooklineError, MissingExtraError

from . import journal
from .messages import log_to_stderr, note
from .options import Options, Parser, at_least
from .signals import reload_on_hangup, stop_on_signals

SUMMARY = "look at events and hooks in the browser"
DESCRIPTION = """\
Serve a page that shows recorded events as they happen, hooks and their figures, trials,
replays and what waits for approval. Only this machine can reach it, and only with the
token in the address that is printed.

  hookline inspect
  hookline inspect --port 8123 --no-open

The address is printed alone on a line of standard output. Ctrl-C or SIGTERM ends it;
SIGHUP loads the settings again, which also happens when their files change.

exit status: 0 stopped by a signal, 1 usage error"""

_HOST = "127.0.0.1"


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    text = "port to listen on (default: 0, any that is free)"
    parser.add_option("--port N", text, type=at_least(0), default=0)
    parser.add_flag("--no-open", "do not open the browser")
    journal.add_journal_arguments(parser)


def run(options: Options) -> None:
    """Serve until a signal arrives."""
    log_to_stderr()
    try:
        from hookline.inspector.app import build_app
        from hookline.inspector.desk import Desk
        from hookline.inspector.server import InspectorServer
    except ModuleNotFoundError as error:
        raise MissingExtraError("inspect", error.name or "starlette") from error
    path = None if options.journal is None else journal.journal_file(options)
    desk = Desk(options.cwd, options.settings, path)
    with _listen(options.port) as listener:
        port = listener.getsockname()[1]
        token = secrets.token_urlsafe(32)
        guard = build_app(desk, token, port)
        address = f"http://{_HOST}:{port}/"

        def announce() -> None:
            print(f"{address}?token={token}", flush=True)
            how = "open this address in a browser"
            if not options.no_open and (reason := _no_browser()):
                how += f" ({reason})"
            elif not options.no_open:
                _open_browser(f"{address}?token={guard.single_use_token()}")
                how = "opening the browser"
            note(f"hookline: {how}; Ctrl-C ends the inspector")

        server = InspectorServer(guard, desk, announce)

        async def serve() -> None:
            loop = asyncio.get_running_loop()
            stop_on_signals(loop, server.stop)
            reload_on_hangup(loop, desk.reload_soon)
            await server.serve([listener])

        asyncio.run(serve())


def _listen(port: int) -> socket.socket:
    try:
        listener = socket.create_server((_HOST, port))
    except OverflowError:
        raise HooklineError(f"--port {port}: must be at most 65535") from None
    except OSError as error:
        hint = "choose another port, or leave --port out"
        raise HooklineError(
            f"--port {port}: {os.strerror(error.errno or 0)}: {hint}"
        ) from error
    # Inherited by connections: without it each answer waits 40 ms for the client.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _no_browser() -> str | None:
    """Why no browser can be opened."""
    if any(map(os.environ.get, ("SSH_CONNECTION", "SSH_TTY"))):
        return "not opened: this is an SSH session; forward the port to your machine"
    chosen = map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    if sys.platform == "linux" and not any(chosen):
        return "not opened: there is no display"
    return None


def _open_browser(address: str) -> None:
    """Open it in a process of its own, which may print and take its time."""
    subprocess.Popen(
        # Isolated: no module of the current directory, which may be a stranger's.
        [sys.executable, "-Im", "webbrowser", address],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
