"""Encoding results for the wire and decoding them: nothing is lost."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hookline import Config, HookBusClient, HookSystem, InMemoryMessageBus
from hookline.bus.contracts import (
    HookExecutionRequest,
    HookExecutionResponse,
    MessageBusType,
    output_to_wire,
    processed_from_wire,
    processed_to_wire,
)
from hookline.protocol.events import HookEventName
from hookline.protocol.jsontext import decode, encode
from hookline.protocol.results import (
    AggregatedHookResult,
    FailureCause,
    HookError,
    HookExecutionResult,
    ProcessedHookResult,
    Stage,
)

from .fakes import result_of

events = st.sampled_from(HookEventName)
texts = st.text(max_size=10).filter(lambda text: text.isprintable())
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=6,
)
outputs = st.fixed_dictionaries(
    {},
    optional={
        "decision": st.sampled_from(["allow", "block", "deny", "ask", "approve"]),
        "reason": texts,
        "continue": st.booleans(),
        "stopReason": texts,
        "suppressOutput": st.booleans(),
        "systemMessage": texts,
        "note": json_values,
        "hookSpecificOutput": st.fixed_dictionaries(
            {},
            optional={
                "additionalContext": texts,
                "permissionDecision": st.sampled_from(["allow", "deny", "ask"]),
                "permissionDecisionReason": texts,
                "clearContext": st.booleans(),
                "toolConfig": st.just({"mode": "NONE"}),
                "own": json_values,
            },
        ),
    },
)


def sent(result: ProcessedHookResult) -> dict[str, Any]:
    response = {
        "correlationId": "c",
        "success": True,
        "output": output_to_wire(result.aggregated),
        "processed": processed_to_wire(result),
    }
    over_the_wire: dict[str, Any] = decode(encode(response))
    return over_the_wire


@given(wire=outputs, event=events)
@settings(max_examples=150)
def test_result_survives_encoding_and_decoding(
    wire: dict[str, Any], event: HookEventName
) -> None:
    result = result_of(wire, event)
    assert processed_from_wire(sent(result), event) == result


def test_every_field_of_a_hook_result_survives_encoding_and_decoding() -> None:
    one = HookExecutionResult(
        hook_name="guard",
        hook_type="worker",
        source="user",
        event_name=HookEventName.BeforeTool,
        success=False,
        exit_code=-9,
        stdout="out",
        stderr="err",
        duration=1.25,
        error="it timed out",
        cause=FailureCause.TIMEOUT,
        warnings=("a", "b"),
        timed_out=True,
        truncated=True,
        would_block=True,
        observed=True,
        reran=True,
    )
    error = HookError(
        stage=Stage.EXECUTION,
        message="m",
        details="d",
        hook_name="guard",
        event_name=HookEventName.BeforeTool,
        correlation_id="c",
    )
    result = ProcessedHookResult(
        aggregated=AggregatedHookResult(
            success=False, errors=[error], hook_results=[one], total_duration=3.5
        ),
        should_stop=True,
        stop_reason="s",
        system_message="m",
        suppress_output=True,
        blocked=True,
        reason="r",
        ask=True,
    )
    assert processed_from_wire(sent(result), HookEventName.BeforeTool) == result


def test_changed_tool_input_is_complete_after_decoding() -> None:
    wire = {"hookSpecificOutput": {"tool_input": {"path": "b"}}}
    result = result_of(wire, HookEventName.BeforeTool)
    back = processed_from_wire(
        sent(result), HookEventName.BeforeTool, {"path": "a", "mode": "w"}
    )
    assert back.final_output is not None
    assert back.final_output.modified_tool_input == {"path": "b", "mode": "w"}


def test_additional_context_is_escaped_once_after_decoding() -> None:
    wire = {"hookSpecificOutput": {"additionalContext": "<b>"}}
    back = processed_from_wire(
        sent(result_of(wire, HookEventName.BeforeAgent)), HookEventName.BeforeAgent
    )
    assert back.final_output is not None
    assert back.final_output.additional_context == "&lt;b&gt;"


def test_failed_response_is_a_failure_envelope() -> None:
    """DELTA-HFAIL-001 after decoding."""
    error = {"code": "timeout", "message": "late", "details": {"stage": "internal"}}
    back = processed_from_wire(
        {"correlationId": "c", "success": False, "error": error},
        HookEventName.BeforeTool,
    )
    assert not back.blocked
    assert back.final_output is None
    assert back.aggregated == AggregatedHookResult(
        success=False,
        errors=[
            HookError(
                stage=Stage.INTERNAL,
                message="late",
                details="timeout",
                event_name=HookEventName.BeforeTool,
                correlation_id="c",
            )
        ],
    )


def test_block_of_a_failed_response_is_an_output_that_blocks() -> None:
    response = {"success": False, "processed": {"blocked": True, "reason": "closed"}}
    back = processed_from_wire(response, HookEventName.BeforeTool)
    assert back.blocked
    assert back.reason == "closed"
    assert back.final_output is not None
    assert back.final_output.is_blocking
    assert not back.aggregated.success


def test_stop_of_a_failed_response_is_an_output_that_stops() -> None:
    response = {"success": False, "processed": {"shouldStop": True, "stopReason": "s"}}
    back = processed_from_wire(response, HookEventName.AfterTool)
    assert (back.should_stop, back.stop_reason, back.blocked) == (True, "s", False)
    assert back.final_output is not None
    assert back.final_output.stops
    assert not back.final_output.is_blocking


@given(
    event=events,
    success=json_values,
    parts=st.fixed_dictionaries(
        {},
        optional={
            "output": json_values
            | st.fixed_dictionaries(
                {
                    "finalOutput": json_values,
                    "allOutputs": json_values,
                    "errors": json_values | st.lists(outputs, max_size=2),
                    "hookResults": json_values | st.lists(outputs, max_size=2),
                    "totalDuration": json_values,
                }
            ),
            "processed": json_values
            | st.dictionaries(
                st.sampled_from(["blocked", "shouldStop", "reason", "ask"]), json_values
            ),
            "error": json_values,
        },
    ),
)
@settings(max_examples=200)
def test_response_of_any_shape_is_read_without_raising_or_inventing_a_verdict(
    event: HookEventName, success: Any, parts: dict[str, Any]
) -> None:
    back = processed_from_wire({"success": success, **parts}, event)
    processed = parts.get("processed")
    said_so = isinstance(processed, dict) and processed.get("blocked") is True
    assert back.blocked is said_so
    if success is not True:
        assert not back.aggregated.success


def test_durations_are_rounded_to_microseconds() -> None:
    result = result_of({}, HookEventName.BeforeTool)
    aggregated = replace(result.aggregated, total_duration=1.23456789)
    assert output_to_wire(aggregated)["totalDuration"] == 1.235


async def test_only_requests_and_responses_go_over_the_bus() -> None:
    """DELTA-HBUS-001: each message has the fields of its type and no others."""
    bus = InMemoryMessageBus()
    requests: list[Any] = []
    responses: list[Any] = []
    bus.subscribe(MessageBusType.HOOK_EXECUTION_REQUEST, requests.append)
    bus.subscribe(MessageBusType.HOOK_EXECUTION_RESPONSE, responses.append)
    async with HookSystem(Config(), message_bus=bus):
        client = HookBusClient(bus)
        await client.request("BeforeAgent", {"prompt": "p"})
        await client.request("BeforeAgent", {"prompt": 5})
    assert len(requests) == len(responses) == 2
    for request in requests:
        assert set(request) == set(HookExecutionRequest.__annotations__)
    good, bad = responses
    always = {"correlationId", "success"}
    assert set(good) == always | {"output", "processed"}
    assert set(bad) == always | {"error"}
    assert set(good) | set(bad) == set(HookExecutionResponse.__annotations__)
