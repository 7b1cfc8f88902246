"""A server of requests under load: one response each, limits, deadlines, disposal.

``RequestServer`` is made with handlers that fail or wait, which no hook can.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from hookline.bus import InMemoryMessageBus
from hookline.bus.server import RequestServer
from hookline.protocol.results import (
    Stage,
)
from tests.support.bus_rows import REQUEST, RESPONSE

from .fakes import GatedHandler, RaisingHandler, RecordingHandler, failed_at

TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a"}}


def asking(**changes: Any) -> dict[str, Any]:
    request = {"eventName": "BeforeTool", "input": TOOL, "correlationId": "c-1"}
    return {k: v for k, v in (request | changes).items() if v is not ...}


async def answer(payload: Any, handler: Any = None) -> dict[str, Any]:
    server = RequestServer(handler or RecordingHandler())
    return dict(await server.handle_request(payload))


async def test_failed_stage_has_a_code_of_its_own() -> None:
    """DELTA-HFAIL-002, DELTA-HPAY-004; a handler that raises is an internal error."""
    for stage, code in (
        (Stage.TRANSLATION, "translation_failure"),
        (Stage.PLANNING, "planning_failure"),
        (Stage.EXECUTION, "execution_failure"),
        (Stage.AGGREGATION, "aggregation_failure"),
        (Stage.INTERNAL, "internal_error"),
    ):
        response = await answer(asking(), RecordingHandler(failed_at(stage)))
        details = {"stage": stage.value, "eventName": "BeforeTool"}
        cause = {"cause": "ValueError('it broke')"}
        error = {"code": code, "message": "it broke", "details": {**details, **cause}}
        assert response == {"correlationId": "c-1", "success": False, "error": error}
    raised = await answer(asking(), RaisingHandler())
    message = "the handler broke"
    error = {"code": "internal_error", "message": message, "details": details}
    assert raised == {"correlationId": "c-1", "success": False, "error": error}


class Wire:
    """A bus with a server, and all responses published on it."""

    def __init__(self, handler: Any, **options: Any) -> None:
        self.bus = InMemoryMessageBus()
        self.server = RequestServer(handler, self.bus, **options)
        self.responses: list[Any] = []
        self.bus.subscribe(RESPONSE, self.responses.append)

    async def ask(self, *ids: str) -> None:
        for correlation_id in ids:
            await self.bus.publish(REQUEST, asking(correlationId=correlation_id))


async def test_request_that_has_waited_too_long_is_dropped_and_makes_room() -> None:
    """protocol.md#bus: its hooks do not run, and nobody waits for a response."""
    handler = GatedHandler()
    wire = Wire(handler, max_concurrent=1, max_waiting=1)
    wire.server.subscribe()
    await wire.ask("running")
    await handler.until_inside(1)
    late = asking(correlationId="late", timeoutMs=500)
    await wire.bus.publish(REQUEST, late)
    while not wire.server.waiting:  # noqa: ASYNC110 - there is no event to wait on
        await asyncio.sleep(0)
    direct = await wire.server.handle_request(asking(timeoutMs=1000))
    while wire.server.waiting:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.001)
    await wire.bus.publish(REQUEST, asking(correlationId="next", timeoutMs=60_000))
    handler.gate.set()
    await wire.server.finished()
    assert [response["correlationId"] for response in wire.responses] == [
        "running",
        "next",
    ]
    assert [call["correlation_id"] for call in handler.calls] == ["running", "next"]
    assert direct["error"]["details"]["cause"] == "overload"


async def test_request_without_any_time_left_is_not_run() -> None:
    for timeout_ms in (0, -1, -0.5):
        handler = RecordingHandler()
        response = await answer(asking(timeoutMs=timeout_ms), handler)
        assert response["error"] == {
            "code": "timeout",
            "message": "it has waited for longer than its timeoutMs",
            "details": {
                "stage": "execution",
                "eventName": "BeforeTool",
                "cause": "expired",
            },
        }
        assert handler.calls == []
    for timeout_ms in (float("nan"), float("inf"), 10**400):
        assert (await answer(asking(timeoutMs=timeout_ms)))["success"]


