"""Ask for hooks over a bus.

``request`` returns exactly one response, at its deadline at the latest, and raises
nothing but cancellation: if nobody answers, that is a failed response too. Hooks may
have side effects, so nothing is sent twice unless the caller asks for it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from math import ceil
from typing import Any, NamedTuple

from msgspec.structs import replace

from hookline._internal.trace_context import current_trace
from hookline.errors import EncodingError
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.outputs import read_output
from hookline.protocol.results import (
    AggregatedHookResult,
    ProcessedHookResult,
    fail_closed_output,
    process_common_hook_output_fields,
)
from hookline.protocol.values import as_plain

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
    correlation_id_of,
    failed_response,
)
from .wire import InvalidResponseError, add_result, read_response

DEFAULT_TIMEOUT_S = 70.0
"""A hook's default timeout and the grace for killing it, and 5 s for the bus."""

_LONGEST_S = 1e9  # the wire has no number for a requester that waits without end
_FIRST_PAUSE_S = 0.05
_UNANSWERED = frozenset({ResponseCode.NO_RESPONDERS, ResponseCode.TIMEOUT})

_log = logging.getLogger("hookline.bus")


class CheckedResponse(NamedTuple):
    """A response, and what it says."""

    response: HookExecutionResponse
    result: ProcessedHookResult


class HookBusClient:
    """Sends requests over any bus, and waits ``timeout_s`` seconds for the response.

    ``on_error="block"`` closes an event without a verdict: a block, or what the event
    has instead (protocol.md#results).
    """

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
        """Run the hooks of an event and return the one response.

        ``event_name`` and ``input`` are those of the event. ``timeout_s`` limits the
        whole call, and ``correlation_id`` is echoed in the response. With ``retries``
        an unanswered request is sent again, and the attempts share that time. Raises
        ``UnknownEventError``.
        """
        answer = await self.ask(
            event_name,
            input,
            timeout_s=timeout_s,
            correlation_id=correlation_id,
            retries=retries,
        )
        return answer.response

    async def ask(
        self,
        event_name: HookEventName | str,
        event_input: Any,
        *,
        timeout_s: float | None = None,
        correlation_id: str | None = None,
        retries: int = 0,
    ) -> CheckedResponse:
        """The same, with what the response says."""
        event = HookEventName.of(event_name)
        request: HookExecutionRequest = {
            "eventName": event.value,
            "input": event_input,
            "correlationId": correlation_id_of({"correlationId": correlation_id}),
        }
        if trace := current_trace():
            request["traceContext"] = trace
        try:
            # Plain values only: only a dict is an object on the wire.
            request["input"] = as_plain(event_input)
        except EncodingError as error:
            failed = failed_response(request, ResponseCode.ENCODING_FAILURE, error)
            return self.closed(failed, event)
        is_object = isinstance(event_input, dict)
        tool_input = event_input.get("tool_input") if is_object else None
        limit_s = min(_LONGEST_S, self.timeout_s if timeout_s is None else timeout_s)
        clock = asyncio.get_running_loop().time
        deadline, pause_s = clock() + limit_s, _FIRST_PAUSE_S
        for retries_left in range(max(0, retries), -1, -1):
            share_s = max(0.0, deadline - clock()) / (retries_left + 1)
            # Rounded up: a deadline of less than a millisecond is not one of none.
            request["timeoutMs"] = ceil(share_s * 1000)
            result, code, problem = None, ResponseCode.INVALID_RESPONSE, ""
            try:
                response = await self._carrier.request({**request}, share_s)
                result = read_response(response, event, tool_input)
                if response["correlationId"] != request["correlationId"]:
                    problem = "the answer has another correlation id"
            except InvalidResponseError as error:
                problem = f"the answer is not a valid response: {error}"
            # A carrier of the host is foreign code and may raise anything.
            except Exception as error:  # noqa: BLE001
                problem, code = f"the bus failed: {error!r}", ResponseCode.NO_RESPONDERS
            if problem:
                response, result = failed_response(request, code, problem), None
            if response["success"] or response["error"]["code"] not in _UNANSWERED:
                break
            if retries_left:
                # No worker may be there for a moment while workers are replaced.
                await asyncio.sleep(min(pause_s, max(0.0, deadline - clock()) / 2))
                pause_s *= 2
        return self.closed(response, event, result)

    def closed(
        self,
        response: HookExecutionResponse,
        event: HookEventName,
        result: ProcessedHookResult | None = None,
    ) -> CheckedResponse:
        """Close the event if there is no verdict and ``on_error`` asks for it.

        ``result`` is what the response says, where it was read.
        """
        result = result or read_response(response, event)
        if response["success"] or result.final_output is not None:
            return CheckedResponse(response, result)
        error = response["error"]
        # protocol.md#process: no input avoids a guard by being hard to encode.
        unseen = error["code"] == ResponseCode.ENCODING_FAILURE
        closes = unseen and TRAITS[event].can_block
        reason = f"No verdict from the hooks: {error['message']} ({error['code']})"
        wire = fail_closed_output(event, reason)
        if not wire or (self.on_error is OnError.ALLOW and not closes):
            return CheckedResponse(response, result)
        output, _ = read_output(wire, event)
        aggregated = AggregatedHookResult(
            success=False, final_output=output, all_outputs=[output]
        )
        verdict = process_common_hook_output_fields(aggregated, event)
        aggregated = replace(aggregated, errors=result.aggregated.errors)
        return CheckedResponse(
            add_result(response, verdict), replace(verdict, aggregated=aggregated)
        )


