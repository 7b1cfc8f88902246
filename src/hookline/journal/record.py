"""Record events in the background: one thread writes batches and deletes old rows."""

from __future__ import annotations

import atexit
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from sqlite3 import Connection
from typing import Any
from weakref import WeakSet

from hookline._internal.log import logger
from hookline.errors import JournalError
from hookline.plan import HookCall, HookPlan
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult

from .rows import (
    EventSnapshot,
    LateSnapshot,
    Limits,
    Row,
    rows_of,
    snapshot_event,
    snapshot_late,
)
from .store import damaged, identity, open_for_writing

_FLUSH_S = 0.1
_CLEAN_UP_S = 600.0
_STUCK_S = 30.0
"""A disk that takes nothing for so long does not keep the process from ending."""
_DAY_S = 86400
_LONGEST_BATCH = 1000
_SHARE = 10
"""A tenth of the events at most is deleted at a time while the file is too large."""
_MOST_DELETED = 250
"""At a time: new events must not wait for long."""
_LAST_CLEAN_UP_S = 0.5
"""How long the end of a process may be put off to delete old events."""

Snapshot = EventSnapshot | LateSnapshot

_lifecycle = threading.RLock()
"""Held while a writer starts or ends, and during a fork."""
_abandoned: list[Connection] = []
"""Never closed: that would delete the side files of a new file of the same name."""


class JournalRecorder:
    """Takes events from any thread; its own thread opens the file and writes them."""

    def __init__(
        self, path: str, limits: Limits | None = None, translator: str = "auto"
    ) -> None:
        self._path = os.path.abspath(path)  # noqa: PTH100 - a string
        self._limits = limits or Limits()
        self._translator = translator
        self._writer: _Writer | None = None
        self.problem = ""
        """Why recording stopped; empty while it goes on."""
        _recorders.add(self)

    def start(self) -> None:
        """Start the thread, unless it runs or has failed."""
        with _lifecycle:
            if self._writer is None and not self.problem:
                writer = _Writer(self._path, self._limits, self._fail)
                writer.start()
                self._writer = writer
                atexit.register(self.close)

    def record(
        self, call: HookCall, plan: HookPlan | None, result: ProcessedHookResult
    ) -> None:
        """Take one event, whether or not a hook matched it; never blocks or raises."""
        if not self.problem:
            self._put(snapshot_event(call, plan, result, self._translator))

    def record_late(self, call: HookCall, result: HookExecutionResult) -> None:
        """Take what a hook said after nobody waited for it; never blocks or raises."""
        if not self.problem:
            self._put(snapshot_late(call, result))

    def close(self, limit_s: float = _STUCK_S) -> bool:
        """Write everything and end the thread; False if there is none.

        It is given up if it writes nothing for ``limit_s``. A later event starts a new
        one.
        """
        with _lifecycle:
            writer, self._writer = self._writer, None
            if writer is None:
                return False
            atexit.unregister(self.close)
        if writer.finish(limit_s):
            self._rescue(writer)
        else:
            self._fail(f"nothing could be written for {limit_s:g} s")
        return True

    def _put(self, snapshot: Snapshot) -> None:
        if self._writer is None:
            self.start()
        writer = self._writer
        if writer is None or self.problem:
            return
        waiting = writer.put(snapshot)
        if waiting > self._limits.pending_bytes:
            self._fail(f"cannot keep up, {waiting} bytes wait to be written")
        elif not writer.is_alive():
            self._rescue(writer)

    def _rescue(self, writer: _Writer) -> None:
        """Record what was queued while the thread ended."""
        for snapshot in writer.left_over():
            self._put(snapshot)

    def _fail(self, problem: str) -> None:
        if not self.problem:
            self.problem = f"journal {self._path}: {problem}. Recording stopped"
            logger.warning("%s", self.problem)


