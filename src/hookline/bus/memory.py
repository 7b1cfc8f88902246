"""A message bus inside the process, for one event loop.

Each subscriber gets the messages of its type one at a time, in order. ``publish``
delivers and does not wait (decision 0030): an idle plain handler has been called, an
idle async one started, and a busy one has the message in its own queue. A subscriber
that is slow or raises affects no other. Payloads are not copied: do not change them.
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
"""A queue of this length is logged, each time it is reached."""

_log = logging.getLogger("hookline.bus")


class InMemoryMessageBus:
    """Subscribe and publish within one process and one event loop."""

    def __init__(self) -> None:
        self._subscribers: dict[str, tuple[_Subscriber, ...]] = {}

    def subscribe(self, message_type: str, handler: MessageHandler) -> Unsubscribe:
        """Call ``handler`` with every message of a type from now on.

        The returned function ends that: a call in flight finishes, queued messages are
        dropped. It may be called inside the handler, and more than once.
        """
        subscriber = _Subscriber(handler)
        others = self._subscribers.get(message_type, ())
        self._subscribers[message_type] = (*others, subscriber)

        def unsubscribe() -> None:
            subscriber.close()
            self._subscribers[message_type] = tuple(
                other
                for other in self._subscribers[message_type]
                if other is not subscriber
            )

        return unsubscribe

    def has_subscribers(self, message_type: str) -> bool:
        """Whether anything is subscribed to this type of message."""
        return bool(self._subscribers.get(message_type))

    async def publish(self, message_type: str, payload: Any) -> None:
        """Deliver ``payload`` to all subscribers of a message type."""
        for subscriber in self._subscribers.get(message_type, ()):
            subscriber.take(payload)


class _Subscriber:
    """One handler with its queue; at most one call at a time."""

    def __init__(self, handler: MessageHandler) -> None:
        self._handler = handler
        self._name = getattr(handler, "__qualname__", type(handler).__name__)
        self._waiting: deque[Any] = deque()
        self._busy = False
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    def take(self, payload: Any) -> None:
        if self._closed:
            return
        self._waiting.append(payload)
        if len(self._waiting) == LONG_QUEUE:
            _log.warning("%d messages wait for %r", LONG_QUEUE, self._name)
        if self._busy:
            return
        self._busy = True
        try:
            call = self._call_until_async()
        except KeyboardInterrupt:
            self._busy = False
            raise
        if call is None:
            self._busy = False
        else:
            # The loop keeps no strong reference to a task.
            self._task = asyncio.create_task(self._finish(call))

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()

    def _call_until_async(self) -> Awaitable[Any] | None:
        """Call the handler for queued messages, until a call must be awaited."""
        while self._waiting:
            try:
                result = self._handler(self._waiting.popleft())
            except KeyboardInterrupt:
                raise
            # A subscriber is foreign code and may raise anything.
            except BaseException:  # noqa: BLE001
                _log.exception("subscriber %r failed", self._name)
                continue
            if isawaitable(result):
                return result
        return None

    async def _finish(self, call: Awaitable[Any] | None) -> None:
        """Await a call and those that follow, until the queue is empty."""
        task = asyncio.current_task()
        try:
            while call is not None:
                try:
                    await call
                except BaseException as error:
                    # A call may also await something that others cancel.
                    is_ours = task is not None and task.cancelling()
                    if is_ours or isinstance(error, KeyboardInterrupt | GeneratorExit):
                        raise
                    _log.exception("subscriber %r failed", self._name)
                call = self._call_until_async()
        finally:
            self._busy, self._task = False, None
