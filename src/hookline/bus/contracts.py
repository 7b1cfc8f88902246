"""What goes over the bus: message types, requests, responses, and the seams.

Payloads are plain values and responses are dicts in wire spelling, so that a carrier
inside the process and one across the network say the same (DELTA-HBUS-001).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from os import urandom
from typing import Any, NotRequired, Protocol, TypedDict, runtime_checkable

from msgspec.structs import replace

from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import Decision, HookOutput, read_output
from hookline.protocol.results import (
    AggregatedHookResult,
    FailureCause,
    HookError,
    HookExecutionResult,
    ProcessedHookResult,
    Stage,
)


class MessageBusType(StrEnum):
    """The two kinds of message."""

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
    """What a requester makes of a response without a verdict."""

    ALLOW = "allow"
    BLOCK = "block"


class HookExecutionRequest(TypedDict):
    """Asks for the hooks of one event to be run."""

    eventName: str
    input: Any
    correlationId: str


class ResponseError(TypedDict):
    """Why there is no verdict; ``details`` hold ``stage`` and ``eventName``."""

    code: str
    message: str
    details: dict[str, Any]


class HookExecutionResponse(TypedDict):
    """The one answer to a request; ``success`` says that every stage completed."""

    correlationId: str
    success: bool
    output: NotRequired[dict[str, Any]]
    processed: NotRequired[dict[str, Any]]
    error: NotRequired[ResponseError]


Unsubscribe = Callable[[], None]
MessageHandler = Callable[[Any], Any]
"""Plain or async; what it returns is not looked at."""
RequestHandler = Callable[[Any], Awaitable[HookExecutionResponse]]


class MessageBus(Protocol):
    """Anything that brings messages of a type to those who asked for them."""

    def subscribe(self, message_type: str, handler: MessageHandler) -> Unsubscribe:
        """Have every message of a type handed to ``handler`` from now on."""
        ...

    async def publish(self, message_type: str, payload: Any) -> None:
        """Hand a message over to all who subscribed to its type."""
        ...


@runtime_checkable
class RequestCarrier(Protocol):
    """A bus that brings each response to its requester, and to nobody else."""

    def serve(self, handle: RequestHandler) -> Unsubscribe:
        """Have every request answered by ``handle`` from now on."""
        ...

    async def request(
        self, request: HookExecutionRequest, timeout_s: float
    ) -> HookExecutionResponse:
        """Get the response, or a failed one by the deadline; never raises."""
        ...

    async def settled(self) -> None:
        """Wait until all that is served no more has given its last response."""
        ...


HookBus = MessageBus | RequestCarrier


def failed_response(
    correlation_id: str,
    code: ResponseCode,
    message: str,
    *,
    stage: str,
    event_name: Any = None,
    **details: Any,
) -> HookExecutionResponse:
    """Say why a request has no verdict (DELTA-HFAIL-002)."""
    known = {"stage": stage, "eventName": event_name, **details}
    return {
        "correlationId": correlation_id,
        "success": False,
        "error": {"code": code.value, "message": message, "details": known},
    }


def new_correlation_id() -> str:
    """Make a UUID4, in a third of the time that the uuid module takes."""
    digits = urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return (
        f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}"
        f"-{variant}{digits[17:20]}-{digits[20:]}"
    )


def correlation_id_of(payload: Any) -> str:
    """Take a request's correlation id to the letter, or make one (C1, C2)."""
    found = payload.get("correlationId") if isinstance(payload, dict) else None
    return found if isinstance(found, str) and found else new_correlation_id()


def is_response(value: Any) -> bool:
    """Whether a value from outside can be read as a response at all."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("success"), bool)
        and isinstance(value.get("correlationId"), str)
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
        raw_output=said if isinstance(said, dict) else None,
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
