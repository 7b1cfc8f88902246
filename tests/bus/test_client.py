"""Requests over a bus in the process: always exactly one response."""

from __future__ import annotations

import asyncio
import math
from typing import Any
from uuid import UUID

import pytest

from hookline.bus import HookBusClient, InMemoryMessageBus, MessageBusType
from hookline.bus.server import RequestServer
from hookline.errors import UnknownEventError
from hookline.protocol.events import HookEventName

from .fakes import GatedHandler, RecordingHandler, failed_at, result_of

E = HookEventName
REQUEST = MessageBusType.HOOK_EXECUTION_REQUEST
RESPONSE = MessageBusType.HOOK_EXECUTION_RESPONSE
REASON = (
    "No verdict from the hooks: no handler is subscribed to hook requests "
    "(no_responders)"
)
TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a"}}


def serving(handler: Any) -> InMemoryMessageBus:
    bus = InMemoryMessageBus()
    RequestServer(handler, bus).subscribe()
    return bus


async def test_request_is_answered_with_its_correlation_id() -> None:
    client = HookBusClient(serving(RecordingHandler()))
    response = await client.request("BeforeTool", TOOL, correlation_id="mine")
    assert response["correlationId"] == "mine"
    assert response["success"] is True


async def test_request_without_an_id_gets_a_new_one_each_time() -> None:
    client = HookBusClient(serving(RecordingHandler()))
    first = await client.request(HookEventName.BeforeTool, TOOL)
    second = await client.request(HookEventName.BeforeTool, TOOL)
    assert UUID(first["correlationId"]).version == 4
    assert first["correlationId"] != second["correlationId"]


@pytest.mark.parametrize("timeout_s", [math.inf, math.nan, 1e300])
async def test_requester_that_waits_without_end_gets_its_answer(
    timeout_s: float,
) -> None:
    """protocol.md#bus: ``timeoutMs`` is a number, whatever the client was given."""
    handler = RecordingHandler(result_of({"decision": "deny"}, E.BeforeTool))
    client = HookBusClient(serving(handler), timeout_s=timeout_s)
    response = await client.request("BeforeTool", TOOL)
    assert response["processed"]["blocked"] is True


async def test_concurrent_requests_each_get_their_own_answer() -> None:
    client = HookBusClient(serving(RecordingHandler()))
    ids = [f"c-{n}" for n in range(100)]
    responses = await asyncio.gather(
        *(client.request("BeforeTool", TOOL, correlation_id=one) for one in ids)
    )
    assert [response["correlationId"] for response in responses] == ids


async def test_requests_that_share_an_id_are_each_answered() -> None:
    client = HookBusClient(serving(RecordingHandler()))
    responses = await asyncio.gather(
        *(client.request("BeforeTool", TOOL, correlation_id="same") for _ in range(5))
    )
    assert [response["success"] for response in responses] == [True] * 5


async def test_no_subscriber_is_a_failed_response_at_once() -> None:
    client = HookBusClient(InMemoryMessageBus())
    response = await client.request("BeforeTool", TOOL, timeout_s=100)
    assert response["success"] is False
    assert response["error"]["code"] == "no_responders"
    assert response["error"]["details"]["eventName"] == "BeforeTool"
    assert "processed" not in response


async def test_no_answer_by_the_deadline_is_a_failed_response() -> None:
    handler = GatedHandler()
    client = HookBusClient(serving(handler))
    response = await client.request("BeforeTool", TOOL, timeout_s=0.01)
    assert response["error"]["code"] == "timeout"
    handler.gate.set()


async def test_late_response_is_dropped() -> None:
    """Exactly one answer: the late response reaches no later request."""
    handler = GatedHandler()
    bus = serving(handler)
    client = HookBusClient(bus)
    await client.request("BeforeTool", TOOL, timeout_s=0.01, correlation_id="c")
    handler.gate.set()
    later = await client.request("BeforeAgent", {"prompt": 5}, correlation_id="d")
    assert later["error"]["code"] == "validation_failure"


async def test_client_is_subscribed_only_while_it_waits() -> None:
    bus = serving(RecordingHandler())
    client = HookBusClient(bus)
    await client.request("BeforeTool", TOOL)
    assert not bus.has_subscribers(RESPONSE)


