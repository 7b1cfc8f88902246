"""Issue 16: searching a journal of any size within a time budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hookline.journal.query import JournalReader, read_journal
from hookline.journal.search import (
    EventSearch,
    Found,
    search_after,
    search_back,
)
from hookline.journal.store import open_for_writing
from tests.support.journals import NEWEST, change, make_journal

EVENTS = 2000


@pytest.fixture(scope="module")
def _journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make_journal(tmp_path_factory.mktemp("search") / "j.sqlite", EVENTS, hooks=2)
    odd = "50% of [it]_* !done"
    change(path, "UPDATE events SET target = ? WHERE id = 7", odd)
    change(path, "UPDATE events SET session = 's[1]' WHERE id = 8")
    text = json.dumps({"tool_use_id": "call-9", "text": 'He said "Ja!"\nover\\'})
    change(path, "UPDATE events SET input = ?, target = 't' WHERE id = 9", text)
    change(path, "UPDATE events SET verdict = 'stopped' WHERE id = 10")
    for column in ("stderr", "error", "stdout"):
        words = f"UPDATE hooks SET {column} = 'the {column} TALKS' "
        change(path, f"{words} WHERE event_id = 11 AND position = 1")
    change(path, "UPDATE hooks SET recheck = 1 WHERE event_id = 12 AND position = 1")
    return path


@pytest.fixture
def reader(_journal: Path) -> Iterator[JournalReader]:
    with read_journal(str(_journal)) as reader:
        yield reader


def search(reader: JournalReader, limit: int = 50, **wanted: Any) -> Found:
    before = wanted.pop("before", None)
    asked = EventSearch(**wanted)
    return search_back(reader, asked, before=before, limit=limit, budget_s=60)


def ids(reader: JournalReader, **wanted: Any) -> list[int]:
    """All that match, page by page."""
    found: list[int] = []
    before: int | None = None
    while True:
        page = search(reader, before=before, **wanted)
        found += [row.id for row in page.events]
        if page.next is None:
            return found
        before = page.next


def test_pages_go_back_to_the_oldest_event(reader: JournalReader) -> None:
    first = search(reader, limit=3)
    assert [row.id for row in first.events] == [2000, 1999, 1998]
    assert (first.next, first.complete) == (1998, True)
    assert first.searched_to == {"id": 1998, "at": NEWEST - 2}
    assert ids(reader) == list(range(EVENTS, 0, -1))
    last = search(reader, before=3)
    assert [row.id for row in last.events] == [2, 1]
    assert (last.next, last.searched_to, last.complete) == (None, None, True)


@pytest.mark.parametrize(
    ("wanted", "condition"),
    [
        ({"event": "BeforeModel"}, "event = 'BeforeModel'"),
        ({"tool": "write_file"}, "target = 'write_file'"),
        ({"tool": "*_file"}, "target LIKE '%!_file' ESCAPE '!'"),
        ({"session": "s-2"}, "session = 's-2'"),
        ({"session": "s-*"}, "session LIKE 's-%'"),
        ({"session": "s[1]"}, "id = 8"),
        ({"tool": "50% of [it]_* !done"}, "id = 7"),
        ({"verdict": "blocked"}, "verdict = 'blocked'"),
        ({"verdict": "stopped"}, "id = 10"),
        ({"verdict": "failed"}, "failed"),
        ({"verdict": "would-block"}, "id % 301 = 0"),
        ({"hook": "hook-1"}, "id % 5 = 1"),
        ({"hook": "*-1"}, "id % 5 = 1"),
        ({"since": NEWEST - 5}, "id >= 1995"),
        ({"until": NEWEST - 1995}, "id <= 5"),
        ({"since": NEWEST - 10, "until": NEWEST - 5}, "id BETWEEN 1990 AND 1995"),
        ({"project": "/shop/project-0"}, "1"),
        ({"project": "/shop"}, "0"),
        ({"event": "BeforeTool", "tool": "write_file", "session": "s-1"}, None),
        ({"text": "notes-17.MD"}, "id = 17"),
        ({"text": "50% of [IT]_"}, "id = 7"),
        ({"text": "%"}, "id = 7"),
        ({"text": "!"}, "id IN (7, 9)"),
        ({"text": 'said "ja!"\nover\\'}, "id = 9"),
        ({"text": "stderr talks"}, "id = 11"),
        ({"text": "error talks"}, "id = 11"),
        ({"text": "stdout talks"}, "id = 11"),
        ({"text": '"decision":"block'}, "id % 97 = 0"),
        ({"text": "says no to number 97"}, "id IN (97, 970)"),
        ({"text": "not there"}, "0"),
        ({"text": "' OR 1 --"}, "0"),
    ],
)
def test_filter_finds_what_it_says(
    reader: JournalReader, wanted: dict[str, Any], condition: str | None
) -> None:
    if condition is None:
        condition = "event = 'BeforeTool' AND target = 'write_file' AND session = 's-1'"
    query = f"SELECT id FROM events WHERE {condition} ORDER BY id DESC"
    expected = [row[0] for row in reader.connection.execute(query)]
    assert ids(reader, **wanted) == expected


def test_search_without_time_goes_on_where_it_stopped(reader: JournalReader) -> None:
    """Each answer makes progress, and together they find everything."""
    wanted, found, answers = EventSearch(verdict="stopped"), [], 0
    before: int | None = EVENTS + 1
    while before is not None:
        page = search_back(reader, wanted, before=before, limit=5, budget_s=0)
        assert page.next is None or page.next < before
        assert page.complete == (page.next is None)
        assert page.next is None or page.searched_to == {
            "id": page.next,
            "at": NEWEST - EVENTS + page.next,
        }
        before = page.next
        found += [row.id for row in page.events]
        answers += 1
    assert found == [10]
    assert answers > 1


def test_row_says_what_a_list_needs(reader: JournalReader) -> None:
    (blocked,) = search(reader, limit=1, before=98).events
    assert blocked.blockers == "hook-2"
    assert blocked.reason == "the guard says no to number 97"
    assert (blocked.verdict, blocked.failed, blocked.recheck) == (
        "blocked",
        False,
        False,
    )
    (rechecked,) = search(reader, limit=1, before=13).events
    assert rechecked.recheck
    (failed,) = search(reader, limit=1, before=212).events
    assert failed.failing == "hook-1"
    (tool,) = search(reader, limit=1, before=10).events
    assert tool.tool_use_id == "call-9"
    assert tool.turn == 9  # every fifth event starts one
    (next_one,) = search(reader, limit=1, before=13).events
    assert next_one.turn == 9


def test_turn_is_of_the_same_session(reader: JournalReader) -> None:
    (row,) = search(reader, limit=1, before=502).events
    assert (row.session, row.turn) == ("s-1", None)


def test_new_events_come_oldest_first_and_bounded(reader: JournalReader) -> None:
    rows, seen = search_after(reader, EventSearch(), 1990, 4)
    assert ([row.id for row in rows], seen) == ([1991, 1992, 1993, 1994], 1994)
    rows, seen = search_after(reader, EventSearch(verdict="stopped"), 1990, 4)
    assert (rows, seen) == ([], EVENTS)


def test_empty_journal_is_searched(tmp_path: Path) -> None:
    path = str(tmp_path / "empty.sqlite")
    open_for_writing(path).close()
    with read_journal(path) as reader:
        nothing = Found(events=[], next=None, searched_to=None, complete=True)
        assert search(reader) == nothing
        assert search(reader, since=1.0, until=2.0, text="x") == nothing
        assert search_after(reader, EventSearch(), 0, 5) == ([], 0)


def test_gaps_in_the_ids_are_passed_over(tmp_path: Path) -> None:
    path = make_journal(tmp_path / "gaps.sqlite", 10)
    change(path, "UPDATE events SET id = 9000000000000000 WHERE id = 10")
    change(path, "DELETE FROM events WHERE id BETWEEN 3 AND 8")
    with read_journal(str(path)) as reader:
        assert ids(reader) == [9_000_000_000_000_000, 9, 2, 1]


def test_ids_that_no_page_can_name_are_left_out(tmp_path: Path) -> None:
    path = make_journal(tmp_path / "odd.sqlite", 5)
    for odd, event_id in ((-3, 1), (0, 2), (2**53, 4), (2**63 - 1, 5)):
        change(path, f"UPDATE events SET id = {odd} WHERE id = {event_id}")
    with read_journal(str(path)) as reader:
        assert ids(reader) == [3]
        assert search_after(reader, EventSearch(), 0, 10)[1] == 3


def test_large_inputs_are_searched_in_small_steps(tmp_path: Path) -> None:
    path = make_journal(tmp_path / "large.sqlite", 300, input_bytes=256 * 1024)
    with read_journal(str(path)) as reader:
        found = search_back(
            reader, EventSearch(text="zzz"), before=None, limit=5, budget_s=0
        )
        assert found.next is not None
        assert ids(reader, text="notes-17.md") == [17]


def test_huge_names_are_cut(tmp_path: Path) -> None:
    path = make_journal(tmp_path / "huge.sqlite", 5)
    with closing(open_for_writing(str(path))) as connection:
        huge = "x" * 5_000_000
        for column in ("target", "session", "cwd", "reason"):
            connection.execute(f"UPDATE events SET {column} = ? WHERE id = 5", [huge])
        connection.execute("UPDATE hooks SET name = ?, blocked = 1", [huge])
    with read_journal(str(path)) as reader:
        (row,) = search(reader, limit=1).events
        assert max(map(len, (row.session, row.cwd, row.project))) == 1000
        assert row.blockers is not None
        assert len(row.blockers) == 1000
        assert row.reason == "x" * 300


DAMAGE = {
    "blob": ("target", b"\xff\x00"),
    "not text": ("session", b"\xff"),
    "no number": ("duration_ms", "text"),
    "no flag": ("failed", 7),
    "no time": ("at", "<b>"),
    "endless time": ("at", float("inf")),
    "time of no date": ("at", 1e300),
    "endless duration": ("duration_ms", float("inf")),
}


@pytest.mark.parametrize(("column", "value"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_event_is_named_and_hides_no_other(
    tmp_path: Path, column: str, value: object
) -> None:
    """Issue 16: hostile journal content is shown safely."""
    path = make_journal(tmp_path / "j.sqlite", 3)
    change(path, f"UPDATE events SET {column} = ? WHERE id = 2", value)
    with read_journal(str(path)) as reader:
        found = search(reader).events
        after, seen = search_after(reader, EventSearch(), 0, 10)
        place = search(reader, limit=2).searched_to
    assert [row.id for row in found] == [3, 2, 1]
    assert [row.verdict for row in found] == ["allowed", "damaged", "allowed"]
    assert (found[1].reason or "").startswith("event 2 is damaged: ")
    assert ([row.id for row in after], seen) == ([1, 2, 3], 3)
    assert place is None or place["at"] < NEWEST


@pytest.mark.parametrize("column", ["event", "target", "session", "cwd", "reason"])
def test_text_that_is_not_utf_8_is_shown_as_far_as_it_can_be(
    tmp_path: Path, column: str
) -> None:
    path = make_journal(tmp_path / "j.sqlite", 3)
    bad = f"UPDATE events SET {column} = CAST(? AS TEXT) WHERE id = 2"
    change(path, bad, b"/shop/a\xff\xed\xa0\x80")
    change(path, "UPDATE events SET input = ? WHERE id = 2", '{"a":' * 5000)
    with read_journal(str(path)) as reader:
        assert getattr(search(reader).events[1], column).startswith("/shop/a\ufffd")
        assert len(ids(reader, project="/shop/project-0")) >= 2
        assert len(ids(reader, text="shop")) == 3


def test_a_reader_keeps_no_transaction_open(tmp_path: Path) -> None:
    """A long one would keep the write-ahead log from being emptied."""
    path = make_journal(tmp_path / "wal.sqlite", 100)
    with read_journal(str(path)) as reader:
        search(reader, limit=3)
        with closing(open_for_writing(str(path))) as writer:
            writer.execute("UPDATE events SET reason = 'new'")
            busy, *_ = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert busy == 0
        assert search(reader, limit=1).events[0].reason == "new"
