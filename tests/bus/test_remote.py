"""The handler's methods for hooks that run elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import signature
from typing import Any

import pytest

from hookline.bus import HookBusClient, InMemoryMessageBus, RemoteHooks
from hookline.bus.server import RequestServer
from hookline.engine.handler import HookEventHandler
from hookline.errors import UnknownEventError
from hookline.protocol.events import (
    HookEventName,
    NotificationType,
    PreCompressTrigger,
    SessionEndReason,
    SessionStartSource,
)
from hookline.protocol.results import ProcessedHookResult, Stage

from .fakes import RecordingHandler, failed_at, result_of

E = HookEventName
STABLE = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
ANSWER = {
    "text": "yo",
    "candidates": [{"content": {"role": "model", "parts": ["yo"]}}],
}
TOOL = {"tool_name": "t", "tool_input": {"a": 1}}


def remote(
    handler: RecordingHandler, on_error: str = "allow", **options: Any
) -> RemoteHooks:
    bus = InMemoryMessageBus()
    RequestServer(handler, bus).subscribe()
    return RemoteHooks(HookBusClient(bus, on_error), **options)


Fire = Callable[[RemoteHooks], Awaitable[ProcessedHookResult]]

FIRED: list[tuple[HookEventName, Fire, dict[str, Any]]] = [
    (E.BeforeTool, lambda r: r.fire_before_tool_event("t", {"a": 1}), TOOL),
    (
        E.BeforeTool,
        lambda r: r.fire_before_tool_event(
            "t", {"a": 1}, mcp_context={"s": 1}, original_request_name="o"
        ),
        TOOL | {"mcp_context": {"s": 1}, "original_request_name": "o"},
    ),
    (
        E.AfterTool,
        lambda r: r.fire_after_tool_event("t", {"a": 1}, {"llmContent": "x"}),
        TOOL | {"tool_response": {"llmContent": "x"}},
    ),
    (E.BeforeAgent, lambda r: r.fire_before_agent_event("p"), {"prompt": "p"}),
    (
        E.AfterAgent,
        lambda r: r.fire_after_agent_event("p", "q", True),
        {"prompt": "p", "prompt_response": "q", "stop_hook_active": True},
    ),
    (
        E.BeforeModel,
        lambda r: r.fire_before_model_event(STABLE),
        {"llm_request": STABLE},
    ),
    (
        E.AfterModel,
        lambda r: r.fire_after_model_event(STABLE, ANSWER),
        {"llm_request": STABLE, "llm_response": ANSWER},
    ),
    (
        E.BeforeToolSelection,
        lambda r: r.fire_before_tool_selection_event(STABLE, ["a", "b"]),
        {"llm_request": STABLE, "available_tools": ["a", "b"]},
    ),
    (
        E.SessionStart,
        lambda r: r.fire_session_start_event(SessionStartSource.Resume),
        {"source": "resume"},
    ),
    (
        E.SessionEnd,
        lambda r: r.fire_session_end_event(SessionEndReason.Logout),
        {"reason": "logout"},
    ),
    (
        E.Notification,
        lambda r: r.fire_notification_event(
            "m", notification_type=NotificationType.ToolPermission, level="info"
        ),
        {
            "message": "m",
            "notification_type": "ToolPermission",
            "details": {},
            "level": "info",
        },
    ),
    (
        E.PreCompress,
        lambda r: r.fire_pre_compress_event(PreCompressTrigger.Auto),
        {"trigger": "auto"},
    ),
    (
        E.SubagentStart,
        lambda r: r.fire_subagent_start_event("a-1", "reviewer", prompt="p"),
        {"agent_id": "a-1", "agent_type": "reviewer", "prompt": "p"},
    ),
    (
        E.SubagentStop,
        lambda r: r.fire_subagent_stop_event("a-1", "reviewer", prompt_response="r"),
        {
            "agent_id": "a-1",
            "agent_type": "reviewer",
            "prompt_response": "r",
            "stop_hook_active": False,
        },
    ),
    (
        E.BeforeTool,
        lambda r: r.fire("BeforeTool", {"tool_name": "t", "tool_input": {"a": 1}}),
        TOOL,
    ),
]


@pytest.mark.parametrize(
    ("event", "fire", "fields"),
    FIRED,
    ids=[f"{e}-{n}" for n, (e, _, _) in enumerate(FIRED)],
)
async def test_remote_hooks_send_what_the_handler_takes(
    event: HookEventName, fire: Fire, fields: dict[str, Any]
) -> None:
    handler = RecordingHandler()
    result = await fire(remote(handler))
    assert result.aggregated.success
    assert handler.calls[0]["event"] is event
    assert handler.calls[0]["fields"] == fields


async def test_remote_hooks_send_session_and_requester() -> None:
    handler = RecordingHandler()
    hooks = remote(
        handler, session_id="s", transcript_path="/t", requester={"host": "h"}
    )
    await hooks.fire_before_agent_event("p")
    call = handler.calls[0]
    assert (call["session_id"], call["transcript_path"]) == ("s", "/t")
    assert call["fields"]["requester"] == {"host": "h"}


async def test_block_arrives_with_its_reason() -> None:
    handler = RecordingHandler(
        result_of({"decision": "deny", "reason": "no"}, E.BeforeTool)
    )
    result = await remote(handler).fire_before_tool_event("t", {})
    assert (result.blocked, result.reason) == (True, "no")


async def test_changed_tool_input_arrives_complete() -> None:
    wire = {"hookSpecificOutput": {"tool_input": {"path": "b"}}}
    handler = RecordingHandler(result_of(wire, E.BeforeTool))
    result = await remote(handler).fire_before_tool_event("t", {"path": "a", "m": 1})
    assert result.final_output is not None
    assert result.final_output.modified_tool_input == {"path": "b", "m": 1}


async def test_request_object_of_an_sdk_is_sent_in_the_stable_shape() -> None:
    """DELTA-HPAY-003."""
    from hookline.translators.genai import GenerateContentRequest

    handler = RecordingHandler()
    request = GenerateContentRequest(model="gemini", contents="hello", config=None)
    await remote(handler).fire_before_model_event(request)
    sent = handler.calls[0]["fields"]["llm_request"]
    assert sent["model"] == "gemini"
    assert sent["messages"] == [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize(("on_error", "blocked"), [("allow", False), ("block", True)])
async def test_model_request_of_an_unknown_shape_is_a_translation_failure(
    on_error: str, blocked: bool
) -> None:
    """DELTA-HPAY-004: a boundary failure, nothing is sent."""
    handler = RecordingHandler()
    result = await remote(handler, on_error).fire_before_model_event(object())
    assert not result.aggregated.success
    assert result.aggregated.errors[0].stage is Stage.TRANSLATION
    assert result.blocked is blocked
    assert handler.calls == []


@pytest.mark.parametrize(("on_error", "blocked"), [("allow", False), ("block", True)])
async def test_no_worker_allows_or_blocks_as_on_error_says(
    on_error: str, blocked: bool
) -> None:
    hooks = RemoteHooks(HookBusClient(InMemoryMessageBus(), on_error))
    result = await hooks.fire_before_tool_event("t", {})
    assert not result.aggregated.success
    assert result.aggregated.errors[0].details == "no_responders"
    assert result.blocked is blocked


async def test_failure_of_a_worker_keeps_its_cause() -> None:
    """DELTA-HFAIL-002: enough to find what went wrong there."""
    result = await remote(RecordingHandler(failed_at(Stage.PLANNING))).fire(
        "BeforeTool", {"tool_name": "t", "tool_input": {}}
    )
    (error,) = result.aggregated.errors
    assert error.stage is Stage.PLANNING
    assert error.details == "planning_failure: ValueError('it broke')"


async def test_invalid_input_is_a_validation_failure() -> None:
    handler = RecordingHandler()
    result = await remote(handler).fire("SessionStart", {"source": "boot"})
    assert result.aggregated.errors[0].stage is Stage.VALIDATION
    assert handler.calls == []


@pytest.mark.parametrize("name", ["BeforeTol", [], {}, 5, None], ids=str)
async def test_unknown_event_raises(name: Any) -> None:
    """protocol.md#results: whatever its type."""
    handler = RecordingHandler()
    with pytest.raises(UnknownEventError):
        await remote(handler).fire(name, {})
    assert handler.calls == []


async def test_invalid_input_names_its_event() -> None:
    result = await remote(RecordingHandler()).fire("SessionStart", {})
    assert result.aggregated.errors[0].event_name is E.SessionStart


async def test_input_of_fire_may_name_its_own_session() -> None:
    handler = RecordingHandler()
    hooks = remote(handler, session_id="s")
    await hooks.fire("BeforeAgent", {"prompt": "p", "session_id": "own"})
    assert handler.calls[0]["session_id"] == "own"


def test_remote_hooks_have_the_fire_methods_of_the_handler() -> None:
    public = {name for name in dir(HookEventHandler) if name.startswith("fire_")}
    ours = {name for name in dir(RemoteHooks) if name.startswith("fire_")}
    assert public - {"fire_validated"} == ours
    assert len(ours - {"fire_fields"}) == len(HookEventName)
    for name in ours:
        assert signature(getattr(RemoteHooks, name)) == signature(
            getattr(HookEventHandler, name)
        )
