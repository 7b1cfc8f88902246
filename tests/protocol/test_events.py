"""protocol.md#events: what each event is matched against, and its effects."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from hookline.errors import HooklineError, UnknownEventError
from hookline.protocol.events import HookEventName
from tests.support.workshop import TOOL, Workshop

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


@pytest.mark.parametrize(
    "name", ["beforetool", "BeforTool", "", [], {}, 5, None], ids=repr
)
async def test_unknown_event_raises_wherever_it_is_fired(
    workshop: Workshop, name: Any
) -> None:
    """protocol.md#results: the caller's mistake, also with hooks switched off."""
    async with workshop.config({}) as config:
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        for fire in (system.event_handler.fire, config.session("s").fire):
            with pytest.raises(UnknownEventError) as raised:
                await fire(name, TOOL)
        for fire_sync in (system.fire_sync, config.session().fire_sync):
            with pytest.raises(UnknownEventError):
                await asyncio.to_thread(fire_sync, name, TOOL)
        assert isinstance(raised.value, HooklineError)
        assert repr(name) in str(raised.value)
        if name in ("beforetool", "BeforTool"):
            assert "did you mean 'BeforeTool'?" in str(raised.value)
    async with workshop.config({"enableHooks": False}) as disabled:
        with pytest.raises(UnknownEventError):
            await disabled.session().fire(name, TOOL)


@pytest.mark.parametrize(
    ("event", "field"),
    [("SessionStart", "source"), ("SessionEnd", "reason"), ("PreCompress", "trigger")],
)
@pytest.mark.parametrize("value", ["boot", "", None, 5, ["startup"]], ids=repr)
async def test_choice_that_does_not_exist_is_a_validation_failure(
    workshop: Workshop, event: str, field: str, value: Any
) -> None:
    """DELTA-HPAY-006: hooks do not run, and the failure names the choices."""
    hook = workshop.runs("touch ran")
    async with workshop.config(workshop.settings(event, hook)) as config:
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        by_name = {
            "SessionStart": system.event_handler.fire_session_start_event,
            "SessionEnd": system.event_handler.fire_session_end_event,
            "PreCompress": system.event_handler.fire_pre_compress_event,
        }[event]
        results = [
            await by_name(value),
            await system.event_handler.fire(event, {field: value}),
            await config.session().fire(event, {field: value}),
        ]
    for result in results:
        [error] = result.aggregated.errors
        assert (error.stage, error.event_name) == ("validation", event)
        assert f"{field}: expected one of" in error.message
    assert not workshop.ran("ran")


async def test_choice_of_a_coding_agent_that_is_not_known_here_reaches_hooks(
    workshop: Workshop,
) -> None:
    """protocol.md#events: a host may have more reasons than we know."""
    host = {"name": "claude", "event": "SessionEnd"}
    given = {"reason": "bypass_permissions_disabled", "host": host}
    hook = workshop.runs("cat >seen.json")
    result = await workshop.fire("SessionEnd", hook, given=given)
    assert result.aggregated.success
    assert workshop.seen()["reason"] == "bypass_permissions_disabled"
