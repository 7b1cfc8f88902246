"""Requests from a bus: the order of checks, the codes, one response each."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from hookline.bus import InMemoryMessageBus, MessageBusType
from hookline.bus.server import RequestServer
from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import Decision, HookOutput
from hookline.protocol.results import (
    AggregatedHookResult,
    HookError,
    HookExecutionResult,
    ProcessedHookResult,
    Stage,
)

from .fakes import (
    GatedHandler,
    RaisingHandler,
    RecordingHandler,
    failed_at,
    result_of,
)

REQUEST = MessageBusType.HOOK_EXECUTION_REQUEST
RESPONSE = MessageBusType.HOOK_EXECUTION_RESPONSE
TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a"}}


def asking(**changes: Any) -> dict[str, Any]:
    request = {"eventName": "BeforeTool", "input": TOOL, "correlationId": "c-1"}
    return {k: v for k, v in (request | changes).items() if v is not ...}


async def answer(payload: Any, handler: Any = None) -> dict[str, Any]:
    server = RequestServer(handler or RecordingHandler())
    return dict(await server.handle_request(payload))


async def test_no_match_is_an_empty_success() -> None:
    """DELTA-HFAIL-003."""
    assert await answer(asking()) == {
        "correlationId": "c-1",
        "success": True,
        "output": {
            "success": True,
            "finalOutput": None,
            "allOutputs": [],
            "errors": [],
            "hookResults": [],
            "totalDuration": 0,
        },
        "processed": {
            "shouldStop": False,
            "stopReason": None,
            "systemMessage": None,
            "suppressOutput": False,
            "blocked": False,
            "reason": None,
            "ask": False,
        },
    }


async def test_hook_that_blocks_is_a_completed_request() -> None:
    """protocol.md#bus: success means that all stages completed."""
    result = result_of({"decision": "block", "reason": "no"}, HookEventName.BeforeTool)
    response = await answer(asking(), RecordingHandler(result))
    assert response["success"] is True
    assert response["processed"]["blocked"] is True
    assert response["processed"]["reason"] == "no"
    assert response["output"]["finalOutput"] == {"decision": "block", "reason": "no"}
    assert response["output"]["hookResults"][0]["name"] == "guard"


async def test_hook_that_crashed_is_a_completed_request() -> None:
    crashed = HookExecutionResult(
        hook_name="guard",
        hook_type="command",
        source="user",
        event_name=HookEventName.BeforeTool,
        success=False,
        exit_code=1,
    )
    aggregated = AggregatedHookResult(
        success=False,
        hook_results=[crashed],
        errors=[HookError(stage=Stage.EXECUTION, message="exit 1", hook_name="guard")],
    )
    result = ProcessedHookResult(aggregated=aggregated)
    response = await answer(asking(), RecordingHandler(result))
    assert response["success"] is True
    assert response["output"]["success"] is False
    assert response["output"]["errors"] == [
        {"stage": "execution", "message": "exit 1", "hookName": "guard"}
    ]


REFUSED = [
    pytest.param(None, "invalid_request", "not an object", id="null"),
    pytest.param([asking()], "invalid_request", "not an object", id="list"),
    pytest.param({}, "invalid_request", "no eventName", id="empty"),
    pytest.param(
        asking(eventName=...), "invalid_request", "no eventName", id="no event"
    ),
    pytest.param(asking(input=...), "invalid_request", "no input", id="no input"),
    pytest.param(
        asking(eventName="BeforeTol"),
        "unsupported_event",
        "did you mean 'BeforeTool'",
        id="misspelt",
    ),
    pytest.param(
        asking(eventName="before" * 100_000), "unsupported_event", "unknown", id="long"
    ),
    pytest.param(asking(eventName=[1]), "unsupported_event", "unknown", id="no name"),
    pytest.param(
        asking(eventName="Nope", input=5), "unsupported_event", "Nope", id="event first"
    ),
    pytest.param(
        asking(input=5), "validation_failure", "expected an object", id="input kind"
    ),
    pytest.param(
        asking(input={"tool_name": 5}),
        "validation_failure",
        "BeforeTool input: tool_name: expected a non-empty string, got 5",
        id="field",
    ),
]


