"""The newest runs of hooks, within a time budget: figures, and the last failures.

A journal may hold a million events, and whoever looks at a page waits for it: what is
read is the newest part, and how far back that goes is told.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator
from sqlite3 import Row
from typing import Any

from msgspec import Struct

from .query import JournalReader, RunTally

MAX_RUNS = 50_000
BUDGET_S = 0.4
MAX_NAME = 1_000
MAX_PATH = 4_096
MAX_TEXT = 4_000
"""Of what a hook wrote: the event has all of it."""
EDGES_MS = tuple(digit * 10.0**power for power in range(-1, 5) for digit in (1, 2, 5))
"""The upper ends of the histogram's buckets; one more holds what is longer."""
_FLAGS = ("blocked", "would_block", "failed", "timed_out", "recheck")


def _names(length: int, *names: str) -> str:
    """Columns as texts of bounded length, whatever a file holds there."""
    return ", ".join(
        f"CASE WHEN length(CAST({one} AS BLOB)) <= {length} THEN CAST({one} AS TEXT) "
        f"ELSE substr(CAST({one} AS TEXT), 1, {length}) END AS {one}"
        for one in names
    )


def _bytes(*names: str) -> str:
    """The same for what anybody wrote: a null would end a text for SQLite."""
    size = 4 * MAX_TEXT
    cut = (f"substr(CAST({one} AS BLOB), 1, {size}) AS {one}" for one in names)
    return ", ".join(cut)


_WRITTEN = ("target", "session", "stderr", "error")
_RUN = (
    "event_id, position, CAST(at AS REAL) AS at, "
    f"{_names(MAX_NAME, 'event', 'name', 'source', 'type')}, {_names(MAX_PATH, 'cwd')}"
)
_OF_EVENTS = "FROM hooks CROSS JOIN events ON events.id = event_id"
_RUNS = f"""
SELECT {_RUN}, CAST(hooks.duration_ms AS REAL) AS duration_ms,
       {", ".join(f"hooks.{flag}" for flag in _FLAGS)}
{_OF_EVENTS} ORDER BY event_id DESC, position DESC LIMIT ?
"""
_OF_NAME = f"""
SELECT {_RUN}, hooks.failed
{_OF_EVENTS} WHERE hooks.name = ? ORDER BY event_id DESC, position DESC
"""
_SAID = f"""
SELECT exit_code, timed_out, truncated, recheck, hooks.duration_ms, output_masked,
       output_cut, {_bytes(*_WRITTEN)}, length(CAST(stderr AS BLOB)) AS stderr_bytes
{_OF_EVENTS} WHERE event_id = ? AND position = ?
"""
_FOLDERS = f"""
SELECT cwd FROM (SELECT id, cwd FROM events ORDER BY id DESC LIMIT ?)
WHERE length(cwd) <= {MAX_PATH} GROUP BY cwd ORDER BY max(id) DESC
"""  # noqa: S608 - our names


class RunFigures(Struct, frozen=True, kw_only=True):
    """The newest runs of one hook, in numbers."""

    runs: int
    blocks: int
    would_block: int
    failures: int
    timeouts: int
    rechecks: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    histogram: list[int]
    """How many runs each bucket holds: up to each of ``EDGES_MS``, and longer."""
    last_at: float
    last_event: int


class Reach(Struct):
    """How far back a search went."""

    runs: int = 0
    since: float | None = None
    complete: bool = False
    """Whether nothing older is left."""


def newest_figures(
    reader: JournalReader,
    group: Callable[[Row], Iterable[Hashable]],
    *,
    max_runs: int = MAX_RUNS,
    budget_s: float = BUDGET_S,
) -> tuple[dict[Hashable, RunFigures], Reach]:
    """Count the newest runs, each in the groups that it belongs to."""
    tallies: dict[Hashable, RunTally] = {}
    newest: dict[Hashable, Row] = {}
    reach = Reach()
    rows = reader.connection.execute(_RUNS, [max_runs])
    for run in _within(rows, reach, budget_s):
        for key in group(run):
            found = tallies.setdefault(key, RunTally())
            found.add(run, _FLAGS)
            newest.setdefault(key, run)
    reach.complete = reach.complete and reach.runs < max_runs
    return {k: _figures(of, newest[k]) for k, of in tallies.items()}, reach


def newest_failures(
    reader: JournalReader,
    name: str,
    wanted: Callable[[Row], bool],
    *,
    limit: int,
    budget_s: float = BUDGET_S,
) -> tuple[list[dict[str, Any]], Reach]:
    """The last failed runs of the hooks of a name, the newest first."""
    reach = Reach()
    found: list[Row] = []
    rows = reader.connection.execute(_OF_NAME, [name])
    for run in _within(rows, reach, budget_s):
        if run["failed"] and wanted(run):
            found.append(run)
            if len(found) == limit:
                break
    return [_failure(reader, run) for run in found], reach


def newest_folders(reader: JournalReader, events: int = 5_000) -> list[str]:
    """Where the newest events happened, the last one first."""
    return [row["cwd"] for row in reader.connection.execute(_FOLDERS, [events])]


def _within(rows: Iterable[Row], reach: Reach, budget_s: float) -> Iterator[Row]:
    """The rows until the time is over, or until the caller has enough."""
    end = time.monotonic() + budget_s
    for row in rows:
        reach.runs += 1
        reach.since = row["at"]
        yield row
        # At each row: reaching its last columns takes long where its output is.
        if time.monotonic() > end:
            return
    reach.complete = True


def _figures(tally: RunTally, newest: Row) -> RunFigures:
    ordered = sorted(tally.durations)
    ends = [bisect_right(ordered, edge) for edge in EDGES_MS]
    pairs = zip([0, *ends], [*ends, len(ordered)], strict=True)
    return RunFigures(
        histogram=[end - start for start, end in pairs],
        last_at=newest["at"],
        last_event=newest["event_id"],
        **tally.figures(),
    )


def _failure(reader: JournalReader, run: Row) -> dict[str, Any]:
    place = [run["event_id"], run["position"]]
    said = dict(reader.connection.execute(_SAID, place).fetchone())
    for name in _WRITTEN:
        said[name] = (said[name] or b"").decode("utf-8", "replace")[:MAX_TEXT]
    return dict(run) | said
