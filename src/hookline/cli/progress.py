"""Show a person at a terminal that something is going on, after a second of it.

Written to standard error, where it is a terminal, and wiped away in the end.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType

PATIENCE_S = 1.0
_EVERY_S = 0.1


class Progress:
    """Counts steps, with or without knowing how many there will be."""

    def __init__(self, what: str, total: int | None = None) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._visible = sys.stderr.isatty()
        self._started = time.monotonic()
        self._due = self._started + PATIENCE_S
        self._shown = False

    def step(self) -> None:
        """One more is done."""
        self._done += 1
        if self._visible and time.monotonic() >= self._due:
            self.show()

    def show(self) -> None:
        """Write the line anew."""
        now = time.monotonic()
        self._due = now + _EVERY_S
        if self._visible and now - self._started >= PATIENCE_S:
            self._shown = True
            line = f"{self._what} {self._count()} {now - self._started:.0f} s"
            print(f"\r\x1b[2K{line}", end="", file=sys.stderr, flush=True)

    def _count(self) -> str:
        if self._total is None:
            return f"{self._done:,}" if self._done else ""
        share = self._done / self._total if self._total else 1.0
        bar = "█" * round(share * 20)
        return f"{bar:░<20} {self._done:,}/{self._total:,}"

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


@asynccontextmanager
async def waiting(what: str) -> AsyncIterator[None]:
    """Show how long something takes that has no steps."""
    with Progress(what) as progress:
        ticker = asyncio.create_task(_tick(progress))
        try:
            yield
        finally:
            ticker.cancel()


async def _tick(progress: Progress) -> None:
    while True:
        await asyncio.sleep(_EVERY_S)
        progress.show()
