"""Answer requests from the bus: check them, have the event fired, say how it went.

Exactly one response per request, with its correlation id (C1 to C3); nothing raised.
The checks run in the order of PROTOCOL section 8, and a request that fails one never
reaches the planner. Requests are handled concurrently up to a limit; the rest wait
their turn and none is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from hookline.errors import UnknownEventError
from hookline.protocol.events import HookEventName
from hookline.protocol.results import HookError, ProcessedHookResult, Stage
from hookline.protocol.validators import explain

from .contracts import (
    HookBus,
    HookExecutionResponse,
    MessageBus,
    MessageBusType,
    RequestCarrier,
    ResponseCode,
    Unsubscribe,
    correlation_id_of,
    failed_response,
    output_to_wire,
    processed_to_wire,
)

MAX_CONCURRENT = 64
"""Requests in work at once, unless the host says otherwise."""

_LONGEST_NAME = 100

# Nobody on the bus chooses where a process runs, or under which event or time; the
# session and the transcript travel beside the fields.
_NOT_FIELDS = frozenset(
    {"cwd", "hook_event_name", "timestamp", "session_id", "transcript_path"}
)

_log = logging.getLogger("hookline.bus")


class FiresEvents(Protocol):
    """What the mediator needs of a handler: the way of an event from translation on."""

    async def fire_validated(
        self,
        event: HookEventName,
        fields: Mapping[str, Any],
        *,
        session_id: str | None,
        transcript_path: str | None,
        correlation_id: str,
    ) -> ProcessedHookResult:
        """Run the hooks of an event whose input has been checked."""
        ...


class _Refused(Exception):  # noqa: N818 - never leaves this module
    """A request that failed a check."""

    def __init__(self, code: ResponseCode, message: str) -> None:
        self.code = code
        self.message = message


class RequestMediator:
    """Stands between a bus and the handler that fires the events."""

    def __init__(
        self,
        handler: FiresEvents,
        bus: HookBus | None = None,
        *,
        max_concurrent: int = MAX_CONCURRENT,
    ) -> None:
        if max_concurrent < 1:
            raise ValueError(f"max_concurrent must be 1 or more, got {max_concurrent}")
        self._handler = handler
        self._bus = bus
        self._turns = asyncio.Semaphore(max_concurrent)
        self._unsubscribe: Unsubscribe | None = None
        self._in_flight: set[asyncio.Task[None]] = set()

    def subscribe(self) -> None:
        """Listen for requests; without a bus, or a second time, it does nothing."""
        bus = self._bus
        if bus is None or self._unsubscribe is not None:
            return
        if isinstance(bus, RequestCarrier):
            self._unsubscribe = bus.serve(self.handle_request)
        else:
            self._unsubscribe = bus.subscribe(
                MessageBusType.HOOK_EXECUTION_REQUEST, partial(self._take, bus)
            )

    def dispose(self) -> None:
        """Listen no more; calls in flight finish (rule L1)."""
        unsubscribe, self._unsubscribe = self._unsubscribe, None
        if unsubscribe is not None:
            unsubscribe()

    async def finished(self) -> None:
        """Wait, after ``dispose()``, until every request taken has its response."""
        while self._in_flight:
            await asyncio.wait(self._in_flight)
        if isinstance(self._bus, RequestCarrier):
            await self._bus.settled()

    async def handle_request(self, payload: Any) -> HookExecutionResponse:
        """Give the one response to a request; never raises."""
        correlation_id = correlation_id_of(payload)
        try:
            event, fields = _checked(payload)
            async with self._turns:
                result = await self._fire(event, fields, correlation_id)
            return _response(result, event, correlation_id)
        except _Refused as refused:
            return _refusal(refused, payload, correlation_id)
        # The edge of the handler: whatever went wrong, the requester is told.
        except Exception as error:  # noqa: BLE001
            _log.exception("request %s failed", correlation_id)
            internal = _Refused(ResponseCode.INTERNAL_ERROR, _worded(error))
            return _refusal(internal, payload, correlation_id, Stage.INTERNAL)

    async def _fire(
        self, event: HookEventName, value: Mapping[str, Any], correlation_id: str
    ) -> ProcessedHookResult:
        fields = {key: item for key, item in value.items() if key not in _NOT_FIELDS}
        if not isinstance(fields.get("requester", {}), dict):
            del fields["requester"]
        return await self._handler.fire_validated(
            event,
            fields,
            session_id=value.get("session_id") or None,
            transcript_path=value.get("transcript_path") or None,
            correlation_id=correlation_id,
        )

    def _take(self, bus: MessageBus, payload: Any) -> None:
        # A task each: the bus hands a subscriber one message at a time, and one
        # slow hook must not hold up every other request.
        task = asyncio.create_task(self._answer(payload, bus))
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)

    async def _answer(self, payload: Any, bus: MessageBus) -> None:
        await _publish(bus, await self.handle_request(payload))


async def _publish(bus: MessageBus, response: HookExecutionResponse) -> None:
    try:
        await bus.publish(MessageBusType.HOOK_EXECUTION_RESPONSE, response)
    # A bus that the host brought is foreign code and may raise anything.
    except Exception:  # noqa: BLE001
        _log.exception("no response to request %s", response["correlationId"])


def _checked(payload: Any) -> tuple[HookEventName, dict[str, Any]]:
    """Take event and input out of a request, or say which check it fails."""
    if not isinstance(payload, dict):
        raise _Refused(ResponseCode.INVALID_REQUEST, "the request is not an object")
    name = payload.get("eventName")
    value: Any = payload.get("input")
    if value is None:
        value = payload.get("payload")
    for field, found in (("eventName", name), ("input", value)):
        if found is None:
            message = f"the request has no {field}"
            raise _Refused(ResponseCode.INVALID_REQUEST, message)
    event = _event(name)
    problem = explain(event, value)
    if problem:
        raise _Refused(ResponseCode.VALIDATION_FAILURE, problem)
    return event, value


def _event(name: Any) -> HookEventName:
    # Looking for the nearest name takes time that grows with this one's length.
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        raise _Refused(ResponseCode.UNSUPPORTED_EVENT, "eventName is no hook event")
    try:
        return HookEventName.of(name)
    except UnknownEventError as error:
        raise _Refused(ResponseCode.UNSUPPORTED_EVENT, str(error)) from None


def _refusal(
    refused: _Refused,
    payload: Any,
    correlation_id: str,
    stage: Stage = Stage.VALIDATION,
) -> HookExecutionResponse:
    name = payload.get("eventName") if isinstance(payload, dict) else None
    name = name[:_LONGEST_NAME] if isinstance(name, str) else None
    return failed_response(
        correlation_id,
        refused.code,
        refused.message,
        stage=stage.value,
        event_name=name,
    )


def _response(
    result: ProcessedHookResult, event: HookEventName, correlation_id: str
) -> HookExecutionResponse:
    failure = _failed_stage(result)
    if failure is None:
        return {
            "correlationId": correlation_id,
            "success": True,
            "output": output_to_wire(result.aggregated),
            "processed": processed_to_wire(result),
        }
    response = failed_response(
        correlation_id,
        _code(failure.stage),
        failure.message,
        stage=failure.stage.value,
        event_name=event.value,
        cause=failure.details,
    )
    if result.blocked or result.should_stop:
        # A failure policy asked for it: the block is a verdict all the same.
        response["processed"] = processed_to_wire(result)
    return response


def _failed_stage(result: ProcessedHookResult) -> HookError | None:
    """The error of a stage that did not complete; a hook's own failure is none."""
    aggregated = result.aggregated
    if aggregated.success or aggregated.hook_results or not aggregated.errors:
        return None
    return aggregated.errors[0]


def _code(stage: Stage) -> ResponseCode:
    if stage is Stage.INTERNAL:
        return ResponseCode.INTERNAL_ERROR
    return ResponseCode(f"{stage.value}_failure")


def _worded(error: Exception) -> str:
    return str(error) or type(error).__name__
