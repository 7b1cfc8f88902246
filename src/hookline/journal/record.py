"""Record events in the background: one thread writes batches and deletes old rows."""

from __future__ import annotations

import atexit
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from sqlite3 import Connection
from weakref import WeakSet

from hookline.errors import JournalError
from hookline.executors.contract import HookCall, HookPlan
from hookline.log import logger
from hookline.protocol.results import ProcessedHookResult

from .rows import (
    EVENT_COLUMNS,
    HOOK_COLUMNS,
    Limits,
    Occurrence,
    occurrence_of,
    rows_of,
)
from .store import damaged, identity, open_for_writing

_SHARE = 10
"""A tenth of the events goes at a time while the file is too large."""

_DAY_S = 86400


def forget_old(connection: Connection, limits: Limits) -> int:
    """Delete what is over the limits; gives the number of events deleted."""
    before = time.time() - limits.days * _DAY_S
    forgotten = _forget(connection, "at < ?", before)
    while _size(connection) > limits.total_bytes and _count(connection):
        share = max(_count(connection) // _SHARE, 1)
        oldest = "id IN (SELECT id FROM events ORDER BY id LIMIT ?)"
        forgotten += _forget(connection, oldest, share)
        _shrink(connection)
    if forgotten:
        _shrink(connection)
    return forgotten


def _forget(connection: Connection, which: str, value: float) -> int:
    chosen = f"SELECT id FROM events WHERE {which}"  # noqa: S608 - one of our two
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            f"DELETE FROM hooks WHERE event_id IN ({chosen})",  # noqa: S608 - same
            (value,),
        )
        deleted = connection.execute(
            f"DELETE FROM events WHERE id IN ({chosen})",  # noqa: S608 - same
            (value,),
        )
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return deleted.rowcount


def _shrink(connection: Connection) -> None:
    # It gives back one page for each step, and execute() takes but one.
    connection.executescript("PRAGMA incremental_vacuum")


def _size(connection: Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * page_size)


def _count(connection: Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM events").fetchone()
    return int(count)


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


_STUCK_S = 30.0
"""A disk that takes nothing for so long keeps nobody from ending."""


_living: WeakSet[JournalWriter] = WeakSet()


class JournalWriter:
    """Takes events from any thread and writes them from its own."""

    def __init__(self, path: str, limits: Limits | None = None) -> None:
        self.path = os.path.realpath(path)
        self.stopped = False
        """Whether the journal gave up."""
        self._limits = limits or Limits()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._writing: BatchWriting | None = None
        self._forget_thread()
        _living.add(self)

    def start(self) -> None:
        """Start the thread, unless it runs; it opens the file."""
        with self._lock:
            if self._pid != os.getpid():
                self._forget_thread()  # a forked child has the memory alone
            if self._thread is not None or self.stopped:
                return
            self._writing = BatchWriting(self.path, self._backlog, self._limits)
            self._thread = threading.Thread(
                target=self._work,
                args=(self._writing,),
                name="hookline-journal",
                daemon=True,
            )
            self._thread.start()
            atexit.register(self.close)

    def put(self, occurrence: Occurrence) -> None:
        """Take one event; neither blocks nor raises."""
        if self._thread is None or self._pid != os.getpid():
            self.start()
        if self.stopped or self._writing is None:
            return
        self._taken_bytes += len(occurrence.input.text)
        waiting = self._taken_bytes - self._writing.written_bytes
        if waiting > self._limits.pending_bytes:
            self._stop(f"cannot keep up, {waiting} bytes wait to be written")
        else:
            self._backlog.items.put(occurrence)

    def flush(self) -> None:
        """Return when all that was taken is written, or the journal has stopped."""
        thread, backlog = self._thread, self._backlog
        if thread is None or self._pid != os.getpid():
            return
        written = threading.Event()
        backlog.items.put(written)
        backlog.hurry.set()
        while thread.is_alive() and not written.wait(0.05):
            pass

    def close(self) -> None:
        """Write all that was taken and end the thread; a later event starts it anew."""
        with self._lock:
            thread, backlog, writing = self._thread, self._backlog, self._writing
            if thread is None or writing is None or self._pid != os.getpid():
                return
            self._forget_thread()
            atexit.unregister(self.close)
        backlog.finish()
        if not _ended(thread, writing):
            self._stop(f"nothing could be written for {_STUCK_S:g} s")
            return
        for item in backlog.rest():
            if isinstance(item, Occurrence):
                self.put(item)  # it came from another thread in this very moment

    def _forget_thread(self) -> None:
        self._pid = os.getpid()
        self._backlog = Backlog()
        self._thread = None
        self._writing = None
        self._taken_bytes = 0

    def _work(self, writing: BatchWriting) -> None:
        problem: str | None = "failed unexpectedly"
        try:
            writing.run()
            problem = None
        except JournalError as error:
            problem = error.problem
        except sqlite3.Error as error:
            problem = damaged(self.path, error).problem
        except OSError as error:
            problem = error.strerror or str(error)
        finally:
            if problem is not None:
                self._stop(problem)

    def _stop(self, problem: str) -> None:
        if not self.stopped:
            self.stopped = True
            logger.warning("journal %s: %s. Nothing is recorded", self.path, problem)


def _close_all() -> None:
    """Before a fork: SQLite must not be carried into another process."""
    for writer in list(_living):
        writer.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_all)


def _ended(thread: threading.Thread, writing: BatchWriting) -> bool:
    """Wait for a thread for as long as it gets on."""
    written = -1
    while thread.is_alive() and written != writing.written_bytes:
        written = writing.written_bytes
        thread.join(_STUCK_S)
    return not thread.is_alive()


class JournalRecorder:
    """Records to one file; its own work on the firing side is a few microseconds."""

    def __init__(
        self, path: str, limits: Limits | None = None, translator: str = "auto"
    ) -> None:
        self._translator = translator
        self._writer = JournalWriter(path, limits)

    @property
    def path(self) -> str:
        """The journal's file."""
        return self._writer.path

    @property
    def stopped(self) -> bool:
        """Whether something went wrong with the file, and nothing is recorded."""
        return self._writer.stopped

    def start(self) -> None:
        """Open the file, from the writer's thread."""
        self._writer.start()

    def record(
        self, call: HookCall, plan: HookPlan | None, result: ProcessedHookResult
    ) -> None:
        """Take one event, whether or not a hook matched it."""
        if not self._writer.stopped:
            self._writer.put(occurrence_of(call, plan, result, self._translator))

    def flush(self) -> None:
        """Return when all that was taken is written."""
        self._writer.flush()

    def close(self) -> None:
        """Write everything and give the file back; safe to call again."""
        self._writer.close()
