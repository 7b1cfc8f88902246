"""A journal of any size is searched within a time budget, and counted.

What filters find is in ``tests/pins/page/search.json``, and what damaged rows come to
in ``damaged.json``; budgets that run out are reached from inside only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.errors import JournalError
from hookline.journal.query import (
    EDGES_MS,
    EventFilter,
    JournalReader,
    percentile,
    read_journal,
)
from hookline.journal.store import open_for_writing
from tests.support.commandline import run_command
from tests.support.journals import NEWEST, change, make_journal, record

EVENTS = 2000
ALL = EventFilter()


@pytest.fixture(scope="module")
def _journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make_journal(tmp_path_factory.mktemp("read") / "j.sqlite", EVENTS)
    change(path, "UPDATE events SET verdict = 'stopped' WHERE id = 10")
    change(path, "UPDATE events SET cwd = '/shop/' || (id % 3)")
    flags = "failed = event_id % 10 = 0, blocked = event_id % 4 = 0"
    flags += ", would_block = event_id % 5 = 0, timed_out = event_id % 20 = 0"
    flags += ", recheck = event_id % 8 = 0, stderr = 'said ' || event_id"
    change(path, f"UPDATE hooks SET {flags}")
    times = "iif(event_id = 2000, 10000, event_id / 10.0)"
    change(path, f"UPDATE hooks SET duration_ms = {times}")
    return path


@pytest.fixture
def reader(_journal: Path) -> Iterator[JournalReader]:
    with read_journal(str(_journal)) as reader:
        yield reader


def test_search_without_time_goes_on_where_it_stopped(
    reader: JournalReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer makes progress, and together they find everything."""
    monkeypatch.setattr("hookline.journal.query._SLICE", 300)
    found, answers = [], 0
    before: int | None = EVENTS + 1
    while before is not None:
        page = reader.search(EventFilter(verdict="stopped"), before, 5, 0)
        assert page.complete == (page.next is None)
        if page.next is not None:
            assert page.next < before
            assert page.searched_to == NEWEST - EVENTS + page.next
        before = page.next
        found += [event.entry.id for event in page.events]
        answers += 1
    assert found == [10]
    assert answers > 1


def test_times_are_found_where_ids_are_in_another_order(reader: JournalReader) -> None:
    """Processes that record at once write their events a little late."""
    moment = NEWEST - EVENTS + 7
    wanted = EventFilter(since=moment, until=moment)
    found = reader.search(wanted, None, 5, 60)
    assert [event.entry.id for event in found.events] == [7]
    for since, until in ((NEWEST + 1, None), (None, NEWEST - EVENTS)):
        wanted = EventFilter(since=since, until=until)
        assert reader.search(wanted, None, 5, 60).events == []


def test_runs_are_counted_by_hook_and_place(reader: JournalReader) -> None:
    runs = list(reader.runs(ALL).values())
    figures = {key.name for key in reader.runs(ALL)}
    assert figures == {f"hook-{n}" for n in range(5)}
    all_runs = runs[0]
    for others in runs[1:]:
        all_runs.add(others)
    counted = all_runs.figures()
    names = ("runs", "blocks", "would_block", "failures", "timeouts", "rechecks")
    assert [counted[name] for name in names] == [EVENTS, 500, 400, 200, 100, 250]
    times = [counted[name] for name in ("p50_ms", "p95_ms", "max_ms")]
    assert times == [100.0, 190.0, 10_000.0]
    assert (all_runs.last_event, all_runs.last_at) == (EVENTS, NEWEST)
    buckets = dict(zip(EDGES_MS, counted["histogram"], strict=False))
    assert sum(counted["histogram"]) == EVENTS
    assert (buckets[EDGES_MS[0]], buckets[10_000.0]) == (1, 1)  # up to, and with, 0.1
    assert sum(count for end, count in buckets.items() if end <= 100.0) == 1000
    newest = reader.runs(ALL, 10).values()
    assert sum(len(runs.durations) for runs in newest) == 10


def test_last_failures_come_newest_first(reader: JournalReader) -> None:
    failures = islice(reader.failures("hook-0"), 3)
    assert [(run["event_id"], run["stderr"]) for run in failures] == [
        (number, f"said {number}") for number in (2000, 1990, 1980)
    ]


