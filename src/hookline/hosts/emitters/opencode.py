"""OpenCode: what our plugin for it asks, and the answers that the plugin obeys.

OpenCode runs plugins, not commands. The plugin, which ``hookline install opencode``
writes, hands on each event as one JSON object and applies the keys of the answer; it
takes any other key for a failure. Observed with the program
(docs/how-to/hosts/opencode.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from hookline.hosts.host import (
    Answer,
    BadInputError,
    Host,
    HostEvent,
    HostName,
    json_answer,
    object_field,
    text_field,
    tool_result,
)
from hookline.hosts.host_verdict import WITHHELD, Effect, HostVerdict, Limits, Wire
from hookline.hosts.tools import Tool, read_call
from hookline.protocol.events import HookEventName

_E = HookEventName
_TOOLS = {
    "bash": Tool.SHELL,
    "read": Tool.READ,
    "write": Tool.WRITE,
    "edit": Tool.REPLACE,
    "multiedit": Tool.REPLACE,
    "patch": Tool.PATCH,
    "apply_patch": Tool.PATCH,
    "glob": Tool.GLOB,
    "grep": Tool.GREP,
    "list": Tool.LIST,
    "webfetch": Tool.FETCH,
    "websearch": Tool.SEARCH,
    "task": Tool.TASK,
}
_UNHEARD = "OpenCode only reports this event"


LIMITS: Limits = {
    _E.BeforeTool: {
        Effect.ASK: "OpenCode cannot ask for a hook, hooksConfig.onAsk decides",
        Effect.STOP: "the call is refused, and the agent goes on",
    },
    _E.AfterTool: {
        Effect.SUPPRESS: "the result is shown to the person",
        Effect.STOP: "the reason takes the place of the result, the agent goes on",
    },
    _E.AfterAgent: {
        Effect.BLOCK: f"the answer stands: {_UNHEARD}",
        Effect.MESSAGE: _UNHEARD,
        Effect.CLEAR: _UNHEARD,
    },
    _E.SessionStart: {Effect.CONTEXT: _UNHEARD, Effect.MESSAGE: _UNHEARD},
}


class OpenCodeHost(Host):
    """OpenCode."""

    name = HostName.OPENCODE
    title = "OpenCode"
    tested: str | None = "1.18.33"
    events: Mapping[str, HookEventName] = {
        "tool.execute.before": _E.BeforeTool,
        "tool.execute.after": _E.AfterTool,
        "chat.message": _E.BeforeAgent,
        "event.session.created": _E.SessionStart,
        "event.session.idle": _E.AfterAgent,
    }
    ignored: frozenset[str] = frozenset()
    asks = False
    project_variables: tuple[str, ...] = ()
    limits = LIMITS

    def event_name(self, given: Wire, argument: str | None) -> str:
        """Its name is in the JSON."""
        return text_field(given, "hook_event_name", default=argument)

    def read(self, given: Wire, name: str) -> HostEvent:
        """Read an event of this name."""
        ours = self.our_event(name)
        call = None
        if ours in (_E.BeforeTool, _E.AfterTool):
            tool, args = text_field(given, "tool"), object_field(given, "args")
            call = read_call(tool, args, _TOOLS)
        about = given.get("properties")
        about = about if isinstance(about, dict) else {}
        info = about.get("info")
        info = info if isinstance(info, dict) else {}
        session = text_field(about, "sessionID", default="")
        return HostEvent(
            name=name,
            event=ours,
            fields=_fields(ours, given),
            call=call,
            payload=given,
            session_id=text_field(given, "sessionID", default=session),
            cwd=text_field(given, "cwd", default="")
            or text_field(info, "directory", default=""),
        )

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""
        ends = verdict.blocked or verdict.stop
        match event.event:
            case _E.BeforeTool if ends:
                return self.refuse(verdict.refusal())
            case _E.BeforeTool:
                args, context = verdict.tool_input, verdict.model_text()
                return json_answer({"args": args, "context": context})
            case _E.AfterTool if verdict.withheld or verdict.stop:
                text = verdict.refusal(WITHHELD)
                return json_answer({"output": text})
            case _E.AfterTool:
                return json_answer({"context": verdict.remark()})
            case _E.BeforeAgent if ends:
                return self.refuse(verdict.refusal())
            case _E.BeforeAgent:
                return json_answer({"context": verdict.model_text()})
        return json_answer({})

    def refuse(self, reason: str) -> Answer:
        """The plugin throws, which blocks a call or a prompt."""
        return json_answer({"block": reason})


def _fields(event: HookEventName | None, given: Wire) -> Wire:
    match event:
        case _E.BeforeTool:
            return _call_id(given)
        case _E.AfterTool:
            return _call_id(given) | {"tool_response": _result(given)}
        case _E.BeforeAgent:
            return {"prompt": text_field(given, "prompt")}
        case _E.AfterAgent:
            return {"prompt": "", "prompt_response": "", "stop_hook_active": False}
        case _E.SessionStart:
            return {"source": "startup"}
    return {}


def _call_id(given: Wire) -> Wire:
    return {"tool_use_id": text_field(given, "callID", default="")}


def _result(given: Wire) -> Wire:
    found = object_field(given, "output")
    if "output" not in found:
        raise BadInputError("output.output: missing")
    return tool_result(found["output"]) | {"metadata": found}
