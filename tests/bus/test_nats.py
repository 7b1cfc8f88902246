"""Requests over a real NATS server."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Any

import nats
import pytest

from hookline.bus import HookBusClient, MessageBusType, NatsBus
from hookline.bus.server import RequestServer
from hookline.errors import BusConnectionError
from hookline.protocol.events import HookEventName
from hookline.protocol.jsontext import decode, encode
from hookline.protocol.outputs import read_output
from hookline.protocol.results import (
    AggregatedHookResult,
    ProcessedHookResult,
    process_common_hook_output_fields,
)
from tests.support.nats import NatsServer, codes, serving_bus

from .fakes import GatedHandler, RecordingHandler, result_of

TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a"}}
BEFORE_TOOL = HookEventName.BeforeTool


class Fleet:
    """A worker and a client on one server, in one process."""

    def __init__(self, server: NatsServer, prefix: str, stack: AsyncExitStack) -> None:
        self.server, self.prefix, self._stack = server, prefix, stack

    async def worker(self, handler: Any, **options: Any) -> NatsBus:
        hooks = RequestServer(handler, **options)
        bus = await serving_bus(self.server.url, self.prefix, hooks.handle_request)
        self._stack.push_async_callback(bus.close)
        return bus

    async def client(self, **options: Any) -> HookBusClient:
        bus = await NatsBus.connect(self.server.url, prefix=self.prefix)
        self._stack.push_async_callback(bus.close)
        return HookBusClient(bus, **options)


@pytest.fixture
def fleet(server: NatsServer, prefix: str, cleanup: AsyncExitStack) -> Fleet:
    return Fleet(server, prefix, cleanup)


async def test_request_is_answered_by_a_worker(fleet: Fleet) -> None:
    handler = RecordingHandler(
        result_of({"decision": "block", "reason": "no"}, BEFORE_TOOL)
    )
    await fleet.worker(handler)
    client = await fleet.client()
    response = await client.request("BeforeTool", TOOL, correlation_id="c-1")
    assert response["correlationId"] == "c-1"
    assert response["success"] is True
    assert response["processed"]["blocked"] is True
    assert handler.calls[0]["fields"] == TOOL


async def test_no_worker_is_a_failed_response_at_once(fleet: Fleet) -> None:
    client = await fleet.client()
    response = await client.request("BeforeTool", TOOL, timeout_s=100)
    assert response["error"]["code"] == "no_responders"
    assert fleet.prefix in response["error"]["message"]


async def test_no_answer_by_the_deadline_is_a_failed_response(fleet: Fleet) -> None:
    await fleet.worker(GatedHandler())
    client = await fleet.client()
    response = await client.request("BeforeTool", TOOL, timeout_s=0.1)
    assert response["error"]["code"] == "timeout"


async def test_prefixes_separate_fleets(server: NatsServer, fleet: Fleet) -> None:
    await fleet.worker(RecordingHandler())
    async with await NatsBus.connect(server.url, prefix="another") as bus:
        response = await HookBusClient(bus).request("BeforeTool", TOOL)
    assert response["error"]["code"] == "no_responders"


async def test_system_can_be_given_the_bus_itself(
    server: NatsServer, fleet: Fleet
) -> None:
    """One subscription per server, undone by dispose (DELTA-HEVT-004)."""
    async with await NatsBus.connect(server.url, prefix=fleet.prefix) as bus:
        hooks = RequestServer(RecordingHandler(), bus)
        hooks.subscribe()
        await bus.ready()
        client = await fleet.client()
        assert (await client.request("BeforeTool", TOOL))["success"] is True
        hooks.dispose()
        await bus.ready()
        response = await client.request("BeforeTool", TOOL)
        assert response["error"]["code"] == "no_responders"


async def test_response_goes_to_its_requester_only(
    server: NatsServer, fleet: Fleet
) -> None:
    await fleet.worker(RecordingHandler())
    nosy = await nats.connect(server.url)
    overheard: list[Any] = []

    async def listen(message: Any) -> None:
        overheard.append(message)

    await nosy.subscribe(f"{fleet.prefix}.>", cb=listen)
    await nosy.flush()
    client = await fleet.client()
    await client.request("BeforeTool", TOOL)
    await nosy.flush()
    await nosy.close()
    # It hears the request, being allowed to here, but no response.
    assert [decode(m.data)["eventName"] for m in overheard] == ["BeforeTool"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xff not json", "invalid_request"),
        (b"", "invalid_request"),
        (b"[1]", "invalid_request"),
        (b'{"eventName": "Nope", "input": {}}', "unsupported_event"),
    ],
)
async def test_invalid_request_is_answered(
    server: NatsServer, fleet: Fleet, data: bytes, code: str
) -> None:
    bus = await fleet.worker(RecordingHandler())
    raw = await nats.connect(server.url)
    answer = await raw.request(bus.subject, data, timeout=30)
    await raw.close()
    assert decode(answer.data)["error"]["code"] == code


async def test_request_without_a_reply_subject_is_ignored(
    server: NatsServer, fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    handler = RecordingHandler()
    bus = await fleet.worker(handler)
    raw = await nats.connect(server.url)
    with caplog.at_level(logging.WARNING, "hookline.bus"):
        await raw.publish(
            bus.subject, encode({"eventName": "BeforeTool", "input": TOOL})
        )
        await raw.flush()
        client = await fleet.client()
        await client.request("BeforeTool", TOOL)
    await raw.close()
    assert len(handler.calls) == 1
    assert "without a reply subject" in caplog.text


async def test_invalid_response_is_a_failed_response(
    server: NatsServer, fleet: Fleet
) -> None:
    raw = await nats.connect(server.url)

    async def nonsense(message: Any) -> None:
        await message.respond(b'{"hello": "world"}')

    subject = f"{fleet.prefix}.{MessageBusType.HOOK_EXECUTION_REQUEST}"
    await raw.subscribe(subject, cb=nonsense)
    await raw.flush()
    client = await fleet.client(on_error="block")
    response = await client.request("BeforeTool", TOOL)
    await raw.close()
    assert response["error"]["code"] == "invalid_response"
    assert response["processed"]["blocked"] is True


async def test_raising_handler_of_a_host_is_an_internal_error(
    server: NatsServer, fleet: Fleet
) -> None:
    async def handle(payload: Any) -> Any:
        raise LookupError("gone")

    bus = await serving_bus(server.url, fleet.prefix, handle)
    client = await fleet.client()
    response = await client.request("BeforeTool", TOOL, correlation_id="c")
    await bus.close()
    assert response["correlationId"] == "c"
    assert response["error"]["code"] == "internal_error"


async def test_request_over_the_servers_limit_is_not_sent(
    fleet: Fleet,
) -> None:
    handler = RecordingHandler()
    await fleet.worker(handler)
    client = await fleet.client(on_error="block")
    huge = TOOL | {"tool_input": {"content": "x" * 2_000_000}}
    response = await client.request("BeforeTool", huge)
    assert response["error"]["code"] == "payload_too_large"
    assert response["processed"]["blocked"] is True
    assert handler.calls == []
    # The connection has survived it.
    assert (await client.request("BeforeTool", TOOL))["success"] is True


async def test_response_over_the_limit_drops_printed_output_and_keeps_the_verdict(
    fleet: Fleet,
) -> None:
    wire = {"hookSpecificOutput": {"tool_input": {"path": "b"}}}
    await fleet.worker(
        RecordingHandler(result_of(wire, BEFORE_TOOL, stdout="x" * 2_000_000))
    )
    client = await fleet.client()
    response = await client.request("BeforeTool", TOOL)
    assert response["success"] is True
    assert response["output"]["finalOutput"] == wire
    result = response["output"]["hookResults"][0]
    assert (result["stdout"], result["truncated"]) == ("", True)


async def test_block_with_a_reason_over_the_limit_still_blocks(fleet: Fleet) -> None:
    """A response never allows what the hooks blocked."""
    output, _ = read_output(
        {"decision": "block", "reason": "no " * 1_000_000}, BEFORE_TOOL
    )
    result: ProcessedHookResult = process_common_hook_output_fields(
        AggregatedHookResult(final_output=output, all_outputs=[output]), BEFORE_TOOL
    )
    await fleet.worker(RecordingHandler(result))
    client = await fleet.client()
    response = await client.request("BeforeTool", TOOL)
    assert response["error"]["code"] == "payload_too_large"
    assert response["processed"]["blocked"] is True
    assert response["processed"]["reason"].startswith("no no no")
    assert response["processed"]["reason"].endswith("(truncated)")


async def test_change_over_the_limit_is_a_failure(fleet: Fleet) -> None:
    wire = {"hookSpecificOutput": {"tool_input": {"content": "x" * 2_000_000}}}
    await fleet.worker(RecordingHandler(result_of(wire, BEFORE_TOOL)))
    client = await fleet.client()
    response = await client.request("BeforeTool", TOOL)
    assert response["success"] is False
    assert response["error"]["code"] == "payload_too_large"
    assert "processed" not in response


async def test_values_that_are_hard_to_encode_still_arrive(fleet: Fleet) -> None:
    """protocol.md#process: no input avoids a guard by being hard to encode."""
    handler = RecordingHandler()
    await fleet.worker(handler)
    client = await fleet.client()
    hard = {"a": "\ud800", "b": float("nan"), "c": b"\xff", "d": {1, 2}, 5: object}
    response = await client.request("BeforeTool", TOOL | {"tool_input": hard})
    assert response["success"] is True
    seen = handler.calls[0]["fields"]["tool_input"]
    assert (seen["a"], seen["b"], seen["c"], sorted(seen["d"])) == (
        "\ufffd",
        None,
        "\ufffd",
        [1, 2],
    )


