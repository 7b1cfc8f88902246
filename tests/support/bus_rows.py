"""Rows that go over a bus: requests and answers as they are on the wire.

A request is answered by a hook system with the rules of its row, in the process and
over NATS. An answer comes from a carrier that says what its row tells it to.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import nats

from hookline import Config, HookEventName, HookSystem, Settings
from hookline.bus import (
    HookBusClient,
    InMemoryMessageBus,
    MessageBusType,
    NatsBus,
    RemoteHooks,
)
from hookline.errors import UnknownEventError

from .fired import verdict_as_data
from .pins import Row, masked
from .workspace import INPUTS

REQUEST = MessageBusType.HOOK_EXECUTION_REQUEST
RESPONSE = MessageBusType.HOOK_EXECUTION_RESPONSE
_NEW_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-\w{12}")
_EMPTY: tuple[Any, ...] = (None, False, "", [], {})


def rule(name: str, when: str = "true", **then: Any) -> Row:
    """A hook without a process."""
    return {"type": "rule", "name": name, "when": when, "then": then}


def settings_of(event: str, hooks: list[Row], **more: Any) -> Settings:
    """Settings with these hooks at one event."""
    return Settings.from_mapping({"hooks": {event: [{"hooks": hooks}]}, **more})


def wire_as_data(wire: Any, *, whole: bool = False) -> Any:
    """A message without what differs from run to run.

    Results of hooks are without their empty fields, unless it is to be ``whole``.
    """
    if isinstance(wire, list):
        return [wire_as_data(entry, whole=whole) for entry in wire]
    if not isinstance(wire, dict):
        is_new = isinstance(wire, str) and _NEW_ID.fullmatch(wire)
        return "<uuid4>" if is_new else wire
    data = {key: wire_as_data(value, whole=whole) for key, value in wire.items()}
    for name in ("durationMs", "totalDuration"):
        if data.get(name):
            data[name] = "<ms>"
    if "hookResults" in data and not whole:
        data["hookResults"] = [
            {name: value for name, value in result.items() if value not in _EMPTY}
            for result in data["hookResults"]
        ]
    return data


async def request_row(row: Row, folder: Path, url: str) -> Row:
    """Send the ``request`` of a row to a system with its ``hooks``.

    ``then`` is the response, the same over both buses, with ``show`` also the input of
    the hooks, and with ``recorded`` that of the journal. A request that nobody waits
    for has no response (``dropped``).
    """
    in_memory = await _in_memory(row, folder)
    if row.get("dropped"):
        return in_memory
    over_nats = await _over_nats(row, folder, url)
    if in_memory == over_nats:
        return in_memory
    return {"in memory": in_memory, "over NATS": over_nats}


@asynccontextmanager
async def _system(row: Row, bus: Any, folder: Path) -> AsyncIterator[list[Any]]:
    """A system with the hooks of a row; yields the inputs that they are shown.

    ``recorded`` makes them those that the journal has, once the system has ended.
    """
    event = HookEventName(row.get("event", "BeforeTool"))
    journal = folder / f"{uuid4().hex}.db" if row.get("recorded") else None
    options = {"hooksConfig": {"journal": str(journal)}} if journal else {}
    settings = settings_of(event, row.get("hooks", []), **options)
    inputs: list[Any] = []
    async with HookSystem(Config("s-1", folder, settings), bus) as hooks:
        if row.get("show"):

            @hooks.on(event, name="look")
            def look(event: dict[str, Any]) -> None:
                inputs.append(event)

        yield inputs
    if journal:
        with closing(sqlite3.connect(journal)) as database:
            recorded = database.execute("SELECT input FROM events")
            inputs.extend(json.loads(event_input) for (event_input,) in recorded)


def _described(row: Row, responses: list[Any], inputs: list[Any], folder: Path) -> Row:
    messages = wire_as_data(responses, whole=row.get("whole", False))
    described = {"response": messages[0] if len(messages) == 1 else messages}
    if row.get("show") or row.get("recorded"):
        described["inputs"] = inputs
    data: Row = json.loads(masked(json.dumps(described), {"folder": folder}))
    return data


async def _in_memory(row: Row, folder: Path) -> Row:
    bus = InMemoryMessageBus()
    responses: list[Any] = []
    bus.subscribe(RESPONSE, responses.append)
    async with _system(row, bus, folder) as inputs:
        await bus.publish(REQUEST, row["request"])
    return _described(row, responses, inputs, folder)


async def _over_nats(row: Row, folder: Path, url: str) -> Row:
    prefix = f"rows-{uuid4().hex}"
    async with (
        await NatsBus.connect(url, prefix=prefix) as bus,
        _system(row, bus, folder) as inputs,
    ):
        await bus.ready()
        requester = await nats.connect(url)
        data = json.dumps(row["request"]).encode()
        answer = await requester.request(f"{prefix}.{REQUEST}", data, timeout=60)
        await requester.close()
    return _described(row, [json.loads(answer.data)], inputs, folder)


class GivenAnswer:
    """A carrier that gives one answer to every request."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.requests: list[Any] = []

    def serve(self, handle: Any) -> Any:
        raise NotImplementedError

    async def settled(self) -> None:
        raise NotImplementedError

    async def request(self, request: Any, timeout_s: float) -> Any:
        self.requests.append(request)
        if isinstance(self.answer, dict) and self.answer.get("correlationId") == "<id>":
            return {**self.answer, "correlationId": request["correlationId"]}
        return self.answer


