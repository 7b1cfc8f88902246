"""The trace goes on where a bus is between host and hooks (issue 16: OpenTelemetry)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from opentelemetry.trace import SpanKind, StatusCode

from hookline import HookBusClient, InMemoryMessageBus, RemoteHooks
from hookline.bus import NatsBus
from tests.support.nats import NatsServer

from .recorded import TOOL, Recorded, attributes, id_of, parent_of

LOOK: dict[str, Any] = {"type": "command", "command": "true", "name": "look"}


def check_trace(host: Recorded, turn: Any) -> None:
    """One event with its hook, as a child of the requester's span."""
    event = host.event()
    assert event.context is not None
    assert event.context.trace_id == turn.get_span_context().trace_id
    assert parent_of(event) == id_of(turn)
    assert event.kind is SpanKind.SERVER
    assert event.parent is not None
    assert event.parent.is_remote
    assert parent_of(host.hook("look")) == id_of(event)
    assert event.status.status_code is StatusCode.UNSET


async def test_trace_goes_over_the_bus_in_memory(host: Recorded) -> None:
    bus = InMemoryMessageBus()
    async with host.system(LOOK, message_bus=bus):
        remote = RemoteHooks(HookBusClient(bus), session_id="far")
        with host.tracer.start_as_current_span("turn") as turn:
            result = await remote.fire("BeforeTool", TOOL)
    assert result.aggregated.success
    check_trace(host, turn)
    assert attributes(host.event())["gen_ai.conversation.id"] == "far"


async def test_trace_goes_over_nats(
    host: Recorded, server: NatsServer, prefix: str, cleanup: AsyncExitStack
) -> None:
    """Without a context an event is a root, wherever the connection was opened."""

    async def connect() -> NatsBus:
        bus = await NatsBus.connect(server.url, prefix=prefix)
        return await cleanup.enter_async_context(bus)

    with host.tracer.start_as_current_span("start of the worker"):
        worker = await connect()
        system = host.system(LOOK, message_bus=worker)
        await cleanup.enter_async_context(system)
        client = HookBusClient(await connect())
    with host.tracer.start_as_current_span("turn") as turn:
        response = await client.request("BeforeTool", TOOL)
    assert response["success"]
    check_trace(host, turn)
    await client.request("BeforeAgent", {"prompt": "p"})
    assert parent_of(host.event("BeforeAgent")) is None


async def test_request_that_only_looks_like_a_trace_is_a_root(host: Recorded) -> None:
    async with host.system(LOOK) as hooks:
        request = {"eventName": "BeforeTool", "input": TOOL}
        wrong = {"traceparent": "00-" + "0" * 32 + "-" + "0" * 16 + "-01"}
        await hooks.event_handler.handle_request({**request, "traceContext": wrong})
    assert parent_of(host.event()) is None