async def test_requests_beyond_the_limit_wait_and_are_not_dropped(fleet: Fleet) -> None:
    handler = GatedHandler()
    await fleet.worker(handler, max_concurrent=2)
    client = await fleet.client()
    asked = [asyncio.ensure_future(client.request("BeforeTool", TOOL)) for _ in "12345"]
    await handler.until_inside(2)
    handler.gate.set()
    responses = await asyncio.gather(*asked)
    assert [r["success"] for r in responses] == [True] * 5
    assert handler.most_inside == 2


async def test_draining_worker_finishes_its_requests_and_takes_no_new_ones(
    fleet: Fleet,
) -> None:
    handler = GatedHandler()
    bus = await fleet.worker(handler)
    client = await fleet.client()
    asked = asyncio.ensure_future(client.request("BeforeTool", TOOL))
    await handler.until_inside(1)
    draining = asyncio.ensure_future(bus.drain())
    while True:
        late = await client.request("BeforeTool", TOOL, timeout_s=0.05)
        if late["error"]["code"] == "no_responders":
            break
    assert not draining.done()
    handler.gate.set()
    assert (await asked)["success"] is True
    await draining


async def test_subscribing_and_unsubscribing_take_effect_when_awaited(
    server: NatsServer, fleet: Fleet
) -> None:
    """A request after ``ready`` is answered, one after unsubscribing is not taken."""
    hooks = RequestServer(RecordingHandler())
    client = await fleet.client()
    async with await NatsBus.connect(server.url, prefix=fleet.prefix) as bus:
        for _ in range(50):
            leave = bus.serve(hooks.handle_request)
            await bus.ready()
            responses = [await client.request("BeforeTool", TOOL, timeout_s=5)]
            leave()
            await bus.settled()
            responses.append(await client.request("BeforeTool", TOOL, timeout_s=5))
            assert codes(responses) == {"success": 1, "no_responders": 1}


