"""Cursor: its events of 2026, and the answers that its documentation promises.

Written by the documentation alone: Cursor was not run (docs/how-to/hosts/cursor.md),
and everybody who uses it is told so. ``preToolUse`` and ``postToolUse`` fire for every
tool; the narrower events beside them, such as ``beforeShellExecution``, are not
answered.
"""

from __future__ import annotations

import re
from typing import Any

from hookline.hosts import effects
from hookline.hosts.effects import Effect
from hookline.hosts.host import (
    Host,
    HostEvent,
    HostFiles,
    Layout,
    text_field,
    tool_result,
)
from hookline.hosts.host_verdict import WITHHELD, Answer, HostVerdict, Wire
from hookline.hosts.tools import Tool, tool_names
from hookline.protocol.events import HookEventName
from hookline.protocol.values import decode

from .claude import ClaudeHost

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
_UNHEARD = "Cursor does not read it"


class CursorHost(Host):
    """Cursor."""

    name = "cursor"
    title = "Cursor"
    files = HostFiles(
        project=".cursor/hooks.json",
        user="~/.cursor/hooks.json",
        layout=Layout.ENTRIES,
        head={"version": 1},
        closed={"failClosed": True},
        names_event=True,
    )
    places = r"\.cursor/[^/]+"
    project_variables = ("CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR")
    events = _EVENTS
    # Names in ``.claude/settings.json``, which Cursor may read.
    aliases = {
        "UserPromptSubmit": "beforeSubmitPrompt",
        **{f"{name[:1].upper()}{name[1:]}": name for name in _EVENTS},
    }
    ignored = frozenset(
        {
            *("afterAgentResponse", "afterAgentThought", "workspaceOpen"),
            *("beforeTabFileRead", "afterTabFileEdit"),
        }
    )
    unanswered = frozenset(
        {
            *("beforeShellExecution", "beforeMCPExecution", "beforeReadFile"),
            *("afterShellExecution", "afterMCPExecution", "afterFileEdit"),
        }
    )
    spelled = {
        "session_id": "session_id conversation_id",
        "error": "error_message",
        "last_assistant_message": "summary",
        "agent_id": "subagent_id agent_id",
        "agent_type": "subagent_type agent_type",
    }
    reasons = dict.fromkeys(("user_close", "window_close", "completed"), "exit")
    tools = ClaudeHost.tools | tool_names(
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
    server_tool = re.compile(r"(?s)MCP:(?:(.*):)?(.*)")
    limits = {
        _E.BeforeTool: {
            Effect.ASK: "Cursor does not ask for every tool, hooksConfig.onAsk decides",
            **effects.ONLY_REFUSED,
            Effect.STOP: effects.REFUSED_ONLY,
        },
        _E.AfterTool: {
            Effect.WITHHOLD: "only results of MCP tools can be replaced, others stay",
            Effect.STOP: "the model is told the reason, and the agent goes on",
        },
        _E.SubagentStart: {
            **effects.ONLY_REFUSED,
            Effect.STOP: "the subagent is refused, and the agent goes on",
        },
        **effects.unheard(
            _UNHEARD,
            *(_E.BeforeAgent, _E.AfterAgent, _E.SubagentStop, _E.SessionEnd),
            keep=(Effect.BLOCK, Effect.STOP, Effect.CLEAR),
        ),
    }
    carries = {"updated_mcp_tool_output": Effect.WITHHOLD}

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """The result of a tool in our shape."""
        if name == "postToolUseFailure":
            return super().response(tool, name, payload)
        content: Any = payload.get("tool_output", "")
        try:
            content = decode(content) if isinstance(content, str) else content
        except ValueError:
            return tool_result(content)
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
        task = text_field(payload, "task", default="")
        return super().agent(payload) | ({"prompt": task} if task else {})

    def answer(self, event: HostEvent, verdict: HostVerdict) -> Wire | Answer:
        """What to write."""
        match event.event:
            case _E.BeforeTool if verdict.ends:
                reason = verdict.refusal()
                denied = {"permission": "deny", "user_message": reason}
                return denied | {"agent_message": reason}
            case _E.BeforeTool:
                return {"updated_input": verdict.tool_input}
            case _E.AfterTool if event.name != "postToolUse":
                losses = [f"{effect}: {_UNHEARD}" for effect in sorted(verdict.asked())]
                return Answer(b"{}\n", lost=tuple(losses))
            case _E.AfterTool if verdict.withheld and _is_mcp(event):
                text = {"type": "text", "text": verdict.refusal(WITHHELD)}
                return {"updated_mcp_tool_output": {"content": [text]}}
            case _E.AfterTool:
                stop = (verdict.stop_reason or "Stop now.") if verdict.stop else ""
                texts = filter(None, [stop, verdict.remark()])
                return {"additional_context": "\n\n".join(texts)}
            case _E.BeforeAgent if verdict.ends:
                return {"continue": False, "user_message": verdict.refusal()}
            case _E.SubagentStart if verdict.ends:
                return {"permission": "deny", "user_message": verdict.refusal()}
            case _E.AfterAgent | _E.SubagentStop if verdict.rejects:
                return {"followup_message": verdict.refusal()}
            case _E.SessionStart:
                return {"additional_context": verdict.model_text()}
            case _E.PreCompress:
                return {"user_message": verdict.message}
        return {}


def _is_mcp(event: HostEvent) -> bool:
    return event.call is not None and event.call.name.startswith("MCP:")


HOST = CursorHost()
