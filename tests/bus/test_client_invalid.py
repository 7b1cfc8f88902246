"""Answers that are no verdict: never an allow, never an exception (issue 12.15)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hookline.bus import HookBusClient, InMemoryMessageBus, MessageBusType, RemoteHooks
from hookline.bus.contracts import HookExecutionRequest, RequestHandler, Unsubscribe
from hookline.bus.server import RequestServer
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.results import ProcessedHookResult

from .fakes import RecordingHandler, result_of

E = HookEventName
ALLOWED = {"decision": "allow"}
DENIED = {"decision": "deny", "reason": "no"}
ERROR = {"code": "internal_error", "message": "m", "details": {}}
TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a"}}


class TamperingCarrier:
    """Answers like a worker, but for one thing."""

    def __init__(self, tamper: Callable[[Any], Any]) -> None:
        self._tamper = tamper

    def serve(self, handle: RequestHandler) -> Unsubscribe:
        raise NotImplementedError

    async def settled(self) -> None:
        raise NotImplementedError

    async def request(self, request: HookExecutionRequest, timeout_s: float) -> Any:
        event = E.of(request["eventName"])
        handler = RecordingHandler(result_of(ALLOWED, event))
        server = RequestServer(handler)
        return self._tamper(await server.handle_request(request))


def put(part: str | None, **changes: Any) -> Callable[[Any], Any]:
    def tamper(response: Any) -> Any:
        if part is None:
            return response | changes
        return response | {part: response[part] | changes}

    return tamper


def drop(*names: str) -> Callable[[Any], Any]:
    return lambda response: {k: v for k, v in response.items() if k not in names}


def fail(_: Any) -> Any:
    raise RuntimeError("the carrier broke")


def failed(**more: Any) -> Callable[[Any], Any]:
    return lambda response: {
        "correlationId": response["correlationId"],
        "success": False,
        **more,
    }


INVALID: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda _: None,
    "text": lambda _: "allow",
    "a list": lambda response: [response],
    "empty": lambda _: {},
    "empty processed": put(None, processed={}),
    "null processed": put(None, processed=None),
    "no processed": drop("processed"),
    "no output": drop("output"),
    "no parts": drop("output", "processed"),
    "null output": put(None, output=None),
    "blocked as text": put("processed", blocked="true"),
    "blocked as a number": put("processed", blocked=1),
    "null blocked": put("processed", blocked=None),
    "deny in the output only": put("output", finalOutput=DENIED),
    "deny of one hook only": put("output", allOutputs=[DENIED]),
    "another id": put(None, correlationId="other"),
    "no id": drop("correlationId"),
    "success as text": put(None, success="true"),
    "error beside success": put(None, error=ERROR),
    "null error beside success": put(None, error=None),
    "error as text": failed(error="boom"),
    "null error": failed(error=None),
    "no error": failed(),
    "error without a code": failed(error={"message": "m", "details": {}}),
    "failed with broken processed": failed(error=ERROR, processed={"blocked": False}),
}
FIRES: dict[HookEventName, Callable[[RemoteHooks], Any]] = {
    E.BeforeTool: lambda hooks: hooks.fire_before_tool_event("t", {"a": 1}),
    E.AfterTool: lambda hooks: hooks.fire_after_tool_event("t", {}, {"llmContent": ""}),
    E.AfterModel: lambda hooks: hooks.fire_after_model_event(
        {"model": "m", "messages": []}, {"text": "secret", "candidates": []}
    ),
    E.BeforeToolSelection: lambda hooks: hooks.fire_before_tool_selection_event(
        {"model": "m", "messages": []}, ["a"]
    ),
    E.BeforeAgent: lambda hooks: hooks.fire_before_agent_event("p"),
}


def is_closed(result: ProcessedHookResult, event: HookEventName) -> bool:
    final = result.final_output
    assert final is not None
    if event is E.AfterTool:
        return final.withholds_result and not result.blocked
    if event is E.AfterModel:
        return "No verdict" in str(final.llm_response) and not result.blocked
    if event is E.BeforeToolSelection:
        return final.tool_config == {"mode": "NONE", "allowedFunctionNames": []}
    return result.blocked and final.is_blocking


@pytest.mark.parametrize("event", FIRES)
@pytest.mark.parametrize("name", INVALID)
async def test_invalid_answer_is_left_to_on_error(
    name: str, event: HookEventName
) -> None:
    """protocol.md#bus, for every form in which an event closes."""
    if name.startswith("deny") and not TRAITS[event].can_block:
        return  # a deny there is advice
    carrier = TamperingCarrier(INVALID[name])
    closed = await FIRES[event](RemoteHooks(HookBusClient(carrier, "block")))
    assert is_closed(closed, event)
    assert closed.aggregated.errors[0].details == "invalid_response"
    opened = await FIRES[event](RemoteHooks(HookBusClient(carrier)))
    assert opened.final_output is None
    assert not opened.aggregated.success
    assert opened.aggregated.errors[0].details == "invalid_response"


@pytest.mark.parametrize("tamper", INVALID.values(), ids=list(INVALID))
async def test_request_never_raises_for_an_invalid_answer(
    tamper: Callable[[Any], Any],
) -> None:
    client = HookBusClient(TamperingCarrier(tamper))
    response = await client.request("BeforeTool", TOOL, retries=1, correlation_id="c")
    assert response["correlationId"] == "c"
    assert response["success"] is False
    assert response["error"]["code"] == "invalid_response"


async def test_carrier_that_raises_is_a_failed_response() -> None:
    client = HookBusClient(TamperingCarrier(fail), "block")
    response = await client.request("BeforeTool", TOOL)
    assert response["error"]["code"] == "no_responders"
    assert response["processed"]["blocked"] is True


async def test_failed_response_whose_parts_decide_nothing_is_no_verdict() -> None:
    """A worker says that it failed, and that nothing is blocked."""

    def tamper(response: Any) -> Any:
        said = {"success": False, "error": ERROR, "processed": response["processed"]}
        return {"correlationId": response["correlationId"], **said}

    client = HookBusClient(TamperingCarrier(tamper), "block")
    response = await client.request("BeforeTool", TOOL)
    assert response["processed"]["blocked"] is True


@pytest.mark.parametrize("tamper", INVALID.values(), ids=list(INVALID))
async def test_invalid_answer_on_a_message_bus_does_not_wait_out_the_deadline(
    tamper: Callable[[Any], Any],
) -> None:
    bus = InMemoryMessageBus()
    carrier = TamperingCarrier(tamper)

    async def answer(request: Any) -> None:
        wrong = await carrier.request(request, 1)
        await bus.publish(MessageBusType.HOOK_EXECUTION_RESPONSE, wrong)

    bus.subscribe(MessageBusType.HOOK_EXECUTION_REQUEST, answer)
    client = HookBusClient(bus, "block", timeout_s=0.3)
    response = await client.request("BeforeTool", TOOL, correlation_id="c")
    assert response["processed"]["blocked"] is True
    # Whose answer it is cannot be told without an id.
    assert response["error"]["code"] in {"invalid_response", "timeout"}
