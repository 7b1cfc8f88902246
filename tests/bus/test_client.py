"""Requests over a bus: always exactly one response, whatever the bus does."""

from __future__ import annotations

import asyncio
import math
from typing import Any
from uuid import UUID

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan

from hookline.bus import HookBusClient, InMemoryMessageBus
from hookline.bus.server import RequestServer
from hookline.protocol.events import HookEventName
from tests.support.bus_rows import REQUEST, RESPONSE, GivenAnswer

from .fakes import GatedHandler, RecordingHandler, result_of

TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a"}}
DENIED = result_of({"decision": "deny"}, HookEventName.BeforeTool)


def serving(handler: Any) -> InMemoryMessageBus:
    bus = InMemoryMessageBus()
    RequestServer(handler, bus).subscribe()
    return bus


async def test_concurrent_requests_each_get_their_own_answer() -> None:
    """With an id of the caller's, a new one each time, or one that several share."""
    client = HookBusClient(serving(RecordingHandler()))
    ids = [*(f"c-{n}" for n in range(100)), *["same"] * 5]
    asked = [
        client.request("BeforeTool", TOOL, correlation_id=correlation_id)
        for correlation_id in ids
    ]
    new = [client.request(HookEventName.BeforeTool, TOOL) for _ in range(2)]
    responses = await asyncio.gather(*asked, *new)
    assert [response["correlationId"] for response in responses[:-2]] == ids
    assert all(response["success"] for response in responses)
    first, second = (UUID(response["correlationId"]) for response in responses[-2:])
    assert first.version == second.version == 4
    assert first != second


async def test_requester_that_waits_without_end_gets_its_answer() -> None:
    """protocol.md#bus: ``timeoutMs`` is a number, whatever the client was given."""
    for timeout_s in (math.inf, math.nan, 1e300):
        client = HookBusClient(serving(RecordingHandler(DENIED)), timeout_s=timeout_s)
        response = await client.request("BeforeTool", TOOL)
        assert response["processed"]["blocked"] is True


def test_unknown_on_error_raises() -> None:
    with pytest.raises(ValueError, match="maybe"):
        HookBusClient(InMemoryMessageBus(), on_error="maybe")


async def test_input_that_cannot_be_shown_whole_is_a_block() -> None:
    """protocol.md#process: no input avoids a guard by being hard to encode."""
    deep: list[Any] = []
    for _ in range(600):
        deep = [deep]
    carrier = GivenAnswer(None)
    for event, closes in (("BeforeTool", True), ("AfterTool", False)):
        tool = {**TOOL, "tool_input": {"deep": deep}, "tool_response": {}}
        response = await HookBusClient(carrier).request(event, tool)
        assert response["error"]["code"] == "encoding_failure"
        assert ("processed" in response) is closes
    assert carrier.requests == []


class LosingBus(InMemoryMessageBus):
    """Loses the first requests it is given."""

    def __init__(self, losses: int) -> None:
        super().__init__()
        self.losses = losses
        self.sent: list[Any] = []

    async def publish(self, message_type: str, payload: Any) -> None:
        if message_type == REQUEST:
            self.sent.append(payload)
            if len(self.sent) <= self.losses:
                return
        await super().publish(message_type, payload)


async def test_lost_request_is_sent_again_only_as_often_as_asked() -> None:
    """The attempts share the deadline and the id; a verdict is never asked twice."""
    for losses, retries, event_input, sent, code in (
        (1, 0, TOOL, 1, "timeout"),
        (2, 1, TOOL, 2, "timeout"),
        (2, 2, TOOL, 3, None),
        (0, 5, {}, 1, "validation_failure"),
    ):
        bus = LosingBus(losses)
        RequestServer(RecordingHandler(), bus).subscribe()
        # What is to be answered has time for it on a busy machine.
        limit_ms = 400 if code == "timeout" else 2800
        response: Any = await HookBusClient(bus).request(
            "BeforeTool", event_input, timeout_s=limit_ms / 1000, retries=retries
        )
        assert response.get("error", {}).get("code") == code
        assert len(bus.sent) == sent
        assert len({request["correlationId"] for request in bus.sent}) == 1
        left_ms = [request["timeoutMs"] for request in bus.sent]
        assert all(0 <= left <= limit_ms for left in left_ms)
        assert left_ms[0] == math.ceil(limit_ms / (retries + 1))


async def test_request_that_nobody_took_is_sent_again() -> None:
    """No worker may be there for a moment while workers are replaced."""
    bus = InMemoryMessageBus()
    request = HookBusClient(bus).request("BeforeTool", TOOL, retries=1)
    asking = asyncio.create_task(request)
    await asyncio.sleep(0)  # nobody was there, and it pauses
    RequestServer(RecordingHandler(), bus).subscribe()
    assert (await asking)["success"]


