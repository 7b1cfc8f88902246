from __future__ import annotations

import sqlite3
from contextlib import closing
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.errors import JournalError
from hookline.journal.query import EventFilter, percentile, read_journal
from tests.support.journals import NEWEST, change, make_journal

from .support import record

ALL = EventFilter()


def test_runs_are_counted_per_hook_and_project(tmp_path: Path) -> None:
    """The most frequent first; the mode is that of the newest run (issue 16)."""
    path = make_journal(tmp_path / "j.sqlite", 100)
    change(path, "UPDATE hooks SET name = 'rare', failed = 7 WHERE event_id <= 3")
    change(path, "UPDATE hooks SET name = 'often', blocked = 0 WHERE event_id > 3")
    flags = "timed_out = 1, standby_hit = 1, recheck = 1, would_block = 1"
    change(path, f"UPDATE hooks SET {flags} WHERE event_id = 50")
    change(path, "UPDATE hooks SET observed = 1, standby_miss = 1 WHERE event_id = 3")
    change(path, "UPDATE hooks SET duration_ms = event_id")
    change(path, "UPDATE events SET cwd = '/shop/b' WHERE id > 90")
    with read_journal(str(path)) as reader:
        often, other, rare = reader.figures(EventFilter())
        (some,) = reader.figures(EventFilter(hook="r*", until=NEWEST - 98))
    names = [(one.name, one.source, one.project) for one in (often, other, rare)]
    where = ("/shop/project-0", "/shop/b", "/shop/project-0")
    expected = ("often", "often", "rare")
    assert names == [(n, "user", w) for n, w in zip(expected, where, strict=True)]
    assert (often.runs, other.runs, rare.runs, some.runs) == (87, 10, 3, 2)
    assert (often.blocks, often.failures, often.would_block) == (0, 0, 1)
    assert (often.timeouts, often.rechecks, often.mode) == (1, 1, "enforce")
    assert (often.standby_hits, often.standby_misses, rare.standby_misses) == (1, 0, 1)
    assert (rare.failures, rare.mode, some.mode) == (3, "observe", "enforce")
    assert (often.p50_ms, often.p95_ms, often.p99_ms) == (47.0, 86.0, 90.0)
    assert (other.p50_ms, other.max_ms) == (95.0, 100.0)


def event_filter_finds(journal: Path, **wanted: Any) -> list[str]:
    with read_journal(str(journal)) as reader:
        return [entry.cwd for entry in reader.newest(EventFilter(**wanted), None)]


async def test_events_are_found_by_folder_also_through_links(tmp_path: Path) -> None:
    """Issue 16: --here; a link leads into the project, a sibling does not."""
    project, journal = tmp_path / "app", tmp_path / "j.sqlite"
    (project / "sub").mkdir(parents=True)
    (tmp_path / "app-2").mkdir()
    (tmp_path / "link").symlink_to(project)
    cwds = [project, project / "sub", tmp_path / "link", tmp_path / "app-2"]
    odd = (f"{project}/gone", "", ".", "sub", f"{project}\0/x")
    for number, cwd in enumerate((*map(str, cwds), *odd), 1):
        await record(project, journal, "BeforeTool", {"tool_name": "t"})
        with closing(sqlite3.connect(journal)) as connection, connection:
            update = "UPDATE events SET cwd = ? WHERE id = ?"
            connection.execute(update, [cwd, number])
    expected = [*map(str, cwds[:3]), f"{project}/gone"]
    assert event_filter_finds(journal, folder=str(project.resolve())) == expected
    assert len(event_filter_finds(journal, folder="/")) == 5


