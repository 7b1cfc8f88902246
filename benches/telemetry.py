"""What telemetry costs: off nothing, on two spans and their figures for each event.

The SDK has its default sampler, a batch processor with an exporter that does nothing,
and a reader of metrics in memory. An event does not wait for its histograms: a figure
of its own adds the share of one event in a collection. ``off`` is measured against the
same once more: the difference is what cannot be told from nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SpanExporter,
    SpanExportResult,
)

from hookline import Config, HookSystem, Settings
from hookline.telemetry.otel import OtelTelemetry

from .floor import Floors
from .measure import Bar, Figure, Timed, compare, timed

GROUP = "telemetry"
INPUT = {"path": "src/main.py", "content": "x = 1\n"}
REPEAT = 3
"""Few in a row: a longer round is more likely to be interrupted than its floor."""
FIRES = 99
"""So many fires between two collections of the metrics."""
MAX_OFF_RATIO = 1.03
MAX_ADDED_US = 60.0


class NoExporter(SpanExporter):
    """Takes spans and does nothing with them."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Drop them."""
        return SpanExportResult.SUCCESS


async def figures(_: Floors, folder: Path, rounds: int) -> list[Figure]:
    """All figures of this group."""
    rounds *= 10
    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(NoExporter()))
    reader = InMemoryMetricReader()
    meters = MeterProvider([reader])
    otel = OtelTelemetry(tracer_provider=tracers, meter_provider=meters)
    async with AsyncExitStack() as stack:

        async def fires(telemetry: Any) -> Timed:
            config = Config("bench", folder, Settings())
            system = HookSystem(config, telemetry=telemetry)
            hooks = await stack.enter_async_context(system)
            hooks.on("BeforeTool")(_plain)
            fire = hooks.event_handler.fire_before_tool_event
            return timed(lambda: fire("write_file", INPUT), REPEAT)

        default, off, on = await fires(None), await fires(False), await fires(otel)
        nothing, spans = Bar(MAX_OFF_RATIO), Bar(MAX_ADDED_US, "added_us")
        found = [
            await compare(GROUP, "off", off, default, "as before", rounds, nothing),
            await compare(GROUP, "one hook, on", on, off, "off", rounds, spans),
            await compare(
                GROUP,
                "on, with its collection",
                _collected(on, reader),
                _collected(off, reader),
                "off",
                rounds // 10,
            ),
        ]
    tracers.shutdown()
    meters.shutdown()
    return found


def _collected(fires: Timed, reader: InMemoryMetricReader) -> Timed:
    """A fire with its share of the next collection of the metrics."""

    async def run() -> float:
        for _ in range(FIRES // REPEAT):
            fire_s = await fires()
        started = time.perf_counter()
        reader.get_metrics_data()
        return fire_s + (time.perf_counter() - started) / FIRES

    return run


def _plain(_: dict[str, Any]) -> None:
    pass
