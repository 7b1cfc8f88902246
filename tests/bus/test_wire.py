"""Results on the wire: nothing is lost, and no shape is read as "allowed".

The functions of ``hookline.bus.wire`` are called for what requests cannot reach: every
output that hooks may give, every shape that an answer may have.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hookline._internal.trace_context import checked_trace
from hookline.bus.wire import (
    InvalidResponseError,
    add_result,
    read_response,
)
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.results import AggregatedHookResult, ProcessedHookResult
from hookline.protocol.values import decode, encode

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
    response = add_result({"correlationId": "c", "success": True}, result)
    over_the_wire: dict[str, Any] = decode(encode(response))
    return over_the_wire


@given(wire=outputs, event=events)
@settings(max_examples=150)
def test_result_survives_encoding_and_decoding(
    wire: dict[str, Any], event: HookEventName
) -> None:
    result = result_of(wire, event)
    assert read_response(sent(result), event) == result


ERROR = {"code": "timeout", "message": "late", "details": {"stage": "internal"}}
ALLOWED = sent(ProcessedHookResult(aggregated=AggregatedHookResult()))["processed"]


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
            | st.just(ALLOWED),
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
    assert (
        sent(replace(result, aggregated=aggregated))["output"]["totalDuration"] == 1.235
    )


PARENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


def test_foreign_trace_context_is_checked() -> None:
    """OpenTelemetry."""
    valid = {"traceparent": PARENT}
    for context, expected in (
        ({"traceparent": PARENT}, valid),
        (
            {"traceparent": PARENT, "tracestate": "a=1,b=2", "more": 1},
            {"traceparent": PARENT, "tracestate": "a=1,b=2"},
        ),
        ({**valid, "tracestate": "a" * 512}, {**valid, "tracestate": "a" * 512}),
        ({**valid, "tracestate": "a" * 513}, valid),
        ({**valid, "tracestate": "a\r\nX-Evil: 1"}, valid),
        ({**valid, "tracestate": ""}, valid),
        ({**valid, "tracestate": 5}, valid),
        ({"traceparent": PARENT + "\n"}, {}),
        ({"traceparent": PARENT.upper()}, {}),
        ({"traceparent": "x" * 5_000_000}, {}),
        ({"traceparent": 5}, {}),
        ({"tracestate": "a=1"}, {}),
        (PARENT, {}),
        (None, {}),
        ([], {}),
    ):
        assert checked_trace(context) == expected


@given(json_values | st.fixed_dictionaries({"traceparent": json_values}))
def test_any_trace_context_is_read_without_an_error(value: Any) -> None:
    assert set(checked_trace(value)) <= {"traceparent", "tracestate"}
