"""Figures for Prometheus: counters and histograms of events and hooks, and the state.

Labels have few values: events, verdicts, causes, and the hooks of the settings. What a
model or a requester chooses, such as the name of a tool, is none.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.metadata import version
from time import perf_counter
from typing import Any

from hookline._internal.log import Courier
from hookline.errors import MissingExtraError
from hookline.journal.redact import Masker
from hookline.plan import HookCall, RegisteredHook
from hookline.protocol.events import HookEventName
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult
from hookline.protocol.verdict import Word, event_verdict, hook_verdict

from .contract import Carrier
from .health import WorkerState, ready_checks

try:
    from prometheus_client import (
        CONTENT_TYPE_LATEST,
        CollectorRegistry,
        Counter,
        Histogram,
        ProcessCollector,
        generate_latest,
    )
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        Metric,
    )
    from prometheus_client.registry import Collector
except ImportError as error:
    raise MissingExtraError("metrics", "prometheus-client") from error

CONTENT_TYPE = CONTENT_TYPE_LATEST
OTHER = "(other)"
"""Stands for all hooks beyond so many names."""

_MAX_HOOKS = 500
_MAX_NAME = 100
_BUCKETS_S = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25),
    *(0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)


@lru_cache(maxsize=1024)
def label_of(name: str) -> str:
    """A name as the value of a label: short, masked, and nothing that ends a line."""
    name = Masker(texts=True).mask_text(name)
    cut = name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut)


class PrometheusTelemetry:
    """Counts events and hooks in a registry of its own."""

    def __init__(self) -> None:
        self.courier = Courier()  # never used: nothing here can hang
        self._registry = registry = CollectorRegistry(auto_describe=True)
        self._hooks: dict[tuple[str, str], _HookFigures] = {}
        self._verdicts: dict[
            tuple[HookEventName | None, str], tuple[Counter, Histogram]
        ] = {}
        self._state = _StateCollector()
        self._events = Counter(
            "hookline_events",
            "Events by verdict",
            ["event", "verdict"],
            registry=registry,
        )
        self._event_seconds = Histogram(
            "hookline_event_duration_seconds",
            "Time from an event to its verdict",
            ["event"],
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self._series = _HookSeries(registry)
        ProcessCollector(registry=registry)
        registry.register(self._state)

    def start_event(
        self,
        event: HookEventName | None,
        fields: Mapping[str, Any],
        session_id: str,
        carrier: Carrier | None,
    ) -> _Event:
        """Start the clock of an event."""
        return _Event(self, event)

    def end_event(
        self,
        event: HookEventName | None,
        result: ProcessedHookResult | None,
        seconds: float,
    ) -> None:
        """Count an event that has its verdict, or was cancelled."""
        verdict = _verdict(event, result)
        series = self._verdicts.get((event, verdict))
        if series is None:
            # To find a series by its labels costs more than to count.
            name = "unknown" if event is None else event.value
            series = (
                self._events.labels(name, verdict),
                self._event_seconds.labels(name),
            )
            self._verdicts[event, verdict] = series
        series[0].inc()
        series[1].observe(seconds)

    def figures_of(self, hook: RegisteredHook) -> _HookFigures:
        """The series of a hook; those beyond the limit share theirs."""
        key = (hook.name, hook.config.type.value)
        figures = self._hooks.get(key)
        if figures is None:
            if len(self._hooks) >= _MAX_HOOKS:
                key = (OTHER, "other")
            labels = label_of(key[0]), key[1]
            figures = self._hooks.setdefault(key, _HookFigures(self._series, *labels))
        return figures

    def render(self, state: WorkerState | None) -> bytes:
        """Everything in the text format; without a state its gauges are left out."""
        self._state.state = state
        return generate_latest(self._registry)


def _verdict(event: HookEventName | None, result: ProcessedHookResult | None) -> str:
    if result is None:
        return "cancelled"
    word, aggregated = event_verdict(event, result).word, result.aggregated
    # A figure has no errors beside it, as spans and the journal have: an event that
    # failed before its hooks, and that no policy closed, is one of its own.
    failed = not aggregated.success and not aggregated.hook_results
    return "failed" if failed and word is Word.ALLOWED else word.value


class _Event:
    """One event."""

    __slots__ = ("_event", "_owner", "_started")

    def __init__(self, owner: PrometheusTelemetry, event: HookEventName | None) -> None:
        self._owner = owner
        self._event = event
        self._started = perf_counter()

    def start_hook(self, hook: RegisteredHook, call: HookCall) -> _Hook:
        """Start the clock of a hook."""
        return _Hook(self._owner.figures_of(hook), call.recheck)

    def end(self, result: ProcessedHookResult | None) -> None:
        """Count the verdict."""
        seconds = perf_counter() - self._started
        self._owner.end_event(self._event, result, seconds)

    def carrier(self) -> Carrier:
        """Nothing to pass on."""
        return {}


class _Hook:
    """One run of a hook."""

    __slots__ = ("_figures", "_recheck", "_started")

    def __init__(self, figures: _HookFigures, recheck: bool) -> None:
        self._figures = figures
        self._recheck = recheck
        self._started = perf_counter()

    def end(self, result: HookExecutionResult | None) -> None:
        """Count the run."""
        self._figures.count(result, perf_counter() - self._started, self._recheck)


class _HookSeries:
    """What is counted of hooks, by their names."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.runs = Counter(
            "hookline_hook_runs",
            "Runs of hooks by outcome",
            ["hook", "type", "outcome"],
            registry=registry,
        )
        self.failures = Counter(
            "hookline_hook_failures",
            "Failed runs by cause",
            ["hook", "type", "cause"],
            registry=registry,
        )
        self.would_blocks = Counter(
            "hookline_hook_would_blocks",
            "Runs in observe mode that would have blocked",
            ["hook", "type"],
            registry=registry,
        )
        self.rechecks = Counter(
            "hookline_hook_rechecks",
            "Runs on the input after all changes",
            ["hook", "type"],
            registry=registry,
        )
        self.seconds = Histogram(
            "hookline_hook_duration_seconds",
            "Time of one run of a hook",
            ["hook", "type"],
            buckets=_BUCKETS_S,
            registry=registry,
        )