async def test_time_before_its_turn_of_the_event_loop_counts() -> None:
    """A handler that blocks the loop delays those that have arrived with it."""

    class BlockingHandler(RecordingHandler):
        async def fire_fields(self, *args: Any, **kwargs: Any) -> Any:
            time.sleep(0.1)  # noqa: ASYNC251 - that is what is tested
            return await super().fire_fields(*args, **kwargs)

    handler = BlockingHandler()
    wire = Wire(handler)
    wire.server.subscribe()
    for correlation_id in ("first", "late"):
        request = asking(correlationId=correlation_id, timeoutMs=90)
        await wire.bus.publish(REQUEST, request)
    await wire.server.finished()
    assert [call["correlation_id"] for call in handler.calls] == ["first"]


def test_limit_below_one_raises() -> None:
    with pytest.raises(ValueError, match="max_concurrent"):
        RequestServer(RecordingHandler(), max_concurrent=0)


async def test_disposed_server_ignores_messages_and_finishes_calls_in_flight() -> None:
    """DELTA-HEVT-004, rule L1, domain model 3.1."""
    handler = GatedHandler()
    wire = Wire(handler)
    wire.server.subscribe()
    await wire.ask("before")
    await handler.until_inside(1)
    wire.server.dispose()
    wire.server.dispose()
    await wire.ask("after")
    handler.gate.set()
    await wire.server.finished()
    assert [r["correlationId"] for r in wire.responses] == ["before"]
    assert not wire.bus.has_subscribers(REQUEST)


async def test_server_without_a_bus_needs_no_disposing() -> None:
    """DELTA-HBUS-002, rule L3, domain model 5.3."""
    server = RequestServer(RecordingHandler())
    server.subscribe()
    server.dispose()
    await server.finished()
    assert (await server.handle_request(asking()))["success"] is True


class DeadBus:
    """A host's bus that cannot publish."""

    def subscribe(self, message_type: str, handler: Any) -> Any:
        self.handler = handler
        return lambda: None

    async def publish(self, message_type: str, payload: Any) -> None:
        raise OSError("the line is dead")


async def test_bus_that_cannot_publish_is_logged_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A correlation id cannot forge another."""
    bus = DeadBus()
    server = RequestServer(RecordingHandler(), bus)
    server.subscribe()
    bus.handler(asking() | {"correlationId": "c\nhookline: allowed" + "x" * 1000})
    await server.finished()
    (record,) = caplog.records
    assert "the line is dead" in caplog.text
    assert "\n" not in record.getMessage()
    assert len(record.getMessage()) < 200


async def test_every_request_gets_exactly_one_response() -> None:
    """Rule C3; a slow request delays no other."""
    handler = GatedHandler()
    wire = Wire(handler)
    wire.server.subscribe()
    wire.server.subscribe()
    ids = [f"c-{n}" for n in range(50)]
    await wire.ask(*ids)
    await handler.until_inside(50)
    await wire.bus.publish(REQUEST, "nonsense")
    while not wire.responses:  # noqa: ASYNC110 - the bus has no event to wait on
        await asyncio.sleep(0)
    assert [response["success"] for response in wire.responses] == [False]
    handler.gate.set()
    await wire.server.finished()
    assert sorted(r["correlationId"] for r in wire.responses[1:]) == sorted(ids)
    assert all(response["success"] for response in wire.responses[1:])


async def test_requests_beyond_the_limit_wait_and_too_many_have_no_verdict() -> None:
    """protocol.md#bus: what waits is bounded; each request has one response (C3)."""
    for ids, max_waiting, refused in ((20, 17, []), (7, 3, ["c-6"])):
        handler = GatedHandler()
        wire = Wire(handler, max_concurrent=3, max_waiting=max_waiting)
        wire.server.subscribe()
        await wire.ask(*(f"c-{n}" for n in range(ids)))
        await handler.until_inside(3)
        assert (wire.server.in_flight, wire.server.waiting) == (3, max_waiting)
        assert [response["correlationId"] for response in wire.responses] == refused
        for response in wire.responses:
            assert response["error"]["code"] == "execution_failure"
            assert response["error"]["details"] == {
                "stage": "execution",
                "eventName": "BeforeTool",
                "cause": "overload",
            }
        handler.gate.set()
        await wire.server.finished()
        assert handler.most_inside == 3
        assert len({response["correlationId"] for response in wire.responses}) == ids
        assert len(wire.responses) == ids
        assert (wire.server.in_flight, wire.server.waiting) == (0, 0)
