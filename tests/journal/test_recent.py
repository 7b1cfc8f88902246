"""The newest runs, within a time budget (issue 16: a journal of a million events)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hookline.journal.query import JournalReader, read_journal
from hookline.journal.recent import (
    EDGES_MS,
    MAX_NAME,
    newest_failures,
    newest_figures,
    newest_folders,
)
from hookline.journal.store import open_for_writing

_EVENT = """
INSERT INTO events (at, event, session, cwd, verdict, blocked, failed, in_code,
  duration_ms, hook_count, input, input_bytes, input_masked, input_cut, output_masked,
  output_cut, effects, errors)
VALUES (?, 'BeforeTool', 's', ?, 'allowed', 0, 0, 0,
  1, 1, '{}', 2, 0, 0, 0, 0, '{}', '[]')
"""
_HOOK = """
INSERT INTO hooks (event_id, position, name, source, type, success, failed, blocked,
  would_block, timed_out, truncated, reran, duration_ms, recheck, stderr)
VALUES (?, 1, ?, 'user', 'command', 1, ?, ?, ?, ?, 0, 0, ?, ?, ?)
"""
MANY = 1000


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[JournalReader]:
    """A thousand events, each with one run; every tenth failed."""
    path = str(tmp_path / "journal.sqlite")
    with closing(open_for_writing(path)) as connection:
        connection.execute("BEGIN")
        for n in range(1, MANY + 1):
            connection.execute(_EVENT, [float(n), f"/shop/{n % 3}"])
            failed, took = n % 10 == 0, 10_000.0 if n == MANY else n / 10
            flags = [failed, n % 4 == 0, n % 5 == 0, n % 20 == 0]
            row = [n, f"hook-{n % 2}", *flags, took, n % 8 == 0, f"said {n}"]
            connection.execute(_HOOK, row)
        connection.execute("COMMIT")
    with read_journal(path) as reader:
        yield reader


def test_all_runs_are_counted_where_time_allows(reader: JournalReader) -> None:
    found, reach = newest_figures(reader, lambda _: ["all"], budget_s=60)
    figures = found["all"]
    assert (reach.runs, reach.since, reach.complete) == (MANY, 1.0, True)
    counts = (figures.runs, figures.blocks, figures.would_block, figures.failures)
    assert counts == (1000, 250, 200, 100)
    assert (figures.timeouts, figures.rechecks) == (50, 125)
    assert (figures.p50_ms, figures.p95_ms, figures.max_ms) == (50.0, 95.0, 10_000.0)
    assert (figures.last_event, figures.last_at) == (1000, 1000.0)


def test_histogram_has_every_run_in_the_bucket_that_holds_it(
    reader: JournalReader,
) -> None:
    found, _ = newest_figures(reader, lambda _: ["all"], budget_s=60)
    buckets = found["all"].histogram
    assert len(buckets) == len(EDGES_MS) + 1
    assert sum(buckets) == MANY
    by_end = dict(zip(EDGES_MS, buckets, strict=False))
    assert by_end[EDGES_MS[0]] == 1  # 0.1 ms is up to 0.1 ms
    assert by_end[100.0] == 500 - 1
    assert by_end[10_000.0] == 1
    assert buckets[-1] == 0


def test_groups_get_their_own_runs_and_a_run_may_count_twice(
    reader: JournalReader,
) -> None:
    found, _ = newest_figures(reader, lambda run: [run["name"], "all"], budget_s=60)
    assert {key: its.runs for key, its in found.items()} == {
        "hook-0": 500,
        "hook-1": 500,
        "all": 1000,
    }


def test_search_ends_with_the_time_and_says_how_far_it_got(
    reader: JournalReader,
) -> None:
    found, reach = newest_figures(reader, lambda _: ["all"], budget_s=0)
    assert 0 < reach.runs < MANY
    assert found["all"].runs == reach.runs
    assert reach.since == MANY - reach.runs + 1
    assert not reach.complete
    assert found["all"].last_event == MANY


def test_search_ends_with_the_number_of_runs(reader: JournalReader) -> None:
    _, reach = newest_figures(reader, lambda _: ["all"], max_runs=10, budget_s=60)
    assert (reach.runs, reach.complete) == (10, False)


def test_last_failures_come_newest_first_with_what_was_said(
    reader: JournalReader,
) -> None:
    found, reach = newest_failures(
        reader, "hook-0", lambda _: True, limit=3, budget_s=60
    )
    assert [run["event_id"] for run in found] == [1000, 990, 980]
    assert [run["stderr"] for run in found] == ["said 1000", "said 990", "said 980"]
    assert not reach.complete
    assert newest_failures(reader, "hook-1", lambda _: True, limit=3)[0] == []


def test_search_for_failures_ends_with_the_time(reader: JournalReader) -> None:
    started = time.monotonic()
    found, reach = newest_failures(
        reader, "hook-1", lambda _: True, limit=3, budget_s=0
    )
    assert found == []
    assert 0 < reach.runs < MANY // 2
    assert not reach.complete
    assert time.monotonic() - started < 30  # a guard against hanging


def test_folders_of_the_newest_events_start_with_the_last_one(
    reader: JournalReader,
) -> None:
    assert newest_folders(reader) == ["/shop/1", "/shop/0", "/shop/2"]
    assert newest_folders(reader, events=1) == ["/shop/1"]


def test_damaged_runs_hide_no_others(reader: JournalReader) -> None:
    """Issue 16: hostile journal content is shown safely."""
    with closing(open_for_writing(reader.path)) as connection:
        bad = "name = ?, source = ?, type = ?, duration_ms = 'x'"
        values = [b"\xff", b"a", "t" * 50_000]
        connection.execute(f"UPDATE hooks SET {bad} WHERE event_id = 999", values)
        connection.execute("UPDATE events SET cwd = ? WHERE id = 999", [b"\xfe"])
    found, _ = newest_figures(
        reader, lambda run: [tuple(run[k] for k in ("name", "source", "type", "cwd"))]
    )
    assert found["\ufffd", "a", "t" * MAX_NAME, "\ufffd"].runs == 1
    assert sum(figures.runs for figures in found.values()) == MANY
