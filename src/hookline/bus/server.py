"""Answer requests from a bus: check them, fire the event, build the response.

Exactly one response per request, with its correlation id (C1 to C3); nothing raises.
The checks run in the order of protocol.md#bus, and a request that fails one never
reaches the planner. Requests run concurrently up to a limit and others wait, up to a
limit too. One whose requester has given up by then is dropped: its hooks do not run.

A bus that refuses, or does not answer, costs the requests that come over it and nothing
else: the hooks work by direct calls meanwhile, and it is asked again (HBUS-002).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from functools import partial
from inspect import isawaitable
from typing import Any, Protocol

from hookline._internal.log import Guard
from hookline._internal.trace_context import TraceContext, checked_trace
from hookline.errors import UnknownEventError
from hookline.plan import start_by
from hookline.protocol.events import HookEventName, known_event
from hookline.protocol.inputs import BASE_FIELDS, Fields, HookInput
from hookline.protocol.results import ProcessedHookResult, Stage
from hookline.protocol.validators import completed, explain, is_hook_input

from .contracts import (
    EXPIRED,
    LONGEST_EVENT_NAME,
    OVERLOAD,
    HookBus,
    HookExecutionResponse,
    MessageBus,
    MessageBusType,
    RequestCarrier,
    ResponseCode,
    after_waiting,
    correlation_id_of,
    failed_response,
    is_expired,
    not_run,
)
from .wire import add_result

MAX_CONCURRENT = 64
"""How many requests run at once by default."""
MAX_WAITING = 1024
"""How many more may wait."""

_LONGEST_MS = 2**53
"""A longer deadline is none: clocks overflow on it."""
_PUBLISH_S = 5.0
"""How long a bus may take for a response; ``dispose()`` waits for it."""
_PATIENCE_S = 1.0
"""How long the start of the hooks waits for the bus."""
_ATTEMPT_S = 15.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0

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
        self._accepted = 0
        """How many requests run or wait for others to end."""
        self._answering: set[asyncio.Task[None]] = set()
        self._is_open = False
        self._unsubscribe: Any = None
        self._joining: asyncio.Task[None] | None = None
        self._attempted = asyncio.Event()
        self._problem = ""

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

    def join(self) -> None:
        """Subscribe; a bus that refuses is asked again, in the background."""
        Guard("")(self.subscribe)  # the attempts say why it refuses
        self._attempted = asyncio.Event()
        self._joining = asyncio.create_task(self._join())

    async def joined(self) -> None:
        """Wait for a moment until the bus has granted the subscription, or refused."""
        joining, loop = self._joining, asyncio.get_running_loop()
        if joining is None:
            return
        if joining.cancelled() or joining.get_loop().is_closed():
            self.join()  # the loop on which it began has ended
        elif joining.get_loop() is loop and not (
            self._attempted.is_set() or self._problem
        ):
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    await self._attempted.wait()
            except TimeoutError:
                self._warn("it does not answer")

    async def _join(self) -> None:
        """Ask the bus until it grants the subscription."""
        pause_s, task = _FIRST_PAUSE_S, asyncio.current_task()
        while True:
            try:
                async with asyncio.timeout(_ATTEMPT_S):
                    self.subscribe()
                    if isawaitable(self._unsubscribe):
                        self._unsubscribe = await self._unsubscribe
                    if ready := getattr(self._bus, "ready", None):
                        await ready()
                if not callable(self._unsubscribe):
                    kind = type(self._unsubscribe).__name__
                    text = "the bus returned %s and no function to unsubscribe"
                    _log.warning(text, kind)
                return
            # A bus of the host is foreign code and may raise anything.
            except BaseException as error:
                self._leave()
                is_cancelled = task is not None and task.cancelling()
                if is_cancelled or isinstance(error, KeyboardInterrupt | GeneratorExit):
                    raise
                self._warn(f"{type(error).__name__}: {error}")
            finally:
                self._attempted.set()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _warn(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            _log.warning(
                "the bus refused the subscription (%s): hooks work without it for now",
                problem,
            )

    def _leave(self) -> None:
        self._is_open = False
        unsubscribe, self._unsubscribe = self._unsubscribe, None
        if callable(unsubscribe):  # what the bus sends now is ignored anyhow
            Guard("unsubscribing from the bus")(unsubscribe)

    def dispose(self) -> None:
        """Take no new requests; those in flight finish (rule L1)."""
        joining = self._joining
        if joining is not None and not joining.get_loop().is_closed():
            joining.get_loop().call_soon_threadsafe(joining.cancel)
        self._leave()

    async def finished(self) -> None:
        """Wait, after ``dispose()``, until every request taken has its response."""
        joining = self._joining
        if joining and joining.get_loop() is asyncio.get_running_loop():
            await asyncio.wait({joining})
        while self._answering:
            await asyncio.wait(self._answering)
        if isinstance(self._bus, RequestCarrier):
            try:
                await self._bus.settled()
            # Whatever fails there, the rest is released.
            except Exception:  # noqa: BLE001
                _log.exception("the bus failed to settle")

    @property
    def in_flight(self) -> int:
        """How many requests run now."""
        return min(self._accepted, self._max_concurrent)

    @property
    def waiting(self) -> int:
        """How many requests wait for others to end."""
        return self._accepted - self.in_flight

    async def handle_request(self, payload: Any) -> HookExecutionResponse:
        """Return the one response to a request; never raises."""
        request: dict[str, Any] = payload if isinstance(payload, dict) else {}
        correlation_id = correlation_id_of(request)
        request = {**request, "correlationId": correlation_id}
        trace = checked_trace(request.get("traceContext"))
        try:
            event, event_input = _checked(payload)
            # A request cannot choose where a process runs, nor its event or time.
            fields = {k: v for k, v in event_input.items() if k not in BASE_FIELDS}
            if not isinstance(fields.get("requester", {}), dict):
                del fields["requester"]
            if self._accepted >= self._max_concurrent + self._max_waiting:
                self.dropped[OVERLOAD] += 1
                problem = f"{self.waiting} requests wait already: start more workers"
                return not_run(request, problem, OVERLOAD)
            deadline: float | None = None
            timeout_ms: Any = request.get("timeoutMs")
            if type(timeout_ms) in (int, float) and (
                timeout_ms <= 0 or 1 <= timeout_ms < _LONGEST_MS
            ):
                deadline = time.monotonic() + timeout_ms / 1000
            self._accepted += 1
            try:
                is_in_time = await self._has_slot(deadline)
                if is_in_time:
                    outer_deadline = start_by.set(deadline)
                    try:
                        result = await self._handler.fire_fields(
                            event,
                            fields,
                            event_input.get("session_id") or None,
                            event_input.get("transcript_path") or None,
                            correlation_id,
                            trace,
                        )
                    except asyncio.CancelledError:
                        # A hook waited for its turn past the deadline, or we are told
                        # to end.
                        task = asyncio.current_task()
                        if (task and task.cancelling()) or not _is_past(deadline):
                            raise
                        is_in_time = False
                    finally:
                        start_by.reset(outer_deadline)
                        self._slots.release()
                if not is_in_time:
                    self.dropped[EXPIRED] += 1
                    problem = "it has waited for longer than its timeoutMs"
                    return not_run(request, problem, EXPIRED)
            finally:
                self._accepted -= 1
            return _response(request, result)
        except _InvalidRequestError as error:
            code, problem = error.args
            self._handler.tell_invalid(
                known_event(request.get("eventName")), problem, trace
            )
            return failed_response(request, code, problem, Stage.VALIDATION)
        # The edge of the handler: any error becomes a response.
        except Exception as error:  # noqa: BLE001
            extra = {"request": {"correlation_id": correlation_id}}
            _log.exception("request %.80r failed", correlation_id, extra=extra)
            return failed_response(request, ResponseCode.INTERNAL_ERROR, error)

    async def _has_slot(self, deadline: float | None) -> bool:
        """Wait until a request may run; False if its requester has given up by then."""
        left_s = None if deadline is None else deadline - time.monotonic()
        try:
            async with asyncio.timeout(left_s if self._slots.locked() else None):
                await self._slots.acquire()
        except TimeoutError:
            return False
        if _is_past(deadline):
            self._slots.release()
            return False
        return True

    def _take(self, bus: MessageBus, payload: Any) -> None:
        if not self._is_open:
            return
        # A task per request: the bus calls a subscriber with one message at a time,
        # and a slow hook must not delay other requests.
        task = asyncio.create_task(self._answer(payload, bus, time.monotonic()))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, payload: Any, bus: MessageBus, arrived: float) -> None:
        response = await self.handle_request(after_waiting(payload, arrived))
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


def _is_past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


class _InvalidRequestError(Exception):
    """The code and the message of a failed check."""


def _checked(request: Any) -> tuple[HookEventName, HookInput]:
    """The event and the input of a request; raises for a failed check."""
    if not isinstance(request, dict):
        problem = "the request is not an object"
        raise _InvalidRequestError(ResponseCode.INVALID_REQUEST, problem)
    name, event_input = request.get("eventName"), request.get("input")
    if event_input is None:
        event_input = request.get("payload")
    for field, value in (("eventName", name), ("input", event_input)):
        if value is None:
            problem = f"the request has no {field}"
            raise _InvalidRequestError(ResponseCode.INVALID_REQUEST, problem)
    event = known_event(name)
    if event is None:
        problem = "eventName: unknown event"
        # Finding the nearest name takes time that grows with the length of this one.
        if isinstance(name, str) and len(name) <= LONGEST_EVENT_NAME:
            problem = str(UnknownEventError(name, tuple(HookEventName)))
        raise _InvalidRequestError(ResponseCode.UNSUPPORTED_EVENT, problem)
    if isinstance(event_input, dict):
        event_input = completed(event, event_input)
    if not is_hook_input(event_input, event):
        problem = explain(event, event_input)
        raise _InvalidRequestError(ResponseCode.VALIDATION_FAILURE, problem)
    return event, event_input


def _response(request: Any, result: ProcessedHookResult) -> HookExecutionResponse:
    """The response to a request whose event was fired."""
    aggregated = result.aggregated
    if aggregated.success or aggregated.hook_results or not aggregated.errors:
        # All stages completed; a hook that failed does not change that.
        response: HookExecutionResponse
        response = {"correlationId": request["correlationId"], "success": True}
        return add_result(response, result)
    error = aggregated.errors[0]
    code = ResponseCode.INTERNAL_ERROR
    if error.stage is not Stage.INTERNAL:
        code = ResponseCode(f"{error.stage}_failure")
    response = failed_response(
        request, code, error.message, error.stage, cause=error.details
    )
    # What a failure policy says is a verdict even so.
    return response if result.final_output is None else add_result(response, result)