_allowed: dict[str, Row] = {}


async def allowed_response(event: str) -> Row:
    """The response of a system whose one hook allows an event."""
    if event not in _allowed:
        hooks = settings_of(event, [rule("guard", decision="allow", reason="fine")])
        async with HookSystem(Config("s-1", ".", hooks)) as system:
            request = {"eventName": event, "input": INPUTS[HookEventName(event)]}
            response = await system.event_handler.handle_request(request)
        _allowed[event] = {**response, "correlationId": "<id>"}
    copy: Row = json.loads(json.dumps(_allowed[event]))
    return copy


def with_changes(response: Row, row: Row) -> Any:
    """The ``answer`` of a row, or a response with what the row changes.

    ``set`` gives values by their path (``processed.blocked``), ``without`` removes.
    """
    if "answer" in row:
        return row["answer"]
    for path, value in row.get("set", {}).items():
        _place(response, path)[path.rpartition(".")[2]] = value
    for path in row.get("without", ()):
        del _place(response, path)[path.rpartition(".")[2]]
    return response


def _place(response: Row, path: str) -> Row:
    place: Any = response
    for name in path.split(".")[:-1]:
        place = place[int(name)] if name.isdigit() else place[name]
    inner: Row = place
    return inner


async def answer_row(row: Row) -> Row:
    """What a requester makes of an answer, by what it wants without a verdict.

    ``fired`` is the same as ``RemoteHooks`` give it to an agent. Of a ``brief`` row
    only what is wrong with the answer, and whether the event closes.
    """
    event = row.get("event", "BeforeTool")
    event_input = row.get("input", INPUTS[HookEventName(event)])
    answer = with_changes(await allowed_response(event), row)
    then: Row = {}
    for on_error in ("allow", "block"):
        client = HookBusClient(GivenAnswer(answer), on_error)
        response: Any = await client.request(event, event_input, correlation_id="c-1")
        result = await RemoteHooks(client).fire(event, event_input)
        fired = verdict_as_data(result)
        if result.final_output and result.final_output.modified_tool_input == {}:
            fired["modified_tool_input"] = {}
        if isinstance(answer, dict) and response == {**answer, "correlationId": "c-1"}:
            response = "as it was answered"
        then[on_error] = {"response": response, "fired": fired}
    if then["allow"] == then["block"]:
        then = {"always": then["allow"]}
    if row.get("brief"):
        return _brief(then)
    data: Row = json.loads(masked(json.dumps(wire_as_data(then)), {}))
    return data


def _brief(then: Row) -> Row:
    failed, closed = then["allow"], then["block"]
    (error,) = failed["fired"].pop("errors")
    assert failed["fired"] == {"success": False}
    assert failed["response"]["error"]["message"] == error["message"]
    return {
        "code": failed["response"]["error"]["code"],
        "message": error["message"],
        "closes": "output" in closed["response"] and "output" in closed["fired"],
    }


async def sent_row(row: Row) -> Row:
    """What is sent for one call of ``RemoteHooks``, made with the row's options."""
    carrier = GivenAnswer(None)
    client = HookBusClient(carrier, row.get("on_error", "allow"), timeout_s=5)
    hooks = RemoteHooks(client, **row.get("options", {}))
    fire = getattr(hooks, row.get("fire", "fire"))
    try:
        result = await fire(*row.get("args", ()), **row.get("named", {}))
    except UnknownEventError as error:
        assert carrier.requests == []
        return {"raises": str(error)}
    errors = [error.to_wire() for error in result.aggregated.errors]
    if not carrier.requests:
        then = {"nothing was sent": wire_as_data(errors)}
        return then | ({"blocked": result.reason} if result.blocked else {})
    (request,) = carrier.requests
    sent: Row = wire_as_data(request)
    return sent


async def composed_row(row: Row) -> Row:
    """Fire an event for hooks ``here`` and others ``there``, behind a bus."""
    event = HookEventName(row.get("event", "BeforeTool"))
    bus = InMemoryMessageBus()
    client = HookBusClient(bus, row.get("on_error", "allow"))
    options = {"hooksConfig": row.get("config", {}), **row.get("settings", {})}
    here = Config("here", ".", settings_of(event, row.get("here", []), **options))
    here.use_hooks(RemoteHooks(client))
    there = Config("there", ".", settings_of(event, row.get("there", [])))
    async with here, HookSystem(there, None if row.get("nobody") else bus):
        session = here.session("s")
        result = await session.fire(event, row.get("input", INPUTS[event]))
    verdict: Row = wire_as_data(verdict_as_data(result))
    return verdict
