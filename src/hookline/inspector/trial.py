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
from msgspec import Struct, structs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hookline.engine.explain import Explainer, summarize, to_json
from hookline.errors import HooklineError
from hookline.protocol.events import HookEventName
from hookline.protocol.inputs import BASE_FIELDS
from hookline.protocol.outputs import read_output
from hookline.protocol.results import AggregatedHookResult, ProcessedHookResult
from hookline.protocol.values import decode, encode
from hookline.protocol.verdict import event_verdict, recorded_verdict
from hookline.settings.load import Settings

from .answers import read_body, reply
from .desk import Desk
from .event import changes_by, find_event, trace_merge
from .own_command import MAX_OUTPUT_BYTES, CommandEnd, OwnCommand, finish
from .reproduction import reasons_inexact
from .samples import TOOL_INPUTS, describe_events

MAX_RUNS = 4
"""Events that can be run at the same time."""
_TOOL_EVENTS = (HookEventName.BeforeTool, HookEventName.AfterTool)
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*")
_REFUSED = 2
_FIRED = (0, _REFUSED)
"""The exit statuses of ``hookline fire`` with a verdict."""

Wire = dict[str, Any]


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

    def event_input(self) -> Wire:
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

    async def recorded(request: Request) -> Response:
        found = desk.in_thread(_recorded, desk, request.path_params["id"])
        return reply(await found)

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
        Route("/api/try/{id:number}", recorded),
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


def _object(given: dict[str, Any] | str | None, what: str) -> Wire:
    if given is None or isinstance(given, dict):
        return given or {}
    try:
        value = decode(given, nan_as_null=True)
    except ValueError as error:
        raise HooklineError(f"{what} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise HooklineError(f"{what}: expected a JSON object, got {value!r:.60}")
    return value


def _describe(settings: Settings) -> Wire:
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


def _recorded(desk: Desk, event_id: int) -> Wire:
    """The input of a recorded event as text, so that no number loses digits."""
    with desk.read() as reader:
        full = find_event(reader, event_id)
    fields = {k: v for k, v in full.input.items() if k not in BASE_FIELDS}
    return {
        "event": full.entry.event,
        "tool": fields.pop("tool_name", None),
        "text": msgspec.json.format(encode(fields), indent=2).decode(),
        "inexact": reasons_inexact(full),
    }


def _explain(desk: Desk, trial: Trial) -> Wire:
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

    async def fire(self, trial: Trial, request: Request) -> Wire:
        """Run the hooks of an event; what ``hookline fire --json`` says, and more."""
        event, given = HookEventName.of(trial.event), trial.event_input()
        name = trial.run or str(uuid.uuid4())
        if len(self._commands) >= MAX_RUNS:
            problem = f"{MAX_RUNS} events are being run: wait for one, or cancel it"
            raise HTTPException(429, problem)
        if name in self._commands:
            raise HTTPException(409, "this run has started already")
        self._commands[name] = command = OwnCommand(self._words(trial), encode(given))
        try:
            end = await finish(command, self._desk.stopping, request)
        finally:
            del self._commands[name]
        result = _result(end, event, given)
        plan = await self._desk.in_thread(_explain, self._desk, trial)
        return {**result, "sequential": plan["sequential"]}

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


def _result(end: CommandEnd, event: HookEventName, given: Wire) -> Wire:
    if end.cancelled:
        raise HTTPException(409, "the run was cancelled: its hooks were ended")
    if end.truncated:
        limit = f"{MAX_OUTPUT_BYTES // 1024**2} MB"
        raise HooklineError(f"the hooks said more than {limit}: use 'hookline fire'")
    if end.status not in _FIRED:
        raise HooklineError(end.message)
    found: Wire = decode(end.stdout)
    final, ended = found["final_output"] or {}, end.status == _REFUSED
    changes = changes_by(final, event, given, ended=ended)
    hooks = [_hook(hook, event) for hook in found["hooks"]]
    return {
        **found,
        "exit_status": end.status,
        "messages": end.messages,
        "hooks": hooks,
        "changes": changes,
        "provenance": trace_merge(final, hooks, event, given),
        "verdict": {"word": _word(found, event, given, changes), "effects": []},
    }


def _hook(hook: Wire, event: HookEventName) -> Wire:
    """A hook as the view of one event shows it."""
    verdict = recorded_verdict(event, hook)
    return {
        **hook,
        "warnings": [],
        "standby": None,
        "ended": False,
        "observed": hook["mode"] == "observe",
        "blocked": verdict.blocked,
        "failed": verdict.failed,
        "verdict": verdict.word.value,
    }


def _word(found: Wire, event: HookEventName, given: Wire, changes: list[Wire]) -> str:
    """The verdict in one word, as the journal has it."""
    final = read_output(found["final_output"] or {}, event)[0]
    changed = {one["field"]: one["after"] for one in changes}
    # JSON has only what hooks changed of the tool's input.
    final = structs.replace(final, modified_tool_input=changed.get("tool_input"))
    flags = {name: found[name] for name in ("blocked", "ask", "should_stop")}
    merged = AggregatedHookResult(final_output=final)
    result = ProcessedHookResult(aggregated=merged, **flags)
    return event_verdict(event, result).word.value
