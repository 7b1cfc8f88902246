"""Notice new events in the journal, for all streams at once.

No connection stays open: the journal can be moved at any time. Its files are looked at
often; it is opened when they have changed, and once a second, since a file's times are
too coarse to rely on.
"""

from __future__ import annotations

import asyncio
import os
import time

from msgspec import Struct

from hookline.errors import JournalError
from hookline.journal.store import identity

from .desk import Desk

_POLL_S = 0.05
_LOOK_S = 1.0


class JournalState(Struct, frozen=True):
    """What the journal is at one time."""

    file: tuple[int, int] | None = None
    """Identifies it; None if it does not exist or cannot be used."""
    last_id: int = 0


class Live:
    """The newest state of the journal; looks as long as somebody waits."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._watchers = 0
        self._task: asyncio.Task[None] | None = None
        self._stamp: object = None
        self._looked_at = 0.0
        # A look that began earlier must not replace the result of a later one.
        self._looking = asyncio.Lock()
        self.state = JournalState()

    async def start(self) -> JournalState:
        """Begin to wait; the state at this moment."""
        self._watchers += 1
        async with self._looking:
            self.state = await self._desk.in_thread(_look, self._desk)
        if self._task is None:
            self._task = asyncio.create_task(self._poll())
        return self.state

    def stop(self) -> None:
        """Wait no more."""
        self._watchers -= 1
        if self._watchers == 0 and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(_POLL_S)
            async with self._looking:
                state = await self._desk.in_thread(self._look_if_changed)
                if state is not None:
                    self.state = state

    def _look_if_changed(self) -> JournalState | None:
        stamp = _stamp(self._desk)
        late = time.monotonic() - self._looked_at >= _LOOK_S
        if stamp == self._stamp and not late:
            return None
        self._stamp, self._looked_at = stamp, time.monotonic()
        return _look(self._desk)


def _look(desk: Desk) -> JournalState:
    try:
        path = desk.journal
        file = identity(path)
        if file is None:
            return JournalState()
        with desk.read() as reader:
            return JournalState(file, reader.last_id())
    except (JournalError, OSError):
        return JournalState()


def _stamp(desk: Desk) -> object:
    """Something that changes when most writers have written."""
    try:
        path = desk.journal
    except JournalError:
        return None
    return tuple(_file_stamp(f"{path}{suffix}") for suffix in ("", "-wal"))


def _file_stamp(path: str) -> object:
    try:
        status = os.stat(path)  # noqa: PTH116 - a string
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
