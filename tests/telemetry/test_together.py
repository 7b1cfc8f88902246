"""Nothing that a telemetry backend raises reaches an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from opentelemetry.context import get_current
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import (
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)

from hookline import Config, HookSystem, ProcessedHookResult
from hookline.telemetry.together import Together
from tests.support.telemetry_rows import TOOL, TelemetryHost


class FailingBackend:
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
    def __init__(self, owner: FailingBackend) -> None:
        self._owner = owner

    def end(self, result: Any) -> None:
        self._owner._take("end of hook")


STEPS = ["start_event", "start_hook", "carrier", "end of hook", "end"]


async def verdict(hooks: HookSystem) -> ProcessedHookResult:
    async with hooks:
        hooks.on("BeforeTool", name="no")(lambda _: {"decision": "block"})
        return await hooks.event_handler.fire("BeforeTool", TOOL)


async def test_backend_that_raises_changes_no_verdict(
    host: TelemetryHost, subtests: pytest.Subtests, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told each step in order, and the other one is told everything."""
    settings = host.system({"type": "command", "command": "true"})._config.settings
    for where in (*STEPS, "nowhere"):
        backend = FailingBackend(where)
        hooks = HookSystem(
            Config("s", host.folder, settings),
            telemetry=Together(backend, host.telemetry()),
        )
        caplog.clear()
        result = await verdict(hooks)
        with subtests.test(where):
            assert result.blocked
            assert len(result.aggregated.hook_results) == 2
            problem = "telemetry failed: RuntimeError: the backend broke"
            assert caplog.text.count(problem) == (where != "nowhere")
            assert sorted(span.name for span in host.spans) == [
                "hookline BeforeTool",
                "hookline hook no",
                "hookline hook true",
            ]
        host.forget_spans()
    backend = FailingBackend("nowhere")
    await verdict(HookSystem(Config("s", host.folder), telemetry=backend))
    assert backend.calls == ["start_event", "start_hook", "end of hook", "end"]


class BrokenProcessor(SpanProcessor):
    """Raises at the start or at the end of a span."""

    def __init__(self, at: str) -> None:
        self._at = at

    def on_start(self, *_: Any, **__: Any) -> None:
        if self._at == "start":
            raise RuntimeError("broken at the start")

    def on_end(self, span: ReadableSpan) -> None:
        if self._at == "end":
            raise RuntimeError("broken at the end")


class BrokenExporter(SpanExporter):
    """Raises at every export."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        raise RuntimeError("the exporter broke")


@pytest.mark.parametrize(
    "processor",
    [
        BrokenProcessor("start"),
        BrokenProcessor("end"),
        SimpleSpanProcessor(BrokenExporter()),
    ],
    ids=["start", "end", "exporter"],
)
async def test_broken_processor_changes_neither_verdict_nor_context(
    host: TelemetryHost, processor: SpanProcessor
) -> None:
    """A broken exporter must not change a verdict."""
    host.tracers.add_span_processor(processor)
    before = get_current()
    result = await verdict(host.system())
    assert result.blocked
    assert get_current() == before
