"""How many hook processes run at a time, and how deep hooks may fire hooks."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

DEPTH_VARIABLE = "HOOKLINE_DEPTH"
"""Goes up in the environment of every hook's process."""

_inside: ContextVar[int] = ContextVar("hookline_depth", default=0)
_LONGEST_DEPTH = 9
_raw_environment: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
_RAW_NAME = os.environ.encodekey(DEPTH_VARIABLE)


def current_depth() -> int:
    """How many hooks deep the caller runs: in processes, and in this one."""
    inside = _inside.get()
    # Asking the raw mapping first saves a host, which is at depth 0, a microsecond.
    if _RAW_NAME not in _raw_environment:
        return inside
    said = os.environ.get(DEPTH_VARIABLE, "")
    outside = int(said) if said.isdecimal() and len(said) <= _LONGEST_DEPTH else 0
    return max(outside, inside)


class OneDeeper:
    """Counts what runs inside, and the tasks it starts, as one hook deeper."""

    __slots__ = ("_depth", "_token")

    def __init__(self, depth: int) -> None:
        self._depth = depth + 1

    def __enter__(self) -> None:
        self._token = _inside.set(self._depth)

    def __exit__(self, *_: object) -> None:
        _inside.reset(self._token)


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
            if turn.done():  # a cancelled one gave up its place
                continue
            loop = turn.get_loop()
            if loop is asyncio.get_running_loop():
                turn.set_result(None)
            else:  # a plain function's hooks run on a background loop (decision 0050)
                loop.call_soon_threadsafe(self._hand_over, turn)
            return
        self._free += 1

    def _hand_over(self, turn: asyncio.Future[None]) -> None:
        if turn.done():
            self.release()
        else:
            turn.set_result(None)
