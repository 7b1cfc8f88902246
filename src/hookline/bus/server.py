"""Answer requests from a bus: check them, fire the event, build the response.

Exactly one response per request, with its correlation id (C1 to C3); nothing raises.
The checks run in the order of protocol.md#bus, and a request that fails one never
reaches the planner. Requests run concurrently up to a limit and others wait, up to a
limit too. One whose requester has given up by then is dropped: its hooks do not run.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from functools import partial
from inspect import isawaitable
from typing import Any, Protocol

from hookline._internal.log import Guard
from hookline._internal.trace_context import TraceContext, checked_trace
from hookline.errors import UnknownEventError
from hookline.protocol.events import HookEventName, known_event
from hookline.protocol.inputs import BASE_FIELDS, Fields, HookInput
from hookline.protocol.results import ProcessedHookResult, Stage
from hookline.protocol.validators import completed, explain, is_hook_input

from .contracts import (
    EXPIRED,
    OVERLOAD,
    HookBus,
    HookExecutionResponse,
    MessageBus,
    MessageBusType,
    RequestCarrier,
    ResponseCode,
    correlation_id_of,
    failed_response,
    is_expired,
    not_run,
)
from .wire import output_to_wire, processed_to_wire

MAX_CONCURRENT = 64
"""How many requests run at once by default."""
MAX_WAITING = 1024
"""How many more may wait."""

_LONGEST_NAME = 100
_LONGEST_MS = 2**53
"""A longer deadline is none: clocks overflow on it."""
_PUBLISH_S = 5.0
"""How long a bus may take for a response; ``dispose()`` waits for it."""

_log = logging.getLogger("hookline.bus")


class FiresEvents(Protocol):
    """What the server needs of a handler: an event from translation on."""

    async def fire_fields(
        self,
        event: HookEventName,
        fields: Fields,
        session_id: str | None,
        transcript_path: str | None,
        correlation_id: str,
        trace: TraceContext,
    ) -> ProcessedHookResult:
        """Run the hooks of an event with a validated input."""

    def tell_invalid(
        self, event: HookEventName | None, problem: str, trace: TraceContext
    ) -> None:
        """Tell telemetry of a request that was refused."""


class _InvalidRequestError(Exception):
    """The code and the message of a failed check; never leaves this module."""


class RequestServer:
    """Answers the requests of a bus with a handler that fires the events."""

    def __init__(
        self,
        handler: FiresEvents,
        bus: HookBus | None = None,
        *,
        max_concurrent: int = MAX_CONCURRENT,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        if max_concurrent < 1:
            raise ValueError(f"max_concurrent must be at least 1, got {max_concurrent}")
        self._handler = handler
        self._bus = bus
        self._max_concurrent, self._max_waiting = max_concurrent, max_waiting
        self.dropped: Counter[str] = Counter()
        """How many requests were not run: ``expired``, or for ``overload``."""
        self._slots = asyncio.Semaphore(max_concurrent)
        self._taken = 0
        self._unsubscribe: Any = None
        self._is_open = False
        self._in_flight: set[asyncio.Task[None]] = set()

    def subscribe(self) -> None:
        """Take requests from the bus, if there is one; repeated calls do nothing."""
        bus = self._bus
        if bus is None or self._is_open:
            return
        if isinstance(bus, RequestCarrier):
            self._unsubscribe = bus.serve(self.handle_request)
        else:
            self._unsubscribe = bus.subscribe(
                MessageBusType.HOOK_EXECUTION_REQUEST, partial(self._take, bus)
            )
        self._is_open = True

    async def join(self) -> None:
        """Subscribe, and wait until the bus agrees; raises if it refuses."""
        try:
            self.subscribe()
            if isawaitable(self._unsubscribe):
                self._unsubscribe = await self._unsubscribe
            ready = getattr(self._bus, "ready", None)
            if ready is not None:
                await ready()
        except BaseException:
            self.dispose()
            raise
        if not callable(self._unsubscribe):
            returned = type(self._unsubscribe).__name__
            _log.warning("the bus returned %s and no function to unsubscribe", returned)

    def dispose(self) -> None:
        """Take no new requests; those in flight finish (rule L1)."""
        self._is_open = False
        unsubscribe, self._unsubscribe = self._unsubscribe, None
        if callable(unsubscribe):  # what the bus sends now is ignored anyhow
            Guard("unsubscribing from the bus")(unsubscribe)

    async def finished(self) -> None:
        """Wait, after ``dispose()``, until every request taken has its response."""
        while self._in_flight:
            await asyncio.wait(self._in_flight)
        if isinstance(self._bus, RequestCarrier):
            try:
                await self._bus.settled()
            # Whatever fails there, the rest is released.
            except Exception:  # noqa: BLE001
                _log.exception("the bus failed to settle")

    async def handle_request(self, payload: Any) -> HookExecutionResponse:
        """Return the one response to a request; never raises."""
        correlation_id = correlation_id_of(payload)
        fields = payload if isinstance(payload, dict) else {}
        name, trace = fields.get("eventName"), checked_trace(fields.get("traceContext"))
        try:
            event, event_input = _checked(payload)
            if self._taken >= self._max_concurrent + self._max_waiting:
                self.dropped[OVERLOAD] += 1
                message = f"{self.waiting} requests wait already: start more workers"
                return not_run(payload, correlation_id, message, OVERLOAD)
            self._taken += 1
            try:
                if not await self._has_slot(fields.get("timeoutMs")):
                    self.dropped[EXPIRED] += 1
                    message = "it has waited for longer than its timeoutMs"
                    return not_run(payload, correlation_id, message, EXPIRED)
                try:
                    result = await self._fire(event, event_input, correlation_id, trace)
                finally:
                    self._slots.release()
            finally:
                self._taken -= 1
            return _response(result, event, correlation_id)
        except _InvalidRequestError as error:
            (code, problem), stage = error.args, Stage.VALIDATION
            self._handler.tell_invalid(known_event(name), problem, trace)
        # The edge of the handler: any error becomes a response.
        except Exception as error:  # noqa: BLE001
            extra = {"request": {"correlation_id": correlation_id}}
            _log.exception("request %.80r failed", correlation_id, extra=extra)
            code, problem, stage = ResponseCode.INTERNAL_ERROR, error, Stage.INTERNAL
        name = name[:_LONGEST_NAME] if isinstance(name, str) else None
        return failed_response(
            correlation_id, code, problem, stage=stage.value, event_name=name
        )

    async def _has_slot(self, timeout_ms: Any) -> bool:
        """Wait until a request may run; False if its requester has given up by then."""
        is_number = isinstance(timeout_ms, int | float) and timeout_ms is not True
        if not is_number or not timeout_ms < _LONGEST_MS:
            return await self._slots.acquire()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                return timeout_ms > 0 and await self._slots.acquire()
        return False

    @property
    def in_flight(self) -> int:
        """How many requests run now."""
        return min(self._taken, self._max_concurrent)

    @property
    def waiting(self) -> int:
        """How many requests wait for others to end."""
        return self._taken - self.in_flight

    async def _fire(
        self,
        event: HookEventName,
        event_input: HookInput,
        correlation_id: str,
        trace: TraceContext,
    ) -> ProcessedHookResult:
        # A request cannot choose where a process runs, nor its event or time.
        fields = {k: v for k, v in event_input.items() if k not in BASE_FIELDS}
        if not isinstance(fields.get("requester", {}), dict):
            del fields["requester"]
        return await self._handler.fire_fields(
            event,
            fields,
            event_input.get("session_id") or None,
            event_input.get("transcript_path") or None,
            correlation_id,
            trace,
        )

    def _take(self, bus: MessageBus, payload: Any) -> None:
        if not self._is_open:
            return
        # A task per request: the bus calls a subscriber with one message at a time,
        # and a slow hook must not delay other requests.
        task = asyncio.create_task(self._answer(payload, bus))
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)

    async def _answer(self, payload: Any, bus: MessageBus) -> None:
        response = await self.handle_request(payload)
        if is_expired(response):
            return  # another request may have the same id by now
        try:
            async with asyncio.timeout(_PUBLISH_S):
                await bus.publish(MessageBusType.HOOK_EXECUTION_RESPONSE, response)
        except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt):
            raise
        # A bus of the host is foreign code and may raise anything.
        except BaseException:  # noqa: BLE001
            _log.exception("no response to request %.80r", response["correlationId"])


def _checked(payload: Any) -> tuple[HookEventName, HookInput]:
    """Return the event and the input of a request, or raise for a failed check."""
    if not isinstance(payload, dict):
        message = "the request is not an object"
        raise _InvalidRequestError(ResponseCode.INVALID_REQUEST, message)
    name, event_input = payload.get("eventName"), payload.get("input")
    if event_input is None:
        event_input = payload.get("payload")
    for field, found in (("eventName", name), ("input", event_input)):
        if found is None:
            message = f"the request has no {field}"
            raise _InvalidRequestError(ResponseCode.INVALID_REQUEST, message)
    event = known_event(name)
    if event is None:
        message = "eventName: unknown event"
        # Finding the nearest name takes time that grows with the length of this one.
        if isinstance(name, str) and len(name) <= _LONGEST_NAME:
            message = str(UnknownEventError(name, tuple(HookEventName)))
        raise _InvalidRequestError(ResponseCode.UNSUPPORTED_EVENT, message)
    if isinstance(event_input, dict):
        event_input = completed(event, event_input)
    if not is_hook_input(event_input, event):
        message = explain(event, event_input)
        raise _InvalidRequestError(ResponseCode.VALIDATION_FAILURE, message)
    return event, event_input


def _response(
    result: ProcessedHookResult, event: HookEventName, correlation_id: str
) -> HookExecutionResponse:
    aggregated = result.aggregated
    if aggregated.success or aggregated.hook_results or not aggregated.errors:
        # All stages completed; a hook that failed does not change that.
        return {
            "correlationId": correlation_id,
            "success": True,
            "output": output_to_wire(aggregated),
            "processed": processed_to_wire(result),
        }
    error = aggregated.errors[0]
    internal = error.stage is Stage.INTERNAL
    response = failed_response(
        correlation_id,
        ResponseCode("internal_error" if internal else f"{error.stage}_failure"),
        error.message,
        stage=error.stage.value,
        event_name=event.value,
        cause=error.details,
    )
    if result.final_output is not None:
        # What a failure policy says is a verdict even so.
        response["output"] = output_to_wire(aggregated)
        response["processed"] = processed_to_wire(result)
    return response
