"""The trace goes on where a bus is between host and hooks."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from opentelemetry.trace import SpanKind, StatusCode

from hookline import HookBusClient, InMemoryMessageBus, RemoteHooks
from hookline._internal.trace_context import current_trace
from hookline.bus import NatsBus
from hookline.bus.server import RequestServer
from tests.support.nats import NatsServer
from tests.support.telemetry_rows import (
    TOOL,
    TelemetryHost,
    attributes,
    id_of,
    parent_of,
)

LOOK: dict[str, Any] = {"type": "command", "command": "true", "name": "look"}


def check_trace(host: TelemetryHost, turn: Any) -> None:
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


async def test_trace_goes_over_the_bus_in_memory(host: TelemetryHost) -> None:
    bus = InMemoryMessageBus()
    async with host.system(LOOK, message_bus=bus):
        remote = RemoteHooks(HookBusClient(bus), session_id="far")
        with host.tracer.start_as_current_span("turn") as turn:
            result = await remote.fire("BeforeTool", TOOL)
    assert result.aggregated.success
    check_trace(host, turn)
    assert attributes(host.event())["gen_ai.conversation.id"] == "far"


async def test_an_invalid_request_has_a_span_and_a_count(host: TelemetryHost) -> None:
    """A request that is refused before any event is seen, too.

    protocol.md#bus
    """
    async with host.system(LOOK) as hooks:
        server = RequestServer(hooks.event_handler)
        with host.tracer.start_as_current_span("turn") as turn:
            trace = current_trace()
        request: dict[str, Any] = {"eventName": "BeforeTool", "traceContext": trace}
        for bad in ({"input": {"tool_name": 1}}, {"eventName": "sk-1", "input": {}}):
            assert not (await server.handle_request(request | bad))["success"]
        assert not (await server.handle_request("text"))["success"]
        # One that only looks like a trace: the event is a root.
        wrong = {"traceparent": "00-" + "0" * 32 + "-" + "0" * 16 + "-01"}
        rootless = {"input": {"prompt": "p"}, "traceContext": wrong}
        await server.handle_request({"eventName": "BeforeAgent", **rootless})
    assert parent_of(host.event("BeforeAgent")) is None
    (known,), (unknown, text) = (
        host.named(f"hookline {name}") for name in ("BeforeTool", "event")
    )
    assert parent_of(known) == parent_of(unknown) == id_of(turn)
    assert parent_of(text) is None
    for span in (known, unknown, text):
        assert span.status.status_code is StatusCode.ERROR
        assert attributes(span)["error.type"] == "validation"
        assert "gen_ai.conversation.id" not in attributes(span)
        assert "sk-1" not in span.to_json()
    assert sum(point.value for point in host.points("hookline.events")) == 4


async def test_trace_goes_over_nats(
    host: TelemetryHost, server: NatsServer, prefix: str, cleanup: AsyncExitStack
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
