"""PROTOCOL section 1: what each event is matched against, and its effects."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from hookline.protocol.events import HookEventName
from tests.support.workshop import Workshop

EVENTS = list(HookEventName)
BLOCKING = {
    HookEventName.BeforeTool,
    HookEventName.BeforeAgent,
    HookEventName.AfterAgent,
    HookEventName.BeforeModel,
    HookEventName.SubagentStart,
    HookEventName.SubagentStop,
}
ADVISORY = {
    HookEventName.SessionStart,
    HookEventName.SessionEnd,
    HookEventName.Notification,
    HookEventName.PreCompress,
}


@pytest.mark.parametrize("event", EVENTS)
async def test_a_block_counts_where_the_event_can_be_blocked(
    workshop: Workshop, event: HookEventName
) -> None:
    """HOOK-177 to HOOK-181."""
    result = await workshop.fire(event, workshop.runs("echo why >&2; exit 2"))
    assert result.blocked is (event in BLOCKING)
    assert result.reason == ("why" if event in BLOCKING else None)


@pytest.mark.parametrize("event", EVENTS)
async def test_a_stop_counts_except_on_advisory_events(
    workshop: Workshop, event: HookEventName
) -> None:
    """HOOK-177 to HOOK-181."""
    hook = workshop.says({"continue": False, "stopReason": " halt "})
    result = await workshop.fire(event, hook)
    assert result.should_stop is (event not in ADVISORY)
    assert result.stop_reason == (None if event in ADVISORY else "halt")


@pytest.mark.parametrize("event", sorted(ADVISORY))
async def test_a_verdict_on_an_advisory_event_is_logged(
    workshop: Workshop, event: HookEventName, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "hookline"):
        await workshop.fire(event, workshop.runs("exit 2"))
    assert any("cannot block" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("event", EVENTS)
async def test_a_system_message_may_come_from_any_event(
    workshop: Workshop, event: HookEventName
) -> None:
    result = await workshop.fire(event, workshop.says({"systemMessage": "psst"}))
    assert result.system_message == "psst"


@pytest.mark.parametrize("event", EVENTS)
async def test_suppression_may_come_from_any_event(
    workshop: Workshop, event: HookEventName
) -> None:
    result = await workshop.fire(event, workshop.says({"suppressOutput": True}))
    assert result.suppress_output is True


@pytest.mark.parametrize(
    ("event", "hit", "miss"),
    [
        ("BeforeTool", "write", "^file"),
        ("AfterTool", "write|read", "Write"),
        ("SessionStart", "startup", "start"),
        ("SessionEnd", "exit", "ex.t"),
        ("Notification", "ToolPermission", "Tool"),
        ("PreCompress", "auto", "manual"),
        ("SubagentStart", "reviewer", "review"),
        ("SubagentStop", "reviewer", "reviewer|other"),
    ],
)
async def test_matchers_are_compared_with_the_field_of_the_event(
    workshop: Workshop, event: str, hit: str, miss: str
) -> None:
    """HOOK-162."""
    hook = workshop.runs("true")
    assert (await workshop.fire(event, hook, matcher=hit)).aggregated.hook_results
    assert not (await workshop.fire(event, hook, matcher=miss)).aggregated.hook_results


@pytest.mark.parametrize(
    "event",
    ["BeforeAgent", "AfterAgent", "BeforeModel", "AfterModel", "BeforeToolSelection"],
)
async def test_matchers_are_ignored_on_events_without_a_field(
    workshop: Workshop, event: str
) -> None:
    """HOOK-163."""
    result = await workshop.fire(event, workshop.runs("true"), matcher="no_such")
    assert len(result.aggregated.hook_results) == 1


async def test_an_unknown_event_is_a_validation_failure_with_the_nearest_name(
    workshop: Workshop,
) -> None:
    """DELTA-HFAIL-005."""
    async with workshop.config({}) as config:
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        result = await system.event_handler.fire("beforetool", {})
    assert result.aggregated.errors[0].stage == "validation"
    assert "'BeforeTool'" in result.aggregated.errors[0].message


@pytest.mark.parametrize("name", [[], {}, 5, None], ids=str)
async def test_event_name_of_a_wrong_type_is_a_validation_failure(
    workshop: Workshop, name: Any
) -> None:
    """PROTOCOL 7: fire never raises."""
    async with workshop.config({}) as config:
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        result = await system.event_handler.fire(name, {})
    error = result.aggregated.errors[0]
    assert (error.stage, error.event_name) == ("validation", None)
    assert "unknown event" in error.message