class _Writer(threading.Thread):
    """Writes what is put into its queue, until ``finish()`` or an error."""

    def __init__(self, path: str, limits: Limits, fail: Callable[[str], None]) -> None:
        super().__init__(name="hookline-journal", daemon=True)
        self._path = path
        self._limits = limits
        self._fail = fail
        self._queue: SimpleQueue[Snapshot | None] = SimpleQueue()
        """None ends the thread."""
        self._awaited = _Awaited(limits)
        self._finishing = threading.Event()
        self._taken_bytes = self._written_bytes = 0
        self._taking = threading.Lock()
        self._clean_up_at = 0.0

    def put(self, snapshot: Snapshot) -> int:
        """Queue one event; gives the bytes that wait to be written."""
        size = _size_of(snapshot)
        with self._taking:  # events come from several threads
            self._taken_bytes += size
        self._queue.put(snapshot)
        return self._taken_bytes - self._written_bytes

    def finish(self, limit_s: float) -> bool:
        """Wait until everything is written; False if nothing could be for so long."""
        self._queue.put(None)
        self._finishing.set()
        written = -1
        while self.is_alive() and written != self._written_bytes:
            written = self._written_bytes
            self.join(limit_s)
        return not self.is_alive()

    def left_over(self) -> Iterator[Snapshot]:
        """What was queued after the end."""
        try:
            while True:
                if (snapshot := self._queue.get_nowait()) is not None:
                    yield snapshot
        except Empty:
            return

    def run(self) -> None:
        """Write until the end."""
        problem: str | None = "failed unexpectedly"
        try:
            self._open_and_write()
            problem = None
        except JournalError as error:
            problem = error.problem
        except sqlite3.Error as error:
            problem = damaged(self._path, error).problem
        except OSError as error:
            problem = error.strerror or str(error)
        finally:
            if problem is not None:
                self._fail(problem)

    def _open_and_write(self) -> None:
        connection = open_for_writing(self._path)
        own_file = identity(self._path)
        try:
            self._write_all(connection, own_file)
        finally:
            if identity(self._path) == own_file:
                connection.close()
            else:
                _abandoned.append(connection)

    def _write_all(
        self, connection: Connection, own_file: tuple[int, int] | None
    ) -> None:
        batch: list[Snapshot] = []
        while True:
            self._clean_up(connection)
            first = self._queue.get()
            if first is None:
                self._clean_up(connection, _LAST_CLEAN_UP_S)
                return
            if len(batch) < _LONGEST_BATCH:
                # More may come soon: one transaction for all of it.
                self._finishing.wait(_FLUSH_S)
            batch = self._batch(first)
            if identity(self._path) != own_file:
                raise JournalError(self._path, "was moved or removed while in use")
            self._write(connection, batch)
            self._written_bytes += sum(map(_size_of, batch))

    def _clean_up(self, connection: Connection, longest_s: float = math.inf) -> None:
        """Delete what is over the limits while there is nothing to write."""
        end = time.monotonic() + longest_s
        while self._clean_up_at <= time.monotonic() < end and self._queue.empty():
            if not delete_some(connection, self._limits):
                self._clean_up_at = time.monotonic() + _CLEAN_UP_S

    def _write(self, connection: Connection, batch: list[Snapshot]) -> None:
        rows = [
            None if isinstance(record, LateSnapshot) else rows_of(record, self._limits)
            for record in batch
        ]
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for snapshot, row in zip(batch, rows, strict=True):
                if isinstance(snapshot, LateSnapshot):
                    self._awaited.add(connection, snapshot)
                elif row is not None:
                    event_id = _write_event(connection, *row)
                    self._awaited.expect(connection, snapshot, event_id)

    def _batch(self, first: Snapshot) -> list[Snapshot]:
        batch = [first]
        while len(batch) < _LONGEST_BATCH and not self._queue.empty():
            snapshot = self._queue.get()
            if snapshot is None:
                self._queue.put(None)  # the end comes after this batch
                break
            batch.append(snapshot)
        return batch


