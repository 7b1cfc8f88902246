"""Spans where hooks wait, end late or break.

Those of each event and verdict, and of odd content, are in ``tests/pins/telemetry``.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from hookline import HookEventName, HookSystem, ProcessedHookResult
from hookline.telemetry.prometheus import PrometheusTelemetry
from hookline.telemetry.together import Together
from tests.support.telemetry_rows import (
    TOOL,
    TelemetryHost,
    attributes,
    id_of,
    parent_of,
    scraped,
)


async def fire(
    hooks: HookSystem, event: str = "BeforeTool", **fields: Any
) -> ProcessedHookResult:
    return await hooks.event_handler.fire(event, fields or TOOL)


async def test_async_hook_ends_its_span_when_it_ends(host: TelemetryHost) -> None:
    """A child of its event, which is a root without a span of the host."""
    gate = asyncio.Event()

    async def slow(_: dict[str, Any]) -> None:
        await gate.wait()

    async with host.system() as hooks:
        hooks.on("BeforeTool", name="slow", asynchronous=True)(slow)
        await fire(hooks)
        assert [span.name for span in host.spans] == ["hookline BeforeTool"]
        gate.set()
    assert parent_of(host.event()) is None
    assert parent_of(host.hook("slow")) == id_of(host.event())
    assert attributes(host.hook("slow"))["hookline.hook.async"] is True


async def test_async_hooks_in_a_queue_belong_to_their_own_events(
    host: TelemetryHost,
) -> None:
    """A queued hook is started by the end of another event's hook."""
    gate = asyncio.Event()

    async def slow(_: dict[str, Any]) -> None:
        await gate.wait()

    async with host.system() as hooks:
        hooks.on("BeforeTool", name="slow", asynchronous=True)(slow)
        for _ in range(70):  # 64 run at a time
            await fire(hooks)
        gate.set()
    events = {id_of(span): span for span in host.named("hookline BeforeTool")}
    runs = host.named("hookline hook slow")
    assert {parent_of(span) for span in runs} == events.keys()
    for run in runs:
        assert run.context is not None
        event = events[parent_of(run) or 0]
        assert event.context is not None
        assert run.context.trace_id == event.context.trace_id


class Unreadable(dict[str, Any]):
    """A mapping of the caller's that raises."""

    def get(self, *_: Any) -> Any:
        raise RuntimeError("no")


async def test_event_that_fails_outside_its_hooks_is_a_failed_span_with_the_stage(
    host: TelemetryHost,
) -> None:
    """protocol.md#bus and #process: also one that no guard can be shown."""
    deep: list[Any] = []
    for _ in range(600):
        deep = [deep]
    hidden = {"tool_name": "t", "tool_input": {"deep": deep}}
    async with host.system({"type": "command", "command": "true"}) as hooks:
        handler = hooks.event_handler
        await handler.fire("BeforeTool", Unreadable(TOOL))
        await handler.fire_fields(
            HookEventName.BeforeModel, {"llm_request": 5}, trace={}
        )
        assert (await handler.fire("BeforeTool", hidden)).blocked
        broken = RuntimeError("no registry")
        handler.pipeline = replace(handler.pipeline, broken=broken)
        await fire(hooks)
    failed = [
        (span.name.removeprefix("hookline "), attributes(span)["hookline.verdict"])
        for span in host.spans
    ]
    stages = [attributes(span)["error.type"] for span in host.spans]
    assert stages == ["validation", "translation", "execution", "internal"]
    assert [name for name, _ in failed] == [
        *("BeforeTool", "BeforeModel", "BeforeTool", "BeforeTool"),
    ]
    assert failed[2] == ("BeforeTool", "blocked")


class Odd(str):
    """Text of a class of its own."""

    def __str__(self) -> str:
        raise RuntimeError("not for you")


class Incomparable:
    """A value of the host's, as arrays are."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = object.__hash__


async def test_value_that_cannot_be_compared_ends_its_spans(
    host: TelemetryHost,
) -> None:
    async with host.system() as hooks:
        change = {"hookSpecificOutput": {"tool_input": {"path": "b.txt"}}}
        hooks.on("BeforeTool", name="change")(lambda _: change)
        given = {"path": Incomparable()}
        result = await fire(hooks, tool_name="t", tool_input=given)
    assert result.aggregated.success
    assert attributes(host.event())["hookline.verdict"] == "changed"


async def test_cancelled_event_ends_its_spans_and_is_counted_as_that(
    host: TelemetryHost,
) -> None:
    started = asyncio.Event()
    figures = PrometheusTelemetry()

    async def wait(_: dict[str, Any]) -> None:
        started.set()
        await asyncio.Event().wait()

    async with host.system(telemetry=Together(host.telemetry(), figures)) as hooks:
        hooks.on("BeforeTool", name="wait")(wait)
        task = asyncio.create_task(fire(hooks))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert attributes(host.event())["hookline.verdict"] == "cancelled"
    assert attributes(host.hook("wait"))["hookline.hook.cancelled"] is True
    verdict = "{'event': 'BeforeTool', 'verdict': 'cancelled'}"
    assert scraped(figures)[f"hookline_events_total {verdict}"] == 1
    run = "{'hook': 'wait', 'outcome': 'cancelled', 'type': 'python'}"
    assert scraped(figures)[f"hookline_hook_runs_total {run}"] == 1


async def test_name_of_a_tool_in_a_class_of_its_own_is_a_valid_attribute(
    host: TelemetryHost,
) -> None:
    name = Odd("odd")
    async with host.system() as hooks:
        hooks.on("BeforeTool", name="look")(lambda _: None)
        result = await fire(hooks, tool_name=name, tool_input={}, tool_use_id=name)
    assert result.aggregated.success
    event = attributes(host.event())
    assert event["gen_ai.tool.name"] == event["gen_ai.tool.call.id"] == "odd"
    assert type(event["gen_ai.tool.name"]) is str


async def test_hooks_run_the_same_when_nothing_is_recorded(host: TelemetryHost) -> None:
    """Spans that are sampled out, and providers that are shut down."""
    host.tracers = TracerProvider(sampler=ALWAYS_OFF)
    async with host.system() as hooks:
        hooks.on("BeforeTool")(lambda _: {"decision": "block", "reason": "no"})
        assert (await fire(hooks)).blocked
        assert [point.value for point in host.points("hookline.events")] == [1]
        host.close()
        assert (await fire(hooks)).blocked
    assert host.spans == ()
