"""Spans and figures reach a receiver of OTLP over HTTP."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from hookline import Config, HookSystem
from hookline.telemetry.otel import OtelTelemetry
from tests.support.telemetry_rows import TOOL
from tests.support.web import WebServer, reply


def received(server: WebServer, target: str, kind: Any) -> Iterator[Any]:
    """The requests that arrived at a path of the receiver."""
    for exchange in server.exchanges:
        if exchange.target == target:
            zipped = exchange.headers.get("content-encoding") == "gzip"
            yield kind.FromString(
                gzip.decompress(exchange.body) if zipped else exchange.body
            )


def spans_in(server: WebServer) -> dict[str, Any]:
    """The spans that arrived, by name."""
    scopes = [
        scope
        for request in received(server, "/v1/traces", ExportTraceServiceRequest)
        for resource in request.resource_spans
        for scope in resource.scope_spans
    ]
    assert {scope.scope.name for scope in scopes} == {"hookline"}
    return {span.name: span for scope in scopes for span in scope.spans}


def metrics_in(server: WebServer) -> dict[str, Any]:
    """The metrics that arrived, by name."""
    return {
        metric.name: metric
        for request in received(server, "/v1/metrics", ExportMetricsServiceRequest)
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


async def fire(telemetry: OtelTelemetry, folder: Path) -> None:
    async with HookSystem(Config("s-1", folder), telemetry=telemetry) as hooks:

        def guard(_: dict[str, Any]) -> dict[str, str]:
            return {"decision": "block", "reason": "no"}

        guard.__name__ = "\ud800 no"
        hooks.on("BeforeTool")(guard)
        event = {**TOOL, "tool_name": "odd \ud800 name"}
        result = await hooks.event_handler.fire("BeforeTool", event)
    assert result.blocked


async def test_spans_and_figures_arrive_over_otlp(tmp_path: Path) -> None:
    with WebServer(reply(b"", Content_Type="application/x-protobuf")) as server:
        tracers = TracerProvider()
        spans = OTLPSpanExporter(f"{server.url}/v1/traces")
        tracers.add_span_processor(BatchSpanProcessor(spans))
        figures = OTLPMetricExporter(f"{server.url}/v1/metrics")
        reader = PeriodicExportingMetricReader(figures, 3_600_000)
        meters = MeterProvider([reader])
        own = OtelTelemetry(tracer_provider=tracers, meter_provider=meters)
        await fire(own, tmp_path)
        tracers.shutdown()
        meters.shutdown()
        found, metrics = spans_in(server), metrics_in(server)
    event, hook = found["hookline BeforeTool"], found["hookline hook \ufffd no"]
    assert hook.parent_span_id == event.span_id
    assert hook.trace_id == event.trace_id
    values = {one.key: one.value.string_value for one in event.attributes}
    assert values["gen_ai.tool.name"] == "odd \ufffd name"
    assert values["hookline.verdict"] == "blocked"
    (point,) = metrics["hookline.events"].sum.data_points
    assert metrics["hookline.events"].sum.is_monotonic
    assert point.as_int == 1
    (time,) = metrics["hookline.hook.duration"].histogram.data_points
    assert time.count == 1
    assert metrics["hookline.hook.duration"].unit == "s"


async def test_receiver_that_is_gone_changes_no_verdict(tmp_path: Path) -> None:
    with WebServer(reply(b"")) as server:
        url = server.url
    tracers = TracerProvider()
    exporter = OTLPSpanExporter(f"{url}/v1/traces", timeout=1)
    tracers.add_span_processor(BatchSpanProcessor(exporter))
    own = OtelTelemetry(tracer_provider=tracers, meter_provider=MeterProvider([]))
    await fire(own, tmp_path)
    tracers.shutdown()
