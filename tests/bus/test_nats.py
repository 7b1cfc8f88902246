"""Requests over a real NATS server."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import nats.errors
import pytest

from hookline.bus import HookBusClient, MessageBusType, NatsBus
from hookline.bus.server import RequestServer
from hookline.errors import BusConnectionError
from hookline.protocol.events import HookEventName
from hookline.protocol.results import Stage
from hookline.protocol.values import decode, encode
from tests.support.nats import codes

from .conftest import Fleet
from .fakes import GatedHandler, RecordingHandler, failed_at, result_of

TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a"}}
BEFORE_TOOL = HookEventName.BeforeTool


async def test_nobody_who_answers_is_a_failed_response(
    fleet: Fleet,
) -> None:
    """At once without a worker, or with one of another prefix; else at the deadline."""
    client = await fleet.client()
    nobody = await client.request("BeforeTool", TOOL, timeout_s=100)
    assert nobody["error"]["code"] == "no_responders"
    assert nobody["error"]["message"] == (
        f"no worker is subscribed to {fleet.prefix}.hook-execution-request"
    )
    handler = GatedHandler()
    await fleet.worker(handler)
    late = await client.request("BeforeTool", TOOL, timeout_s=0.1)
    assert late["error"]["code"] == "timeout"
    handler.gate.set()  # the late answer reaches no later request
    assert (await client.request("BeforeTool", TOOL))["success"] is True
    async with await NatsBus.connect(fleet.server.url, prefix="another") as bus:
        other = await HookBusClient(bus).request("BeforeTool", TOOL)
    assert other["error"]["code"] == "no_responders"


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


async def test_response_over_the_limit_keeps_what_was_decided(fleet: Fleet) -> None:
    """What hooks printed goes first; a response never allows what was blocked."""
    change = {"hookSpecificOutput": {"tool_input": {"path": "b"}}}
    long_change = {"hookSpecificOutput": {"tool_input": {"content": "x" * 2_000_000}}}
    withheld = {"hookSpecificOutput": {"withholdResult": True, "own": "x" * 2_000_000}}
    long_block = {"decision": "block", "reason": "no " * 1_000_000}
    handler = RecordingHandler()
    await fleet.worker(handler)
    client = await fleet.client()

    async def answered(event: HookEventName, wire: Any, **more: Any) -> Any:
        handler.result = result_of(wire, event, **more)
        return await client.request(event, TOOL | {"tool_response": {}})

    printed = await answered(BEFORE_TOOL, change, stdout="x" * 2_000_000)
    assert printed["success"] is True
    assert printed["output"]["finalOutput"] == change
    result = printed["output"]["hookResults"][0]
    assert (result["stdout"], result["stderr"], result["truncated"]) == ("", "", True)

    blocked = await answered(BEFORE_TOOL, long_block)
    assert blocked["error"]["code"] == "payload_too_large"
    assert blocked["processed"]["blocked"] is True
    reason = blocked["processed"]["reason"]
    assert reason == ("no " * 1_000_000)[:4096] + " ... (truncated)"

    changed = await answered(BEFORE_TOOL, long_change)
    assert changed["error"]["code"] == "payload_too_large"
    assert "more than the server accepts" in changed["error"]["message"]
    assert "processed" not in changed

    withholding = await answered(HookEventName.AfterTool, withheld)
    assert withholding["error"]["code"] == "payload_too_large"
    assert withholding["output"]["finalOutput"] == {
        "hookSpecificOutput": {"withholdResult": True}
    }

    handler.result = failed_at(Stage.PLANNING, "x" * 2_000_000)
    failed = await client.request(BEFORE_TOOL, TOOL)
    assert failed["error"]["code"] == "payload_too_large"
    assert failed["error"]["details"]["cause"] == "planning_failure"


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
    fleet: Fleet,
) -> None:
    """A request after ``ready`` is answered, one after unsubscribing is not taken."""
    hooks = RequestServer(RecordingHandler())
    client = await fleet.client()
    bus = await fleet.bus()
    for _ in range(50):
        leave = bus.serve(hooks.handle_request)
        await bus.ready()
        responses = [await client.request("BeforeTool", TOOL, timeout_s=5)]
        leave()
        await bus.settled()
        responses.append(await client.request("BeforeTool", TOOL, timeout_s=5))
        assert codes(responses) == {"success": 1, "no_responders": 1}


async def test_unsubscribing_worker_drops_no_request_that_reached_it(
    fleet: Fleet,
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
        await (await fleet.serve(hooks.handle_request)).drain()
    stop.set()
    answered = [response for many in await asyncio.gather(*asking) for response in many]
    assert codes(answered) == {"success": len(answered)}


async def test_response_goes_to_its_requester_only(fleet: Fleet) -> None:
    await fleet.worker(RecordingHandler())
    nosy = await fleet.connection()
    overheard = await nosy.subscribe(f"{fleet.prefix}.>")
    await nosy.flush()
    client = await fleet.client()
    await client.request("BeforeTool", TOOL)
    await nosy.flush()
    # It hears the request, being allowed to here, but no response.
    assert overheard.pending_msgs == 1
    assert decode((await overheard.next_msg()).data)["eventName"] == "BeforeTool"


async def test_requests_of_others_than_clients_are_answered_if_they_can_be(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    """protocol.md#bus: one that waited too long has no response, its id may be used."""
    handler = RecordingHandler()
    subject = (await fleet.worker(handler)).subject
    connection = await fleet.connection()
    for data in (b"\xff not json", b"", b"{"):
        answer = await connection.request(subject, data, timeout=30)
        assert decode(answer.data)["error"]["code"] == "invalid_request"
    request = {"eventName": "BeforeTool", "input": TOOL}
    late = encode({**request, "timeoutMs": 0})
    with pytest.raises(nats.errors.TimeoutError):
        await connection.request(subject, late, timeout=0.3)
    with caplog.at_level(logging.WARNING, "hookline.bus"):
        await connection.publish(subject, encode(request))
        await connection.flush()
        client = await fleet.client()
        await client.request("BeforeTool", TOOL)
    assert len(handler.calls) == 1
    assert "without a reply subject" in caplog.text


