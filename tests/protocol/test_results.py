"""protocol.md#results: results, envelopes, and that nothing raises."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import structs

from hookline import HookEventName, HookSystem
from hookline.protocol.results import (
    AggregatedHookResult,
    FailureMeta,
    Stage,
    build_failure_envelope,
    make_empty_success_result,
    process_common_hook_output_fields,
)
from tests.support.workshop import Workshop


def test_the_empty_success_is_fresh_every_time() -> None:
    """DELTA-HFAIL-004."""
    first, second = make_empty_success_result(), make_empty_success_result()
    assert first == second == AggregatedHookResult()
    assert first is not second
    assert first.all_outputs is not second.all_outputs


def test_a_failure_envelope_has_stage_message_event_and_id() -> None:
    """DELTA-HFAIL-001, rule F1."""
    meta = FailureMeta(event_name=HookEventName.BeforeTool, correlation_id="c-1")
    envelope = build_failure_envelope(ValueError("bad"), Stage.PLANNING, meta)
    assert (envelope.success, envelope.all_outputs) == (False, [])
    assert envelope.errors[0].to_wire() == {
        "stage": "planning",
        "message": "bad",
        "details": "ValueError('bad')",
        "event_name": "BeforeTool",
        "correlation_id": "c-1",
    }


async def test_failure_outside_the_hooks_tells_its_cause(workshop: Workshop) -> None:
    """DELTA-HFAIL-001: ``details`` have what was raised, and what caused that."""

    class Unreadable(dict[str, Any]):
        """The fields of a caller that cannot be read."""

        def items(self) -> Any:
            raise RuntimeError("outer") from KeyError("inner")

    async with workshop.config({}) as config:
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        given = Unreadable(source="clear")
        result = await system.event_handler.fire("SessionStart", given)
    [error] = result.aggregated.errors
    assert error.message == "outer"
    assert error.details == "RuntimeError('outer'), caused by KeyError('inner')"


def test_an_error_without_a_message_is_named() -> None:
    envelope = build_failure_envelope(KeyError(), Stage.INTERNAL)
    assert envelope.errors[0].message == "KeyError"
    assert build_failure_envelope("words", Stage.INTERNAL).errors[0].message == "words"


async def test_the_stop_reason_is_that_of_the_first_hook_that_stops(
    workshop: Workshop,
) -> None:
    """DELTA-HRUN-002, DELTA-HAPP-002."""
    result = await workshop.fire(
        "BeforeTool",
        workshop.says({"reason": "go"}, "a"),
        workshop.says({"continue": False, "stopReason": " first "}, "b"),
        workshop.says({"continue": False, "stopReason": "second"}, "c"),
    )
    assert (result.should_stop, result.stop_reason) == (True, "first")


async def test_reason_joins_the_effective_reasons_of_the_blocking_hooks(
    workshop: Workshop,
) -> None:
    """DELTA-HRUN-004, DELTA-HAPP-001."""
    result = await workshop.fire(
        "BeforeTool",
        workshop.says({"decision": "block", "stopReason": "s", "reason": "r"}, "a"),
        workshop.says({"reason": "no blocker"}, "b"),
        workshop.says({"decision": "deny"}, "c"),
    )
    assert result.reason == "s\nNo reason provided"


async def test_message_and_suppression_are_those_of_the_merged_output(
    workshop: Workshop,
) -> None:
    """DELTA-HRUN-003."""
    result = await workshop.fire(
        "BeforeModel",
        workshop.says({"systemMessage": "a", "suppressOutput": True}, "a"),
        workshop.says({"systemMessage": "b"}, "b"),
    )
    assert result.final_output is not None
    assert result.system_message == result.final_output.system_message == "b"
    assert result.suppress_output is True


@pytest.mark.parametrize("event", list(HookEventName))
async def test_every_result_is_interpreted_in_one_place(
    workshop: Workshop, event: HookEventName
) -> None:
    """DELTA-HRUN-001, DELTA-HAPP-001: the handler returns what this function says."""
    output = {"continue": False, "decision": "block", "reason": "r"}
    output |= {"systemMessage": "m", "suppressOutput": True}
    result = await workshop.fire(event, workshop.says(output))
    assert result.aggregated.all_outputs
    assert result == process_common_hook_output_fields(result.aggregated, event)


def test_an_empty_result_has_no_effects() -> None:
    result = process_common_hook_output_fields(
        make_empty_success_result(), HookEventName.BeforeTool
    )
    assert (result.blocked, result.should_stop, result.system_message) == (
        False,
        False,
        None,
    )


class Broken:
    """A part of the pipeline that raises on any use."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{name} is broken")


@pytest.mark.parametrize(
    ("part", "stage"), [("planner", "planning"), ("runner", "execution")]
)
async def test_a_broken_part_is_a_failure_envelope_at_its_stage(
    workshop: Workshop, part: str, stage: str
) -> None:
    """DELTA-HFAIL-001, rule F4: nothing raises out of fire_*."""
    config = workshop.config(workshop.settings("BeforeTool", workshop.runs("true")))
    async with HookSystem(config) as hooks:
        handler = hooks.event_handler
        handler.pipeline = structs.replace(handler.pipeline, **{part: Broken()})
        result = await hooks.event_handler.fire_before_tool_event("t", {})
    assert result.aggregated.success is False
    assert result.aggregated.errors[0].stage == stage
    assert "is broken" in result.aggregated.errors[0].message
    assert not result.blocked


async def test_cancellation_is_raised(
    workshop: Workshop,
) -> None:
    config = workshop.config(workshop.settings("BeforeTool", workshop.runs("sleep 60")))
    async with HookSystem(config) as hooks:
        fire = hooks.event_handler.fire_before_tool_event("t", {})
        task = asyncio.create_task(fire)
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
