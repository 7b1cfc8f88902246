"""Try: which hooks would run on an event and why, and what they say if they are run.

Explaining runs nothing. Running is ``hookline fire`` in a process of its own, which
ends when the page cancels it, when the page is closed, and with the server.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hookline.engine.explanation import Explainer, summarize, to_json
from hookline.engine.provenance import trace_fields
from hookline.errors import HooklineError
from hookline.protocol.events import HookEventName
from hookline.protocol.jsontext import decode, encode
from hookline.settings.load import Settings

from .answers import read_body, reply
from .desk import Desk
from .own_command import MAX_OUTPUT_BYTES, CommandEnd, OwnCommand, finish
from .samples import TOOL_INPUTS, describe_events

MAX_RUNS = 4
"""Events that can be run at the same time."""
_TOOL_EVENTS = (HookEventName.BeforeTool, HookEventName.AfterTool)
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*")
_FIRED = (0, 2)
"""The exit statuses of ``hookline fire`` with a verdict."""


class Trial(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One event as the page gives it; an object of JSON may also come as text."""

    event: str
    tool: str | None = None
    tool_input: dict[str, Any] | str | None = None
    input: dict[str, Any] | str | None = None
    record: bool = False
    """Record the run in the journal, as ``hookline fire --record``."""
    run: str | None = None
    """A name that the page chose, to cancel the run by."""

    def event_input(self) -> dict[str, Any]:
        """The event's fields, as from ``--input``, ``--tool`` and ``--tool-input``."""
        fields = dict(_object(self.input, "the input"))
        if self.tool:
            fields["tool_name"] = self.tool
        if self.tool_input is not None:
            fields["tool_input"] = _object(self.tool_input, "the tool input")
        return fields


def routes(desk: Desk) -> list[BaseRoute]:
    """The routes of this view."""
    runs = Runs(desk)

    async def describe(_: Request) -> Response:
        return reply(_describe(desk.config.settings))

    async def explain(request: Request) -> Response:
        trial = await read_trial(request)
        return reply(await desk.in_thread(_explain, desk, trial))

    async def fire(request: Request) -> Response:
        return reply(await runs.fire(await read_trial(request), request))

    async def cancel(request: Request) -> Response:
        run = (await read_body(request)).get("run")
        return reply({"cancelled": await runs.cancel(str(run))})

    return [
        Route("/api/try", describe),
        Route("/api/explain", explain, methods=["POST"]),
        Route("/api/fire", fire, methods=["POST"]),
        Route("/api/fire/cancel", cancel, methods=["POST"]),
    ]


async def read_trial(request: Request) -> Trial:
    """The event that was sent; raises if there is no such event."""
    try:
        trial = msgspec.convert(await read_body(request), Trial)
    except msgspec.ValidationError as error:
        raise HTTPException(400, f"the request is invalid: {error}") from error
    HookEventName.of(trial.event)
    return trial


def _object(given: dict[str, Any] | str | None, what: str) -> dict[str, Any]:
    if given is None or isinstance(given, dict):
        return given or {}
    try:
        value = decode(given, nan_as_null=True)
    except ValueError as error:
        raise HooklineError(f"{what} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise HooklineError(f"{what}: expected a JSON object, got {value!r:.60}")
    return value


def _describe(settings: Settings) -> dict[str, Any]:
    """The events with samples of their inputs, and the tools that are known."""
    return {
        "events": describe_events(),
        "tools": sorted({*TOOL_INPUTS, *_matched_tools(settings)}),
        "tool_inputs": TOOL_INPUTS,
        "records": bool(settings.global_options.journal),
    }


def _matched_tools(settings: Settings) -> Iterator[str]:
    """The tools that matchers name outright."""
    for layer in settings.layers:
        for event, group, _ in layer.hooks():
            if event in _TOOL_EVENTS and group.matcher:
                names = (part.strip("^$() ") for part in group.matcher.split("|"))
                yield from filter(_PLAIN_NAME.fullmatch, names)


def _explain(desk: Desk, trial: Trial) -> dict[str, Any]:
    """What ``hookline explain --json`` says, with its summary and its warnings."""
    event, settings = HookEventName.of(trial.event), desk.config.settings
    explainer = Explainer(desk.config, event, trial.event_input())
    hooks = explainer.explain()
    return {
        **to_json(event, explainer.target, hooks),
        "summary": summarize(hooks),
        "warnings": [*map(str, settings.errors), *settings.warnings],
    }


class Runs:
    """The events that are being run, each by a process of its own."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._commands: dict[str, OwnCommand] = {}

    async def fire(self, trial: Trial, request: Request) -> dict[str, Any]:
        """Run the hooks of an event; what ``hookline fire --json`` says, and more."""
        given = encode(trial.event_input())
        name = trial.run or str(uuid.uuid4())
        if len(self._commands) >= MAX_RUNS:
            problem = f"{MAX_RUNS} events are being run: wait for one, or cancel it"
            raise HTTPException(429, problem)
        if name in self._commands:
            raise HTTPException(409, "this run has started already")
        self._commands[name] = command = OwnCommand(self._words(trial), given)
        try:
            return _result(await finish(command, self._desk.stopping, request))
        finally:
            del self._commands[name]

    async def cancel(self, name: str) -> bool:
        """End a run and its hooks; False if there is none of this name."""
        command = self._commands.get(name)
        if command is not None:
            await command.end()
        return command is not None

    def _words(self, trial: Trial) -> list[str]:
        desk = self._desk
        recorded = ("--record", f"--journal={desk.journal}") if trial.record else ()
        return desk.command("fire", trial.event, "--input=-", "--json", *recorded)


def _result(end: CommandEnd) -> dict[str, Any]:
    if end.cancelled:
        raise HTTPException(409, "the run was cancelled: its hooks were ended")
    if end.truncated:
        limit = f"{MAX_OUTPUT_BYTES // 1024**2} MB"
        raise HooklineError(f"the hooks said more than {limit}: use 'hookline fire'")
    if end.status not in _FIRED:
        raise HooklineError(end.message)
    found: dict[str, Any] = decode(end.stdout)
    said = [
        (hook["name"], hook["output"])
        for hook in found["hooks"]
        if hook["output"] is not None and hook["mode"] != "observe"
    ]
    origins = trace_fields(found["final_output"] or {}, said)
    return {
        **found,
        "exit_status": end.status,
        "messages": end.messages,
        "origins": msgspec.to_builtins(origins),
    }
