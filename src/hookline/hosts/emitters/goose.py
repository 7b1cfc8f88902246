"""Goose, by Block: a bare block before a tool and at the end of a turn.

Written by its documentation alone: it was not run (docs/how-to/hosts/goose.md), and
everybody who uses it is told so.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from hookline.hosts.host import (
    Answer,
    Host,
    HostEvent,
    HostFiles,
    block,
    json_answer,
    mcp_tool,
    text_field,
    tool_result,
)
from hookline.hosts.host_verdict import (
    REFUSALS_ALONE,
    Effect,
    HostVerdict,
    Limits,
    Wire,
    unheard,
)
from hookline.hosts.tools import Tool, ToolCall
from hookline.protocol.events import HookEventName

_E = HookEventName
_TOOLS = {
    "shell": Tool.SHELL,
    "write": Tool.WRITE,
    "edit": Tool.REPLACE,
    "text_editor": Tool.EDITOR,
    "tree": Tool.LIST,
}
LIMITS: Limits = {
    _E.BeforeTool: REFUSALS_ALONE,
    **unheard(_E.AfterTool, _E.BeforeAgent, _E.SessionStart, _E.SessionEnd),
    **unheard(_E.AfterAgent, keep=(Effect.BLOCK, Effect.STOP)),
}


class GooseHost(Host):
    """Goose."""

    name = "goose"
    files = HostFiles(
        project=".agents/plugins/hookline/hooks/hooks.json",
        user="~/.agents/plugins/hookline/hooks/hooks.json",
        extra={"type": "command"},
        closed={"on_failure": "block"},
        manifest=("../plugin.json", {"name": "hookline", "version": "1.0.0"}),
    )
    places = r"(\.agents|goose)/plugins/[^/]+/(hooks/)?[^/]+"
    title = "Goose"
    events: Mapping[str, HookEventName] = {
        "PreToolUse": _E.BeforeTool,
        "PostToolUse": _E.AfterTool,
        "PostToolUseFailure": _E.AfterTool,
        "UserPromptSubmit": _E.BeforeAgent,
        "Stop": _E.AfterAgent,
        "SessionStart": _E.SessionStart,
        "SessionEnd": _E.SessionEnd,
    }
    ignored = frozenset(
        {
            *("PreToolUseResult", "BeforeReadFile", "AfterFileEdit"),
            *("BeforeShellExecution", "AfterShellExecution"),
        }
    )
    limits = LIMITS
    tools: Mapping[str, str] = {
        **{f"developer__{name}": tool for name, tool in _TOOLS.items()},
        **_TOOLS,
    }
    name_fields = ("event",)
    folder_field = "working_dir"
    prompt_field = "message"
    answer_fields = ("last_assistant_message", "assistant_response")

    def fields(
        self, event: HookEventName, name: str, payload: Wire, call: ToolCall | None
    ) -> Wire:
        """The fields of an event in our spelling."""
        identifier = text_field(payload, "tool_call_id", default="") if call else ""
        fields = {"tool_use_id": identifier} if identifier else {}
        return fields | super().fields(event, name, payload, call)

    def server(self, tool: str, payload: Wire) -> Wire:
        """Tools of other servers are ``SERVER__TOOL``."""
        server, mark, name = tool.partition("__")
        return mcp_tool(server, name) if mark and server != "developer" else {}

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """The result of a tool in our shape."""
        error = None
        if name == "PostToolUseFailure":
            error = text_field(payload, "error", default="the tool failed")
        content = payload.get("tool_response", payload.get("tool_output", ""))
        return tool_result(content or error or "", error)

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Nothing at all where nothing is blocked: ``{}`` counts as a failure."""
        if event.event is _E.BeforeTool and verdict.ends:
            return self.refusal(verdict)
        if event.event is _E.AfterAgent and verdict.rejects:
            answer = self.refuse(verdict.refusal())
            return structs.replace(answer, expressed=frozenset({Effect.MESSAGE}))
        return Answer()

    def refuse(self, reason: str) -> Answer:
        """Block a tool, or the end of a turn."""
        return json_answer(block(reason))


HOST = GooseHost()
