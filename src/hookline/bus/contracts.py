"""What goes over the bus: message types, requests, responses, and the seams.

Payloads are plain values and responses are dicts in wire spelling, so that a carrier
inside the process and one across the network say the same (DELTA-HBUS-001).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from os import urandom
from typing import Any, NotRequired, Protocol, TypedDict, runtime_checkable


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
