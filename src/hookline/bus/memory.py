"""A message bus inside the process.

Each subscriber gets the messages of its type one at a time, in the order of
publishing. ``publish`` returns once the message is handed over to every subscriber:
a plain handler that is idle has then been called, an async one has been started, and
a busy subscriber has the message waiting in a queue of its own. So a subscriber that
is slow or raises delays and harms nobody else (decision 0030).

A bus belongs to one event loop. Payloads are handed on as they are, not copied:
subscribers read them and change nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable
from inspect import isawaitable
from typing import Any

from .contracts import MessageHandler, Unsubscribe

LONG_QUEUE = 10_000
"""A subscriber this far behind is reported, once per time it falls behind."""

_log = logging.getLogger("hookline.bus")


class InMemoryMessageBus:
    """Subscribe and publish within one process and one event loop."""

    def __init__(self) -> None:
        self._subscribers: dict[str, tuple[_Subscriber, ...]] = {}

    def subscribe(self, message_type: str, handler: MessageHandler) -> Unsubscribe:
        """Have every message of a type handed to ``handler`` from now on.

        The returned function undoes it: calls in flight finish, what still waits is
        dropped. It may be called inside the handler, and more than once.
        """
        subscriber = _Subscriber(handler)
        known = self._subscribers.get(message_type, ())
        self._subscribers[message_type] = (*known, subscriber)

        def unsubscribe() -> None:
            subscriber.close()
            self._subscribers[message_type] = tuple(
                other
                for other in self._subscribers[message_type]
                if other is not subscriber
            )

        return unsubscribe

    def has_subscribers(self, message_type: str) -> bool:
        """Whether anybody would get a message of this type."""
        return bool(self._subscribers.get(message_type))

    async def publish(self, message_type: str, payload: Any) -> None:
        """Hand a message over to all who subscribed to its type."""
        for subscriber in self._subscribers.get(message_type, ()):
            subscriber.take(payload)


class _Subscriber:
    """One handler with its queue; at most one call at a time."""

    def __init__(self, handler: MessageHandler) -> None:
        self._handler = handler
        self._waiting: deque[Any] = deque()
        self._busy = False
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    def take(self, payload: Any) -> None:
        if self._closed:
            return
        self._waiting.append(payload)
        if self._busy:
            if len(self._waiting) == LONG_QUEUE:
                _log.warning(
                    "%d messages wait for %r", LONG_QUEUE, _shown(self._handler)
                )
            return
        self._busy = True
        unfinished = self._call_until_async()
        if unfinished is None:
            self._busy = False
        else:
            # The loop keeps no strong reference to a task.
            self._task = asyncio.create_task(self._work(unfinished))

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()

    def _call_until_async(self) -> Awaitable[Any] | None:
        """Call the handler for what waits, until a call has to be awaited."""
        while self._waiting:
            try:
                result = self._handler(self._waiting.popleft())
            # A subscriber is foreign code and may raise anything.
            except Exception:  # noqa: BLE001
                _log.exception("subscriber %r failed", _shown(self._handler))
                continue
            if isawaitable(result):
                return result
        return None

    async def _work(self, unfinished: Awaitable[Any] | None) -> None:
        try:
            while unfinished is not None:
                await self._finish(unfinished)
                unfinished = self._call_until_async()
        finally:
            self._busy = False
            self._task = None

    async def _finish(self, call: Awaitable[Any]) -> None:
        try:
            await call
        except asyncio.CancelledError:
            task = asyncio.current_task()
            # Something the handler awaited was cancelled: its own affair, unless
            # it is this very task that is being cancelled.
            if task is None or task.cancelling():
                raise
            _log.warning("subscriber %r was cancelled", _shown(self._handler))
        # A subscriber is foreign code and may raise anything.
        except Exception:  # noqa: BLE001
            _log.exception("subscriber %r failed", _shown(self._handler))


def _shown(handler: MessageHandler) -> str:
    return getattr(handler, "__qualname__", type(handler).__name__)