class _Awaited:
    """Events with hooks that nobody waited for: what those said is filled in."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._events: dict[HookCall, int] = {}
        self._early: dict[HookCall, list[LateSnapshot]] = {}

    def expect(
        self, connection: Connection, event: EventSnapshot, event_id: int
    ) -> None:
        """Remember an event that was written."""
        if event.origin is not None:
            self._events[event.origin] = event_id
            for late in self._early.pop(event.origin, ()):
                self._fill_in(connection, event_id, late)
            _drop_oldest(self._events)

    def add(self, connection: Connection, late: LateSnapshot) -> None:
        """Fill in a result, now or when its event comes."""
        event_id = self._events.get(late.origin)
        if event_id is not None:
            self._fill_in(connection, event_id, late)
        else:
            self._early.setdefault(late.origin, []).append(late)
            _drop_oldest(self._early)

    def _fill_in(
        self, connection: Connection, event_id: int, late: LateSnapshot
    ) -> None:
        row = late.row(self._limits)
        columns = ", ".join(f"{name} = :{name}" for name in row)
        first = (
            "SELECT min(position) FROM hooks WHERE event_id = :event_id "
            "AND name = :name AND is_async = 1"
        )
        query = f"UPDATE hooks SET {columns} WHERE event_id = :event_id AND position = ({first})"  # noqa: E501, S608 - our names
        connection.execute(query, row | {"event_id": event_id})


_MOST_AWAITED = 4096


def _drop_oldest(entries: dict[HookCall, Any]) -> None:
    while len(entries) > _MOST_AWAITED:
        del entries[next(iter(entries))]


def _size_of(snapshot: Snapshot) -> int:
    return 0 if isinstance(snapshot, LateSnapshot) else len(snapshot.input.data)


def _write_event(connection: Connection, event: Row, hooks: list[Row]) -> int:
    event_id = _insert(connection, "events", event)
    for hook in hooks:
        _insert(connection, "hooks", {"event_id": event_id, **hook})
    return event_id


def _insert(connection: Connection, table: str, row: Row) -> int:
    columns, values = ", ".join(row), ", ".join(f":{name}" for name in row)
    query = f"INSERT INTO {table} ({columns}) VALUES ({values})"  # noqa: S608 - ours
    return connection.execute(query, row).lastrowid or 0


_OUTDATED = "at < ? ORDER BY at"
_ANY = "1 ORDER BY id"


def delete_some(connection: Connection, limits: Limits) -> bool:
    """Delete some of what is over the limits, the oldest first; False if nothing is."""
    oldest = time.time() - limits.days * _DAY_S
    if _delete(connection, _OUTDATED, oldest, _MOST_DELETED):
        return True
    if _size(connection) <= limits.total_bytes:
        return False
    # Counting would read an index of every event.
    query = "SELECT max(id) - (SELECT min(id) FROM events) FROM events"
    (about,) = connection.execute(query).fetchone()
    share = (about or 0) // _SHARE
    return _delete(connection, _ANY, min(max(share, 1), _MOST_DELETED)) > 0


def _delete(connection: Connection, condition: str, *values: float) -> int:
    chosen = f"SELECT id FROM events WHERE {condition} LIMIT ?"  # noqa: S608 - one of our two
    hooks = f"DELETE FROM hooks WHERE event_id IN ({chosen})"  # noqa: S608 - same
    events = f"DELETE FROM events WHERE id IN ({chosen})"  # noqa: S608 - same
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(hooks, values)
        deleted = connection.execute(events, values).rowcount
    if deleted:
        # execute() would stop after the first freed page.
        connection.executescript("PRAGMA incremental_vacuum")
    return deleted


def _size(connection: Connection) -> int:
    names = ("page_count", "freelist_count", "page_size")
    figures = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
    return int((figures[0] - figures[1]) * figures[2])


_recorders: WeakSet[JournalRecorder] = WeakSet()


def _before_fork() -> None:
    """Close every file: SQLite's locks must not be carried into another process."""
    _lifecycle.acquire()
    for recorder in list(_recorders):
        while recorder.close():
            pass  # what other threads recorded meanwhile has started it again


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_lifecycle.release,
    after_in_child=_lifecycle.release,
)
