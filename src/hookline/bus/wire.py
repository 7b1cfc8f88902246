"""Results on the wire: what a worker sends, and how strictly it is read.

A response has the shape of protocol.md#bus or it is no verdict: a part that is
missing, of a wrong type or at odds with another is never read as "allowed".
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import UNSET, Struct, UnsetType, ValidationError, convert, structs

from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.outputs import (
    Decision,
    HookOutput,
    changed_tool_input,
    read_output,
)
from hookline.protocol.results import (
    AggregatedHookResult,
    HookError,
    HookExecutionResult,
    ProcessedHookResult,
    Stage,
    fail_closed_output,
    process_common_hook_output_fields,
)
from hookline.protocol.values import encode, same_json

from .contracts import HookExecutionResponse, ResponseCode, failed_response

_LONGEST_TEXT = 4096
_TRUNCATED = " ... (truncated)"


def processed_to_wire(result: ProcessedHookResult) -> dict[str, Any]:
    """Convert a result to the ``processed`` of a response."""
    return {wire: getattr(result, name) for wire, name in _PROCESSED.items()}


_PROCESSED = {
    field.encode_name: field.name
    for field in structs.fields(ProcessedHookResult)
    if field.name != "aggregated"
}


def _camel_names(struct: type[Struct]) -> dict[str, str]:
    """The names of a result's fields, by their names on the wire."""
    names = (field.encode_name for field in structs.fields(struct))
    return {re.sub(r"_([a-z])", lambda m: m[1].upper(), name): name for name in names}


_RESULT_FIELDS = _camel_names(HookExecutionResult) | {"mode": "mode"}
_ERROR_FIELDS = _camel_names(HookError)


def _spelled(value: dict[str, Any], fields: dict[str, str]) -> dict[str, Any]:
    """An object with the wire's names for its fields."""
    return {wire: value[name] for wire, name in fields.items() if name in value}


def _read(wire: dict[str, Any], fields: dict[str, str]) -> dict[str, Any]:
    """An object with our names for its fields; unknown keys are ignored."""
    return {fields[key]: value for key, value in wire.items() if key in fields}


def output_to_wire(aggregated: AggregatedHookResult) -> dict[str, Any]:
    """Convert a result to the ``output`` of a response."""
    final = aggregated.final_output
    return {
        "success": aggregated.success,
        "finalOutput": None if final is None else final.to_wire(),
        "allOutputs": [output.to_wire() for output in aggregated.all_outputs],
        "errors": [_spelled(one.to_wire(), _ERROR_FIELDS) for one in aggregated.errors],
        "hookResults": [_result_to_wire(one) for one in aggregated.hook_results],
        "totalDuration": round(aggregated.total_duration, 3),
    }


def _result_to_wire(result: HookExecutionResult) -> dict[str, Any]:
    whole = result.to_wire() | {
        "type": result.hook_type,
        "event": result.event_name.value,
        "cause": None if result.cause is None else result.cause.value,
        "warnings": list(result.warnings),
        "observed": result.observed,
        "user_message": result.user_message,
    }
    return _spelled(whole, _RESULT_FIELDS)


class InvalidResponseError(ValueError):
    """What is wrong with a response."""


class _Processed(Struct, frozen=True, kw_only=True, rename="camel"):
    should_stop: bool
    stop_reason: str | None
    system_message: str | None
    suppress_output: bool
    blocked: bool
    reason: str | None
    ask: bool


class _Aggregated(Struct, frozen=True, kw_only=True, rename="camel"):
    success: bool
    final_output: dict[str, Any] | None
    all_outputs: list[dict[str, Any]]
    errors: list[dict[str, Any]]
    hook_results: list[dict[str, Any]]
    total_duration: float


class _Error(Struct, frozen=True):
    code: str
    message: str
    details: dict[str, Any]


class _Response(Struct, frozen=True, rename="camel"):
    correlation_id: str
    success: bool
    output: _Aggregated | UnsetType = UNSET
    processed: _Processed | UnsetType = UNSET
    error: _Error | UnsetType = UNSET


