"""The newest runs of hooks, within a time budget: figures, and the last failures.

A journal may hold a million events, and whoever looks at a page waits for it: what is
read is the newest part, and how far back that goes is told.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from sqlite3 import Row
from typing import Any

from msgspec import Struct, field

from .query import JournalReader, percentile

MAX_RUNS = 50_000
BUDGET_S = 0.4
EDGES_MS = tuple(digit * 10.0**power for power in range(-1, 5) for digit in (1, 2, 5))
"""The upper ends of the histogram's buckets; one more holds what is longer."""
_FLAGS = ("blocked", "would_block", "failed", "timed_out", "recheck")
_NAMES = ", ".join(
    # Damaged ones may be of another type, or of any length.
    f"substr(CAST({name} AS TEXT), 1, 1000) AS {name}"
    for name in ("event", "cwd", "name", "source", "type")
)
_RUNS = f"""
SELECT event_id, {_NAMES}, CAST(at AS REAL) AS at,
       CAST(hooks.duration_ms AS REAL) AS duration_ms,
       {", ".join(f"hooks.{flag}" for flag in _FLAGS)}
FROM hooks CROSS JOIN events ON events.id = event_id
ORDER BY event_id DESC, position DESC LIMIT ?
"""  # noqa: S608 - our names
_OF_NAME = f"""
SELECT event_id, position, hooks.failed, {_NAMES}, CAST(at AS REAL) AS at
FROM hooks CROSS JOIN events ON events.id = event_id
WHERE hooks.name = ? ORDER BY event_id DESC, position DESC
"""  # noqa: S608 - our names
_SAID = """
SELECT exit_code, timed_out, truncated, recheck, hooks.duration_ms, stderr, error,
       target, session, output_masked, output_cut
FROM hooks JOIN events ON events.id = event_id WHERE event_id = ? AND position = ?
"""

_FOLDERS = """
SELECT cwd FROM (SELECT id, cwd FROM events ORDER BY id DESC LIMIT ?)
GROUP BY cwd ORDER BY max(id) DESC
"""


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


class _Tally(Struct):
    durations: array[float] = field(default_factory=lambda: array("d"))
    counts: Counter[str] = field(default_factory=Counter)
    last: tuple[float, int] = (0.0, 0)


def newest_figures(
    reader: JournalReader,
    group: Callable[[Row], Iterable[Hashable]],
    *,
    max_runs: int = MAX_RUNS,
    budget_s: float = BUDGET_S,
) -> tuple[dict[Hashable, RunFigures], Reach]:
    """Count the newest runs, each in the groups that it belongs to."""
    tallies: dict[Hashable, _Tally] = {}
    reach = Reach()
    rows = reader.connection.execute(_RUNS, [max_runs])
    for run in _within(rows, reach, budget_s):
        for key in group(run):
            _count(tallies.setdefault(key, _Tally()), run)
    reach.complete = reach.complete and reach.runs < max_runs
    return {key: _figures(tally) for key, tally in tallies.items()}, reach


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


def _count(tally: _Tally, run: Row) -> None:
    tally.durations.append(run["duration_ms"])
    for flag in _FLAGS:
        if run[flag]:
            tally.counts[flag] += 1
    if not tally.last[1]:
        tally.last = run["at"], run["event_id"]


def _figures(tally: _Tally) -> RunFigures:
    ordered, counts = sorted(tally.durations), tally.counts
    ends = [bisect_right(ordered, edge) for edge in EDGES_MS]
    starts = [0, *ends]
    return RunFigures(
        runs=len(ordered),
        blocks=counts["blocked"],
        would_block=counts["would_block"],
        failures=counts["failed"],
        timeouts=counts["timed_out"],
        rechecks=counts["recheck"],
        p50_ms=percentile(ordered, 50),
        p95_ms=percentile(ordered, 95),
        max_ms=ordered[-1],
        histogram=[b - a for a, b in zip(starts, [*ends, len(ordered)], strict=True)],
        last_at=tally.last[0],
        last_event=tally.last[1],
    )


def _failure(reader: JournalReader, run: Row) -> dict[str, Any]:
    place = [run["event_id"], run["position"]]
    said = reader.connection.execute(_SAID, place).fetchone()
    return dict(run) | dict(said)
