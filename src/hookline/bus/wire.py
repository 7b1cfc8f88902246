"""Results in wire spelling, and back: a ``ProcessedHookResult`` survives the trip.

What comes back is read with tolerance: the worker may be of another version, so a
field that is missing or of a wrong type counts as not said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from hookline.events import HookEventName
from hookline.outputs import Decision, HookOutput, read_output
from hookline.results import (
    AggregatedHookResult,
    FailureCause,
    HookError,
    HookExecutionResult,
    ProcessedHookResult,
    Stage,
)


def output_to_wire(aggregated: AggregatedHookResult) -> dict[str, Any]:
    """Spell the ``output`` of a response."""
    final = aggregated.final_output
    return {
        "success": aggregated.success,
        "finalOutput": None if final is None else final.to_wire(),
        "allOutputs": [output.to_wire() for output in aggregated.all_outputs],
        "errors": [error.to_wire() for error in aggregated.errors],
        "hookResults": [_result_to_wire(one) for one in aggregated.hook_results],
        "totalDuration": round(aggregated.total_duration, 3),
    }


def processed_to_wire(result: ProcessedHookResult) -> dict[str, Any]:
    """Spell the ``processed`` of a response."""
    return {
        "shouldStop": result.should_stop,
        "stopReason": result.stop_reason,
        "systemMessage": result.system_message,
        "suppressOutput": result.suppress_output,
        "blocked": result.blocked,
        "reason": result.reason,
        "ask": result.ask,
    }


def processed_from_wire(
    response: Mapping[str, Any],
    event: HookEventName,
    tool_input: Mapping[str, Any] | None = None,
) -> ProcessedHookResult:
    """Read a response as the result that the handler had, for its callers here.

    ``tool_input`` is what the request held: a changed input comes back by its keys.
    """
    processed = _object(response.get("processed"))
    if response.get("success") is True:
        aggregated = _aggregated(_object(response.get("output")), event, tool_input)
    else:
        aggregated = _envelope(response, event, processed)
    return ProcessedHookResult(
        aggregated=aggregated,
        should_stop=processed.get("shouldStop") is True,
        stop_reason=_text(processed.get("stopReason")),
        system_message=_text(processed.get("systemMessage")),
        suppress_output=processed.get("suppressOutput") is True,
        blocked=processed.get("blocked") is True,
        reason=_text(processed.get("reason")),
        ask=processed.get("ask") is True,
    )


def _result_to_wire(result: HookExecutionResult) -> dict[str, Any]:
    return result.to_wire() | {
        "type": result.hook_type,
        "event": result.event_name.value,
        "cause": None if result.cause is None else result.cause.value,
        "warnings": list(result.warnings),
        "observed": result.observed,
    }


def _aggregated(
    output: Mapping[str, Any],
    event: HookEventName,
    tool_input: Mapping[str, Any] | None,
) -> AggregatedHookResult:
    final = _output(output.get("finalOutput"), event)
    if final is not None and final.tool_input and tool_input is not None:
        changed = {**tool_input, **final.tool_input}
        final = replace(final, modified_tool_input=changed)
    said = (_output(one, event) for one in _objects(output.get("allOutputs")))
    results = _objects(output.get("hookResults"))
    return AggregatedHookResult(
        success=output.get("success") is not False,
        final_output=final,
        all_outputs=[one for one in said if one is not None],
        errors=[_error(one) for one in _objects(output.get("errors"))],
        hook_results=[_result(one, event) for one in results],
        total_duration=_number(output.get("totalDuration")),
    )


def _envelope(
    response: Mapping[str, Any], event: HookEventName, processed: Mapping[str, Any]
) -> AggregatedHookResult:
    error = _object(response.get("error"))
    failure = HookError(
        stage=_stage(_object(error.get("details")).get("stage")),
        message=_text(error.get("message")) or "the response gives no reason",
        details=_text(error.get("code")),
        event_name=event,
        correlation_id=_text(response.get("correlationId")),
    )
    verdict = _verdict(processed)
    return AggregatedHookResult(
        success=False,
        errors=[failure],
        final_output=verdict,
        all_outputs=[] if verdict is None else [verdict],
    )


def _verdict(processed: Mapping[str, Any]) -> HookOutput | None:
    """The output of a failed request that blocks or stops all the same."""
    blocked = processed.get("blocked") is True
    stopped = processed.get("shouldStop") is True
    if not blocked and not stopped:
        return None
    return HookOutput(
        decision=Decision.BLOCK if blocked else None,
        reason=_text(processed.get("reason")),
        continues=False if stopped else None,
        stop_reason=_text(processed.get("stopReason")),
        system_message=_text(processed.get("systemMessage")),
    )


def _result(wire: Mapping[str, Any], event: HookEventName) -> HookExecutionResult:
    exit_code, said = wire.get("exit_code"), wire.get("output")
    return HookExecutionResult(
        hook_name=_text(wire.get("name")) or "",
        hook_type=_text(wire.get("type")) or "",
        source=_text(wire.get("source")) or "",
        event_name=event,
        success=wire.get("success") is True,
        output=_output(said, event),
        said=said if isinstance(said, dict) else None,
        exit_code=exit_code if isinstance(exit_code, int) else None,
        stdout=_text(wire.get("stdout")) or "",
        stderr=_text(wire.get("stderr")) or "",
        duration=_number(wire.get("duration_ms")),
        error=_text(wire.get("error")),
        cause=_cause(wire.get("cause")),
        warnings=tuple(filter(None, map(_text, _list(wire.get("warnings"))))),
        timed_out=wire.get("timed_out") is True,
        truncated=wire.get("truncated") is True,
        would_block=wire.get("would_block") is True,
        observed=wire.get("observed") is True,
        reran=wire.get("reran") is True,
    )


def _error(wire: Mapping[str, Any]) -> HookError:
    event_name = _text(wire.get("event_name"))
    return HookError(
        stage=_stage(wire.get("stage")),
        message=_text(wire.get("message")) or "",
        details=_text(wire.get("details")),
        hook_name=_text(wire.get("hook_name")),
        event_name=HookEventName(event_name) if event_name in _EVENTS else None,
        correlation_id=_text(wire.get("correlation_id")),
    )


_EVENTS = frozenset(HookEventName)


def _output(wire: Any, event: HookEventName) -> HookOutput | None:
    return read_output(wire, event)[0] if isinstance(wire, dict) else None


def _stage(name: Any) -> Stage:
    return Stage(name) if name in tuple(Stage) else Stage.INTERNAL


def _cause(name: Any) -> FailureCause | None:
    return FailureCause(name) if name in tuple(FailureCause) else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in _list(value) if isinstance(one, dict)]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