async def test_cancelled_request_leaves_nothing_behind() -> None:
    handler = GatedHandler()
    bus = serving(handler)
    task = asyncio.create_task(HookBusClient(bus).request("BeforeTool", TOOL))
    await handler.until_inside(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not bus.has_subscribers(RESPONSE)
    handler.gate.set()


async def test_unknown_event_raises_and_nothing_is_sent() -> None:
    """protocol.md#results: firing an event that does not exist."""
    bus = InMemoryMessageBus()
    sent: list[Any] = []
    bus.subscribe(REQUEST, sent.append)
    with pytest.raises(UnknownEventError, match="did you mean 'BeforeTool'"):
        await HookBusClient(bus).request("BeforeTol", TOOL)
    assert sent == []


@pytest.mark.parametrize("event", ["BeforeTool", "BeforeAgent", "BeforeModel"])
async def test_no_verdict_is_a_block_with_on_error_block(
    event: str,
) -> None:
    client = HookBusClient(InMemoryMessageBus(), on_error="block")
    response = await client.request(event, {})
    assert response["success"] is False
    assert response["error"]["code"] == "no_responders"
    assert response["processed"]["blocked"] is True
    assert "no_responders" in response["processed"]["reason"]


async def test_failed_stage_is_no_verdict() -> None:
    from hookline.protocol.results import Stage

    bus = serving(RecordingHandler(failed_at(Stage.PLANNING)))
    response = await HookBusClient(bus, on_error="block").request("BeforeTool", TOOL)
    assert response["error"]["code"] == "planning_failure"
    assert response["processed"]["blocked"] is True


@pytest.mark.parametrize(
    "event", ["SessionStart", "SessionEnd", "Notification", "PreCompress"]
)
async def test_advisory_event_has_no_closed_form(event: str) -> None:
    client = HookBusClient(InMemoryMessageBus(), on_error="block")
    response = await client.request(event, {})
    assert "processed" not in response
    assert "output" not in response


CLOSED: dict[str, dict[str, Any]] = {
    "AfterTool": {"withholdResult": True},
    "AfterModel": {"llm_response": {"text": REASON}},
    "BeforeToolSelection": {"toolConfig": {"mode": "NONE", "allowedFunctionNames": []}},
}


@pytest.mark.parametrize(("event", "closed"), CLOSED.items(), ids=list(CLOSED))
async def test_event_that_cannot_block_takes_its_closed_form(
    event: str, closed: dict[str, Any]
) -> None:
    """protocol.md#results and #bus, issue 12.15."""
    bus = InMemoryMessageBus()
    response = await HookBusClient(bus, on_error="block").request(event, {})
    assert response["processed"]["blocked"] is False
    final = response["output"]["finalOutput"]["hookSpecificOutput"]
    if event == "AfterModel":
        final["llm_response"].pop("candidates")
    assert {name: final[name] for name in closed} == closed
    assert "output" not in await HookBusClient(bus).request(event, {})


async def test_verdict_is_unchanged_with_on_error_block() -> None:
    allowed = result_of({"decision": "allow"}, HookEventName.BeforeTool)
    client = HookBusClient(serving(RecordingHandler(allowed)), on_error="block")
    response = await client.request("BeforeTool", TOOL)
    assert response["processed"]["blocked"] is False


def test_unknown_on_error_raises() -> None:
    with pytest.raises(ValueError, match="maybe"):
        HookBusClient(InMemoryMessageBus(), on_error="maybe")


class FlakyBus(InMemoryMessageBus):
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


async def test_nothing_is_sent_twice_unless_asked() -> None:
    bus = FlakyBus(losses=1)
    RequestServer(RecordingHandler(), bus).subscribe()
    response = await HookBusClient(bus).request("BeforeTool", TOOL, timeout_s=0.05)
    assert response["error"]["code"] == "timeout"
    assert len(bus.sent) == 1


async def test_retries_send_the_same_request_again_within_the_deadline() -> None:
    bus = FlakyBus(losses=2)
    RequestServer(RecordingHandler(), bus).subscribe()
    client = HookBusClient(bus)
    response = await client.request("BeforeTool", TOOL, timeout_s=1.0, retries=2)
    assert response["success"] is True
    assert len(bus.sent) == 3
    assert len({sent["correlationId"] for sent in bus.sent}) == 1


async def test_verdict_is_never_retried() -> None:
    bus = FlakyBus(losses=0)
    RequestServer(RecordingHandler(), bus).subscribe()
    response = await HookBusClient(bus).request("BeforeTool", {}, retries=5)
    assert response["error"]["code"] == "validation_failure"
    assert len(bus.sent) == 1


class BrokenBus(InMemoryMessageBus):
    """A host's bus that raises."""

    async def publish(self, message_type: str, payload: Any) -> None:
        raise OSError("the line is dead")


async def test_bus_that_raises_is_a_failed_response() -> None:
    bus = BrokenBus()
    bus.subscribe(REQUEST, lambda _: None)
    response = await HookBusClient(bus).request("BeforeTool", TOOL)
    assert response["error"]["code"] == "no_responders"
    assert "the line is dead" in response["error"]["message"]


class CarelessBus(InMemoryMessageBus):
    """A host's bus that delivers everything, and then fails or hangs."""

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
        await super().publish(message_type, payload)
        if message_type == RESPONSE:
            self._answered.set()
        elif self._fault == "publish raises":
            await self._answered.wait()
            raise OSError("the line is dead")
        elif self._fault == "publish hangs":
            await asyncio.Event().wait()


@pytest.mark.parametrize(
    "fault", ["unsubscribe raises", "publish raises", "publish hangs"]
)
async def test_verdict_that_came_is_not_lost_by_the_bus(fault: str) -> None:
    """protocol.md#results: nothing that only carries a verdict can change it."""
    handler = RecordingHandler(result_of({"decision": "deny"}, E.BeforeTool))
    bus = CarelessBus(fault)
    RequestServer(handler, bus).subscribe()
    response = await HookBusClient(bus).request("BeforeTool", TOOL)
    assert response["processed"]["blocked"] is True


class OrderlyBus(InMemoryMessageBus):
    """A host's bus that tells an auditor after everybody else."""

    def __init__(self) -> None:
        super().__init__()
        self.answered, self.audited = asyncio.Event(), asyncio.Event()

    async def publish(self, message_type: str, payload: Any) -> None:
        await super().publish(message_type, payload)
        if message_type == REQUEST:
            await self.answered.wait()
            self.audited.set()


async def test_answer_does_not_keep_others_from_the_request() -> None:
    bus = OrderlyBus()
    RequestServer(RecordingHandler(), bus).subscribe()
    assert (await HookBusClient(bus).request("BeforeTool", TOOL))["success"]
    bus.answered.set()
    await bus.audited.wait()


class StuckBus(InMemoryMessageBus):
    """A host's bus that hangs."""

    async def publish(self, message_type: str, payload: Any) -> None:
        await asyncio.Event().wait()


async def test_bus_that_hangs_is_a_timeout() -> None:
    bus = StuckBus()
    bus.subscribe(REQUEST, lambda _: None)
    response = await HookBusClient(bus).request("BeforeTool", TOOL, timeout_s=0.05)
    assert response["error"]["code"] == "timeout"
