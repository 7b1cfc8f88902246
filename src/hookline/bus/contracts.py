"""What goes over the bus: the messages, and the protocols of a bus.

Payloads are plain values and responses are dicts in wire spelling, so that a bus in
the process and one across a network carry the same (DELTA-HBUS-001).
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, NotRequired, Protocol, TypedDict, runtime_checkable
from uuid import uuid4

from hookline._internal.trace_context import TraceContext
from hookline.errors import HooklineError


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


EXPIRED, OVERLOAD = "expired", "overload"
"""Why a server does not run the hooks of a request: ``details.cause`` of its error."""


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


class TracedRequest(HookExecutionRequest):
    """The same with where it comes from, if its host uses OpenTelemetry."""

    traceContext: NotRequired[TraceContext]


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


def not_run(
    payload: Any, correlation_id: str, message: str, cause: str
) -> HookExecutionResponse:
    """Say that a server does not run the hooks of a request, and why."""
    name = payload.get("eventName") if isinstance(payload, dict) else None
    code = ResponseCode.TIMEOUT if cause == EXPIRED else ResponseCode.EXECUTION_FAILURE
    stage = "execution"
    return failed_response(
        correlation_id, code, message, stage=stage, event_name=name, cause=cause
    )


def is_expired(response: HookExecutionResponse) -> bool:
    """Whether a server dropped the request: nobody waits for this response."""
    error = response.get("error")
    return error is not None and error["details"].get("cause") == EXPIRED


def expire(answer: Future[Any]) -> None:
    """Let a future fail with ``TimeoutError``, unless it is done."""
    if not answer.done():
        answer.set_exception(TimeoutError())
        answer.exception()  # else asyncio warns where nobody waits any more


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