async def test_worker_that_answers_nonsense_or_raises_is_a_failed_response(
    fleet: Fleet,
) -> None:
    async def nonsense(message: Any) -> None:
        await message.respond(b'{"hello": "world"}')

    async def raising(payload: Any) -> Any:
        raise LookupError("gone")

    connection = await fleet.connection()
    subject = f"{fleet.prefix}.{MessageBusType.HOOK_EXECUTION_REQUEST}"
    other = await connection.subscribe(subject, cb=nonsense)
    await connection.flush()
    client = await fleet.client(on_error="block")
    response = await client.request("BeforeTool", TOOL)
    assert response["error"]["code"] == "invalid_response"
    assert response["processed"]["blocked"] is True
    await other.drain()
    await fleet.serve(raising)
    response = await client.request("BeforeTool", TOOL, correlation_id="c")
    assert response["correlationId"] == "c"
    assert response["error"]["code"] == "internal_error"


async def test_server_that_is_not_there_is_an_error_with_its_address(
    fleet: Fleet,
) -> None:
    with pytest.raises(BusConnectionError, match=r"nats://127\.0\.0\.1:1: ") as caught:
        await NatsBus.connect("nats://me:secret@127.0.0.1:1", timeout_s=0.2)
    assert "secret" not in str(caught.value)
    wrong: dict[str, Any] = {"server": "x"}
    with pytest.raises(BusConnectionError, match="unexpected keyword argument"):
        await NatsBus.connect(fleet.server.url, timeout_s=0.2, **wrong)
    bus = await fleet.bus()
    await bus.close()
    response = await HookBusClient(bus).request("BeforeTool", TOOL, timeout_s=100)
    assert response["error"]["code"] == "no_responders"
    assert "closed" in response["error"]["message"]


async def test_worker_that_left_and_finishes_a_request_delays_no_other(
    fleet: Fleet,
) -> None:
    """``ready`` waits for the subscription alone, and may be waited for twice."""
    slow, quick = GatedHandler(), RecordingHandler()
    bus, client = await fleet.bus(), await fleet.client()
    leave = bus.serve(RequestServer(slow).handle_request)
    await bus.ready()
    asked = asyncio.ensure_future(client.request("BeforeTool", TOOL))
    await slow.until_inside(1)
    leave()
    bus.serve(RequestServer(quick).handle_request)
    await bus.ready()
    assert (await client.request("BeforeTool", TOOL))["success"] is True
    assert len(quick.calls) == 1
    slow.gate.set()
    await asyncio.gather(bus.settled(), bus.drain())
    assert (await asked)["success"] is True


async def test_server_that_ends_the_connection_in_its_handshake_is_an_error() -> None:
    """nats-py does not notice it and says that it is connected."""

    async def greet_and_leave(reader: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"max_payload": 1000}\r\n')
        await reader.readline()
        writer.close()

    server = await asyncio.start_server(greet_and_leave, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(BusConnectionError, match="ended the connection"):
        await NatsBus.connect(f"nats://127.0.0.1:{port}", timeout_s=0.3)
    server.close()
