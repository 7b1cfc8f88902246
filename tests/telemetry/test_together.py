"""Nothing that a telemetry backend raises reaches an event (issue 16: telemetry)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
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

from .recorded import TOOL, Failing, Recorded

STEPS = ["start_event", "start_hook", "carrier", "end of hook", "end"]


async def verdict(hooks: HookSystem) -> ProcessedHookResult:
    async with hooks:
        hooks.on("BeforeTool", name="no")(lambda _: {"decision": "block"})
        return await hooks.event_handler.fire("BeforeTool", TOOL)


@pytest.mark.parametrize("where", STEPS)
async def test_backend_that_raises_changes_no_verdict(
    host: Recorded, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    own = Failing(where)
    settings = host.system({"type": "command", "command": "true"})._config.settings
    hooks = HookSystem(
        Config("s", host.folder, settings), telemetry=Together(own, host.telemetry())
    )
    with caplog.at_level(logging.WARNING):
        result = await verdict(hooks)
    assert result.blocked
    assert len(result.aggregated.hook_results) == 2
    assert caplog.text.count("telemetry failed: RuntimeError: the backend broke") == 1
    # The other one is told everything.
    assert {span.name for span in host.spans} == {
        "hookline BeforeTool",
        "hookline hook no",
        "hookline hook true",
    }


async def test_backend_is_told_each_step_in_order(host: Recorded) -> None:
    own = Failing("nowhere")
    await verdict(HookSystem(Config("s", host.folder), telemetry=own))
    assert own.calls == ["start_event", "start_hook", "end of hook", "end"]


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
    host: Recorded, processor: SpanProcessor
) -> None:
    """Issue 16: a broken exporter must not change a verdict."""
    host.tracers.add_span_processor(processor)
    before = get_current()
    result = await verdict(host.system())
    assert result.blocked
    assert get_current() == before
