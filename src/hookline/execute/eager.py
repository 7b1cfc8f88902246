"""Start a coroutine at once, in a task of its own: eager tasks for Python 3.11.

Most async hooks await nothing that makes them wait. From Python 3.12 on ``asyncio``
runs such a coroutine without a turn of the event loop; here the same is done with what
``asyncio`` documents for tasks of third parties. The first step runs in the context of
the new task and as its code: ``asyncio.current_task()``, ``asyncio.timeout()`` and
``TaskGroup`` find that task and not the caller's.

A task costs more than the first step of most hooks and needs a turn of the loop to end.
So it is only allocated at first, and built when the hook waits or looks at it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import copy_context
from typing import Any

Work = Coroutine[Any, Any, None]


def start_eagerly(
    work: Work, loop: asyncio.AbstractEventLoop
) -> asyncio.Task[None] | None:
    """Take the first step of ``work`` now; its task, or None if nobody needs one.

    ``work`` must not raise, except for cancellation after its first step.
    """
    rest = _Rest(work, loop)
    task = _UnbuiltTask(rest)
    caller = asyncio.current_task(loop)
    asyncio._register_task(task)  # noqa: SLF001 - documented for such tasks
    if caller is not None:
        asyncio._leave_task(loop, caller)  # noqa: SLF001
    asyncio._enter_task(loop, task)  # noqa: SLF001
    try:
        rest.waits_for = rest.context.run(work.send, None)
    except StopIteration:
        rest.finished = True
    finally:
        asyncio._leave_task(loop, task)  # noqa: SLF001
        if caller is not None:
            asyncio._enter_task(loop, caller)  # noqa: SLF001
    if rest.finished and not rest.has_task:
        return None
    return _built(task)


class _Rest(Coroutine[Any, Any, None]):
    """A coroutine after its first step, as its task runs it."""

    waits_for: asyncio.Future[Any] | None = None
    """What the task must be told first; None if a turn of the loop is enough."""
    finished = False
    has_task = False

    def __init__(self, work: Work, loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.context = copy_context()

    def send(self, value: Any) -> Any:
        """Go on, in the first turn with what the first step waits for."""
        if self.finished:
            raise StopIteration
        waits_for, self.waits_for = self.waits_for, None
        return self.work.send(value) if waits_for is None else waits_for

    def throw(self, error: Any, *more: Any) -> Any:
        """Raise an error inside; a cancellation reaches what it waits for as well."""
        if self.finished:
            raise error
        waits_for, self.waits_for = self.waits_for, None
        if asyncio.isfuture(waits_for) and waits_for.cancel(*error.args):
            return waits_for
        return self.work.throw(error, *more)

    def close(self) -> None:
        """Close the coroutine."""
        self.work.close()

    def __await__(self) -> Generator[Any, Any, None]:
        return self.work.__await__()


class _HookTask(asyncio.Task[None]):
    """The task of a hook."""

    __slots__ = ("_rest",)


class _UnbuiltTask(_HookTask):
    """Builds itself as soon as anybody looks at it; only its identity costs nothing.

    ``asyncio`` asks every task for its loop, also from other threads: that builds none.
    """

    __slots__ = ()

    def __init__(self, rest: _Rest) -> None:
        self._rest = rest

    def __getattribute__(self, name: str) -> Any:
        if name == "get_loop":
            return lambda: _rest_of(self).loop
        return getattr(_built(self), name)

    def __await__(self) -> Generator[Any, None, None]:
        return _built(self).__await__()

    __iter__ = __await__

    def __repr__(self) -> str:
        return repr(_built(self))


def _rest_of(task: _HookTask) -> _Rest:
    rest: _Rest = object.__getattribute__(task, "_rest")
    return rest


def _built(task: _HookTask) -> _HookTask:
    rest = _rest_of(task)
    if not rest.has_task:
        rest.has_task = True
        task.__class__ = _HookTask
        asyncio.Task.__init__(task, rest, loop=rest.loop, context=rest.context)
    return task
