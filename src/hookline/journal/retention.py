"""Forget the oldest events: by age, then by the size of the file."""

from __future__ import annotations

import time
from sqlite3 import Connection

from .rows import Limits

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