class _Correlator:
    """Sends requests over a message bus and matches the responses by their id.

    It is subscribed only while a request waits, so there is nothing to close.
    """

    def __init__(self, bus: MessageBus) -> None:
        self._bus = bus
        self._waiting: dict[str, list[asyncio.Future[HookExecutionResponse]]] = {}
        self._unsubscribe: Unsubscribe | None = None
        self._publishing: set[asyncio.Task[None]] = set()
        self._has_subscribers = getattr(bus, "has_subscribers", lambda _type: True)

    async def request(
        self, request: HookExecutionRequest, timeout_s: float
    ) -> HookExecutionResponse:
        if not self._has_subscribers(MessageBusType.HOOK_EXECUTION_REQUEST):
            problem = "no handler is subscribed to hook requests"
            return failed_response(request, ResponseCode.NO_RESPONDERS, problem)
        answer: asyncio.Future[HookExecutionResponse]
        answer = asyncio.get_running_loop().create_future()

        async def publish() -> None:
            try:
                async with asyncio.timeout(timeout_s):
                    message_type = MessageBusType.HOOK_EXECUTION_REQUEST
                    await self._bus.publish(message_type, request)
            # A bus of the host is foreign code and may raise anything, also once the
            # answer is there: that changes nothing.
            except Exception as error:  # noqa: BLE001
                if not answer.done():
                    answer.set_exception(error)

        if self._unsubscribe is None:
            self._unsubscribe = self._bus.subscribe(
                MessageBusType.HOOK_EXECUTION_RESPONSE, self._take
            )
        answers = self._waiting.setdefault(request["correlationId"], [])
        answers.append(answer)
        # Beside the answer, which may come although the bus hangs after it has sent; to
        # its end, since a bus may tell others after whoever answers.
        publishing = asyncio.create_task(publish())
        self._publishing.add(publishing)
        publishing.add_done_callback(self._publishing.discard)
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            problem = f"no response within {timeout_s:.3g} s"
            return failed_response(request, ResponseCode.TIMEOUT, problem)
        finally:
            answers.remove(answer)
            if not answers:
                del self._waiting[request["correlationId"]]
            if not self._waiting and self._unsubscribe is not None:
                unsubscribe, self._unsubscribe = self._unsubscribe, None
                with suppress(Exception):  # of the host: the answer counts even so
                    unsubscribe()

    def _take(self, response: Any) -> None:
        correlation_id = None
        if isinstance(response, dict):
            correlation_id = response.get("correlationId")
        if not isinstance(correlation_id, str):
            _log.warning("ignored a message that is not a response to anybody")
            return
        # Two requests may share an id; each response answers the older one.
        for answer in self._waiting.get(correlation_id, ()):
            if not answer.done():
                answer.set_result(response)
                return
