"""Issue 16: what is in a journal, in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline.journal.counts import count_events, count_values
from hookline.journal.query import JournalReader, read_journal
from hookline.journal.store import open_for_writing
from tests.support.journals import NEWEST, TOOLS, change, make_journal

EVENTS = 2000


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[JournalReader]:
    path = make_journal(tmp_path / "j.sqlite", EVENTS, hooks=2)
    with read_journal(str(path)) as reader:
        yield reader


def test_values_are_counted_over_the_newest_events(reader: JournalReader) -> None:
    found = count_values(reader, 1000)
    assert found.of == 1000
    assert dict(found.sessions) == {"s-2": 499, "s-3": 500, "s-4": 1}
    assert dict(found.tools).keys() == set(TOOLS)
    assert dict(found.hooks) == {f"hook-{n}": 400 for n in range(5)}
    assert dict(found.verdicts)["blocked"] == 10
    assert dict(found.verdicts)["failed"] == 5
    assert dict(found.verdicts)["would-block"] == 3
    assert found.projects == [("/shop/project-0", 1000)]


def test_events_are_counted(reader: JournalReader) -> None:
    assert count_events(reader) == {
        "events": EVENTS,
        "about": False,
        "oldest": NEWEST - EVENTS + 1,
        "newest": NEWEST,
    }


def test_empty_journal_is_counted(tmp_path: Path) -> None:
    path = str(tmp_path / "empty.sqlite")
    open_for_writing(path).close()
    with read_journal(path) as reader:
        assert count_events(reader)["events"] == 0
        assert count_values(reader, 10).of == 0


def test_number_of_very_many_events_is_estimated(tmp_path: Path) -> None:
    path = make_journal(tmp_path / "gap.sqlite", 10)
    change(path, "UPDATE events SET id = 5000000 WHERE id = 10")
    with read_journal(str(path)) as reader:
        found = count_events(reader)
    assert (found["events"], found["about"]) == (5_000_000, True)


def test_huge_values_are_not_offered(tmp_path: Path) -> None:
    path = make_journal(tmp_path / "huge.sqlite", 5)
    change(path, "UPDATE events SET session = ? WHERE id = 5", "x" * 5_000_000)
    change(path, "UPDATE hooks SET name = ?", "x" * 301)
    with read_journal(str(path)) as reader:
        found = count_values(reader, 10)
    assert (found.sessions, found.hooks) == ([("s-0", 4)], [])


def test_damaged_values_are_counted_with_the_others(tmp_path: Path) -> None:
    path = make_journal(tmp_path / "damaged.sqlite", 5)
    for column in ("session", "cwd", "target"):
        change(path, f"UPDATE events SET {column} = ? WHERE id = 5", b"\xff")
    change(path, "UPDATE hooks SET name = ? WHERE event_id = 5", b"\xff")
    change(path, "UPDATE events SET at = 'never' WHERE id = 5")
    with read_journal(str(path)) as reader:
        found = count_values(reader, 10)
        assert dict(found.sessions) == {"s-0": 4, "\ufffd": 1}
        assert dict(found.hooks)["\ufffd"] == 1
        assert count_events(reader)["newest"] is None