async def test_the_project_of_an_event_is_the_innermost_one_around_it(
    tmp_path: Path,
) -> None:
    repository, journal = tmp_path / "repo", tmp_path / "j.sqlite"
    (repository / ".git").mkdir(parents=True)
    (repository / "inner" / ".hookline").mkdir(parents=True)
    (repository / "inner" / "src").mkdir()
    (tmp_path / "link").symlink_to(repository / "inner" / "src")
    await record(tmp_path, journal, "BeforeTool", {"tool_name": "t"})
    with read_journal(str(journal)) as reader:
        for cwd, project in [
            ("repo", "repo"),
            ("repo/other", "repo"),
            ("repo/inner/src", "repo/inner"),
            ("link", "repo/inner"),
            ("nowhere/at/all", "nowhere/at/all"),
        ]:
            assert reader.project_of(f"{tmp_path}/{cwd}") == f"{tmp_path}/{project}"
        for unknown in ("", ".", "a/b", "/a\0b"):
            assert reader.project_of(unknown) == unknown


def test_percentiles_of_a_hundred_values_are_those_values() -> None:
    ordered = [float(number) for number in range(1, 101)]
    assert [percentile(ordered, p) for p in (50, 95, 99)] == [50.0, 95.0, 99.0]


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


@pytest.mark.parametrize(
    ("column", "text"),
    [
        *(("input", text) for text in ("[1]", '"x"', "{", "[" * 100_000)),
        *(("effects", text) for text in ("[]", '{"a":' * 5000)),
        *(("plan", text) for text in ("{", "1")),
        *(("plan", text) for text in ("{}", '{"hooks":[1],"sequential":true}')),
        *(("errors", text) for text in ("null", "[1]", "[{}]")),
        ("final", "{"),
        *(("at", at) for at in ("never", 1e20, -1e12, inf)),
        ("duration_ms", inf),
    ],
)
def test_damaged_event_is_named(tmp_path: Path, column: str, text: object) -> None:
    path = make_journal(tmp_path / "j.sqlite", 2)
    change(path, f"UPDATE events SET {column} = ? WHERE id = 1", text)
    with read_journal(str(path)) as reader:
        assert reader.find(2) is not None
        with pytest.raises(JournalError, match="event 1 is damaged: "):
            reader.find(1)
        if column == "input":
            with pytest.raises(JournalError, match="event 1 is damaged: "):
                next(reader.inputs(ALL))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("duration_ms", value) for value in ("x", inf, -1.0)),
        *(("warnings", value) for value in ("1", "[1]")),
        *(("name", b"x"), ("stderr", b"x"), ("exit_code", "x")),
    ],
)
def test_damaged_run_is_named(tmp_path: Path, column: str, value: object) -> None:
    path = make_journal(tmp_path / "j.sqlite", 2)
    change(path, f"UPDATE hooks SET {column} = ? WHERE event_id = 1", value)
    with read_journal(str(path)) as reader:
        assert reader.find(2) is not None
        with pytest.raises(JournalError, match="event 1 is damaged: "):
            reader.find(1)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET at = 1e20",
        "UPDATE events SET at = 'never'",
        "UPDATE hooks SET duration_ms = 9e999",
        "UPDATE hooks SET duration_ms = -1",
    ],
)
def test_figures_of_a_damaged_journal_are_refused(
    tmp_path: Path, statement: str
) -> None:
    path = make_journal(tmp_path / "j.sqlite", 2)
    change(path, statement)
    with (
        pytest.raises(JournalError, match="is damaged"),
        read_journal(str(path)) as reader,
    ):
        assert not (reader.figures(EventFilter()) and reader.span(EventFilter()))


async def test_events_are_counted_by_kind_in_the_order_of_the_journal(
    tmp_path: Path,
) -> None:
    """Issue 16: a replay of a million events is counted without reading each one."""
    journal = tmp_path / "j.sqlite"
    for tool, fields in (("b", {}), ("a", {"password": "hunter2"}), ("b", {})):
        event_input = {"tool_name": tool, "tool_input": fields}
        await record(tmp_path, journal, "BeforeTool", event_input)
    with read_journal(str(journal)) as reader:
        kinds = [(one.target, one.input_masked, one.count) for one in reader.kinds(ALL)]
        assert kinds == [("b", False, 2), ("a", True, 1)]
        assert [found for found, _ in reader.sessions(ALL)] == [1, 2, 3]
        assert [target for target, _ in reader.inputs(ALL)] == ["b", "a", "b"]
