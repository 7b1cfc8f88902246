"""What goes over the bus: messages, the protocols of a bus, and results on the wire.

Payloads are plain values and responses are dicts in wire spelling, so that a bus in
the process and one across a network carry the same (DELTA-HBUS-001).
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, NotRequired, Protocol, TypedDict, TypeVar, runtime_checkable
from uuid import uuid4

from msgspec import Struct, ValidationError, convert
from msgspec.structs import fields, replace

from hookline.errors import HooklineError
from hookline.protocol.events import HookEventName
from hookline.protocol.jsontext import encode
from hookline.protocol.outputs import Decision, HookOutput, read_output
from hookline.protocol.results import (
    AggregatedHookResult,
    HookError,
    HookExecutionResult,
    ProcessedHookResult,
    Stage,
)

S = TypeVar("S", bound=Struct)

_LONGEST_TEXT = 4096
_TRUNCATED = " ... (truncated)"


class MessageBusType(StrEnum):
    """The types of message."""

    HOOK_EXECUTION_REQUEST = "hook-execution-request"
    HOOK_EXECUTION_RESPONSE = "hook-execution-response"


class ResponseCode(StrEnum):
    """Why a response has no verdict."""

    INVALID_REQUEST = "invalid_request"
    UNSUPPORTED_EVENT = "unsupported_event"
    VALIDATION_FAILURE = "validation_failure"
    TRANSLATION_FAILURE = "translation_failure"
    PLANNING_FAILURE = "planning_failure"
    EXECUTION_FAILURE = "execution_failure"
    AGGREGATION_FAILURE = "aggregation_failure"
    INTERNAL_ERROR = "internal_error"
    NO_RESPONDERS = "no_responders"
    TIMEOUT = "timeout"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    ENCODING_FAILURE = "encoding_failure"
    INVALID_RESPONSE = "invalid_response"


class OnError(StrEnum):
    """What a response without a verdict means to the requester."""

    ALLOW = "allow"
    BLOCK = "block"


class HookExecutionRequest(TypedDict):
    """A request to run the hooks of one event."""

    eventName: str
    input: Any
    correlationId: str


class ResponseError(TypedDict):
    """Why there is no verdict; ``details`` hold ``stage`` and ``eventName``."""

    code: str
    message: str
    details: dict[str, Any]


class HookExecutionResponse(TypedDict):
    """The one response to a request; ``success`` means that every stage completed."""

    correlationId: str
    success: bool
    output: NotRequired[dict[str, Any]]
    processed: NotRequired[dict[str, Any]]
    error: NotRequired[ResponseError]


Unsubscribe = Callable[[], None]
MessageHandler = Callable[[Any], Any]
"""Plain or async; its return value is ignored."""
RequestHandler = Callable[[Any], Awaitable[HookExecutionResponse]]


class MessageBus(Protocol):
    """Delivers messages of a type to their subscribers."""

    def subscribe(self, message_type: str, handler: MessageHandler) -> Unsubscribe:
        """Call ``handler`` with every message of a type from now on."""

    async def publish(self, message_type: str, payload: Any) -> None:
        """Deliver a message to all subscribers of its type."""


@runtime_checkable
class RequestCarrier(Protocol):
    """A bus that delivers each response to its requester only."""

    def serve(self, handle: RequestHandler) -> Unsubscribe:
        """Answer every request with ``handle`` from now on."""

    async def request(
        self, request: HookExecutionRequest, timeout_s: float
    ) -> HookExecutionResponse:
        """Get the response, or a failed one by the deadline; never raises."""

    async def settled(self) -> None:
        """Wait until every handler that was removed has sent its last response."""


HookBus = MessageBus | RequestCarrier


def failed_response(
    correlation_id: str,
    code: ResponseCode,
    error: str | Exception,
    *,
    stage: str = "internal",
    event_name: Any = None,
    **details: Any,
) -> HookExecutionResponse:
    """Say why a request has no verdict (DELTA-HFAIL-002)."""
    known = {"stage": stage, "eventName": event_name, **details}
    message = str(error) or type(error).__name__
    return {
        "correlationId": correlation_id,
        "success": False,
        "error": {"code": code.value, "message": message, "details": known},
    }


def unanswered(
    request: HookExecutionRequest,
    code: ResponseCode,
    error: str | Exception,
    stage: str = "internal",
) -> HookExecutionResponse:
    """Build the response to a request that no worker answered."""
    correlation_id, name = request["correlationId"], request["eventName"]
    return failed_response(correlation_id, code, error, stage=stage, event_name=name)


def expire(answer: Future[Any]) -> None:
    """Let a future fail with ``TimeoutError``, unless it is done."""
    if not answer.done():
        answer.set_exception(TimeoutError())


def subject_name(what: str, name: str) -> str:
    """Check a name that becomes part of a subject, and return it.

    With a wildcard a worker would take the requests of other fleets.
    """
    if not name or not all(name.split(".")):
        raise HooklineError(f"{what} {name!r}: must not have empty parts")
    if any(not c.isprintable() or c.isspace() or c in "*>" for c in name):
        raise HooklineError(f"{what} {name!r}: must not contain spaces, '*' or '>'")
    return name


def new_correlation_id() -> str:
    """Make a UUID4."""
    return str(uuid4())


def correlation_id_of(payload: Any) -> str:
    """Return the exact correlation id of a request, or a new one (C1, C2)."""
    found = payload.get("correlationId") if isinstance(payload, dict) else None
    return found if isinstance(found, str) and found else new_correlation_id()


def is_response(value: Any) -> bool:
    """Whether a value has the shape of a response."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("success"), bool)
        and isinstance(value.get("correlationId"), str)
    )


