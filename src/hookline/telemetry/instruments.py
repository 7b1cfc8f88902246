"""The figures: counters of verdicts and failures, histograms of time.

A counter of the SDK costs as much as a whole event in this process. So both counts are
kept here, and read when they are exported. Attributes have few values: events, verdicts
and causes, and the hooks of the settings; nothing that a model or a session chooses.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from opentelemetry.metrics import Observation

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider

Value = str | bool | int | float
Labels = tuple[tuple[str, Value], ...]
"""Attributes that can be a key."""

BUCKETS_S = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
    *(0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
SCOPE = "hookline"

_known: WeakKeyDictionary[Any, Instruments] = WeakKeyDictionary()
_lock = threading.Lock()


def instruments_of(provider: MeterProvider) -> Instruments | None:
    """The instruments of a provider; None while the host has not set one up.

    They are shared by all hook systems: a count registered twice is exported twice.
    """
    if type(provider).__module__.startswith("opentelemetry.metrics"):
        return None  # the placeholder of the API
    with _lock:
        found = _known.get(provider)
        if found is None:
            found = _known[provider] = Instruments(provider)
        return found


class _Counts:
    """How often something happened, by its labels."""

    def __init__(self) -> None:
        self._counts: dict[Labels, int] = {}
        self._lock = threading.Lock()

    def add(self, labels: Labels) -> None:
        with self._lock:
            self._counts[labels] = self._counts.get(labels, 0) + 1

    def observe(self, _: CallbackOptions) -> Iterable[Observation]:
        with self._lock:
            counts = list(self._counts.items())
        return [Observation(count, dict(labels)) for labels, count in counts]


class Instruments:
    """The instruments of one meter provider."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter(SCOPE)
        histogram = partial(
            meter.create_histogram,
            unit="s",
            explicit_bucket_boundaries_advisory=BUCKETS_S,
        )
        self.events = _Counts()
        self.failures = _Counts()
        self.event_time = histogram(
            "hookline.event.duration", description="Time from an event to its verdict."
        )
        self.hook_time = histogram(
            "hookline.hook.duration", description="Time of one run of a hook."
        )
        for name, counts, unit, description in (
            ("hookline.events", self.events, "{event}", "Events by their verdict."),
            ("hookline.hook.failures", self.failures, "{failure}", "Failed hooks."),
        ):
            meter.create_observable_counter(
                name, [counts.observe], unit=unit, description=description
            )