class FaultyBus(InMemoryMessageBus):
    """A host's bus that delivers everything, or nothing, and then fails or hangs."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self._fault = fault
        self._answered = asyncio.Event()

    def subscribe(self, message_type: str, handler: Any) -> Any:
        unsubscribe = super().subscribe(message_type, handler)

        def unsubscribe_and_raise() -> None:
            unsubscribe()
            raise OSError("the line is dead")

        is_raising = self._fault == "unsubscribe raises"
        return unsubscribe_and_raise if is_raising else unsubscribe

    async def publish(self, message_type: str, payload: Any) -> None:
        if self._fault == "raises at once":
            raise OSError("the line is dead")
        if self._fault == "hangs at once":
            await asyncio.Event().wait()
        await super().publish(message_type, payload)
        if message_type == RESPONSE:
            self._answered.set()
        elif self._fault == "publish raises":
            await self._answered.wait()
            raise OSError("the line is dead")
        elif self._fault == "publish hangs":
            await asyncio.Event().wait()


async def test_verdict_that_came_is_not_lost_by_the_bus() -> None:
    """protocol.md#results: nothing that only carries a verdict can change it."""
    for fault in ("unsubscribe raises", "publish raises", "publish hangs"):
        bus = FaultyBus(fault)
        RequestServer(RecordingHandler(DENIED), bus).subscribe()
        response = await HookBusClient(bus).request("BeforeTool", TOOL)
        assert response["processed"]["blocked"] is True, fault


async def test_invalid_answer_on_a_message_bus_does_not_wait_out_the_deadline() -> None:
    """Whose answer it is cannot be told without an id: only then it does."""
    for answer, code in (
        ({"correlationId": "c"}, "invalid_response"),
        ({"correlationId": "other", "success": True}, "timeout"),
        ({}, "timeout"),
        ("allow", "timeout"),
    ):
        bus = InMemoryMessageBus()

        async def reply(_: Any, bus: Any = bus, answer: Any = answer) -> None:
            await bus.publish(RESPONSE, answer)

        bus.subscribe(REQUEST, reply)
        timeout_s = 0.02 if code == "timeout" else 3600
        response = await HookBusClient(bus, timeout_s=timeout_s).request(
            "BeforeTool", TOOL, correlation_id="c"
        )
        assert response["error"]["code"] == code, answer


async def test_answer_does_not_keep_others_from_the_request() -> None:
    """A bus may tell an auditor after whoever answers."""
    answered, audited = asyncio.Event(), asyncio.Event()

    class OrderlyBus(InMemoryMessageBus):
        async def publish(self, message_type: str, payload: Any) -> None:
            await super().publish(message_type, payload)
            if message_type == REQUEST:
                await answered.wait()
                audited.set()

    bus = OrderlyBus()
    RequestServer(RecordingHandler(), bus).subscribe()
    assert (await HookBusClient(bus).request("BeforeTool", TOOL))["success"]
    answered.set()
    await audited.wait()


async def test_requester_sends_the_context_of_its_span() -> None:
    """OpenTelemetry; a span of the host may raise."""

    class BrokenSpan(NonRecordingSpan):
        def get_span_context(self) -> Any:
            raise RuntimeError("not now")

    carrier = GivenAnswer(None)
    client = HookBusClient(carrier)
    with TracerProvider().get_tracer("host").start_as_current_span("turn") as turn:
        await client.request("BeforeAgent", {"prompt": "p"})
    with trace.use_span(BrokenSpan(turn.get_span_context())):
        await client.request("BeforeAgent", {"prompt": "p"})
    await client.request("BeforeAgent", {"prompt": "p"})
    context = turn.get_span_context()
    first, *others = carrier.requests
    expected = f"00-{context.trace_id:032x}-{context.span_id:016x}-"
    assert first["traceContext"]["traceparent"].startswith(expected)
    assert ["traceContext" in request for request in others] == [False, False]


async def test_bus_or_carrier_that_fails_is_a_failed_response() -> None:
    """At once without a subscriber, whatever the deadline."""

    class BrokenCarrier(GivenAnswer):
        async def request(self, request: Any, timeout_s: float) -> Any:
            raise RuntimeError("the carrier broke")

    failures: dict[Any, str] = {
        InMemoryMessageBus(): "no handler is subscribed to hook requests",
        FaultyBus("raises at once"): "the bus failed: OSError('the line is dead')",
        FaultyBus("hangs at once"): "no response within 0.05 s",
        BrokenCarrier(None): "the bus failed: RuntimeError('the carrier broke')",
    }
    for bus, message in failures.items():
        hangs = message.startswith("no response")
        code, timeout_s = ("timeout", 0.05) if hangs else ("no_responders", 100)
        if isinstance(bus, FaultyBus):
            bus.subscribe(REQUEST, lambda _: None)
        client = HookBusClient(bus, "block")
        response = await client.request(
            "BeforeTool", TOOL, timeout_s=timeout_s, correlation_id="c"
        )
        details = {"stage": "internal", "eventName": "BeforeTool"}
        error = {"code": code, "message": message, "details": details}
        assert (response["correlationId"], response["error"]) == ("c", error)
        assert response["processed"]["blocked"] is True


async def test_client_hears_responses_only_while_it_waits() -> None:
    """Exactly one answer: a late response reaches no later request."""
    handler = GatedHandler()
    bus = serving(handler)
    client = HookBusClient(bus)
    late = await client.request("BeforeTool", TOOL, timeout_s=0.01, correlation_id="c")
    assert late["error"]["code"] == "timeout"
    assert late["error"]["message"] == "no response within 0.01 s"
    assert not bus.has_subscribers(RESPONSE)
    task = asyncio.create_task(client.request("BeforeTool", TOOL))
    await handler.until_inside(2)
    assert bus.has_subscribers(RESPONSE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not bus.has_subscribers(RESPONSE)
    handler.gate.set()
    later = await client.request("BeforeAgent", {"prompt": 5}, correlation_id="d")
    assert later["error"]["code"] == "validation_failure"
    assert not bus.has_subscribers(RESPONSE)
