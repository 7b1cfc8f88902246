"""OpenTelemetry as a host sets it up, with everything kept in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from hookline.telemetry.otel import OtelTelemetry

TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a.txt"}}


class Recorded:
    """The providers of a host, and what reached their exporters."""

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
        """A hook system with these hooks, told to this host."""
        group = {"hooks": list(hooks), "sequential": sequential}
        raw: dict[str, Any] = {"hooks": {event: [group]}, "hooksConfig": config or {}}
        settings = Settings.from_mapping(raw)
        own = Config("s-1", self.folder, settings)
        told = {"telemetry": self.telemetry(content=content)}
        return HookSystem(own, **told | more)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """All that have ended, in that order."""
        return self._exporter.get_finished_spans()

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

    def points(self, metric: str) -> list[Any]:
        """The data points of a metric, as they would be exported now."""
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for one in scope.metrics
            if one.name == metric
            for point in one.data.data_points
        ]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: Any) -> int:
    found: int = span.get_span_context().span_id
    return found


def traceparent(span: Any) -> str:
    """The context of a span, as it travels."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-03"


class Failing:
    """A backend that raises at one of its methods; all of its parts are one object."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.calls: list[str] = []

    def _take(self, name: str) -> None:
        self.calls.append(name)
        if name == self._where:
            raise RuntimeError("the backend broke")

    def start_event(self, *_: Any) -> Any:
        self._take("start_event")
        return self

    def start_hook(self, *_: Any) -> Any:
        self._take("start_hook")
        return _Run(self)

    def end(self, result: ProcessedHookResult | None) -> None:
        self._take("end")

    def carrier(self) -> Mapping[str, str]:
        self._take("carrier")
        return {}


class _Run:
    def __init__(self, owner: Failing) -> None:
        self._owner = owner

    def end(self, result: Any) -> None:
        self._owner._take("end of hook")