def read_response(
    response: Any, event: HookEventName, tool_input: Any = None
) -> ProcessedHookResult:
    """Read a response as the result that the handler returned.

    ``tool_input`` is that of the request: the wire holds the keys to change, unless it
    says that they are the whole input. Raises ``InvalidResponseError``.
    """
    try:
        found = convert(response, _Response)
        aggregated = _aggregated(found, event, tool_input)
    except ValidationError as error:
        raise InvalidResponseError(str(error)) from error
    said = found.processed
    if said is UNSET:
        _require(not found.success and found.output is UNSET, "it has no processed")
        return ProcessedHookResult(aggregated=aggregated)
    result = ProcessedHookResult(aggregated=aggregated, **structs.asdict(said))
    _check_agreement(result, event)
    return structs.replace(result, aggregated=_spelled_out(result))


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise InvalidResponseError(problem)


def _aggregated(
    found: _Response, event: HookEventName, tool_input: Any
) -> AggregatedHookResult:
    if found.success:
        _require(found.output is not UNSET, "it has no output")
        _require(found.error is UNSET, "it has both success and an error")
    else:
        _require(found.error is not UNSET, "it has neither success nor an error")
    whole = AggregatedHookResult()
    if found.output is not UNSET:
        whole = _whole(found.output, event, tool_input)
    if found.error is UNSET:
        return whole
    error = _error(found.error, event, found.correlation_id)
    return structs.replace(whole, success=False, errors=[error])


def _whole(
    output: _Aggregated, event: HookEventName, tool_input: Any
) -> AggregatedHookResult:
    final = None
    if output.final_output is not None:
        final = _output(output.final_output, event)
    changes_input = event is HookEventName.BeforeTool
    if changes_input and final is not None and final.tool_input is not None:
        changed = changed_tool_input(tool_input, final)
        final = structs.replace(final, modified_tool_input=changed)
    return AggregatedHookResult(
        success=output.success,
        total_duration=output.total_duration,
        final_output=final,
        all_outputs=[_output(one, event) for one in output.all_outputs],
        errors=[convert(_read(one, _ERROR_FIELDS), HookError) for one in output.errors],
        hook_results=[_hook_result(one, event) for one in output.hook_results],
    )


def _output(wire: dict[str, Any], event: HookEventName) -> HookOutput:
    """Read an output; a worker sends none with a field that has to be ignored."""
    output, _ = read_output(wire, event)
    read = output.to_wire()
    specific = read.pop("hookSpecificOutput", {})
    for name, value in wire.items():
        if name == "hookSpecificOutput" and isinstance(value, dict):
            _require_same(value, specific)
        else:
            _require_same({name: value}, read)
    return output


def _require_same(given: dict[str, Any], read: dict[str, Any]) -> None:
    for name, value in given.items():
        same = value is None or (name in read and same_json(read[name], value))
        _require(same, f"an output has an invalid {name}")


_UNNAMED = {"name": "", "type": "", "source": "", "success": False}


def _hook_result(wire: dict[str, Any], event: HookEventName) -> HookExecutionResult:
    if wire.get("async") is True:
        # Nobody waited for it, so what it did is null.
        wire = {"success": True} | {k: v for k, v in wire.items() if v is not None}
    fields = _read(wire, _RESULT_FIELDS)
    fields = {**_UNNAMED, **fields, "event": event, "parsed_output": None}
    result = convert(fields, HookExecutionResult)
    if result.raw_output is None:
        return result
    # As the hook gave it, with what the worker ignored.
    output, _ = read_output(result.raw_output, event)
    return structs.replace(result, output=output)


_STAGES = [stage.value for stage in Stage]


def _error(error: _Error, event: HookEventName, correlation_id: str) -> HookError:
    stage, cause = error.details.get("stage"), error.details.get("cause")
    return HookError(
        stage=Stage(stage) if stage in _STAGES else Stage.INTERNAL,
        message=error.message,
        details=f"{error.code}: {cause}" if isinstance(cause, str) else error.code,
        event_name=event,
        correlation_id=correlation_id,
    )