class _HookFigures:
    """The series of one hook, found once."""

    def __init__(self, series: _HookSeries, name: str, kind: str) -> None:
        self._series = series
        self._labels = name, kind
        self._seconds = series.seconds.labels(name, kind)
        self._rechecks = series.rechecks.labels(name, kind)
        self._would_blocks = series.would_blocks.labels(name, kind)
        self._runs: dict[str, Counter] = {}

    def count(
        self, result: HookExecutionResult | None, seconds: float, recheck: bool
    ) -> None:
        outcome = _outcome(result)
        runs = self._runs.get(outcome)
        if runs is None:
            runs = self._series.runs.labels(*self._labels, outcome)
            self._runs[outcome] = runs
        runs.inc()
        self._seconds.observe(seconds)
        if recheck:
            self._rechecks.inc()
        if result is not None and result.would_block:
            self._would_blocks.inc()
        if result is not None and result.cause is not None:
            self._series.failures.labels(*self._labels, result.cause.value).inc()


def _outcome(result: HookExecutionResult | None) -> str:
    """What a run came to, in one word; a failure is one whatever its policy says."""
    if result is None:
        return "cancelled"
    verdict = hook_verdict(result)
    if verdict.failed:
        return "failed"
    if verdict.word is Word.CHANGED:
        return "allowed"  # what was changed is no label of a run
    return verdict.word.value.replace("-", "_")


class _StateCollector(Collector):
    """The state of the worker at the time of the scrape, as gauges."""

    def __init__(self) -> None:
        self.state: WorkerState | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield a family for each gauge."""
        yield _labelled(
            "hookline_build_info",
            "Version of Hookline and of Python",
            {(version("hookline"), platform.python_version()): 1},
            "version",
            "python",
        )
        state = self.state
        yield _gauge(
            "hookline_event_loop_up", "The event loop answers", state is not None
        )
        if state is not None:
            yield from _plain_gauges(state)
            yield from _labelled_gauges(state)


def _plain_gauges(state: WorkerState) -> Iterator[Metric]:
    for name, text, value in (
        ("bus_connected", "The bus is connected", state.bus_connected),
        ("stopping", "No new requests are taken", state.stopping),
        ("requests_in_flight", "Requests whose hooks run", state.in_flight),
        ("requests_waiting", "Requests that wait for others", state.waiting),
        ("worker_processes", "Processes of worker hooks", state.processes),
        ("workers_lost", "Worker hooks whose process is gone", len(state.lost)),
        ("settings_errors", "Errors in the settings in use", state.settings_errors),
        ("settings_reload_success", "The last load of settings worked", state.reloaded),
        (
            "settings_load_timestamp_seconds",
            "When the settings in use were loaded",
            state.settings_loaded_at,
        ),
    ):
        yield _gauge(f"hookline_{name}", text, value)


def _labelled_gauges(state: WorkerState) -> Iterator[Metric]:
    checks = {name: check.ok for name, check in ready_checks(state).items()}
    yield _labelled("hookline_ready", "Checks of /readyz", checks, "check")
    dropped = CounterMetricFamily(
        "hookline_requests_dropped",
        "Requests whose hooks did not run",
        labels=["reason"],
    )
    for reason in ("expired", "overload"):
        dropped.add_metric([reason], float(state.dropped.get(reason, 0)))
    yield dropped
    yield _labelled("hookline_hooks", "Hooks by state", state.hooks, "state")
    opened: dict[str, bool] = {}
    for name, is_open in list(state.breakers.items())[:_MAX_HOOKS]:
        label = label_of(name)
        opened[label] = opened.get(label, False) or is_open
    text = "The hook is skipped because it keeps timing out"
    yield _labelled("hookline_hook_breaker_open", text, opened, "hook")


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=float(value))


def _labelled(
    name: str, text: str, values: Mapping[Any, float], *labels: str
) -> Metric:
    """A gauge by label; a key is one value, or a tuple of them."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric((key,) if isinstance(key, str) else key, float(value))
    return family
