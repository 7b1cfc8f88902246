"""How many hook processes run at a time, and how deep hooks may fire hooks."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

DEPTH_VARIABLE = "HOOKLINE_DEPTH"
"""Goes up in the environment of every hook's process."""

_inside: ContextVar[int] = ContextVar("hookline_depth", default=0)
_LONGEST_DEPTH = 9


def current_depth() -> int:
    """How many hooks deep the caller runs: in processes, and in this one."""
    said = os.environ.get(DEPTH_VARIABLE, "")
    outside = int(said) if said.isdecimal() and len(said) <= _LONGEST_DEPTH else 0
    return max(outside, _inside.get())


@contextmanager
def one_deeper(depth: int) -> Iterator[None]:
    """Count what runs inside, and the tasks it starts, as one hook deeper."""
    token = _inside.set(depth + 1)
    try:
        yield
    finally:
        _inside.reset(token)


class ProcessSlots:
    """Slots that are handed out in the order in which they were asked for."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> None:
        """Take a slot, or wait in line for one."""
        if self._free > 0:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # it was handed over in the moment of cancellation
            raise

    def release(self) -> None:
        """Hand the slot to the next in line, or put it back."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # a cancelled one gave up its place
                turn.set_result(None)
                return
        self._free += 1
