"""Hooked clients of the SDKs: every way to call a model passes the hooks.

A row names hooks and answers of the service; it holds for every way of calling, plain
and async. Ways that came out the same stand together.
protocol.md#events, #translation and #callers.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import anthropic
import openai
import pytest

from hookline.agent import hooked
from hookline.errors import UnhookedCallError, UnseenResponseError
from hookline.testing.loopback import AnsweringServer
from tests.support.client_requests import (
    RecordingTransport,
    invoke,
    listening,
    methods,
)
from tests.support.model_calls import (
    WAYS,
    RecordedFunctions,
    ScriptedServer,
    answer_of,
    client_of,
    close_client,
    kinds_of,
    wire_answer,
)
from tests.support.pins import PinTable
from tests.support.recorded_events import (
    RecordedHooks,
    filled,
    grouped,
    warnings_of,
)

Row = dict[str, Any]


class Servers:
    """Where a client is pointed to, as its row says; clients are made once."""

    def __init__(self, scripted: ScriptedServer, wire: AnsweringServer) -> None:
        self.scripted = scripted
        self.wire = wire
        self._clients: dict[str, Any] = {}

    def client(self, row: Row, kind: str) -> Any:
        server = self.prepare(row)
        options = row.get("client", {})
        name = f"{server.url} {kind} {options}"
        if name not in self._clients:
            self._clients[name] = client_of(row["sdk"], server, kind, **options)
        return self._clients[name]

    async def close(self) -> None:
        for client in self._clients.values():
            await close_client(client)

    def prepare(self, row: Row) -> ScriptedServer | AnsweringServer:
        self.scripted.answers(*map(answer_of, copy.deepcopy(row.get("answers", []))))
        if "wire" not in row:
            return self.scripted
        self.wire.answer = wire_answer(row["wire"])
        return self.wire


async def outcome_of(row: Row, way: str, kind: str, servers: Servers) -> Row:
    """What one way of calling came to, as plain data."""
    client = servers.client(row, kind)
    hooks = RecordedHooks(row["hooks"])
    stops: list[str] = []
    options = {**row.get("options", {}), "on_stop": stops.append}
    if "confirm" in row:
        options["confirm"] = lambda _: row["confirm"]
    functions = RecordedFunctions(row.get("result", "written"))
    request = request_of(row, functions.of(row["sdk"], kind))
    outcome: Row = {}
    with warnings_of() as log:
        async with hooks.config:
            call = WAYS[row["sdk"]][way]
            try:
                shown = await call(hooked(client, hooks.config, **options), **request)
            except Exception as error:  # noqa: BLE001 - what it is, the row says
                outcome["raised"] = f"{type(error).__name__}: {error}"
            else:
                words = row.get("words", [])
                outcome["text"] = shown.text
                outcome["shows"] = [word for word in words if word in shown]
    server, is_whole = servers.scripted, row.get("whole")
    outcome["server"] = server.bodies if is_whole else server.received
    outcome["events"] = hooks.data if is_whole else hooks.names
    outcome |= {"calls": functions.calls, "stops": stops}
    return filled({**outcome, "log": [message[:90] for message in log]})


def request_of(row: Row, functions: list[Any]) -> Row:
    """What a row adds to the request, and functions as tools if it wants them."""
    request: Row = copy.deepcopy(row.get("request", {}))
    if row.get("functions") and row["sdk"] == "genai":
        request["config"] = {"tools": functions, **request.get("config", {})}
    elif row.get("functions"):
        request["tools"] = functions
    return request


def both_kinds(way: str, by_kind: dict[str, Row]) -> dict[str, Row]:
    """Plain and async clients together where they came to the same."""
    first, *others = by_kind.values()
    if all(other == first for other in others):
        return {way: first}
    return {f"{way}, {kind}": outcome for kind, outcome in by_kind.items()}


@pytest.mark.parametrize("sdk", list(WAYS))
async def test_clients_pass_the_hooks_in_every_way_of_calling(
    pin_table: Callable[[str], PinTable],
    model_server: ScriptedServer,
    wire_server: AnsweringServer,
    sdk: str,
) -> None:
    servers = Servers(model_server, wire_server)

    async def called(_: str, row: Row) -> object:
        row = {"sdk": sdk, **row}
        outcomes: dict[str, Row] = {}
        without = row.get("without", "eager")
        for way in row.get("ways", [way for way in WAYS[sdk] if without not in way]):
            kinds = row.get("kinds", kinds_of(sdk))
            by_kind = {
                kind: await outcome_of(row, way, kind, servers)
                for kind in kinds
                if (way, kind) != ("tool runner eager", "async")
            }
            outcomes |= both_kinds(way, by_kind)
        return grouped("ways", outcomes)

    try:
        await pin_table(f"clients/{sdk}").check(called, at_once=1)
    finally:
        await servers.close()


async def test_clients_refuse_what_hooks_cannot_see(
    pin_table: Callable[[str], PinTable],
) -> None:
    """What is refused while hooks of an event listen, and what is sent without."""
    kinds = {"openai": openai.OpenAI, "anthropic": anthropic.Anthropic}

    def requested(_: str, row: Row) -> Row:
        outcome: Row = {}
        for name, event in (("hooks", row["event"]), ("no hooks", "SessionStart")):
            transport = RecordingTransport()
            client = hooked(transport.client(kinds[row["sdk"]]), listening(event))
            given = dict(row["given"])
            if row["call"] in ("get", "post", "put", "patch"):
                given["cast_to"] = object
            try:
                attrgetter(row["call"])(client)(*row["args"], **given)
            except (UnhookedCallError, UnseenResponseError) as error:
                outcome[name] = str(error)
            except Exception:  # noqa: BLE001 - the SDK cannot read the empty answer
                outcome[name] = "passed"
            else:
                outcome[name] = "passed"
            outcome[f"sent with {name}"] = transport.sent
        return filled(outcome)

    await pin_table("clients/refused").check(requested)


async def test_every_method_of_a_client_passes_the_hooks_or_is_refused(
    pin_table: Callable[[str], PinTable],
) -> None:
    """All that the installed SDKs offer: nothing else is sent for a model."""

    async def called(kind: Any) -> Row:
        transport = RecordingTransport()
        client = hooked(transport.client(kind), listening())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about what the SDK will remove
            errors = {path: await invoke(method) for path, method in methods(client)}
        refused = {
            path: str(error)
            for path, error in errors.items()
            if isinstance(error, UnhookedCallError)
        }
        sockets = [path for path in refused if "web socket" in refused[path]]
        return {
            "methods": len(errors),
            "refused": len(refused),
            "sent": sorted(set(transport.sent)),
            "refused web sockets": sockets,
            "refused methods": sorted(
                path for path in set(refused) - set(sockets) if ".with_" not in path
            ),
        }

    async def both(name: str, _: Row) -> Row:
        sdk: Any = openai if name == "OpenAI" else anthropic
        outcome = await called(getattr(sdk, name))
        assert await called(getattr(sdk, f"Async{name}")) == outcome
        return outcome

    await pin_table("clients/methods").check(both, at_once=1)
