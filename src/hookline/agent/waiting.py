"""One ``async def`` for plain and async callers: why there are no twins of our code.

For a plain caller everything that the code awaits blocks instead of suspending, so the
coroutine runs to its end in the caller's thread and without a loop. Only hooks run
elsewhere, on the background loop of their config (decision 0050).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
)
from contextlib import aclosing
from functools import update_wrapper
from typing import Any, TypeVar, cast

from msgspec import Struct

from .conversation import name_of
from .triggers import SessionEvents

T = TypeVar("T")


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, in this thread and without a loop."""
    try:
        work.send(None)
    except StopIteration as ended:
        return cast("T", ended.value)
    raise RuntimeError("a plain call was suspended")


def iterate_to_end(items: AsyncGenerator[T, None]) -> Iterator[T]:
    """Iterate over an async generator that never suspends."""
    try:
        while True:
            yield run_to_end(items.__anext__())
    except StopAsyncIteration:
        return
    finally:
        run_to_end(items.aclose())


class Waiting(Struct, frozen=True):
    """How shared code waits: on the caller's loop, or blocking a plain caller."""

    session: SessionEvents
    is_async: bool

    async def hooks(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the coroutine of a hook call."""
        return await work if self.is_async else self.session.run_sync(work)

    async def last_hooks(self, work: Coroutine[Any, Any, Any]) -> None:
        """Wait for hooks though the caller is cancelled, or is gone."""
        if self.is_async:
            # A scope that cancels again ends the wait, not the hooks.
            await asyncio.shield(asyncio.ensure_future(work))
        else:
            self.session.run_sync(work)

    async def value(self, value: Any) -> Any:
        """What a function returned; a plain function's value is never awaited."""
        return await value if self.is_async else value

    def items(self, items: Any) -> AsyncGenerator[Any, None]:
        """What a generator function returned, to iterate over."""
        return items if isinstance(items, AsyncGenerator) else _as_async(items)


async def _as_async(items: Any) -> AsyncGenerator[Any, None]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


def wrap(
    function: Callable[..., Any],
    work: Callable[..., Any],
    session: SessionEvents,
    mark: str,
    *,
    is_async: bool | None = None,
) -> Callable[..., Any]:
    """Call ``work(waiting, ...)`` in place of a function; plain or async as that is.

    ``work`` is a coroutine function, or an async generator function for a generator.
    """
    if is_async is None:
        is_async = inspect.iscoroutinefunction(function)
    wait = Waiting(session, is_async=is_async)

    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return await work(wait, *args, **kwargs)

    def call(*args: Any, **kwargs: Any) -> Any:
        return run_to_end(work(wait, *args, **kwargs))

    async def iterate_async(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        # Closing this one closes that one now, not when it is collected.
        async with aclosing(work(wait, *args, **kwargs)) as items:
            async for item in items:
                yield item

    def iterate(*args: Any, **kwargs: Any) -> Iterator[Any]:
        yield from iterate_to_end(work(wait, *args, **kwargs))

    wrapper: Any
    if inspect.isasyncgenfunction(work):
        wrapper = iterate_async if is_async else iterate
    else:
        wrapper = call_async if is_async else call
    update_wrapper(wrapper, function)
    wrapper.__name__ = name_of(function)  # a partial has none to copy
    setattr(wrapper, mark, True)
    return cast("Callable[..., Any]", wrapper)


def is_marked(function: Any, mark: str) -> bool:
    """Whether ``wrap`` made this function, with this mark."""
    return getattr(function, mark, False) is True
