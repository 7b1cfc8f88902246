"""Encoding results for the wire and decoding them: nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hookline import (
    Config,
    HookBusClient,
    HookSystem,
    InMemoryMessageBus,
    Settings,
)
from hookline.bus.contracts import (
    HookExecutionRequest,
    HookExecutionResponse,
    MessageBusType,
)
from hookline.bus.wire import (
    InvalidResponseError,
    output_to_wire,
    processed_to_wire,
    read_response,
)
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.jsontext import decode, encode
from hookline.protocol.outputs import Decision, HookOutput
from hookline.protocol.results import (
    AggregatedHookResult,
    FailureCause,
    HookError,
    HookExecutionResult,
    ProcessedHookResult,
    Stage,
)

from .fakes import result_of

E = HookEventName
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
    assert read_response(sent(result), event) == result


def keys_of(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


async def test_all_keys_of_a_response_are_in_camel_case_and_no_others_are_read() -> (
    None
):
    """protocol.md#bus: one spelling on the wire, inside hookResults and errors too."""
    hook = {"type": "command", "command": "echo careful >&2; exit 1", "name": "guard"}
    given_settings = Settings.from_mapping(
        {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    )
    bus = InMemoryMessageBus()
    async with HookSystem(Config("s", ".", given_settings), bus):
        client = HookBusClient(bus)
        response = await client.request(
            "BeforeTool", {"tool_name": "t", "tool_input": {}}
        )
        failed = await client.request("BeforeTool", {"tool_name": 5})
    assert not {key for key in keys_of([response, failed]) if "_" in key}
    (result,), (error,) = (
        response["output"]["hookResults"],
        response["output"]["errors"],
    )
    assert result["exitCode"] == 1
    assert {"timedOut", "wouldBlock", "durationMs", "userMessage"} <= result.keys()
    assert {"hookName", "eventName"} <= error.keys()
    read = read_response(response, HookEventName.BeforeTool).aggregated
    assert (read.hook_results[0].exit_code, read.errors[0].hook_name) == (1, "guard")
    del result["exitCode"], error["hookName"]
    result |= {"exit_code": 1, "timed_out": "not even a boolean"}
    error["hook_name"] = "guard"
    read = read_response(response, HookEventName.BeforeTool).aggregated
    assert (read.hook_results[0].exit_code, read.errors[0].hook_name) == (None, None)


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
    said = HookOutput(decision=Decision.DENY, reason="r", continues=False)
    result = ProcessedHookResult(
        aggregated=AggregatedHookResult(
            success=False,
            final_output=said,
            all_outputs=[said],
            errors=[error],
            hook_results=[one],
            total_duration=3.5,
        ),
        should_stop=True,
        stop_reason="s",
        system_message="m",
        suppress_output=True,
        blocked=True,
        reason="r",
        ask=True,
    )
    assert read_response(sent(result), HookEventName.BeforeTool) == result


def test_changed_tool_input_is_complete_after_decoding() -> None:
    wire = {"hookSpecificOutput": {"tool_input": {"path": "b"}}}
    result = result_of(wire, HookEventName.BeforeTool)
    back = read_response(
        sent(result), HookEventName.BeforeTool, {"path": "a", "mode": "w"}
    )
    assert back.final_output is not None
    assert back.final_output.modified_tool_input == {"path": "b", "mode": "w"}


def test_additional_context_is_escaped_once_after_decoding() -> None:
    wire = {"hookSpecificOutput": {"additionalContext": "<b>"}}
    back = read_response(
        sent(result_of(wire, HookEventName.BeforeAgent)), HookEventName.BeforeAgent
    )
    assert back.final_output is not None
    assert back.final_output.additional_context == "&lt;b&gt;"


def test_failed_response_is_a_failure_envelope() -> None:
    """DELTA-HFAIL-001 after decoding."""
    error = {"code": "timeout", "message": "late", "details": {"stage": "internal"}}
    back = read_response(
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


def processed(**more: Any) -> dict[str, Any]:
    said = processed_to_wire(ProcessedHookResult(aggregated=AggregatedHookResult()))
    return said | more


ERROR = {"code": "timeout", "message": "late", "details": {"stage": "internal"}}


def failed(**more: Any) -> dict[str, Any]:
    said = {"correlationId": "c", "success": False, "error": ERROR}
    return said | {"processed": processed(**more)}


def test_block_of_a_failed_response_is_an_output_that_blocks() -> None:
    back = read_response(failed(blocked=True, reason="closed"), E.BeforeTool)
    assert back.blocked
    assert back.reason == "closed"
    assert back.final_output is not None
    assert back.final_output.is_blocking
    assert not back.aggregated.success


def test_stop_of_a_failed_response_is_an_output_that_stops() -> None:
    back = read_response(failed(shouldStop=True, stopReason="s"), E.AfterTool)
    assert (back.should_stop, back.stop_reason, back.blocked) == (True, "s", False)
    assert back.final_output is not None
    assert back.final_output.stops
    assert not back.final_output.is_blocking


@pytest.mark.parametrize("flag", ["blocked", "ask", "shouldStop"])
def test_what_only_processed_says_is_in_the_outputs_too(flag: str) -> None:
    """Callers look at both: a block without an output must not look like no output."""
    response = sent(result_of({}, E.BeforeTool))
    response["output"] |= {"finalOutput": None, "allOutputs": []}
    response["processed"][flag] = True
    final = read_response(response, E.BeforeTool).final_output
    assert final is not None
    assert [final.is_blocking, final.asks, final.stops].count(True) == 1


VALID = {
    event: sent(result_of({"decision": "allow", "reason": "fine"}, event))
    for event in E
}


def without(path: str) -> dict[str, Any]:
    return changed(path, None, remove=True)


def changed(path: str, value: Any, *, remove: bool = False) -> dict[str, Any]:
    response: dict[str, Any] = decode(encode(VALID[E.BeforeTool]))
    *parents, last = path.split(".")
    part: Any = response
    for name in parents:
        part = part[int(name)] if name.isdigit() else part[name]
    if remove:
        del part[last]
    else:
        part[last] = value
    return response


SHAPE = {
    "correlationId": str,
    "success": bool,
    "output": dict,
    "output.success": bool,
    "output.finalOutput": (dict, type(None)),
    "output.allOutputs": list,
    "output.errors": list,
    "output.hookResults": list,
    "output.totalDuration": (int, float),
    "processed": dict,
    "processed.shouldStop": bool,
    "processed.stopReason": (str, type(None)),
    "processed.systemMessage": (str, type(None)),
    "processed.suppressOutput": bool,
    "processed.blocked": bool,
    "processed.reason": (str, type(None)),
    "processed.ask": bool,
}
VALUES: list[Any] = [None, True, 1, 0, 1.5, "true", "x", [], {}, [1], {"a": 1}]


def fits(value: Any, kinds: Any) -> bool:
    if isinstance(value, bool):
        return kinds is bool
    if value in ([1], {"a": 1}) or value == {}:
        return False  # lists and objects with the wrong content
    return isinstance(value, kinds)


@pytest.mark.parametrize("path", SHAPE)
def test_response_without_a_part_is_invalid(path: str) -> None:
    """protocol.md#bus, issue 12.15."""
    with pytest.raises(InvalidResponseError):
        read_response(without(path), E.BeforeTool)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(path, value, id=f"{path}={value!r}")
        for path, kinds in SHAPE.items()
        for value in VALUES
        if not fits(value, kinds) and (path, value) != ("output.finalOutput", {})
    ],
)
def test_response_with_a_part_of_a_wrong_type_is_invalid(path: str, value: Any) -> None:
    """protocol.md#bus, issue 12.15."""
    if (path, value) == ("output.finalOutput", {"a": 1}):
        return  # unknown keys are fine
    with pytest.raises(InvalidResponseError):
        read_response(changed(path, value), E.BeforeTool)


