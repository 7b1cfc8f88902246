"""Cursor: its events of 2026, and the answers that its documentation promises.

Written by the documentation alone: Cursor was not run (docs/how-to/hosts/cursor.md),
and everybody who uses it is told so. ``preToolUse`` and ``postToolUse`` fire for every
tool, so these are the ones to install. The narrower events, such as
``beforeShellExecution``, are answered too for those who configured them by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from hookline.hosts.host import (
    Answer,
    BadInputError,
    Host,
    HostEvent,
    HostName,
    json_answer,
    required,
    text_field,
    tool_result,
)
from hookline.hosts.host_verdict import WITHHELD, Effect, HostVerdict, Limits, Wire
from hookline.hosts.tools import Tool, ToolCall, read_call, tool_names
from hookline.protocol.events import HookEventName
from hookline.protocol.values import decode, encode

from . import claude

_E = HookEventName
_TOOLS = claude.TOOLS | tool_names(
    {
        Tool.SHELL: "Shell run_terminal_cmd",
        Tool.READ: "ReadFile read_file",
        Tool.WRITE: "write",
        Tool.REPLACE: "StrReplace search_replace edit_file",
        Tool.DELETE: "Delete delete_file",
        Tool.GREP: "grep grep_search",
        Tool.LIST: "list_dir",
        Tool.FETCH: "web_fetch",
        Tool.SEARCH: "web_search",
    }
)
_EVENTS = {
    "preToolUse": _E.BeforeTool,
    "postToolUse": _E.AfterTool,
    "postToolUseFailure": _E.AfterTool,
    "beforeSubmitPrompt": _E.BeforeAgent,
    "stop": _E.AfterAgent,
    "sessionStart": _E.SessionStart,
    "sessionEnd": _E.SessionEnd,
    "preCompact": _E.PreCompress,
    "subagentStart": _E.SubagentStart,
    "subagentStop": _E.SubagentStop,
}
_NARROW = {
    "beforeShellExecution": _E.BeforeTool,
    "beforeMCPExecution": _E.BeforeTool,
    "beforeReadFile": _E.BeforeTool,
    "afterShellExecution": _E.AfterTool,
    "afterMCPExecution": _E.AfterTool,
    "afterFileEdit": _E.AfterTool,
}
"""Events that fire beside ``preToolUse`` and ``postToolUse``, for some tools."""
_NARROW_TOOLS = {
    "beforeShellExecution": "Shell",
    "afterShellExecution": "Shell",
    "beforeReadFile": "Read",
    "afterFileEdit": "Edit",
}
_CLAUDE_NAMES = {
    "UserPromptSubmit": "beforeSubmitPrompt",
    **{f"{name[:1].upper()}{name[1:]}": name for name in _EVENTS},
}
"""Names in ``.claude/settings.json``, which Cursor may read."""
_CARRIED = ("tool_use_id",)
_REASONS = {"user_close": "exit", "window_close": "exit", "completed": "exit"}

_ONLY_REFUSED = "the model sees it only with a refusal"
_NO_CLEAR = "the context stays as it is"
_UNHEARD = "Cursor does not read it"
LIMITS: Limits = {
    _E.BeforeTool: {
        Effect.ASK: "Cursor does not ask for every tool, hooksConfig.onAsk decides",
        Effect.CONTEXT: _ONLY_REFUSED,
        Effect.MESSAGE: _ONLY_REFUSED,
        Effect.STOP: "the call is refused, and the agent goes on",
    },
    _E.AfterTool: {
        Effect.WITHHOLD: "only results of MCP tools can be replaced, others stay",
        Effect.SUPPRESS: "the result is shown to the person",
        Effect.STOP: "the model is told the reason, and the agent goes on",
    },
    _E.BeforeAgent: {Effect.CONTEXT: _UNHEARD, Effect.MESSAGE: _UNHEARD},
    _E.AfterAgent: {Effect.MESSAGE: _UNHEARD, Effect.CLEAR: _NO_CLEAR},
    _E.SubagentStart: {
        Effect.CONTEXT: _ONLY_REFUSED,
        Effect.MESSAGE: _ONLY_REFUSED,
        Effect.STOP: "the subagent is refused, and the agent goes on",
    },
    _E.SubagentStop: {Effect.MESSAGE: _UNHEARD, Effect.CLEAR: _NO_CLEAR},
    _E.SessionEnd: {Effect.MESSAGE: _UNHEARD},
    _E.PreCompress: {Effect.MESSAGE: "shown to the person, not to the model"},
}


class CursorHost(Host):
    """Cursor."""

    name = HostName.CURSOR
    title = "Cursor"
    tested: str | None = None
    events: Mapping[str, HookEventName] = _EVENTS
    ignored = frozenset(
        {
            *_NARROW,
            *("afterAgentResponse", "afterAgentThought", "workspaceOpen"),
            *("beforeTabFileRead", "afterTabFileEdit"),
        }
    )
    asks = False
    project_variables: tuple[str, ...] = ("CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR")
    limits = LIMITS

    def event_name(self, given: Wire, argument: str | None) -> str:
        """Its name is in the JSON."""
        name = text_field(given, "hook_event_name", default=argument)
        return _CLAUDE_NAMES.get(name, name)

    def read(self, given: Wire, name: str) -> HostEvent:
        """Read an event of this name."""
        ours = _EVENTS.get(name) or _NARROW.get(name)
        if ours is None and name not in self.ignored:
            raise BadInputError(f"unknown event {name!r}")
        call = _call(given, name) if ours in (_E.BeforeTool, _E.AfterTool) else None
        carried = {key: given[key] for key in _CARRIED if given.get(key) is not None}
        fields = {} if ours is None else _fields(ours, given, name)
        return HostEvent(
            name=name,
            event=ours,
            fields=carried | fields | _mcp(call, name),
            call=call,
            payload=given,
            session_id=text_field(given, "session_id", "conversation_id", default=""),
            transcript_path=text_field(given, "transcript_path", default=""),
            cwd=text_field(given, "cwd", default="") or _folder(given),
        )

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""
        match event.event:
            case _E.BeforeTool | _E.SubagentStart:
                return _before(event, verdict)
            case _E.AfterTool:
                return _after_tool(event, verdict)
            case _E.BeforeAgent if verdict.blocked or verdict.stop:
                reason = verdict.refusal()
                return json_answer({"continue": False, "user_message": reason})
            case _E.AfterAgent | _E.SubagentStop if not verdict.stop:
                if not verdict.blocked:
                    return json_answer({"followup_message": ""})
                reason = verdict.refusal()
                return json_answer({"followup_message": reason}, Effect.MESSAGE)
            case _E.SessionStart:
                return json_answer({"additional_context": verdict.model_text()})
            case _E.PreCompress:
                return json_answer({"user_message": verdict.message})
        return json_answer({})

    def refuse(self, reason: str) -> Answer:
        """Exit 2 denies whatever can be denied."""
        return Answer(status=2, stderr=reason)


def _call(given: Wire, name: str) -> ToolCall:
    if name in _NARROW_TOOLS:
        keys = ("command", "cwd", "file_path", "content", "edits")
        shown = {key: given[key] for key in keys if key in given}
        tool = _NARROW_TOOLS[name]
        text_field(shown, "command" if tool == "Shell" else "file_path")
        return read_call(tool, shown, _TOOLS)
    return read_call(
        text_field(given, "tool_name"), _parsed(required(given, "tool_input")), _TOOLS
    )


def _parsed(value: Any) -> Any:
    """A value that some events hold as JSON in a text."""
    if not isinstance(value, str):
        return value
    try:
        return decode(value)
    except ValueError:
        return value


def _mcp(call: ToolCall | None, name: str) -> Wire:
    """The server of an MCP tool where Cursor tells it: ``MCP:server:tool``."""
    if call is None or not (call.name.startswith("MCP:") or "MCPExecution" in name):
        return {}
    *server, tool = call.name.removeprefix("MCP:").split(":")
    context = {"server_name": ":".join(server), "tool_name": tool}
    return {"mcp_context": context if server else {"tool_name": tool}}


def _folder(given: Wire) -> str:
    roots = given.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots else None
    return first if isinstance(first, str) else ""


def _fields(event: HookEventName, given: Wire, name: str) -> Wire:
    match event:
        case _E.AfterTool:
            return {"tool_response": _response(given, name)}
        case _E.BeforeAgent:
            return {"prompt": text_field(given, "prompt")}
        case _E.AfterAgent:
            return {"prompt": "", "prompt_response": "", **_ending(given)}
        case _E.SessionStart:
            return {"source": "startup"}
        case _E.SessionEnd:
            reason = text_field(given, "reason", default="")
            return {"reason": _REASONS.get(reason, "other")}
        case _E.PreCompress:
            return {"trigger": text_field(given, "trigger", default="auto")}
        case _E.SubagentStart:
            return _agent(given)
        case _E.SubagentStop:
            summary = text_field(given, "summary", default="")
            return {**_agent(given), "prompt_response": summary, **_ending(given)}
    return {}


def _response(given: Wire, name: str) -> Wire:
    if name == "postToolUseFailure":
        error = text_field(given, "error_message", default="the tool failed")
        return tool_result(error, error)
    keys = ("tool_output", "result_json", "output")
    found = _parsed(next((given[key] for key in keys if key in given), ""))
    if isinstance(found, dict) and isinstance(found.get("output"), str):
        return tool_result(found["output"]) | {"metadata": found}
    return tool_result(found)


def _ending(given: Wire) -> Wire:
    again = given.get("loop_count")
    return {"stop_hook_active": isinstance(again, int) and again > 0}


def _agent(given: Wire) -> Wire:
    kind = text_field(given, "subagent_type", "agent_type", default="")
    identifier = text_field(given, "subagent_id", "agent_id", default="")
    task = text_field(given, "task", default="")
    agent = {"agent_id": identifier, "agent_type": kind}
    return agent | ({"prompt": task} if task else {})


def _before(event: HostEvent, verdict: HostVerdict) -> Answer:
    reason, refused = verdict.refusal(), ""
    if not verdict.blocked and not verdict.stop:
        if verdict.tool_input is None:
            return json_answer({})
        if event.name == "preToolUse":
            return json_answer({"updated_input": verdict.tool_input})
        changed = encode(verdict.tool_input).decode()
        reason = refused = f"hooks allow this call only with another input: {changed}"
    wire = {"permission": "deny", "user_message": reason}
    if event.name in ("preToolUse", "beforeShellExecution", "beforeMCPExecution"):
        wire["agent_message"] = reason
    answer = json_answer(wire, Effect.CONTEXT, Effect.MESSAGE)
    return structs.replace(answer, refused=refused)


def _after_tool(event: HostEvent, verdict: HostVerdict) -> Answer:
    told = verdict.remark()
    if verdict.stop:
        told = "\n\n".join(filter(None, [verdict.stop_reason or "Stop now.", told]))
    if event.name != "postToolUse":
        effects = sorted(verdict.asked())
        lost = [f"{one}: {_UNHEARD}" for one in effects]
        return Answer(b"{}\n", lost=tuple(lost))
    if verdict.withheld and event.call and event.call.name.startswith("MCP:"):
        text = verdict.refusal(WITHHELD)
        replaced = {"content": [{"type": "text", "text": text}]}
        return json_answer({"updated_mcp_tool_output": replaced}, Effect.WITHHOLD)
    return json_answer({"additional_context": told})
