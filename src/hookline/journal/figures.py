"""What the runs of each hook come to: counts and percentiles.

Pure. A percentile is the smallest recorded value that so many percent are not above.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from math import ceil
from typing import Any, Protocol

from msgspec import Struct


class Run(Protocol):
    """One run of a hook, by the names of the journal's columns."""

    def __getitem__(self, column: str, /) -> Any:
        """The value of a column."""
        ...


class HookFigures(Struct, frozen=True, kw_only=True):
    """The runs of one hook, in numbers."""

    name: str
    source: str
    runs: int
    blocks: int
    would_block: int
    failures: int
    timeouts: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


class _Tally:
    """Counts while runs go by."""

    def __init__(self) -> None:
        self.durations = array("d")
        self.blocks = self.would_block = self.failures = self.timeouts = 0

    def add(self, run: Run) -> None:
        self.durations.append(run["duration_ms"])
        self.blocks += run["blocked"]
        self.would_block += run["would_block"]
        self.failures += run["failed"]
        self.timeouts += run["timed_out"]


def figures_of(runs: Iterable[Run]) -> list[HookFigures]:
    """Count the runs hook by hook, the most frequent first."""
    tallies: dict[tuple[str, str], _Tally] = {}
    for run in runs:
        tallies.setdefault((run["name"], run["source"]), _Tally()).add(run)
    found = [_figures(*key, tally) for key, tally in tallies.items()]
    return sorted(found, key=lambda f: (-f.runs, f.name, f.source))


def percentile(ordered: list[float], percent: float) -> float:
    """Read a percentile off values in ascending order."""
    return ordered[max(ceil(len(ordered) * percent / 100), 1) - 1]


def _figures(name: str, source: str, tally: _Tally) -> HookFigures:
    ordered = sorted(tally.durations)
    return HookFigures(
        name=name,
        source=source,
        runs=len(ordered),
        blocks=tally.blocks,
        would_block=tally.would_block,
        failures=tally.failures,
        timeouts=tally.timeouts,
        p50_ms=percentile(ordered, 50),
        p95_ms=percentile(ordered, 95),
        p99_ms=percentile(ordered, 99),
        max_ms=ordered[-1],
    )
