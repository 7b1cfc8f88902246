"""Rows that fire an event and say what telemetry tells of it: spans and figures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer
from prometheus_client.parser import text_string_to_metric_families

from hookline import Config, HookEventName, HookSystem, Settings
from hookline.telemetry.health import WorkerState
from hookline.telemetry.otel import OtelTelemetry
from hookline.telemetry.prometheus import PrometheusTelemetry
from hookline.telemetry.together import Together

from .fired import input_of, shortened
from .pins import Row

TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a.txt"}}


class TelemetryHost:
    """OpenTelemetry as a host sets it up, with everything kept in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader])
        self.tracer: Tracer = self.tracers.get_tracer("host")

    def close(self) -> None:
        self.tracers.shutdown()
        self.meters.shutdown()

    def telemetry(self, *, content: bool = False) -> OtelTelemetry:
        return OtelTelemetry(
            content=content, tracer_provider=self.tracers, meter_provider=self.meters
        )

    def system(
        self,
        *hooks: dict[str, Any],
        event: str = "BeforeTool",
        content: bool = False,
        config: dict[str, Any] | None = None,
        sequential: bool = False,
        **more: Any,
    ) -> HookSystem:
        """A hook system with these hooks, whose telemetry goes to this host."""
        group = {"hooks": list(hooks), "sequential": sequential}
        raw: dict[str, Any] = {"hooks": {event: [group]}, "hooksConfig": config or {}}
        settings = Settings.from_mapping(raw)
        options = {"telemetry": self.telemetry(content=content), **more}
        return HookSystem(Config("s-1", self.folder, settings), **options)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """All that have ended, in that order."""
        return self._exporter.get_finished_spans()

    def forget_spans(self) -> None:
        self._exporter.clear()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def event(self, name: str = "BeforeTool") -> ReadableSpan:
        """The one span of an event."""
        (span,) = self.named(f"hookline {name}")
        return span

    def hook(self, name: str) -> ReadableSpan:
        """The one span of a hook."""
        (span,) = self.named(f"hookline hook {name}")
        return span

    def metrics(self) -> dict[str, list[Any]]:
        """The data points by metric, as they would be exported now."""
        data = self._reader.get_metrics_data()
        return {
            metric.name: list(metric.data.data_points)
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def points(self, metric: str) -> list[Any]:
        return self.metrics().get(metric, [])


async def run_in_threads(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run this in four event loops at once, each in a thread of its own."""
    async with asyncio.TaskGroup() as threads:
        for _ in range(4):
            threads.create_task(asyncio.to_thread(asyncio.run, work()))


def id_of(span: Any) -> int:
    found: int = span.get_span_context().span_id
    return found


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def traceparent(span: Any) -> str:
    """The context of a span, as it travels."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-03"


def span_as_data(span: ReadableSpan, names: dict[int, str]) -> Row:
    """A span without its ids and times; its parent is given by its name."""
    data: Row = {"name": span.name, "attributes": attributes(span)}
    if span.parent is not None:
        data["parent"] = names[span.parent.span_id]
    if span.kind.name != "INTERNAL":
        data["kind"] = span.kind.name
    if span.status.status_code.name != "UNSET":
        data["status"] = f"{span.status.status_code.name}: {span.status.description}"
    return data


def _points_as_data(points: list[Any]) -> list[Row]:
    data = []
    for point in points:
        counts = {"value": point.value} if hasattr(point, "value") else {}
        counts |= {"count": point.count} if hasattr(point, "count") else {}
        data.append(dict(point.attributes) | counts)
    return sorted(data, key=str)


def scraped(
    figures: PrometheusTelemetry, state: WorkerState | None = None
) -> dict[str, float]:
    """The samples of one scrape, by name and labels, read with the client's parser."""
    text = figures.render(state).decode()
    assert text.count("\n") == len(text.splitlines())
    return {
        f"{sample.name} {dict(sorted(sample.labels.items()))}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _counted(figures: PrometheusTelemetry) -> Row:
    """What events and hooks have counted: no buckets, times and descriptions."""
    return {
        name.removeprefix("hookline_"): value
        for name, value in scraped(figures).items()
        if name.startswith(("hookline_event", "hookline_hook"))
        and not name.startswith("hookline_event_loop")
        and "_bucket" not in name
        and "_created" not in name
        and "_sum" not in name
        and value
    }


async def telemetry_row(row: Row, folder: Path) -> Row:
    """Fire the ``event`` of a row with its ``hooks``, under a span of the host.

    With ``content`` the spans hold what was asked and answered, masked and cut.
    """
    host, figures = TelemetryHost(folder), PrometheusTelemetry()
    event = row.get("event", "BeforeTool")
    both = Together(host.telemetry(content=row.get("content", False)), figures)
    system = host.system(
        *row.get("hooks", ()),
        event=event,
        sequential=row.get("sequential", False),
        telemetry=both,
    )
    async with system:
        with host.tracer.start_as_current_span("turn"):
            event_input = input_of(row, HookEventName(event))
            await system.event_handler.fire(event, event_input)
    names = {id_of(span): span.name for span in host.spans}
    spans = [span for span in host.spans if span.name != "turn"]
    then = {
        "spans": sorted(
            (span_as_data(span, names) for span in spans), key=lambda one: one["name"]
        ),
        "metrics": {
            name: _points_as_data(points) for name, points in host.metrics().items()
        },
        "prometheus": _counted(figures),
    }
    host.close()
    masked: Row = shortened(then)
    return masked
