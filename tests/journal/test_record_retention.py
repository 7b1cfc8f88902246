"""A journal stays within its limits of age and size; from inside, with small ones."""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from hookline.journal.record import JournalRecorder, delete_some
from hookline.journal.rows import Limits
from hookline.journal.store import open_for_writing
from tests.support.journals import entries, is_intact, make_journal, record_write

DAY = 86400


def write(path: Path, count: int, limits: Limits | None = None, age: float = 0) -> None:
    """Record events, and make them older where asked for."""
    recorder = JournalRecorder(str(path), limits)
    recorder.start()
    for number in range(count):
        record_write(recorder, {"n": number, "content": "x" * 3000})
    recorder.close()
    if age:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE events SET at = at - ?", [age])


def test_events_older_than_the_limit_are_deleted_at_the_next_start(
    journal: Path,
) -> None:
    write(journal, 5, age=31 * DAY)
    assert len(entries(journal)) == 5
    write(journal, 2, age=29 * DAY)
    assert [full.entry.id for full in entries(journal)] == [6, 7]


def test_the_oldest_events_are_deleted_when_the_file_is_too_large(
    journal: Path,
) -> None:
    write(journal, 300)
    large = journal.stat().st_size
    limits = Limits(total_bytes=large // 2)
    write(journal, 1, limits)
    found = entries(journal)
    assert 50 < len(found) < 250
    assert found[-1].entry.id == 301
    assert [full.entry.id for full in found] == list(
        range(found[0].entry.id, found[-1].entry.id + 1)
    )
    assert journal.stat().st_size <= limits.total_bytes * 1.1
    assert is_intact(journal)


def test_old_events_are_deleted_in_steps_between_which_others_are_written(
    tmp_path: Path,
) -> None:
    path = make_journal(tmp_path / "j.sqlite", 2000)
    with closing(open_for_writing(str(path))) as connection:
        now = time.time()
        connection.execute("UPDATE events SET at = iif(id <= 600, 0, ?)", [now])
        count = "SELECT count(*) FROM events"
        left = [2000]
        while delete_some(connection, Limits(total_bytes=400_000)):
            left += connection.execute(count).fetchone()
    steps = [one - other for one, other in pairwise(left)]
    assert steps[:3] == [250, 250, 100]
    assert 0 < max(steps) <= 250
    assert 0 < left[-1] < 1400


def test_ids_are_never_used_again(journal: Path) -> None:
    write(journal, 3, age=31 * DAY)
    write(journal, 0)
    write(journal, 1)
    assert [full.entry.id for full in entries(journal)] == [4]


def test_a_journal_that_cannot_keep_up_stops_with_one_warning(
    journal: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "hookline"):
        write(journal, 50, Limits(pending_bytes=20_000))
    (warning,) = caplog.messages
    assert "cannot keep up" in warning
    assert 0 < len(entries(journal)) < 50
