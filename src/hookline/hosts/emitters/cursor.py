"""Cursor: its events of 2026, and the answers that its documentation promises.

Written by the documentation alone: Cursor was not run (docs/how-to/hosts/cursor.md),
and everybody who uses it is told so. ``preToolUse`` and ``postToolUse`` fire for every
tool; the narrower events beside them, such as ``beforeShellExecution``, are not
answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.hosts.host import (
    Answer,
    Host,
    HostEvent,
    HostFiles,
    Layout,
    first_text,
    json_answer,
    mcp_tool,
    required,
    text_field,
    tool_result,
)
from hookline.hosts.host_verdict import (
    NO_CLEAR,
    ONLY_REFUSED,
    REFUSED_ONLY,
    RESULT_SHOWN,
    TO_PERSON,
    WITHHELD,
    Effect,
    HostVerdict,
    Limits,
    Wire,
)
from hookline.hosts.tools import Tool, ToolCall, read_call, tool_names
from hookline.protocol.events import HookEventName
from hookline.protocol.values import decode

from .claude import TOOLS

_E = HookEventName
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
_CLAUDE_NAMES = {
    "UserPromptSubmit": "beforeSubmitPrompt",
    **{f"{name[:1].upper()}{name[1:]}": name for name in _EVENTS},
}
"""Names in ``.claude/settings.json``, which Cursor may read."""
_UNHEARD = "Cursor does not read it"
LIMITS: Limits = {
    _E.BeforeTool: {
        Effect.ASK: "Cursor does not ask for every tool, hooksConfig.onAsk decides",
        Effect.CONTEXT: ONLY_REFUSED,
        Effect.MESSAGE: ONLY_REFUSED,
        Effect.STOP: REFUSED_ONLY,
    },
    _E.AfterTool: {
        Effect.WITHHOLD: "only results of MCP tools can be replaced, others stay",
        Effect.SUPPRESS: RESULT_SHOWN,
        Effect.STOP: "the model is told the reason, and the agent goes on",
    },
    _E.BeforeAgent: {Effect.CONTEXT: _UNHEARD, Effect.MESSAGE: _UNHEARD},
    _E.AfterAgent: {Effect.MESSAGE: _UNHEARD, Effect.CLEAR: NO_CLEAR},
    _E.SubagentStart: {
        Effect.CONTEXT: ONLY_REFUSED,
        Effect.MESSAGE: ONLY_REFUSED,
        Effect.STOP: "the subagent is refused, and the agent goes on",
    },
    _E.SubagentStop: {Effect.MESSAGE: _UNHEARD, Effect.CLEAR: NO_CLEAR},
    _E.SessionEnd: {Effect.MESSAGE: _UNHEARD},
    _E.PreCompress: {Effect.MESSAGE: TO_PERSON},
}


class CursorHost(Host):
    """Cursor."""

    name = "cursor"
    files = HostFiles(
        project=".cursor/hooks.json",
        user="~/.cursor/hooks.json",
        layout=Layout.ENTRIES,
        head={"version": 1},
        closed={"failClosed": True},
        names_event=True,
    )
    places = r"\.cursor/[^/]+"
    title = "Cursor"
    events: Mapping[str, HookEventName] = _EVENTS
    ignored = frozenset(
        {
            *("afterAgentResponse", "afterAgentThought", "workspaceOpen"),
            *("beforeTabFileRead", "afterTabFileEdit"),
        }
    )
    limits = LIMITS
    tools: Mapping[str, str] = TOOLS | tool_names(
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
    project_variables = ("CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR")
    session_fields = ("session_id", "conversation_id")
    answer_fields = ("summary",)
    carried = ("tool_use_id",)
    reasons: Mapping[str, str] = dict.fromkeys(
        ("user_close", "window_close", "completed"), "exit"
    )

    def event_name(self, payload: Wire, argument: str | None) -> str:
        """Its name is in the JSON."""
        name = super().event_name(payload, argument)
        return _CLAUDE_NAMES.get(name, name)

    def folder(self, payload: Wire) -> str:
        """Where the agent works."""
        roots = payload.get("workspace_roots")
        root = roots[0] if isinstance(roots, list) and roots else None
        return first_text(payload, "cwd") or (root if isinstance(root, str) else "")

    def call(self, payload: Wire, name: str) -> ToolCall:
        """What a tool is about to do, or did."""
        tool = text_field(payload, "tool_name")
        tool_input = _parsed(required(payload, "tool_input"))
        return read_call(tool, tool_input, self.tools)

    def server(self, tool: str, payload: Wire) -> Wire:
        """Tools of other servers are ``MCP:SERVER:TOOL``, or ``MCP:TOOL``."""
        if not tool.startswith("MCP:"):
            return {}
        server, _, name = tool.removeprefix("MCP:").rpartition(":")
        return mcp_tool(server, name) if server else {"tool_name": name}

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """The result of a tool in our shape."""
        if name == "postToolUseFailure":
            error = text_field(payload, "error_message", default="the tool failed")
            return tool_result(error, error)
        content = _parsed(payload.get("tool_output", ""))
        if isinstance(content, dict) and isinstance(content.get("output"), str):
            return tool_result(content["output"]) | {"metadata": content}
        return tool_result(content)

    def ending(self, payload: Wire) -> Wire:
        """The end of a turn, which has an answer in subagents only."""
        count = payload.get("loop_count")
        is_again = isinstance(count, int) and count > 0
        return super().ending(payload) | {"stop_hook_active": is_again}

    def agent(self, payload: Wire) -> Wire:
        """A subagent."""
        kind = text_field(payload, "subagent_type", "agent_type", default="")
        identifier = text_field(payload, "subagent_id", "agent_id", default="")
        task = text_field(payload, "task", default="")
        agent = {"agent_id": identifier, "agent_type": kind}
        return agent | ({"prompt": task} if task else {})

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""
        wire: Wire = {}
        expressed: tuple[Effect, ...] = ()
        match event.event:
            case _E.BeforeTool | _E.SubagentStart if verdict.ends:
                reason = verdict.refusal()
                wire = {"permission": "deny", "user_message": reason}
                if event.event is _E.BeforeTool:
                    wire["agent_message"] = reason
                expressed = (Effect.CONTEXT, Effect.MESSAGE)
            case _E.BeforeTool:
                wire = {"updated_input": verdict.tool_input}
            case _E.AfterTool if event.name != "postToolUse":
                losses = [f"{effect}: {_UNHEARD}" for effect in sorted(verdict.asked())]
                return Answer(b"{}\n", lost=tuple(losses))
            case _E.AfterTool if verdict.withheld and self._is_mcp(event):
                text = {"type": "text", "text": verdict.refusal(WITHHELD)}
                wire = {"updated_mcp_tool_output": {"content": [text]}}
                expressed = (Effect.WITHHOLD,)
            case _E.AfterTool:
                stop = (verdict.stop_reason or "Stop now.") if verdict.stop else ""
                texts = filter(None, [stop, verdict.remark()])
                wire = {"additional_context": "\n\n".join(texts)}
            case _E.BeforeAgent if verdict.ends:
                wire = {"continue": False, "user_message": verdict.refusal()}
            case _E.AfterAgent | _E.SubagentStop if verdict.rejects:
                wire = {"followup_message": verdict.refusal()}
                expressed = (Effect.MESSAGE,)
            case _E.SessionStart:
                wire = {"additional_context": verdict.model_text()}
            case _E.PreCompress:
                wire = {"user_message": verdict.message}
        return json_answer(wire, *expressed)

    def _is_mcp(self, event: HostEvent) -> bool:
        return event.call is not None and event.call.name.startswith("MCP:")


def _parsed(value: Any) -> Any:
    """A value that some events hold as JSON in a text."""
    try:
        return decode(value) if isinstance(value, str) else value
    except ValueError:
        return value


HOST = CursorHost()