@pytest.mark.parametrize(("payload", "code", "message"), REFUSED)
async def test_request_that_fails_a_check_never_reaches_the_handler(
    payload: Any, code: str, message: str
) -> None:
    """DELTA-HPAY-002, DELTA-HEVT-003, DELTA-HFAIL-002, rule V2."""
    handler = RecordingHandler()
    response = await answer(payload, handler)
    assert response["success"] is False
    assert response["error"]["code"] == code
    assert message in response["error"]["message"]
    assert response["error"]["details"]["stage"] == "validation"
    assert "eventName" in response["error"]["details"]
    assert handler.calls == []
    assert len(str(response)) < 2000


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("BeforeTool", TOOL | {"mcp_context": None, "session_id": None, "cwd": 5}),
        ("AfterAgent", {"prompt": "p", "prompt_response": "r"}),
        (
            "AfterAgent",
            {"prompt": "p", "prompt_response": "r", "stop_hook_active": None},
        ),
        ("BeforeModel", {"model_request": {"model": "m", "messages": []}}),
        ("BeforeModel", {"llm_request": {"model": "m"}, "model_request": None}),
        ("Notification", {"message": "m"}),
        ("SubagentStop", {"agent_id": "a", "agent_type": "t"}),
        *(("AfterTool", TOOL | {"tool_response": one}) for one in ([1], "x", 0, None)),
    ],
)
async def test_request_may_leave_out_what_the_handler_knows(
    event: str, fields: dict[str, Any]
) -> None:
    """protocol.md#bus: base fields, defaults, nulls in optional fields."""
    handler = RecordingHandler()
    response = await answer(asking(eventName=event, input=fields), handler)
    assert response["success"]
    seen = handler.calls[0]["fields"]
    assert seen.get("tool_response", ...) == fields.get("tool_response", ...)


async def test_input_of_a_request_may_be_named_payload() -> None:
    handler = RecordingHandler()
    response = await answer(asking(input=..., payload=TOOL), handler)
    assert response["success"] is True
    assert handler.calls[0]["fields"] == TOOL


@pytest.mark.parametrize(
    ("stage", "code"),
    [
        (Stage.TRANSLATION, "translation_failure"),
        (Stage.PLANNING, "planning_failure"),
        (Stage.EXECUTION, "execution_failure"),
        (Stage.AGGREGATION, "aggregation_failure"),
        (Stage.INTERNAL, "internal_error"),
    ],
)
async def test_failed_stage_has_a_code_of_its_own(stage: Stage, code: str) -> None:
    """DELTA-HFAIL-002, DELTA-HPAY-004."""
    response = await answer(asking(), RecordingHandler(failed_at(stage)))
    assert response == {
        "correlationId": "c-1",
        "success": False,
        "error": {
            "code": code,
            "message": "it broke",
            "details": {
                "stage": stage.value,
                "eventName": "BeforeTool",
                "cause": "ValueError('it broke')",
            },
        },
    }


async def test_failed_stage_that_a_policy_turned_into_a_block_still_blocks() -> None:
    block = HookOutput(decision=Decision.BLOCK, reason="closed")
    error = HookError(stage=Stage.EXECUTION, message="broken")
    result = ProcessedHookResult(
        aggregated=AggregatedHookResult(
            success=False, final_output=block, all_outputs=[block], errors=[error]
        ),
        blocked=True,
        reason="closed",
    )
    response = await answer(asking(), RecordingHandler(result))
    assert response["success"] is False
    assert response["processed"]["blocked"] is True
    assert response["processed"]["reason"] == "closed"


async def test_raising_handler_is_an_internal_error() -> None:
    response = await answer(asking(), RaisingHandler())
    assert response["error"]["code"] == "internal_error"
    assert response["error"]["message"] == "the handler broke"
    assert response["error"]["details"] == {
        "stage": "internal",
        "eventName": "BeforeTool",
    }


@pytest.mark.parametrize("given", ["c-1", " ", "日本", "x" * 10_000])
async def test_correlation_id_is_echoed_exactly(given: str) -> None:
    """Rule C1, DELTA-HEVT-002."""
    handler = RecordingHandler()
    response = await answer(asking(correlationId=given), handler)
    assert response["correlationId"] == given
    assert handler.calls[0]["correlation_id"] == given