WRONG_INSIDE: dict[str, Any] = {
    "output.finalOutput.decision": ["denyy", 5, True, {}],
    "output.finalOutput.reason": [5, []],
    "output.finalOutput.continue": ["false", 0],
    "output.finalOutput.systemMessage": [5],
    "output.finalOutput.hookSpecificOutput": [5, "x", [], {"tool_input": "x"}],
    "output.allOutputs": [[None], ["x"], [{"decision": "denyy"}]],
    "output.errors": [[{}], [{"stage": "x", "message": "m"}], [{"stage": "internal"}]],
    "output.hookResults": [[None], [{"success": "yes"}], [{"stdout": 5}]],
    "error": [None, "boom", {}, ERROR],
}


@pytest.mark.parametrize(
    ("path", "value"),
    [(path, one) for path, all_ in WRONG_INSIDE.items() for one in all_],
)
def test_response_that_is_wrong_further_inside_is_invalid(
    path: str, value: Any
) -> None:
    with pytest.raises(InvalidResponseError):
        read_response(changed(path, value), E.BeforeTool)


@pytest.mark.parametrize(
    "error",
    [
        *(None, "boom", 5, [], {}, {"code": "x"}, {"code": "c", "message": "m"}),
        {"code": 5, "message": "m", "details": {}},
        {"code": "c", "message": "m", "details": "d"},
    ],
    ids=repr,
)
def test_failed_response_needs_a_whole_error(error: Any) -> None:
    response = {"correlationId": "c", "success": False}
    for wrong in (response, response | {"error": error}):
        with pytest.raises(InvalidResponseError):
            read_response(wrong, E.BeforeTool)


