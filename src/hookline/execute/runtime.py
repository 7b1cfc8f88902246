"""What one hook system has on one event loop; loops share nothing.

A loop that is blocked or closed keeps nothing from another: ``fire_sync`` blocks a loop
whose hooks are running. So ``maxProcesses`` holds for each loop. A fork has none of it:
what its parent has there is the parent's.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

_ELSEWHERE_S = 1.0


class LoopPart(Protocol):
    """Something that belongs to one event loop: a client, a queue, kept processes."""

    async def close(self) -> None:
        """Release it, on its loop; again if that was cancelled."""
        ...

    def abandon(self) -> None:
        """Release it at once, without its loop, which does not run any more."""
        ...


T = TypeVar("T", bound=LoopPart)


class Runtime:
    """Turns to run processes, and the parts that executors keep on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: int) -> None:
        self.loop = loop
        self.slots = Slots(limit)
        self.parts: dict[type[Any], LoopPart] = {}

    def part(self, kind: type[T]) -> T:
        """The only object of a class here; made when it is first asked for."""
        part = self.parts.get(kind)
        if part is None:
            part = self.parts[kind] = kind()
        return part  # type: ignore[return-value]  # made by this very class

    async def close(self) -> None:
        """Close all parts; again if that was cancelled."""
        while self.parts:
            kind, part = next(reversed(self.parts.items()))
            await part.close()
            self.parts.pop(kind, None)

    def abandon(self) -> None:
        """Release all parts, where the loop does not run any more."""
        while self.parts:
            self.parts.popitem()[1].abandon()


class Runtimes:
    """The runtimes of one hook system, by event loop."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._by_loop: dict[asyncio.AbstractEventLoop, Runtime] = {}
        _systems.add(self)
        # The last resort: at exit, or if a system is dropped without dispose().
        weakref.finalize(self, _abandon, self._by_loop)

    def here(self) -> Runtime:
        """That of the running event loop."""
        loop = asyncio.get_running_loop()
        runtime = self._by_loop.get(loop)
        if runtime is None:
            _abandon(self._by_loop, lambda loop: loop.is_closed())
            runtime = self._by_loop[loop] = Runtime(loop, self._limit)
        return runtime

    def parts(self, kind: type[T]) -> list[T]:
        """The objects of a class on all loops, for any thread."""
        runtimes = tuple(self._by_loop.values())
        parts = [runtime.parts.get(kind) for runtime in runtimes]
        return [part for part in parts if isinstance(part, kind)]

    def resize(self, limit: int) -> None:
        """Change how many processes run at once on each loop, from any thread."""
        self._limit = limit
        for loop, runtime in tuple(self._by_loop.items()):
            with suppress(RuntimeError):  # it is closed
                loop.call_soon_threadsafe(runtime.slots.resize, limit)

    async def close(self) -> None:
        """Close all of them; again if that was cancelled.

        Those of other loops are closed there, and waited for a moment only: a loop may
        be blocked by a call that waits for this one.
        """
        here = asyncio.get_running_loop()
        _abandon(self._by_loop, lambda loop: not loop.is_running())
        elsewhere = []
        for loop in tuple(self._by_loop):
            if loop is not here and (runtime := self._by_loop.pop(loop, None)):
                with suppress(RuntimeError):  # it was closed just now
                    closing = asyncio.run_coroutine_threadsafe(runtime.close(), loop)
                    elsewhere.append(asyncio.wrap_future(closing))
        if (runtime := self._by_loop.get(here)) is not None:
            await runtime.close()
            self._by_loop.pop(here, None)
        if elsewhere:
            await asyncio.wait(elsewhere, timeout=_ELSEWHERE_S)

    def forget(self) -> None:
        """In a fork: all of it is the parent's."""
        self._by_loop.clear()


def _abandon(
    by_loop: dict[asyncio.AbstractEventLoop, Runtime],
    is_chosen: Callable[[asyncio.AbstractEventLoop], bool] | None = None,
) -> None:
    """Release those of the chosen loops, None for all, which do not run any more."""
    for loop in filter(is_chosen, tuple(by_loop)):
        if runtime := by_loop.pop(loop, None):
            runtime.abandon()


_systems: weakref.WeakSet[Runtimes] = weakref.WeakSet()


def _forget_in_fork() -> None:
    for runtimes in _systems:
        runtimes.forget()


os.register_at_fork(after_in_child=_forget_in_fork)


class Slots:
    """A limit on what runs at once; those who wait get their turns in order."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def free(self) -> int:
        """How many could be taken now."""
        return max(0, self._limit - self._held)

    def resize(self, limit: int) -> None:
        """Change the limit; what is held beyond it is given back in its time."""
        self._limit = limit
        self._hand_out()

    async def acquire(self) -> None:
        """Take a slot, or wait for one."""
        if self._held < self._limit:
            self._held += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # handed over just before the cancellation
            raise

    def release(self) -> None:
        """Give the slot to the next in line, or put it back."""
        self._held -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting and self._held < self._limit:
            turn = self._waiting.popleft()
            if not turn.done():  # else it was cancelled
                self._held += 1
                turn.set_result(None)

    __aenter__ = acquire

    async def __aexit__(self, *_: object) -> None:
        self.release()