@pytest.mark.parametrize("given", [..., None, "", 5, ["c"]])
async def test_missing_correlation_id_is_generated(given: Any) -> None:
    """Rule C2, DELTA-HBUS-003."""
    first = await answer(asking(correlationId=given))
    second = await answer(asking(correlationId=given))
    assert UUID(first["correlationId"]).version == 4
    assert first["correlationId"] != second["correlationId"]
    assert first["success"] is True


async def test_request_sets_session_and_transcript_but_not_place_event_or_time() -> (
    None
):
    """protocol.md#bus: a request cannot choose where a process runs."""
    handler = RecordingHandler()
    own = {
        "cwd": "/elsewhere",
        "hook_event_name": "AfterTool",
        "timestamp": "1999-01-01T00:00:00.000Z",
        "session_id": "s-9",
        "transcript_path": "/tmp/t",
        "requester": {"agent": "planner"},
        "note": "kept",
    }
    await answer(asking(input=TOOL | own), handler)
    assert handler.calls == [
        {
            "event": HookEventName.BeforeTool,
            "fields": TOOL | {"requester": {"agent": "planner"}, "note": "kept"},
            "session_id": "s-9",
            "transcript_path": "/tmp/t",
            "correlation_id": "c-1",
        }
    ]


async def test_requester_that_is_not_an_object_is_dropped() -> None:
    handler = RecordingHandler()
    await answer(asking(input=TOOL | {"requester": "me"}), handler)
    assert handler.calls[0]["fields"] == TOOL
    assert handler.calls[0]["session_id"] is None


class Wire:
    """A bus with a server, and all responses published on it."""

    def __init__(self, handler: Any, **options: Any) -> None:
        self.bus = InMemoryMessageBus()
        self.server = RequestServer(handler, self.bus, **options)
        self.responses: list[Any] = []
        self.bus.subscribe(RESPONSE, self.responses.append)

    async def ask(self, *ids: str) -> None:
        for one in ids:
            await self.bus.publish(REQUEST, asking(correlationId=one))


async def test_every_request_gets_exactly_one_response() -> None:
    """Rule C3."""
    wire = Wire(RecordingHandler())
    wire.server.subscribe()
    wire.server.subscribe()
    ids = [f"c-{n}" for n in range(50)]
    await wire.ask(*ids)
    await wire.bus.publish(REQUEST, "nonsense")
    await wire.server.finished()
    assert sorted(r["correlationId"] for r in wire.responses if r["success"]) == sorted(
        ids
    )
    assert len(wire.responses) == 51


async def test_slow_request_does_not_delay_others() -> None:
    handler = GatedHandler()
    wire = Wire(handler)
    wire.server.subscribe()
    await wire.ask("slow")
    await handler.until_inside(1)
    await wire.bus.publish(REQUEST, asking(input=5, correlationId="quick"))
    while not wire.responses:  # noqa: ASYNC110 - the bus has no event to wait on
        await asyncio.sleep(0)
    assert wire.responses[0]["correlationId"] == "quick"
    handler.gate.set()
    await wire.server.finished()
    assert [r["correlationId"] for r in wire.responses] == ["quick", "slow"]


async def test_requests_beyond_the_limit_wait_and_are_not_dropped() -> None:
    handler = GatedHandler()
    wire = Wire(handler, max_concurrent=3)
    wire.server.subscribe()
    await wire.ask(*(f"c-{n}" for n in range(20)))
    await handler.until_inside(3)
    assert (wire.server.in_flight, wire.server.waiting) == (3, 17)
    handler.gate.set()
    await wire.server.finished()
    assert handler.most_inside == 3
    assert len(wire.responses) == 20
    assert (wire.server.in_flight, wire.server.waiting) == (0, 0)


