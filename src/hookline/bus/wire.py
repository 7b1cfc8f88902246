"""Verdicts on the wire: what a worker sends, and how strictly it is read.

A response has the shape of protocol.md#bus or it is no verdict: a part that is
missing, of a wrong type or milder than the outputs is never read as "allowed".
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct, ValidationError, convert, structs

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
    process_common_hook_output_fields,
)
from hookline.protocol.values import encode, same_json

from .contracts import (
    HookExecutionResponse,
    ResponseCode,
    ResponseError,
    WireOutput,
    WireVerdict,
    failed_response,
)

_LONGEST_TEXT = 4096


def _camel_names(struct: type[Struct]) -> dict[str, str]:
    """The names of a result's fields, by their names on the wire."""
    names = (field.encode_name for field in structs.fields(struct))
    return {re.sub(r"_([a-z])", lambda m: m[1].upper(), name): name for name in names}


_VERDICT_FIELDS = {
    field.encode_name: field.name
    for field in structs.fields(ProcessedHookResult)
    if field.name != "aggregated"
}
_RESULT_FIELDS = _camel_names(HookExecutionResult) | {"mode": "mode"}
_ERROR_FIELDS = _camel_names(HookError)


def add_result(
    response: HookExecutionResponse, result: ProcessedHookResult
) -> HookExecutionResponse:
    """A response with the ``output`` and the ``processed`` of a result."""
    aggregated, final = result.aggregated, result.final_output
    errors, results = [], []
    for error in aggregated.errors:
        fields = error.to_wire()
        errors.append({k: fields[n] for k, n in _ERROR_FIELDS.items() if n in fields})
    for hook in aggregated.hook_results:
        fields = hook.to_wire() | {
            "event": hook.event_name.value,
            "cause": None if hook.cause is None else hook.cause.value,
            "warnings": list(hook.warnings),
            "observed": hook.observed,
            "user_message": hook.user_message,
        }
        results.append({k: fields[n] for k, n in _RESULT_FIELDS.items() if n in fields})
    output: WireOutput = {
        "success": aggregated.success,
        "finalOutput": None if final is None else final.to_wire(),
        "allOutputs": [output.to_wire() for output in aggregated.all_outputs],
        "errors": errors,
        "hookResults": results,
        "totalDuration": round(aggregated.total_duration, 3),
    }
    verdict: Any = {k: getattr(result, name) for k, name in _VERDICT_FIELDS.items()}
    return {**response, "output": output, "processed": verdict}


class InvalidResponseError(ValueError):
    """What is wrong with a response."""


def read_response(
    response: Any, event: HookEventName, tool_input: Any = None
) -> ProcessedHookResult:
    """Read a response as the result that the handler returned.

    ``tool_input`` is that of the request: the wire holds the keys to change, unless it
    says that they are the whole input. Raises ``InvalidResponseError``.
    """
    try:
        wire = convert(response, HookExecutionResponse)
        output, verdict = wire.get("output"), wire.get("processed")
        error, success = wire.get("error"), wire["success"]
        for is_wrong, problem in (
            (success and not output, "it has no output"),
            (success and error, "it has both success and an error"),
            (not success and not error, "it has neither success nor an error"),
            (output and not verdict, "it has no processed"),
        ):
            if is_wrong:
                raise InvalidResponseError(problem)
        result = AggregatedHookResult()
        if output is not None:
            result = _read_aggregated(output, event, tool_input)
    except ValidationError as invalid:
        raise InvalidResponseError(str(invalid)) from invalid
    if error is not None:
        errors = [_read_error(error, event, wire["correlationId"])]
        result = structs.replace(result, success=False, errors=errors)
    if verdict is None:
        return ProcessedHookResult(aggregated=result)
    return _read_verdict(verdict, result, event)


def _read_aggregated(
    output: WireOutput, event: HookEventName, tool_input: Any
) -> AggregatedHookResult:
    final = None
    if output["finalOutput"] is not None:
        final = _read_output(output["finalOutput"], event)
        if event is HookEventName.BeforeTool and final.tool_input is not None:
            changed = changed_tool_input(tool_input, final)
            final = structs.replace(final, modified_tool_input=changed)
    errors = [
        {name: fields[k] for k, name in _ERROR_FIELDS.items() if k in fields}
        for fields in output["errors"]
    ]
    return AggregatedHookResult(
        success=output["success"],
        total_duration=output["totalDuration"],
        final_output=final,
        all_outputs=[_read_output(wire, event) for wire in output["allOutputs"]],
        errors=[convert(fields, HookError) for fields in errors],
        hook_results=[_read_hook(wire, event) for wire in output["hookResults"]],
    )


def _read_output(wire: dict[str, Any], event: HookEventName) -> HookOutput:
    """Read an output; a worker sends none with a field that has to be ignored."""
    output, _ = read_output(wire, event)
    understood = output.to_wire()
    parts = [(wire, understood)]
    if isinstance(specific := wire.get("hookSpecificOutput"), dict):
        wire = {k: value for k, value in wire.items() if k != "hookSpecificOutput"}
        effects = understood.get("hookSpecificOutput", {})
        parts = [(wire, understood), (specific, effects)]
    for fields, read in parts:
        for name, value in fields.items():
            if value is None or (name in read and same_json(read[name], value)):
                continue
            raise InvalidResponseError(f"an output has an invalid {name}")
    return output