def _check_agreement(result: ProcessedHookResult, event: HookEventName) -> None:
    """A verdict must not be milder than the outputs, nor what the event cannot do."""
    traits, final = TRAITS[event], result.final_output
    outputs = [*result.aggregated.all_outputs, *([final] if final else ())]
    blocks = any(output.is_blocking for output in outputs)
    stops = any(output.stops for output in outputs)
    asks = final is not None and final.asks and not result.blocked
    for name, said, found, can in (
        ("blocked", result.blocked, blocks, traits.can_block),
        ("shouldStop", result.should_stop, stops, traits.can_stop),
        ("ask", result.ask, asks, traits.can_block),
    ):
        _require(can or not said, f"{event.value} cannot have {name}")
        _require(said or not (can and found), f"its outputs contradict {name}")


def _spelled_out(result: ProcessedHookResult) -> AggregatedHookResult:
    """The outputs with what only ``processed`` says: callers look at both."""
    aggregated, final = result.aggregated, result.final_output or HookOutput()
    said = final
    if result.blocked:
        if not final.is_blocking:
            said = structs.replace(said, decision=Decision.BLOCK, reason=result.reason)
    elif result.ask and not final.asks:
        said = structs.replace(said, decision=Decision.ASK, reason=result.reason)
    if result.should_stop and not final.stops:
        said = structs.replace(said, continues=False, stop_reason=result.stop_reason)
    if said is final:
        return aggregated
    outputs = aggregated.all_outputs or [said]
    return structs.replace(aggregated, final_output=said, all_outputs=outputs)


def has_verdict(response: HookExecutionResponse) -> bool:
    """Whether a valid response decides anything, if only by a failure policy."""
    if response["success"]:
        return True
    final = response.get("output", {}).get("finalOutput")
    return final is not None or _decides(response)


def _decides(response: HookExecutionResponse) -> bool:
    processed = response.get("processed", {})
    return any(processed.get(name) for name in ("blocked", "shouldStop", "ask"))


def closed_response(
    response: HookExecutionResponse, event: HookEventName, reason: str
) -> HookExecutionResponse:
    """The same with the closed form of its event, as far as that has one."""
    wire = fail_closed_output(event, reason)
    if not wire:
        return response
    output, _ = read_output(wire, event)
    aggregated = AggregatedHookResult(
        success=False, final_output=output, all_outputs=[output]
    )
    result = process_common_hook_output_fields(aggregated, event)
    return {
        **response,
        "output": output_to_wire(aggregated),
        "processed": processed_to_wire(result),
    }


def encode_response(response: HookExecutionResponse, limit: int) -> bytes:
    """Encode a response into at most ``limit`` bytes, keeping a block or a stop.

    The output that hooks printed is dropped first. A response that is still too long
    becomes a failed one with the verdict (see docs/how-to/fleet.md).
    """
    data = encode(response)
    if len(data) <= limit:
        return data
    output = response.get("output")
    if output is not None:
        empty = {"stdout": "", "stderr": "", "truncated": True}
        results = [result | empty for result in output["hookResults"]]
        shorter = encode({**response, "output": {**output, "hookResults": results}})
        if len(shorter) <= limit:
            return shorter
    return encode(_verdict_only(response, len(data)))


def _verdict_only(
    response: HookExecutionResponse, length: int
) -> HookExecutionResponse:
    error = response.get("error")
    failed = failed_response(
        response["correlationId"],
        ResponseCode.PAYLOAD_TOO_LARGE,
        f"the response has {length} bytes, more than the server accepts",
        cause=error["code"] if error else None,
    )
    withheld = _withheld(response)
    if withheld is not None:
        failed["output"] = output_to_wire(withheld)
    if withheld is not None or _decides(response):
        processed = response["processed"]
        failed["processed"] = {k: _truncate(v) for k, v in processed.items()}
    return failed


def _withheld(response: HookExecutionResponse) -> AggregatedHookResult | None:
    """The output that withholds a result and says nothing else, if that is said."""
    final = response.get("output", {}).get("finalOutput") or {}
    kept = {"withholdResult": True}
    if not kept.items() <= final.get("hookSpecificOutput", {}).items():
        return None
    output = HookOutput(hook_specific_output=kept)
    return AggregatedHookResult(success=False, final_output=output)


def _truncate(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return value[:_LONGEST_TEXT] + _TRUNCATED
    return value
