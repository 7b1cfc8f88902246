"""How many hook processes run at a time."""

from __future__ import annotations

import asyncio
from collections import deque


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
            else:
                self._waiting.remove(turn)
            raise

    def release(self) -> None:
        """Hand the slot to the next in line, or put it back."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
