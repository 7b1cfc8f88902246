"""Cline: its JSON on a hook's stdin, and the answers that it obeys.

Observed with the program (docs/how-to/hosts/cline.md). It waits for the answer before
and after a tool only; every other hook is started and left alone. A block ends the
whole run, which is also the only way to keep a tool's result from the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.hosts.host import (
    Answer,
    Host,
    HostEvent,
    HostName,
    json_answer,
    object_field,
    required,
    text_field,
    tool_result,
)
from hookline.hosts.host_verdict import WITHHELD, Effect, HostVerdict, Limits, Wire
from hookline.hosts.tools import Tool, ToolCall, read_call
from hookline.protocol.events import HookEventName

_E = HookEventName
_TOOLS = {
    "run_commands": Tool.SHELL,
    "read_files": Tool.READ,
    "editor": Tool.EDITOR,
    "apply_patch": Tool.PATCH,
    "search_codebase": Tool.GREP,
    "fetch_web_content": Tool.FETCH,
}
_NAMES = {
    "agent_start": "TaskStart",
    "agent_resume": "TaskResume",
    "agent_abort": "TaskCancel",
    "agent_end": "TaskComplete",
    "agent_error": "TaskError",
    "tool_call": "PreToolUse",
    "tool_result": "PostToolUse",
    "prompt_submit": "UserPromptSubmit",
    "session_shutdown": "SessionShutdown",
}
"""The names in its JSON, and those of its hook files."""
_UNHEARD = "Cline does not wait for the answer"


LIMITS: Limits = {
    _E.BeforeTool: {
        Effect.BLOCK: "the whole run ends, and the model is not told why",
        Effect.ASK: "Cline cannot ask for a hook, hooksConfig.onAsk decides",
    },
    _E.AfterTool: {
        Effect.WITHHOLD: "the whole run ends before the model sees the result",
        Effect.SUPPRESS: "the result is shown to the person",
    },
    _E.AfterAgent: {
        Effect.BLOCK: f"the answer stands: {_UNHEARD}",
        Effect.MESSAGE: _UNHEARD,
        Effect.CLEAR: _UNHEARD,
    },
    _E.SessionStart: {Effect.CONTEXT: _UNHEARD, Effect.MESSAGE: _UNHEARD},
    _E.SessionEnd: {Effect.MESSAGE: _UNHEARD},
}


class ClineHost(Host):
    """Cline."""

    name = HostName.CLINE
    title = "Cline"
    tested: str | None = "3.0.65"
    events: Mapping[str, HookEventName] = {
        "PreToolUse": _E.BeforeTool,
        "PostToolUse": _E.AfterTool,
        "TaskStart": _E.SessionStart,
        "TaskResume": _E.SessionStart,
        "TaskComplete": _E.AfterAgent,
        "SessionShutdown": _E.SessionEnd,
    }
    ignored = frozenset({"TaskCancel", "TaskError", "UserPromptSubmit", "PreCompact"})
    asks = False
    project_variables: tuple[str, ...] = ()
    limits = LIMITS

    def event_name(self, given: Wire, argument: str | None) -> str:
        """The name of the hook file."""
        name = text_field(given, "hookName", default=argument)
        return _NAMES.get(name, name)

    def read(self, given: Wire, name: str) -> HostEvent:
        """Read an event of this name."""
        ours = self.our_event(name)
        call, fields = None, _fields(ours, given, name)
        if ours in (_E.BeforeTool, _E.AfterTool):
            key = "tool_call" if ours is _E.BeforeTool else "tool_result"
            record = object_field(given, key)
            tool_input = required(record, "input")
            call = read_call(text_field(record, "name"), tool_input, _TOOLS)
            fields |= _tool_fields(ours, record, call)
        context = given.get("sessionContext")
        session = context if isinstance(context, dict) else {}
        return HostEvent(
            name=name,
            event=ours,
            fields=fields,
            call=call,
            payload=given,
            session_id=text_field(session, "rootSessionId", default="")
            or text_field(given, "taskId", default=""),
            cwd=_folder(given),
        )

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""
        ends = verdict.blocked or verdict.stop
        if event.event is _E.BeforeTool and ends:
            return self.refuse(verdict.refusal())
        if event.event is _E.AfterTool and (verdict.withheld or verdict.stop):
            return self.refuse(verdict.refusal(WITHHELD))
        if event.event is _E.BeforeTool:
            context, changed = verdict.model_text(), verdict.tool_input
            return json_answer({"overrideInput": changed, "context": context})
        if event.event is _E.AfterTool:
            return json_answer({"context": verdict.remark()})
        return json_answer({})

    def refuse(self, reason: str) -> Answer:
        """Cline ignores exit 2."""
        return json_answer({"cancel": True, "errorMessage": reason})


def _fields(event: HookEventName | None, given: Wire, name: str) -> Wire:
    agent = given.get("agent_id")
    fields: Wire = {"agent_id": agent} if isinstance(agent, str) else {}
    match event:
        case _E.SessionStart:
            return fields | {"source": "resume" if name == "TaskResume" else "startup"}
        case _E.SessionEnd:
            return fields | {"reason": "other"}
        case _E.AfterAgent:
            turn = given.get("turn")
            turn = turn if isinstance(turn, dict) else {}
            answer = text_field(turn, "outputText", default="")
            ending = {"prompt_response": answer, "stop_hook_active": False}
            return fields | {"prompt": "", **ending}
    return fields


def _tool_fields(event: HookEventName, record: Wire, call: ToolCall) -> Wire:
    fields: Wire = {"tool_use_id": text_field(record, "id", default="")}
    server, mark, tool = call.name.partition("__")
    if mark and server and tool:
        fields["mcp_context"] = {"server_name": server, "tool_name": tool}
    if event is _E.AfterTool:
        error = text_field(record, "error", default="")
        content = _content(record.get("output"))
        fields["tool_response"] = tool_result(content, error or None)
    return fields


def _content(output: Any) -> Any:
    """The text of a result that has one for each command or file."""
    found = output if isinstance(output, list) else []
    texts = [one.get("result") for one in found if isinstance(one, dict)]
    known = [one for one in texts if isinstance(one, str)]
    return "\n".join(known) if known and len(known) == len(found) else output


def _folder(given: Wire) -> str:
    roots = given.get("workspaceRoots")
    first = roots[0] if isinstance(roots, list) and roots else None
    return first if isinstance(first, str) else ""
