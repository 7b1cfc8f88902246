"""Write events to an open journal, a transaction for each batch.

Runs on the writer's thread from the opening of the file to its end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from sqlite3 import Connection

from hookline.errors import JournalError

from .occurrence import Occurrence
from .retention import forget_old
from .rows import EVENT_COLUMNS, HOOK_COLUMNS, Limits, rows_of
from .store import identity, open_for_writing

FLUSH_S = 0.5
_RETENTION_S = 600.0
_LONGEST_BATCH = 1000

_INSERT_EVENT = (
    f"INSERT INTO events ({', '.join(EVENT_COLUMNS)}) "  # noqa: S608 - our own names
    f"VALUES ({', '.join('?' * len(EVENT_COLUMNS))})"
)
_INSERT_HOOK = (
    f"INSERT INTO hooks ({', '.join(HOOK_COLUMNS)}) "  # noqa: S608 - our own names
    f"VALUES ({', '.join('?' * len(HOOK_COLUMNS))})"
)

_abandoned: list[Connection] = []
"""Open for good: closing one would delete the side files of whoever took its name."""

Item = Occurrence | threading.Event | None
"""An event; somebody to wake when all before it is written; the end."""


class Backlog:
    """What waits to be written by one thread."""

    def __init__(self) -> None:
        self.items: SimpleQueue[Item] = SimpleQueue()
        self.hurry = threading.Event()
        """Set while somebody waits for the writing."""

    def finish(self) -> None:
        """Have everything written, and the thread end."""
        self.items.put(None)
        self.hurry.set()

    def rest(self) -> Iterator[Item]:
        """Take what is there, without waiting."""
        while True:
            try:
                yield self.items.get_nowait()
            except Empty:
                return


class BatchWriting:
    """Empties a backlog into a file."""

    def __init__(self, path: str, backlog: Backlog, limits: Limits) -> None:
        self._path = path
        self._backlog = backlog
        self._limits = limits
        self.written_bytes = 0

    def run(self) -> None:
        """Write until the end; raises ``JournalError`` or ``sqlite3.Error``."""
        connection = open_for_writing(self._path)
        own = identity(self._path)
        try:
            self._write_all(connection, own)
        finally:
            if identity(self._path) == own:
                connection.close()
            else:
                _abandoned.append(connection)

    def _write_all(self, connection: Connection, own: tuple[int, int] | None) -> None:
        clean_up_at = 0.0
        full, going = False, True
        while going:
            if time.monotonic() >= clean_up_at:
                forget_old(connection, self._limits)
                clean_up_at = time.monotonic() + _RETENTION_S
            first = self._backlog.items.get()
            if isinstance(first, Occurrence) and not full:
                # More may come soon: one transaction for all of it.
                self._backlog.hurry.wait(FLUSH_S)
            batch, waiting, going = self._gather(first)
            full = len(batch) == _LONGEST_BATCH
            if batch and identity(self._path) != own:
                raise JournalError(self._path, "was moved or removed while in use")
            self._write(connection, batch)
            for written in waiting:
                written.set()
            if waiting and going:
                self._backlog.hurry.clear()

    def _gather(
        self, first: Item
    ) -> tuple[list[Occurrence], list[threading.Event], bool]:
        """What is to be written now, who waits for it, and whether more may come."""
        batch: list[Occurrence] = []
        waiting: list[threading.Event] = []
        item, rest = first, self._backlog.rest()
        while item is not None:
            if isinstance(item, Occurrence):
                batch.append(item)
            else:
                waiting.append(item)
            if len(batch) == _LONGEST_BATCH:
                return batch, waiting, True
            try:
                item = next(rest)
            except StopIteration:
                return batch, waiting, True
        return batch, waiting, False

    def _write(self, connection: Connection, batch: list[Occurrence]) -> None:
        if not batch:
            return
        rows = [rows_of(occurrence, self._limits) for occurrence in batch]
        connection.execute("BEGIN IMMEDIATE")
        try:
            for row in rows:
                event_id = connection.execute(_INSERT_EVENT, row.event).lastrowid
                hooks = [(event_id, *hook) for hook in row.hooks]
                connection.executemany(_INSERT_HOOK, hooks)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self.written_bytes += sum(len(one.input.text) for one in batch)
