"""Try: which hooks would run on an event and why, and what they say of it.

Nothing is started: rules and policies decide in this process, and where a hook runs a
program the page has the command that fires the event.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hookline.engine.explain import Explainer, summarize, to_json
from hookline.engine.replay import Decided, Decider
from hookline.errors import HooklineError
from hookline.protocol.events import HookEventName
from hookline.protocol.inputs import BASE_FIELDS
from hookline.protocol.values import decode, encode
from hookline.protocol.verdict import event_verdict, hook_verdict
from hookline.settings.load import Settings

from .answers import read_body, reply
from .desk import Desk
from .event import changes_by, find_event, trace_merge
from .reproduction import command_with_input, reasons_inexact
from .samples import TOOL_INPUTS, describe_events

_TOOL_EVENTS = (HookEventName.BeforeTool, HookEventName.AfterTool)
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*")

Wire = dict[str, Any]


class Trial(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One event as the page gives it; an object of JSON may also come as text."""

    event: str
    tool: str | None = None
    tool_input: dict[str, Any] | str | None = None
    input: dict[str, Any] | str | None = None

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

    async def describe(_: Request) -> Response:
        return reply(_describe(desk.config.settings))

    async def recorded(request: Request) -> Response:
        recorded_event = desk.in_thread(_recorded, desk, request.path_params["id"])
        return reply(await recorded_event)

    async def explain(request: Request) -> Response:
        trial = await read_trial(request)
        return reply(await desk.in_thread(_explain, desk, trial))

    return [
        Route("/api/try", describe),
        Route("/api/try/{id:number}", recorded),
        Route("/api/explain", explain, methods=["POST"]),
    ]


async def read_trial(request: Request) -> Trial:
    """The event that was sent; raises if there is no such event."""
    try:
        trial = msgspec.convert(await read_body(request), Trial)
    except msgspec.ValidationError as error:
        raise HTTPException(400, f"the request is invalid: {error}") from error
    HookEventName.of(trial.event)
    return trial


def _object(value_or_text: dict[str, Any] | str | None, field: str) -> Wire:
    if value_or_text is None or isinstance(value_or_text, dict):
        return value_or_text or {}
    try:
        value = decode(value_or_text, nan_as_null=True)
    except ValueError as error:
        raise HooklineError(f"{field} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise HooklineError(f"{field}: expected a JSON object, got {value!r:.60}")
    return value


def _describe(settings: Settings) -> Wire:
    """The events with samples of their inputs, and the tools that are known."""
    return {
        "events": describe_events(),
        "tools": sorted({*TOOL_INPUTS, *_matched_tools(settings)}),
        "tool_inputs": TOOL_INPUTS,
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
    """What ``hookline explain --json`` says, and the verdict or how to get it."""
    event, event_input = HookEventName.of(trial.event), trial.event_input()
    settings = desk.config.settings
    explainer = Explainer(desk.config, event, event_input)
    hooks = explainer.explain()
    decided = asyncio.run(Decider(desk.config).decide(event, event_input))
    options = desk.options()
    chosen = dict(zip(options[::2], options[1::2], strict=True))
    return {
        **to_json(event, explainer.target, hooks),
        "summary": summarize(hooks),
        "warnings": [*map(str, settings.errors), *settings.warnings],
        "programs": decided.programs,
        "command": command_with_input("fire", event.value, chosen, event_input),
        "result": None if decided.programs else _result(event, event_input, decided),
    }


def _result(event: HookEventName, event_input: Wire, decided: Decided) -> Wire:
    """A verdict as the view of one event shows it."""
    result, final = decided.result, decided.result.final_output
    wire = {} if final is None else final.to_wire()
    verdict = event_verdict(event, result)
    hooks = [
        {
            "name": hook.hook_name,
            "output": None if hook.output is None else hook.output.to_wire(),
            "failed": hook_verdict(hook).failed,
            "observed": hook.observed,
            "async": hook.is_async,
            "recheck": hook.recheck,
        }
        for hook in result.aggregated.hook_results
    ]
    return {
        "reason": result.stop_reason or result.reason,
        "system_message": result.system_message,
        "user_message": result.user_message,
        "errors": msgspec.to_builtins(result.aggregated.errors),
        "hooks": hooks,
        "final_output": wire or None,
        "changes": changes_by(wire, event, event_input, ended=verdict.ends),
        "provenance": trace_merge(wire, hooks, event, event_input),
        "verdict": {"word": verdict.word.value, "effects": []},
    }