def _read_hook(wire: dict[str, Any], event: HookEventName) -> HookExecutionResult:
    fields: dict[str, Any] = {"name": "", "type": "", "source": "", "success": False}
    if wire.get("async") is True:
        # Nobody waited for it, so what it did is null.
        fields["success"] = True
        wire = {k: value for k, value in wire.items() if value is not None}
    fields |= {name: wire[k] for k, name in _RESULT_FIELDS.items() if k in wire}
    fields |= {"event": event, "parsed_output": None}
    result = convert(fields, HookExecutionResult)
    if result.raw_output is None:
        return result
    # As the hook gave it, with what the worker ignored.
    return structs.replace(result, output=read_output(result.raw_output, event)[0])


def _read_error(
    error: ResponseError, event: HookEventName, correlation_id: str
) -> HookError:
    stage, cause = error["details"].get("stage"), error["details"].get("cause")
    stages, code = {stage.value: stage for stage in Stage}, error["code"]
    return HookError(
        stage=stages.get(str(stage), Stage.INTERNAL),
        message=error["message"],
        details=f"{code}: {cause}" if isinstance(cause, str) else code,
        event_name=event,
        correlation_id=correlation_id,
    )


def _read_verdict(
    verdict: WireVerdict, aggregated: AggregatedHookResult, event: HookEventName
) -> ProcessedHookResult:
    """A verdict that is not milder than its outputs, which then say the same."""
    fields: dict[str, Any] = {**verdict}
    fields = {name: fields[key] for key, name in _VERDICT_FIELDS.items()}
    result = ProcessedHookResult(aggregated=aggregated, **fields)
    final = aggregated.final_output or HookOutput()
    outputs = [*aggregated.all_outputs, final]
    derived = process_common_hook_output_fields(
        structs.replace(aggregated, final_output=final, all_outputs=outputs), event
    )
    blocked, traits = result.blocked, TRAITS[event]
    for name, is_set, is_due, is_possible in (
        ("blocked", blocked, derived.blocked, traits.can_block),
        ("shouldStop", result.should_stop, derived.should_stop, traits.can_stop),
        ("ask", result.ask, derived.ask and not blocked, traits.can_block),
    ):
        if is_set and not is_possible:
            raise InvalidResponseError(f"{event.value} cannot have {name}")
        if is_due and not is_set:
            raise InvalidResponseError(f"its outputs contradict {name}")
    # Callers look at both: what only the verdict says, the final output says too.
    strict = final
    if blocked and not final.is_blocking:
        strict = structs.replace(strict, decision=Decision.BLOCK, reason=result.reason)
    elif result.ask and not (blocked or final.asks):
        strict = structs.replace(strict, decision=Decision.ASK, reason=result.reason)
    if result.should_stop and not final.stops:
        stop_reason = result.stop_reason
        strict = structs.replace(strict, continues=False, stop_reason=stop_reason)
    if strict is final:
        return result
    outputs = aggregated.all_outputs or [strict]
    strict_result = structs.replace(
        aggregated, final_output=strict, all_outputs=outputs
    )
    return structs.replace(result, aggregated=strict_result)


def encode_response(response: HookExecutionResponse, limit: int) -> bytes:
    """Encode a response into at most ``limit`` bytes, keeping a block or a stop.

    The output that hooks printed is dropped first. A response that is still too long
    becomes a failed one with the verdict (see docs/how-to/fleet.md).
    """
    data = encode(response)
    if len(data) <= limit:
        return data
    withholds = False
    if "output" in response:
        output, unprinted = response["output"], {"stdout": "", "stderr": ""}
        results = [
            {**hook, **unprinted, "truncated": True} for hook in output["hookResults"]
        ]
        shorter = encode({**response, "output": {**output, "hookResults": results}})
        if len(shorter) <= limit:
            return shorter
        effects = (output["finalOutput"] or {}).get("hookSpecificOutput") or {}
        withholds = effects.get("withholdResult") is True
    problem = f"the response has {len(data)} bytes, more than the server accepts"
    cause = response["error"]["code"] if "error" in response else None
    code = ResponseCode.PAYLOAD_TOO_LARGE
    failed = failed_response(response, code, problem, cause=cause)
    if withholds:
        final = HookOutput(hook_specific_output={"withholdResult": True})
        aggregated = AggregatedHookResult(success=False, final_output=final)
        failed = add_result(failed, ProcessedHookResult(aggregated=aggregated))
    verdict: Any = {**response.get("processed", {})}
    if withholds or any(verdict.get(k) for k in ("blocked", "shouldStop", "ask")):
        for name, text in verdict.items():
            if isinstance(text, str) and len(text) > _LONGEST_TEXT:
                verdict[name] = f"{text[:_LONGEST_TEXT]} ... (truncated)"
        failed["processed"] = verdict
    return encode(failed)