CONTRADICTIONS: dict[str, tuple[HookEventName, dict[str, Any]]] = {
    "deny": (E.BeforeTool, {"decision": "deny"}),
    "block": (E.BeforeAgent, {"decision": "block", "reason": "no"}),
    "permission": (
        E.BeforeTool,
        {"hookSpecificOutput": {"permissionDecision": "deny"}},
    ),
    "stop": (E.AfterTool, {"continue": False}),
    "ask": (E.BeforeTool, {"decision": "ask"}),
}


@pytest.mark.parametrize("where", ["finalOutput", "allOutputs"])
@pytest.mark.parametrize(
    ("event", "said"), CONTRADICTIONS.values(), ids=list(CONTRADICTIONS)
)
def test_verdict_milder_than_the_outputs_is_invalid(
    event: HookEventName, said: dict[str, Any], where: str
) -> None:
    """Issue 12.15: a deny only in ``finalOutput``."""
    response = decode(encode(VALID[event]))
    if where == "finalOutput":
        response["output"] |= {"finalOutput": said, "allOutputs": []}
    elif "ask" in said.values():
        return  # another hook's block comes before an ask
    else:
        response["output"] |= {"finalOutput": None, "allOutputs": [said]}
    with pytest.raises(InvalidResponseError, match="contradict"):
        read_response(response, event)


@pytest.mark.parametrize(
    ("event", "flag"),
    [
        *(
            (E.AfterTool, "blocked"),
            (E.AfterModel, "ask"),
            (E.SessionEnd, "shouldStop"),
        ),
        (E.BeforeToolSelection, "blocked"),
    ],
)
def test_verdict_that_the_event_cannot_have_is_invalid(
    event: HookEventName, flag: str
) -> None:
    response = decode(encode(VALID[event]))
    response["processed"][flag] = True
    with pytest.raises(InvalidResponseError, match="cannot have"):
        read_response(response, event)


@pytest.mark.parametrize("event", E)
def test_unknown_keys_are_fine_everywhere(event: HookEventName) -> None:
    response = decode(encode(VALID[event]))
    for part in (response, response["output"], response["processed"]):
        part["later"] = {"version": 2}
    response["output"]["hookResults"][0]["later"] = 1
    response["output"]["finalOutput"]["later"] = 1
    assert read_response(response, event).aggregated.success


def test_null_in_an_output_is_absent() -> None:
    response = changed("output.finalOutput.stopReason", None)
    assert read_response(response, E.BeforeTool).aggregated.success


REPLACED = {"hookSpecificOutput": {"tool_input": {"a": 1}, "replacesToolInput": True}}
EMPTIED = {"hookSpecificOutput": {"tool_input": {}, "replacesToolInput": True}}


@pytest.mark.parametrize(("wire", "whole"), [(REPLACED, {"a": 1}), (EMPTIED, {})])
def test_whole_replacement_of_an_input_drops_the_other_keys(
    wire: dict[str, Any], whole: dict[str, Any]
) -> None:
    """protocol.md#results and #dialects, issue 12.15."""
    back = read_response(
        sent(result_of(wire, E.BeforeTool)), E.BeforeTool, {"b": 2, "c": 3}
    )
    assert back.final_output is not None
    assert back.final_output.modified_tool_input == whole


@given(
    event=events,
    success=json_values,
    parts=st.fixed_dictionaries(
        {},
        optional={
            "correlationId": json_values,
            "output": json_values
            | st.fixed_dictionaries(
                {
                    "success": st.booleans(),
                    "finalOutput": json_values | outputs,
                    "allOutputs": json_values | st.lists(outputs, max_size=2),
                    "errors": json_values | st.just([]),
                    "hookResults": json_values | st.lists(outputs, max_size=2),
                    "totalDuration": json_values,
                }
            ),
            "processed": json_values
            | st.dictionaries(
                st.sampled_from(["blocked", "shouldStop", "reason", "ask"]), json_values
            )
            | st.just(processed()),
            "error": json_values | st.just(ERROR),
        },
    ),
)
@settings(max_examples=300)
def test_response_of_any_shape_is_whole_or_invalid(
    event: HookEventName, success: Any, parts: dict[str, Any]
) -> None:
    try:
        back = read_response({"success": success, **parts}, event)
    except InvalidResponseError:
        return
    assert isinstance(success, bool)
    assert success or isinstance(parts["error"], dict)
    if success:
        assert "processed" in parts
        assert "output" in parts
        blocks = [o.is_blocking for o in back.aggregated.all_outputs]
        assert back.blocked or not (any(blocks) and TRAITS[event].can_block)


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