def processed_to_wire(result: ProcessedHookResult) -> dict[str, Any]:
    """Convert a result to the ``processed`` of a response."""
    return {wire: getattr(result, name) for wire, name in _PROCESSED.items()}


_PROCESSED = {
    field.encode_name: field.name
    for field in fields(ProcessedHookResult)
    if field.name != "aggregated"
}


def output_to_wire(aggregated: AggregatedHookResult) -> dict[str, Any]:
    """Convert a result to the ``output`` of a response."""
    final = aggregated.final_output
    return {
        "success": aggregated.success,
        "finalOutput": None if final is None else final.to_wire(),
        "allOutputs": [output.to_wire() for output in aggregated.all_outputs],
        "errors": [error.to_wire() for error in aggregated.errors],
        "hookResults": [_result_to_wire(one) for one in aggregated.hook_results],
        "totalDuration": round(aggregated.total_duration, 3),
    }


def _result_to_wire(result: HookExecutionResult) -> dict[str, Any]:
    return result.to_wire() | {
        "event": result.event_name.value,
        "cause": None if result.cause is None else result.cause.value,
        "warnings": list(result.warnings),
        "observed": result.observed,
    }


def processed_from_wire(
    response: Mapping[str, Any],
    event: HookEventName,
    tool_input: Mapping[str, Any] | None = None,
) -> ProcessedHookResult:
    """Read a response as the result that the handler returned.

    ``tool_input`` is that of the request: the wire holds only the keys to change.
    """
    processed = _object(response.get("processed")) | {"aggregated": {}}
    result = _read(ProcessedHookResult, processed)
    if response.get("success") is True:
        aggregated = _aggregated(_object(response.get("output")), event, tool_input)
    else:
        aggregated = _envelope(response, event, result)
    return replace(result, aggregated=aggregated)


def _aggregated(
    output: Mapping[str, Any],
    event: HookEventName,
    tool_input: Mapping[str, Any] | None,
) -> AggregatedHookResult:
    final = _output(output.get("finalOutput"), event)
    if final is not None and final.tool_input and tool_input is not None:
        changed = {**tool_input, **final.tool_input}
        final = replace(final, modified_tool_input=changed)
    outputs = _objects(output.get("allOutputs"))
    results = _objects(output.get("hookResults"))
    duration = output.get("totalDuration")
    return AggregatedHookResult(
        success=output.get("success") is not False,
        total_duration=duration if isinstance(duration, int | float) else 0.0,
        final_output=final,
        all_outputs=[read_output(one, event)[0] for one in outputs],
        errors=[_read(HookError, one) for one in _objects(output.get("errors"))],
        hook_results=[_result(one, event) for one in results],
    )


def _envelope(
    response: Mapping[str, Any], event: HookEventName, result: ProcessedHookResult
) -> AggregatedHookResult:
    error = _object(response.get("error"))
    failure = {
        "stage": _object(error.get("details")).get("stage"),
        "message": error.get("message"),
        "details": error.get("code"),
        "event_name": event.value,
        "correlation_id": response.get("correlationId"),
    }
    envelope = AggregatedHookResult(success=False, errors=[_read(HookError, failure)])
    if not result.blocked and not result.should_stop:
        return envelope
    verdict = HookOutput(
        decision=Decision.BLOCK if result.blocked else None,
        reason=result.reason,
        continues=False if result.should_stop else None,
        stop_reason=result.stop_reason,
        system_message=result.system_message,
    )
    return replace(envelope, final_output=verdict, all_outputs=[verdict])


def _result(wire: Mapping[str, Any], event: HookEventName) -> HookExecutionResult:
    output = _output(wire.get("output"), event)
    return replace(_read(HookExecutionResult, wire), event_name=event, output=output)


_REQUIRED: dict[type[Struct], dict[str, Any]] = {
    ProcessedHookResult: {"aggregated": AggregatedHookResult()},
    HookExecutionResult: {
        "hook_name": "",
        "hook_type": "",
        "source": "",
        "event_name": HookEventName.BeforeTool,
        "success": False,
    },
    HookError: {"stage": Stage.INTERNAL, "message": "the response gives no reason"},
}


def _read(kind: type[S], wire: Mapping[str, Any]) -> S:
    """Read a struct; a field that is missing or of the wrong type has its default."""
    try:
        return convert(wire, kind)
    except ValidationError:
        values = _REQUIRED[kind].copy()
    for field in fields(kind):
        try:
            values[field.name] = convert(wire.get(field.encode_name), field.type)
        except ValidationError:
            continue
    return kind(**values)


def _output(wire: Any, event: HookEventName) -> HookOutput | None:
    return read_output(wire, event)[0] if isinstance(wire, dict) else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def encode_response(response: HookExecutionResponse, limit: int) -> bytes:
    """Encode a response into at most ``limit`` bytes, keeping a block or a stop.

    The output that hooks printed is dropped first. A response that is still too long
    becomes a failed one with the verdict (see docs/fleet.md).
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
    processed = response.get("processed")
    if processed and (processed.get("blocked") or processed.get("shouldStop")):
        failed["processed"] = {k: _truncate(v) for k, v in processed.items()}
    return failed


def _truncate(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return value[:_LONGEST_TEXT] + _TRUNCATED
    return value
