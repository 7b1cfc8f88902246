"""The figures: counters of verdicts and failures, histograms of time.

One figure costs the SDK as much as a whole event in this process. So they are kept here
and handed over when they are collected, or by a thread where many wait (decision 0135).
Attributes have few values: events, verdicts, causes, and the hooks of the settings;
nothing that a model or a session chooses.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections.abc import Iterable
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from opentelemetry.context import Context
from opentelemetry.metrics import Observation

from hookline._internal.fork_safe import ForkSafeLock

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Histogram, MeterProvider

Value = str | bool | int | float
Labels = tuple[tuple[str, Value], ...]
"""Attributes that can be a key."""

BUCKETS_S = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
    *(0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
SCOPE = "hookline"
MANY = 32 * 1024
"""So many durations wait to be collected, about 1 MB of them."""
_MOST = 4 * MANY
"""What cannot be handed over is dropped at last."""
_nowhere = Context()

_known: WeakKeyDictionary[Any, Instruments] = WeakKeyDictionary()
_lock = ForkSafeLock()


def instruments_of(provider: MeterProvider) -> Instruments | None:
    """The instruments of a provider; None while the host has not set one up.

    They are shared by all hook systems: a count registered twice is exported twice.
    """
    if type(provider).__module__.startswith("opentelemetry.metrics"):
        return None  # the placeholder of the API
    with _lock.held:
        instruments = _known.get(provider)
        if instruments is None:
            instruments = _known[provider] = Instruments(provider)
        return instruments


class _Counts:
    """How often something happened, by its labels."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start from nothing, with a lock that nobody holds."""
        self._counts: dict[Labels, int] = {}
        self._lock = threading.Lock()

    def add(self, labels: Labels) -> None:
        with self._lock:
            self._counts[labels] = self._counts.get(labels, 0) + 1

    def observe(self, _: CallbackOptions) -> Iterable[Observation]:
        with self._lock:
            counts = list(self._counts.items())
        return [Observation(count, dict(labels)) for labels, count in counts]


class _Series:
    """Durations of the same labels on their way to a histogram."""

    __slots__ = ("_histogram", "_labels", "_plain", "_traced")

    def __init__(self, histogram: Histogram, labels: Labels) -> None:
        self._histogram = histogram
        self._labels = labels
        self._plain: list[float] = []
        self._traced: dict[int, tuple[float, Context]] = {}

    def add(self, seconds: float, context: Context) -> None:
        # The SDK keeps one exemplar for each bucket; all other spans may be freed.
        bucket = bisect_left(BUCKETS_S, seconds)
        if bucket in self._traced:
            self._plain.append(seconds)
        else:
            self._traced[bucket] = (seconds, context)

    def record(self) -> None:
        record, attributes = self._histogram.record, dict(self._labels)
        for seconds in self._plain:
            record(seconds, attributes, _nowhere)
        for seconds, context in self._traced.values():
            record(seconds, attributes, context)


class _Times:
    """Durations on their way to the histograms."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start from nothing, with a lock that nobody holds."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._series: dict[Labels, _Series] = {}
        self._waiting = 0

    def add(
        self, histogram: Histogram, labels: Labels, seconds: float, context: Context
    ) -> None:
        with self._lock:
            if self._waiting >= _MOST:
                return
            self._waiting += 1
            series = self._series.get(labels)
            if series is None:
                series = self._series[labels] = _Series(histogram, labels)
            series.add(seconds, context)
        if self._waiting >= MANY:
            self._hand_over_soon()

    def hand_over(self) -> None:
        """Record what waits; several threads may do so at once."""
        with self._lock:
            waiting, self._series, self._waiting = self._series, {}, 0
        for series in waiting.values():
            series.record()

    def _hand_over_soon(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self.hand_over, name="hookline-figures", daemon=True
            )
            self._thread.start()


class Instruments:
    """The instruments of one meter provider."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter(SCOPE, version("hookline"))
        histogram = partial(
            meter.create_histogram,
            unit="s",
            explicit_bucket_boundaries_advisory=BUCKETS_S,
        )
        self.failures = _Counts()
        self._events = _Counts()
        self._times = _Times()
        self._event_time = histogram(
            "hookline.event.duration", description="Time from an event to its verdict."
        )
        self._hook_time = histogram(
            "hookline.hook.duration", description="Time of one run of a hook."
        )
        count = meter.create_observable_counter
        count(
            "hookline.events",
            [self._observe_events],
            unit="{event}",
            description="Events by their verdict.",
        )
        count(
            "hookline.hook.failures",
            [self.failures.observe],
            unit="{failure}",
            description="Failed hooks by their cause.",
        )

    def add_event(self, labels: Labels, seconds: float, context: Context) -> None:
        """Count an event."""
        self._events.add(labels)
        self._times.add(self._event_time, labels, seconds, context)

    def add_hook(self, labels: Labels, seconds: float, context: Context) -> None:
        """Count a run of a hook."""
        self._times.add(self._hook_time, labels, seconds, context)

    def reset(self) -> None:
        """Forget what is not handed over: after a fork it is the parent's to do so."""
        self._events.reset()
        self.failures.reset()
        self._times.reset()

    def _observe_events(self, options: CallbackOptions) -> Iterable[Observation]:
        # The SDK asks for these before it collects its histograms.
        self._times.hand_over()
        return self._events.observe(options)


def _reset_after_fork() -> None:
    for instruments in list(_known.values()):
        instruments.reset()


os.register_at_fork(after_in_child=_reset_after_fork)