def test_folders_of_the_newest_events_start_with_the_last_one(
    reader: JournalReader,
) -> None:
    assert reader.folders() == ["/shop/2", "/shop/1", "/shop/0"]
    assert reader.folders(events=1) == ["/shop/2"]


@pytest.mark.parametrize(
    "damage",
    [
        *("events SET at = 1e20", "events SET at = 'never'", "events SET input = '{'"),
        *("hooks SET duration_ms = 9e999", "hooks SET duration_ms = -1"),
    ],
)
def test_figures_and_inputs_of_a_damaged_journal_are_refused(
    tmp_path: Path, damage: str
) -> None:
    path = make_journal(tmp_path / "j.sqlite", 2)
    change(path, f"UPDATE {damage}")
    if "input" in damage:
        with (
            pytest.raises(JournalError, match="event 1 is damaged: "),
            read_journal(str(path)) as reader,
        ):
            next(reader.inputs(ALL))
        return
    ended = run_command("stats", "--journal", path, "--everywhere", cwd=tmp_path)
    assert ended.returncode == 1
    assert "is damaged" in ended.stderr


async def test_events_are_found_by_folder_also_through_links(tmp_path: Path) -> None:
    """``--here``; a link leads into the project, a sibling does not."""
    project, journal = tmp_path / "app", tmp_path / "j.sqlite"
    (project / "sub").mkdir(parents=True)
    (tmp_path / "app-2").mkdir()
    (tmp_path / "link").symlink_to(project)
    here = [str(project), f"{project}/sub", f"{tmp_path}/link", f"{project}/gone"]
    elsewhere = [f"{tmp_path}/app-2", "", ".", "sub", f"{project}\0/x"]
    for number, cwd in enumerate((*here, *elsewhere), 1):
        await record(project, journal, "BeforeTool", {"tool_name": "t"})
        change(journal, "UPDATE events SET cwd = ? WHERE id = ?", cwd, number)
    with read_journal(str(journal)) as reader:
        wanted = EventFilter(project=str(project.resolve()))
        assert [entry.cwd for entry in reader.newest(wanted, None)] == here
        assert len(list(reader.newest(EventFilter(project="/"), None))) == 5
        unknown = ["", ".", "a/b", "/a\0b"]
        assert [reader.project_of(cwd) for cwd in unknown] == unknown


async def test_events_are_counted_by_kind_in_the_order_of_the_journal(
    tmp_path: Path,
) -> None:
    """A replay of a million events is counted without reading each one."""
    journal = tmp_path / "j.sqlite"
    for tool, fields in (("b", {}), ("a", {"password": "hunter2"}), ("b", {})):
        event_input = {"tool_name": tool, "tool_input": fields}
        await record(tmp_path, journal, "BeforeTool", event_input)
    with read_journal(str(journal)) as reader:
        kinds = [(one.target, one.input_masked, one.count) for one in reader.kinds(ALL)]
        assert kinds == [("b", False, 2), ("a", True, 1)]
        assert [number for number, _ in reader.sessions(ALL)] == [1, 2, 3]
        assert [target for target, _ in reader.inputs(ALL)] == ["b", "a", "b"]


def test_a_reader_keeps_no_transaction_open(tmp_path: Path) -> None:
    """A long one would keep the write-ahead log from being emptied."""
    path = str(make_journal(tmp_path / "wal.sqlite", 100))

    def newest(reader: JournalReader) -> str | None:
        return reader.search(ALL, None, 1, 60).events[0].entry.reason

    with read_journal(path) as reader:
        newest(reader)
        with closing(open_for_writing(path)) as writer:
            writer.execute("UPDATE events SET reason = 'new'")
            busy, *_ = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert (busy, newest(reader)) == (0, "new")


@given(
    st.lists(st.floats(0, 1e6), min_size=1).map(sorted),
    st.floats(min_value=0.1, max_value=100),
)
def test_a_percentile_is_a_value_with_that_share_at_or_below_it(
    ordered: list[float], percent: float
) -> None:
    found = percentile(ordered, percent)
    assert found in ordered
    not_above = sum(value <= found for value in ordered)
    assert not_above * 100 >= percent * len(ordered) * (1 - 1e-9)
