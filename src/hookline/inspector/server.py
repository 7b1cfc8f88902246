"""Run the inspector on a socket until it is told to stop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from socket import socket

import uvicorn
from starlette.types import ASGIApp

from .desk import Desk

_LAST_ANSWERS_S = 1


class InspectorServer(uvicorn.Server):
    """A server whose signals are handled by the command."""

    def __init__(self, app: ASGIApp, desk: Desk, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                loop="asyncio",
                ws="none",
                lifespan="on",
                log_config=None,
                # The first line of a request may hold the token.
                access_log=False,
                proxy_headers=False,
                server_header=False,
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
