"""Two sides in turns, many rounds, medians: how every figure is made.

A busy machine slows both sides of a round alike, so it is their ratio that counts. The
best of all rounds is kept too: whatever else runs only ever makes things slower.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Awaitable, Callable

from msgspec import Struct

Timed = Callable[[], Awaitable[float]]
"""Does one piece of work and returns its seconds."""


class Figure(Struct, kw_only=True):
    """One row of the report; times in microseconds."""

    group: str
    name: str
    measured_us: float
    best_us: float
    floor_us: float
    floor_best_us: float
    floor: str
    """What the floor is, in words."""
    ratio: float
    """Of the medians."""
    best_ratio: float
    rounds: int
    bar: float | None = None
    bar_is: str = "ratio"
    """What the bar is for: ``ratio``, ``us``, ``added_us`` or ``speedup``."""

    @property
    def held(self) -> bool | None:
        """Whether the bar is met; None where there is none."""
        if self.bar is None:
            return None
        if self.bar_is == "us":
            return self.measured_us <= self.bar
        if self.bar_is == "added_us":
            return self.measured_us - self.floor_us <= self.bar
        if self.bar_is == "speedup":
            return 1 / self.ratio >= self.bar
        return self.ratio <= self.bar


class Bar(Struct):
    """What a figure must hold."""

    value: float | None = None
    what: str = "ratio"


async def compare(
    group: str,
    name: str,
    work: Timed,
    floor: Timed,
    floor_name: str,
    rounds: int,
    bar: Bar | None = None,
) -> Figure:
    """Measure work against its floor, in turns."""
    ours, theirs = [], []
    await work()
    await floor()
    gc.collect()
    for _ in range(rounds):
        theirs.append(await floor())
        ours.append(await work())
    bar = bar or Bar()
    measured, least = statistics.median(ours), statistics.median(theirs)
    return Figure(
        group=group,
        name=name,
        measured_us=measured * 1e6,
        best_us=min(ours) * 1e6,
        floor_us=least * 1e6,
        floor_best_us=min(theirs) * 1e6,
        floor=floor_name,
        ratio=measured / least,
        best_ratio=min(ours) / min(theirs),
        rounds=rounds,
        bar=bar.value,
        bar_is=bar.what,
    )


def timed(work: Callable[[], Awaitable[object]], repeat: int = 1) -> Timed:
    """Time an async call, the mean of so many in a row."""

    async def run() -> float:
        started = time.perf_counter()
        for _ in range(repeat):
            await work()
        return (time.perf_counter() - started) / repeat

    return run


def timed_plain(work: Callable[[], object], repeat: int = 1) -> Timed:
    """Time a plain call, the mean of so many in a row."""

    async def run() -> float:
        started = time.perf_counter()
        for _ in range(repeat):
            work()
        return (time.perf_counter() - started) / repeat

    return run
