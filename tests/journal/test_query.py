from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.errors import JournalError
from hookline.journal.query import EventFilter, figures_of, percentile, read_journal
from tests.support.journals import change, make_journal

from .support import record


def run(name: str, duration_ms: float, **more: object) -> dict[str, object]:
    flags: dict[str, object] = dict.fromkeys(
        ("failed", "blocked", "would_block", "timed_out"), 0
    )
    flags |= {"standby_hit": 0, "standby_miss": 0, "recheck": 0, "observed": 0} | more
    where = {"source": "project", "cwd": "/work/a"}
    return {"name": name, "duration_ms": duration_ms, **where, **flags}


def test_runs_are_counted_hook_by_hook_the_most_frequent_first() -> None:
    runs = [
        run("a", 1.0, blocked=1),
        run("b", 5.0, failed=1, timed_out=1, standby_miss=1),
        run("b", 7.0, standby_hit=1),
        run("b", 6.0, would_block=1),
    ]
    b, a = figures_of(runs)
    assert (b.name, b.runs, b.blocks, b.failures, b.timeouts) == ("b", 3, 0, 1, 1)
    assert (b.p50_ms, b.p99_ms, b.max_ms, b.would_block) == (6.0, 7.0, 7.0, 1)
    assert (b.standby_hits, b.standby_misses) == (1, 1)
    assert (a.name, a.runs, a.blocks) == ("a", 1, 1)


def test_figures_have_the_mode_of_the_newest_run_and_count_rechecks() -> None:
    """Issue 16: stats show mode, would-blocks and re-checks."""
    observed = run("a", 1.0, observed=1, would_block=1)
    (a,) = figures_of([observed, run("a", 1.0, recheck=1), run("a", 1.0, recheck=1)])
    assert (a.mode, a.would_block, a.rechecks) == ("enforce", 1, 2)
    (a,) = figures_of([run("a", 1.0), run("a", 1.0, observed=1)])
    assert a.mode == "observe"


def test_figures_are_counted_per_project_on_request() -> None:
    runs = [run("a", 1.0), run("a", 1.0, cwd="/work/b"), run("a", 1.0)]
    (together,) = figures_of(runs)
    assert (together.runs, together.project) == (3, None)
    found = figures_of(runs, lambda cwd: cwd.upper())
    assert [(one.project, one.runs) for one in found] == [
        ("/WORK/A", 2),
        ("/WORK/B", 1),
    ]


def event_filter_finds(journal: Path, **wanted: Any) -> list[str]:
    with read_journal(str(journal)) as reader:
        return [entry.cwd for entry in reader.oldest(EventFilter(**wanted))]


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
        *(("errors", text) for text in ("null", "[1]")),
        ("at", "never"),
    ],
)
def test_damaged_event_is_named(tmp_path: Path, column: str, text: str) -> None:
    path = make_journal(tmp_path / "j.sqlite", 2)
    change(path, f"UPDATE events SET {column} = ? WHERE id = 1", text)
    with read_journal(str(path)) as reader:
        assert reader.find(2) is not None
        with pytest.raises(JournalError, match="event 1 is damaged: "):
            reader.find(1)