async def test_requests_beyond_those_that_may_wait_have_no_verdict_at_once() -> None:
    """protocol.md#bus: what waits is bounded; each request has one response (C3)."""
    handler = GatedHandler()
    wire = Wire(handler, max_concurrent=2, max_waiting=3)
    wire.server.subscribe()
    await wire.ask(*(f"c-{n}" for n in range(7)))
    await handler.until_inside(2)
    assert [one["correlationId"] for one in wire.responses] == ["c-5", "c-6"]
    error = wire.responses[0]["error"]
    assert error["code"] == "execution_failure"
    assert error["details"] == {
        "stage": "execution",
        "eventName": "BeforeTool",
        "cause": "overload",
    }
    handler.gate.set()
    await wire.server.finished()
    assert len({one["correlationId"] for one in wire.responses}) == 7


async def test_request_that_has_waited_too_long_is_dropped_and_makes_room() -> None:
    """protocol.md#bus: its hooks do not run, and nobody waits for a response."""
    handler = GatedHandler()
    wire = Wire(handler, max_concurrent=1, max_waiting=1)
    wire.server.subscribe()
    await wire.ask("running")
    await handler.until_inside(1)
    late = asking(correlationId="late", timeoutMs=500)
    await wire.bus.publish(REQUEST, late)
    while not wire.server.waiting:  # noqa: ASYNC110 - there is no event to wait on
        await asyncio.sleep(0)
    direct = await wire.server.handle_request(asking())
    while wire.server.waiting:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.001)
    await wire.bus.publish(REQUEST, asking(correlationId="next", timeoutMs=60_000))
    handler.gate.set()
    await wire.server.finished()
    assert [one["correlationId"] for one in wire.responses] == ["running", "next"]
    assert [call["correlation_id"] for call in handler.calls] == ["running", "next"]
    assert direct["error"]["details"]["cause"] == "overload"


@pytest.mark.parametrize(
    "timeout_ms", [None, "5", True, [], 10**400, float("nan"), float("inf"), 1e-3]
)
async def test_deadline_that_is_none_delays_and_drops_nothing(timeout_ms: Any) -> None:
    response = await answer(asking(timeoutMs=timeout_ms))
    assert response["success"]


@pytest.mark.parametrize("timeout_ms", [0, -1, -0.5])
async def test_request_without_any_time_left_is_not_run(timeout_ms: float) -> None:
    handler = RecordingHandler()
    response = await answer(asking(timeoutMs=timeout_ms), handler)
    assert (response["error"]["code"], handler.calls) == ("timeout", [])


def test_limit_below_one_raises() -> None:
    with pytest.raises(ValueError, match="max_concurrent"):
        RequestServer(RecordingHandler(), max_concurrent=0)


async def test_disposed_server_ignores_messages_and_finishes_calls_in_flight() -> None:
    """DELTA-HEVT-004, rule L1, domain model 3.1."""
    handler = GatedHandler()
    wire = Wire(handler)
    wire.server.subscribe()
    await wire.ask("before")
    await handler.until_inside(1)
    wire.server.dispose()
    wire.server.dispose()
    await wire.ask("after")
    handler.gate.set()
    await wire.server.finished()
    assert [r["correlationId"] for r in wire.responses] == ["before"]
    assert not wire.bus.has_subscribers(REQUEST)


async def test_server_without_a_bus_needs_no_disposing() -> None:
    """DELTA-HBUS-002, rule L3, domain model 5.3."""
    server = RequestServer(RecordingHandler())
    server.subscribe()
    server.dispose()
    await server.finished()
    assert (await server.handle_request(asking()))["success"] is True


class DeadBus:
    """A host's bus that cannot publish."""

    def subscribe(self, message_type: str, handler: Any) -> Any:
        self.handler = handler
        return lambda: None

    async def publish(self, message_type: str, payload: Any) -> None:
        raise OSError("the line is dead")


async def test_bus_that_cannot_publish_does_not_break_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus = DeadBus()
    server = RequestServer(RecordingHandler(), bus)
    server.subscribe()
    bus.handler(asking())
    await server.finished()
    assert "the line is dead" in caplog.text


async def test_a_correlation_id_cannot_forge_a_line_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus = DeadBus()
    server = RequestServer(RecordingHandler(), bus)
    server.subscribe()
    bus.handler(asking() | {"correlationId": "c\nhookline: allowed" + "x" * 1000})
    await server.finished()
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert len(record.getMessage()) < 200