async def test_unsubscribing_worker_drops_no_request_that_reached_it(
    server: NatsServer, fleet: Fleet
) -> None:
    """One of two workers subscribes and unsubscribes all the time."""
    hooks = RequestServer(RecordingHandler())
    await fleet.worker(RecordingHandler())
    client = await fleet.client()
    stop = asyncio.Event()

    async def keep_asking() -> list[Any]:
        responses = []
        while not stop.is_set():
            responses.append(await client.request("BeforeTool", TOOL, timeout_s=10))
        return responses

    asking = [asyncio.ensure_future(keep_asking()) for _ in range(10)]
    for _ in range(25):
        bus = await serving_bus(server.url, fleet.prefix, hooks.handle_request)
        await bus.drain()
    stop.set()
    answered = [one for many in await asyncio.gather(*asking) for one in many]
    assert codes(answered) == {"success": len(answered)}


async def test_unreachable_server_is_an_error_with_its_address() -> None:
    with pytest.raises(BusConnectionError, match=r"nats://127\.0\.0\.1:1: ") as caught:
        await NatsBus.connect("nats://me:secret@127.0.0.1:1", timeout_s=0.2)
    assert "secret" not in str(caught.value)


async def test_request_on_a_closed_bus_is_a_failed_response(fleet: Fleet) -> None:
    bus = await NatsBus.connect(fleet.server.url, prefix=fleet.prefix)
    await bus.close()
    response = await HookBusClient(bus).request("BeforeTool", TOOL, timeout_s=100)
    assert response["error"]["code"] == "no_responders"
    assert "closed" in response["error"]["message"]
