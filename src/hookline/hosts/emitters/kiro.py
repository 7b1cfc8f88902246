"""Kiro, and the Amazon Q CLI that it comes from: exit 2 is a block.

Written by its documentation alone: it was not run (docs/how-to/hosts/kiro.md), and
everybody who uses it is told so.
"""

from __future__ import annotations

from collections.abc import Mapping

from hookline.hosts.host import Answer, Host, HostEvent, HostFiles, Layout, mcp_tool
from hookline.hosts.host_verdict import (
    REFUSALS_ALONE,
    Effect,
    HostVerdict,
    Limits,
    Wire,
    unheard,
)
from hookline.hosts.tools import Tool, tool_names
from hookline.protocol.events import HookEventName

_E = HookEventName
_NAMES = {
    "agentSpawn": "SessionStart",
    "userPromptSubmit": "UserPromptSubmit",
    "preToolUse": "PreToolUse",
    "postToolUse": "PostToolUse",
    "stop": "Stop",
}
"""The names before version 3, which Amazon Q has too."""
LIMITS: Limits = {
    _E.BeforeTool: REFUSALS_ALONE,
    **unheard(_E.AfterTool),
    **unheard(_E.AfterAgent, keep=(Effect.STOP,)),
}


class KiroHost(Host):
    """Kiro."""

    name = "kiro"
    files = HostFiles(
        project=".kiro/hooks/hookline.json",
        user="~/.kiro/hooks/hookline.json",
        layout=Layout.TRIGGERS,
        head={"version": "v1"},
        names_event=True,
    )
    places = r"\.(kiro|amazonq)/([^/]+/)?[^/]+|amazonq/cli-agents/[^/]+"
    title = "Kiro"
    events: Mapping[str, HookEventName] = {
        "PreToolUse": _E.BeforeTool,
        "PostToolUse": _E.AfterTool,
        "UserPromptSubmit": _E.BeforeAgent,
        "Stop": _E.AfterAgent,
        "SessionStart": _E.SessionStart,
    }
    ignored = frozenset(
        {
            *("PreTaskExec", "PostTaskExec", "Manual"),
            *("PostFileCreate", "PostFileSave", "PostFileDelete"),
        }
    )
    limits = LIMITS
    tools: Mapping[str, str] = tool_names(
        {
            Tool.SHELL: "execute_bash executeBash shell controlBashProcess",
            Tool.READ: "fs_read fsRead readFile read",
            Tool.EDITOR: "fs_write write",
            Tool.WRITE: "fsWrite",
            Tool.REPLACE: "str_replace strReplace fsAppend",
            Tool.DELETE: "deleteFile",
            Tool.GREP: "grep grepSearch",
            Tool.GLOB: "glob fileSearch",
            Tool.LIST: "listDirectory",
            Tool.FETCH: "web_fetch",
            Tool.SEARCH: "web_search",
            Tool.TASK: "use_subagent invokeSubAgent",
        }
    )
    answer_fields = ("last_assistant_message", "assistant_response")

    def event_name(self, payload: Wire, argument: str | None) -> str:
        """The name since version 3."""
        name = super().event_name(payload, argument)
        return _NAMES.get(name, name)

    def server(self, tool: str, payload: Wire) -> Wire:
        """Tools of other servers are ``@SERVER/TOOL``."""
        server, mark, name = tool.removeprefix("@").partition("/")
        return mcp_tool(server, name) if mark and tool.startswith("@") else {}

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """What a hook prints is context of a prompt or a session."""
        if event.event in (_E.BeforeTool, _E.BeforeAgent) and verdict.ends:
            return self.refusal(verdict)
        context = verdict.model_text()
        if event.event in (_E.BeforeAgent, _E.SessionStart) and context:
            return Answer(f"{context}\n".encode(errors="replace"))
        return Answer()


HOST = KiroHost()
