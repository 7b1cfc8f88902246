"""What goes over the bus: the messages, and the protocols of a bus.

Payloads are plain values and responses are dicts in wire spelling, so that a bus in
the process and one across a network carry the same (DELTA-HBUS-001).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, NotRequired, Protocol, TypedDict, runtime_checkable
from uuid import uuid4

from hookline._internal.trace_context import TraceContext
from hookline.errors import HooklineError
from hookline.protocol.results import Stage


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
    timeoutMs: NotRequired[int]
    """The time left when it was sent: a server drops what has waited longer."""
    traceContext: NotRequired[TraceContext]
    """Where it comes from, if its host uses OpenTelemetry."""


class WireOutput(TypedDict):
    """``AggregatedHookResult`` in wire spelling."""

    success: bool
    finalOutput: dict[str, Any] | None
    allOutputs: list[dict[str, Any]]
    errors: list[dict[str, Any]]
    hookResults: list[dict[str, Any]]
    totalDuration: float


class WireVerdict(TypedDict):
    """The verdict of ``ProcessedHookResult`` in wire spelling."""

    shouldStop: bool
    stopReason: str | None
    systemMessage: str | None
    suppressOutput: bool
    blocked: bool
    reason: str | None
    ask: bool


class ResponseError(TypedDict):
    """Why there is no verdict; ``details`` hold ``stage`` and ``eventName``."""

    code: str
    message: str
    details: dict[str, Any]


class HookExecutionResponse(TypedDict):
    """The one response to a request; ``success`` means that every stage completed."""

    correlationId: str
    success: bool
    output: NotRequired[WireOutput]
    processed: NotRequired[WireVerdict]
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
        """Deliver ``payload`` to all subscribers of a message type."""


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

EXPIRED, OVERLOAD = "expired", "overload"
"""Why a server did not run the hooks of a request: ``details.cause`` of its error."""

LONGEST_EVENT_NAME = 100


def failed_response(
    request: Any,
    code: ResponseCode,
    problem: str | Exception,
    stage: Stage = Stage.INTERNAL,
    **details: Any,
) -> HookExecutionResponse:
    """Say why a request, which may be any value, has no verdict (DELTA-HFAIL-002)."""
    name = request.get("eventName") if isinstance(request, dict) else None
    name = name[:LONGEST_EVENT_NAME] if isinstance(name, str) else None
    message = str(problem) or type(problem).__name__
    details = {"stage": stage.value, "eventName": name, **details}
    return {
        "correlationId": correlation_id_of(request),
        "success": False,
        "error": {"code": code.value, "message": message, "details": details},
    }


def correlation_id_of(request: Any) -> str:
    """The exact correlation id of a request; a new UUID4 if it has none (C1, C2)."""
    if isinstance(request, dict):
        correlation_id = request.get("correlationId")
        if isinstance(correlation_id, str) and correlation_id:
            return correlation_id
    return str(uuid4())


def after_waiting(request: Any, arrived: float) -> Any:
    """The request with the time that is left of its ``timeoutMs``.

    ``arrived``: when, by ``time.monotonic``. Its turn of a busy event loop comes later.
    """
    waited_ms = int((time.monotonic() - arrived) * 1000)
    timeout_ms: Any = request.get("timeoutMs") if isinstance(request, dict) else None
    # A part of a millisecond is too short to measure.
    if not waited_ms or type(timeout_ms) not in (int, float) or timeout_ms < 1:
        return request
    return {**request, "timeoutMs": timeout_ms - waited_ms}


def not_run(request: Any, problem: str, cause: str) -> HookExecutionResponse:
    """Say that a server does not run the hooks of a request, and why."""
    code = ResponseCode.TIMEOUT if cause == EXPIRED else ResponseCode.EXECUTION_FAILURE
    return failed_response(request, code, problem, Stage.EXECUTION, cause=cause)


def is_expired(response: HookExecutionResponse) -> bool:
    """Whether a server dropped the request: nobody waits for this response."""
    return "error" in response and response["error"]["details"].get("cause") == EXPIRED


def subject_name(what: str, name: str) -> str:
    """Check a name that becomes part of a subject, and return it.

    With a wildcard a worker would take the requests of other fleets.
    """
    if not name or not all(name.split(".")):
        raise HooklineError(f"{what} {name!r}: must not have empty parts")
    if any(not c.isprintable() or c.isspace() or c in "*>" for c in name):
        raise HooklineError(f"{what} {name!r}: must not contain spaces, '*' or '>'")
    return name
