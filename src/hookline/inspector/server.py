"""Run the inspector on a socket until it is told to stop."""

from __future__ import annotations

import logging
from asyncio import Transport
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from socket import socket

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from .desk import Desk

_LAST_ANSWERS_S = 1
_MOST_CONNECTIONS = 128
_BACKLOG = 32
_LONGEST_HEADERS = 1024 * 1024
"""Whatever else runs on this machine may give a browser cookies for all ports."""


class _Connection(H11Protocol):
    """One connection; too many are refused, and idle ones do not stay.

    Anybody on this machine can connect, and files that can be open are few.
    """

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # as in uvicorn
        super().connection_made(transport)
        if len(self.connections) > _MOST_CONNECTIONS:
            transport.abort()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )


class InspectorServer(uvicorn.Server):
    """A server whose signals are handled by the command."""

    def __init__(self, app: ASGIApp, desk: Desk, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_Connection,
                loop="asyncio",
                ws="none",
                lifespan="on",
                log_config=None,
                # The first line of a request may hold the token.
                access_log=False,
                proxy_headers=False,
                server_header=False,
                # As many are accepted before the first of them can be refused.
                backlog=_BACKLOG,
                h11_max_incomplete_event_size=_LONGEST_HEADERS,
                timeout_graceful_shutdown=_LAST_ANSWERS_S,
            )
        )
        # It tells of what a client did wrong, and of nothing that is ours.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._desk = desk
        self._ready = ready

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override] # a context manager all the same
        """Leave signals to the command."""
        return nullcontext()

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Say that it is ready once it accepts connections."""
        await super().startup(sockets)
        self._ready()

    def stop(self) -> None:
        """End streams and the server; for the event loop's thread."""
        self._desk.stopping.set()
        self.should_exit = True
