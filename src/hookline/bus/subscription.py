"""A handler's subscription to a bus, asked for until the bus grants it (HBUS-002).

A bus that refuses, or does not answer, costs the requests that come over it and nothing
else: the hooks work by direct calls meanwhile.
"""

from __future__ import annotations

import asyncio
import logging

from .server import RequestServer

_PATIENCE_S = 1.0
"""How long the start of the hooks waits for the bus."""
_PROMPT_S = 0.05
"""A bus that refuses as fast as this is asked again at every event."""
_ATTEMPT_S = 15.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0

_log = logging.getLogger("hookline.bus")


class Subscription:
    """Subscribes a server, on the event loop on which it is made."""

    def __init__(self, server: RequestServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._attempt: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._wait_until = self._loop.time() + _PATIENCE_S
        self._pause_s = _FIRST_PAUSE_S
        self._refused_in_s = 0.0
        self._is_granted = False
        self._problem = ""

    async def ask(self) -> None:
        """Ask the bus, and wait for a moment; never raises, except for cancellation."""
        if self._loop.is_closed():
            self._loop, self._attempt = asyncio.get_running_loop(), None
        if self._is_granted or asyncio.get_running_loop() is not self._loop:
            return
        if self._attempt is None and self._refused_in_s <= _PROMPT_S:
            self._start()
        left_s = self._wait_until - self._loop.time()
        if self._attempt is not None and left_s > 0:
            await asyncio.wait({self._attempt}, timeout=left_s)
            if self._attempt is not None:
                self._warn("it does not answer")

    async def end(self) -> None:
        """Stop asking, and undo what was granted."""
        if self._timer is not None:
            self._timer.cancel()
        if self._attempt is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._attempt.cancel)
            if asyncio.get_running_loop() is self._loop:
                await asyncio.wait({self._attempt})
        self._server.dispose()

    def _start(self) -> None:
        if self._timer is not None:  # not the first attempt
            self._timer.cancel()
            self._wait_until = self._loop.time() + _PROMPT_S
        if self._attempt is None:
            self._attempt = self._loop.create_task(self._try())

    async def _try(self) -> None:
        began = self._loop.time()
        try:
            async with asyncio.timeout(_ATTEMPT_S):
                await self._server.join()
            self._is_granted = True
        # A bus of the host is foreign code and may raise anything.
        except BaseException as error:
            is_cancelled = self._attempt is not None and self._attempt.cancelling()
            if is_cancelled or isinstance(error, KeyboardInterrupt | GeneratorExit):
                raise
            self._warn(f"{type(error).__name__}: {error}")
            self._refused_in_s = self._loop.time() - began
            self._timer = self._loop.call_later(self._pause_s, self._start)
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        finally:
            self._attempt = None

    def _warn(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            text = (
                "the bus refused the subscription (%s): hooks work without it for now"
            )
            _log.warning(text, problem)
