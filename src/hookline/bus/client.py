"""Ask for hooks to be run by whoever listens on a bus.

``request`` gives exactly one response, at its deadline at the latest, and raises
nothing but cancellation: nobody listening is a failed response like any other. A
hook may have side effects, so nothing is sent twice unless the caller asks for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any

from hookline.errors import UnknownEventError
from hookline.protocol.events import TRAITS, HookEventName

from .contracts import (
    HookBus,
    HookExecutionRequest,
    HookExecutionResponse,
    MessageBus,
    MessageBusType,
    OnError,
    RequestCarrier,
    ResponseCode,
    Unsubscribe,
    failed_response,
    is_response,
    new_correlation_id,
)
from .memory import InMemoryMessageBus

DEFAULT_TIMEOUT_S = 70.0
"""A hook's default timeout, the grace for killing it, and a little for the way."""

_FIRST_PAUSE_S = 0.05
_UNANSWERED = frozenset({ResponseCode.NO_RESPONDERS, ResponseCode.TIMEOUT})
_Answer = asyncio.Future[HookExecutionResponse]

_log = logging.getLogger("hookline.bus")


class HookBusClient:
    """Asks over any bus; ``on_error="block"`` makes a missing verdict a block."""

    def __init__(
        self,
        bus: HookBus,
        on_error: OnError | str = OnError.ALLOW,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        self.on_error = OnError(on_error)
        self.timeout_s = timeout_s
        self._carrier: RequestCarrier | _Correlator = (
            bus if isinstance(bus, RequestCarrier) else _Correlator(bus)
        )

    async def request(
        self,
        event_name: HookEventName | str,
        input: Any,  # noqa: A002 - the protocol's own word
        *,
        timeout_s: float | None = None,
        correlation_id: str | None = None,
        retries: int = 0,
    ) -> HookExecutionResponse:
        """Have the hooks of an event run, and get the one response.

        ``timeout_s`` bounds the whole call. With ``retries`` an unanswered request
        is sent again, and the attempts share that time.
        """
        request: HookExecutionRequest = {
            "eventName": str(event_name),
            "input": input,
            "correlationId": correlation_id or new_correlation_id(),
        }
        try:
            event = HookEventName.of(event_name)
        except UnknownEventError as error:
            return _unsupported(request, error)
        whole = self.timeout_s if timeout_s is None else timeout_s
        response = await self._ask(request, whole, retries)
        return self.judge(response, event)

    async def _ask(
        self, request: HookExecutionRequest, timeout_s: float, retries: int
    ) -> HookExecutionResponse:
        if retries < 1:
            return await self._carrier.request(request, timeout_s)
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        pause_s = _FIRST_PAUSE_S
        for left in range(retries, 0, -1):
            share_s = max(0.0, deadline - clock()) / (left + 1)
            response = await self._carrier.request(request, share_s)
            if not _is_unanswered(response):
                return response
            # Nobody is there for an instant when the workers are being replaced.
            await asyncio.sleep(min(pause_s, max(0.0, deadline - clock()) / 2))
            pause_s *= 2
        return await self._carrier.request(request, max(0.0, deadline - clock()))

    def judge(
        self, response: HookExecutionResponse, event: HookEventName
    ) -> HookExecutionResponse:
        """Turn a missing verdict into a block where that is wanted."""
        if response["success"] or not TRAITS[event].can_block:
            return response
        error = response.get("error", _NO_ERROR)
        # PROTOCOL 4: no input slips past a guard by being hard to encode.
        closed = error["code"] == ResponseCode.ENCODING_FAILURE
        if "processed" in response or not (closed or self.on_error is OnError.BLOCK):
            return response
        reason = f"No verdict from the hooks: {error['message']} ({error['code']})"
        return {**response, "processed": _block(reason)}


_NO_ERROR: Any = {"code": "unknown", "message": "the response gives no reason"}


def _block(reason: str) -> dict[str, Any]:
    return {
        "shouldStop": False,
        "stopReason": None,
        "systemMessage": None,
        "suppressOutput": False,
        "blocked": True,
        "reason": reason,
        "ask": False,
    }


def _unsupported(
    request: HookExecutionRequest, error: UnknownEventError
) -> HookExecutionResponse:
    return failed_response(
        request["correlationId"],
        ResponseCode.UNSUPPORTED_EVENT,
        str(error),
        stage="validation",
        event_name=request["eventName"],
    )


def _is_unanswered(response: HookExecutionResponse) -> bool:
    return not response["success"] and response["error"]["code"] in _UNANSWERED


class _Correlator:
    """Requests over a plain message bus: responses are told apart by their id.

    It listens only while it waits for something, so there is nothing to close.
    """

    def __init__(self, bus: MessageBus) -> None:
        self._bus = bus
        self._waiting: dict[str, deque[_Answer]] = {}
        self._unsubscribe: Unsubscribe | None = None
        self._has_subscribers = getattr(bus, "has_subscribers", _somebody)
        # Most requests go this way, and a timeout of its own costs them a tenth.
        self._sends_at_once = type(bus) is InMemoryMessageBus

    async def request(
        self, request: HookExecutionRequest, timeout_s: float
    ) -> HookExecutionResponse:
        if not self._has_subscribers(MessageBusType.HOOK_EXECUTION_REQUEST):
            return _unanswered(
                request, ResponseCode.NO_RESPONDERS, "nobody listens for hook requests"
            )
        loop = asyncio.get_running_loop()
        answer: _Answer = loop.create_future()
        timer = loop.call_later(timeout_s, _expire, answer)
        self._expect(request["correlationId"], answer)
        try:
            await self._send(request, timeout_s)
            return await answer
        except TimeoutError:
            return _unanswered(
                request, ResponseCode.TIMEOUT, f"no response within {timeout_s:.3g} s"
            )
        except _PublishError as error:
            return _unanswered(
                request, ResponseCode.NO_RESPONDERS, f"the bus failed: {error.cause!r}"
            )
        finally:
            timer.cancel()
            self._forget(request["correlationId"], answer)

    async def _send(self, request: HookExecutionRequest, timeout_s: float) -> None:
        if self._sends_at_once:
            await self._publish(request)
        else:
            async with asyncio.timeout(timeout_s):
                await self._publish(request)

    async def _publish(self, request: HookExecutionRequest) -> None:
        try:
            await self._bus.publish(MessageBusType.HOOK_EXECUTION_REQUEST, request)
        # A bus that the host brought is foreign code and may raise anything.
        except Exception as error:
            raise _PublishError(error) from error

    def _expect(self, correlation_id: str, answer: _Answer) -> None:
        if self._unsubscribe is None:
            self._unsubscribe = self._bus.subscribe(
                MessageBusType.HOOK_EXECUTION_RESPONSE, self._take
            )
        self._waiting.setdefault(correlation_id, deque()).append(answer)

    def _forget(self, correlation_id: str, answer: _Answer) -> None:
        queue = self._waiting[correlation_id]
        queue.remove(answer)
        if not queue:
            del self._waiting[correlation_id]
        if not self._waiting and self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _take(self, response: Any) -> None:
        if not is_response(response):
            _log.warning("a response of no known shape was ignored")
            return
        # Two requests may share an id; each response answers the older one.
        for answer in self._waiting.get(response["correlationId"], ()):
            if not answer.done():
                answer.set_result(response)
                return


class _PublishError(Exception):
    """What a foreign bus raised; never leaves this module."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause


def _expire(answer: _Answer) -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())


def _somebody(message_type: str) -> bool:
    return True


def _unanswered(
    request: HookExecutionRequest, code: ResponseCode, message: str
) -> HookExecutionResponse:
    return failed_response(
        request["correlationId"],
        code,
        message,
        stage="internal",
        event_name=request["eventName"],
    )
