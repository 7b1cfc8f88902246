"""PROTOCOL section 1: every event's input, what it is matched against, its effects."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from hookline.protocol.events import TRAITS, HookEventName
from tests.support.workshop import INPUTS, Workshop

EVENTS = list(HookEventName)
BLOCKING = {
    HookEventName.BeforeTool,
    HookEventName.BeforeAgent,
    HookEventName.AfterAgent,
    HookEventName.BeforeModel,
}
ADVISORY = {
    HookEventName.SessionStart,
    HookEventName.SessionEnd,
    HookEventName.Notification,
    HookEventName.PreCompress,
}
FIELDS: dict[HookEventName, dict[str, Any]] = {
    **INPUTS,
    HookEventName.AfterAgent: {
        "prompt": "do it",
        "prompt_response": "done",
        "stop_hook_active": False,
    },
    HookEventName.Notification: {
        "message": "look",
        "notification_type": "ToolPermission",
        "details": {},
    },
}


@pytest.mark.parametrize("event", EVENTS)
async def test_every_event_has_base_fields_and_its_own(
    workshop: Workshop, event: HookEventName
) -> None:
    """HOOK-061, HOOK-062."""
    await workshop.fire(event, workshop.runs("cat > seen.json"))
    seen = workshop.seen()
    assert seen["session_id"] == "s-1"
    assert seen["cwd"] == str(workshop.folder)
    assert seen["hook_event_name"] == event.value
    assert seen["transcript_path"] == ""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", seen["timestamp"])
    for field, value in FIELDS[event].items():
        if field not in TRAITS[event].model_fields:
            assert seen[field] == value
        assert field in seen


@pytest.mark.parametrize("event", EVENTS)
async def test_a_block_counts_where_the_event_can_be_blocked(
    workshop: Workshop, event: HookEventName
) -> None:
    """HOOK-177 to HOOK-181."""
    result = await workshop.fire(event, workshop.runs("echo why >&2; exit 2"))
    assert result.blocked is (event in BLOCKING)
    assert result.reason == ("why" if event in BLOCKING else None)


@pytest.mark.parametrize("event", EVENTS)
async def test_a_stop_counts_but_on_advisory_events(
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
    ],
)
async def test_matchers_are_held_against_the_field_of_the_event(
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
async def test_matchers_mean_nothing_on_events_without_a_field(
    workshop: Workshop, event: str
) -> None:
    """HOOK-163."""
    result = await workshop.fire(event, workshop.runs("true"), matcher="no_such")
    assert len(result.aggregated.hook_results) == 1


async def test_optional_tool_fields_reach_the_hook(workshop: Workshop) -> None:
    system = workshop.config(
        workshop.settings("BeforeTool", workshop.runs("cat > seen.json"))
    ).get_hook_system()
    assert system is not None
    async with system as hooks:
        await hooks.event_handler.fire_before_tool_event(
            "t", {}, mcp_context={"server": "s"}, original_request_name="o"
        )
    assert workshop.seen()["mcp_context"] == {"server": "s"}
    assert workshop.seen()["original_request_name"] == "o"


@pytest.mark.parametrize(
    ("event", "field", "value"),
    [
        ("SessionStart", "source", ["startup"]),
        ("SessionEnd", "reason", None),
        ("PreCompress", "trigger", 5),
    ],
)
async def test_a_choice_that_is_missing_or_no_text_is_a_validation_failure(
    workshop: Workshop, event: str, field: str, value: object
) -> None:
    """DELTA-HPAY-006."""
    hook = workshop.runs("touch ran")
    result = await workshop.fire(event, hook, given={field: value})
    assert result.aggregated.success is False
    assert result.aggregated.errors[0].stage == "validation"
    assert field in result.aggregated.errors[0].message
    assert not workshop.ran("ran")


async def test_a_choice_that_nobody_knows_is_warned_about_and_reaches_hooks(
    workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    """Rule V1: the direct path is not strict about a host with more sources."""
    hook = workshop.runs("cat > seen.json")
    result = await workshop.fire("SessionStart", hook, given={"source": "compact"})
    assert result.aggregated.success
    assert workshop.seen()["source"] == "compact"
    assert any("got 'compact'" in record.getMessage() for record in caplog.records)
    other = await workshop.fire(
        "SessionStart", hook, given={"source": "compact"}, matcher="startup"
    )
    assert other.aggregated.hook_results == []


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


async def test_model_fields_may_go_by_either_name(workshop: Workshop) -> None:
    """PROTOCOL 8: model_request and llm_request."""
    stable = {"model": "m", "messages": [{"role": "user", "content": "u"}]}
    hook = workshop.runs("cat > seen.json")
    await workshop.fire("BeforeModel", hook, given={"model_request": stable})
    assert workshop.seen()["llm_request"] == stable
    assert "model_request" not in workshop.seen()


async def test_fields_of_hooklines_own_cannot_be_set_from_outside(
    workshop: Workshop,
) -> None:
    given = {**INPUTS[HookEventName.BeforeTool], "cwd": "/", "timestamp": "x"}
    given |= {"hook_event_name": "Other", "session_id": "mine", "transcript_path": "t"}
    await workshop.fire("BeforeTool", workshop.runs("cat > seen.json"), given=given)
    seen = workshop.seen()
    assert (seen["cwd"], seen["hook_event_name"]) == (
        str(workshop.folder),
        "BeforeTool",
    )
    assert seen["timestamp"] != "x"
    assert (seen["session_id"], seen["transcript_path"]) == ("mine", "t")


async def test_a_request_in_no_known_shape_is_a_translation_failure(
    workshop: Workshop,
) -> None:
    """DELTA-HPAY-004, rule T3."""
    hook = workshop.runs("touch ran")
    result = await workshop.fire("BeforeModel", hook, given={"llm_request": 5})
    assert result.aggregated.errors[0].stage == "translation"
    assert not workshop.ran("ran")
