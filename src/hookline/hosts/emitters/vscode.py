"""VS Code: the shape of Claude Code, and fewer answers.

Written by its documentation alone: it was not run (docs/how-to/hosts/vscode.md), and
everybody who uses it is told so.
"""

from __future__ import annotations

from collections.abc import Mapping

from hookline.hosts.host import (
    Answer,
    HostEvent,
    HostFiles,
    Layout,
    block,
    end,
    json_answer,
    show,
    specific,
)
from hookline.hosts.host_verdict import (
    NO_CLEAR,
    RESULT_SHOWN,
    TO_PERSON,
    Effect,
    HostVerdict,
    Limits,
    Wire,
)
from hookline.hosts.tools import Tool, tool_names
from hookline.protocol.dialects import CLAUDE_EVENTS
from hookline.protocol.events import HookEventName

from .claude import TOOLS, ClaudeHost

_E = HookEventName
_SESSION_ENDS = "the whole session stops"
LIMITS: Limits = {
    _E.AfterTool: {
        Effect.BLOCK: TO_PERSON,
        Effect.CONTEXT: TO_PERSON,
        Effect.MESSAGE: TO_PERSON,
        Effect.WITHHOLD: "the whole session stops before the model sees the result",
        Effect.SUPPRESS: RESULT_SHOWN,
    },
    _E.BeforeAgent: {
        Effect.BLOCK: _SESSION_ENDS,
        Effect.CONTEXT: TO_PERSON,
        Effect.MESSAGE: TO_PERSON,
    },
    _E.AfterAgent: {Effect.CLEAR: NO_CLEAR},
    _E.SubagentStart: {Effect.BLOCK: _SESSION_ENDS},
    _E.SubagentStop: {Effect.CLEAR: NO_CLEAR},
}


class VSCodeHost(ClaudeHost):
    """The agent of Visual Studio Code."""

    name = "vscode"
    files = HostFiles(
        project=".github/hooks/hookline-vscode.json",
        user="~/.copilot/hooks/hookline-vscode.json",
        layout=Layout.ENTRIES,
        extra={"type": "command"},
        default_ms=30_000,
        names_event=True,
        at_root=True,
        readers=("copilot",),
    )
    places = r"\.vscode/[^/]+"
    title = "VS Code"
    tested: str | None = None
    events: Mapping[str, HookEventName] = {
        name: event
        for name, event in CLAUDE_EVENTS.items()
        if event not in (_E.SessionEnd, _E.Notification)
    }
    ignored: frozenset[str] = frozenset()
    tools: Mapping[str, str] = TOOLS | tool_names(
        {
            Tool.SHELL: "run_in_terminal runInTerminal runTerminalCommand "
            "send_to_terminal",
            Tool.READ: "read_file readFile",
            Tool.WRITE: "create_file createFile insert_edit_into_file",
            Tool.REPLACE: "replace_string_in_file multi_replace_string_in_file "
            "editFiles",
            Tool.PATCH: "apply_patch",
            Tool.DELETE: "deleteFile",
            Tool.GLOB: "file_search",
            Tool.GREP: "grep_search",
            Tool.LIST: "list_dir",
            Tool.FETCH: "fetch_webpage",
            Tool.TASK: "runSubagent",
        }
    )
    project_variables: tuple[str, ...] = ()
    name_fields = ("hookEventName", "hook_event_name")
    session_fields = ("sessionId", "session_id")
    limits = LIMITS

    def event_name(self, payload: Wire, argument: str | None) -> str:
        """Its name is in the JSON; Copilot's files call it by another name."""
        name = super().event_name(payload, argument)
        return f"{name[:1].upper()}{name[1:]}"

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""
        match event.event:
            case _E.AfterTool if verdict.withheld or verdict.stop:
                wire = end(verdict.refusal())
            case _E.BeforeAgent | _E.SubagentStart if verdict.ends:
                wire = end(verdict.refusal())
            case _E.AfterAgent if verdict.stop:
                wire = end(verdict.refusal())
            case _E.AfterTool:
                wire = show(verdict.remark(escaped=False), verdict.notice)
            case _E.BeforeAgent:
                wire = show(verdict.model_text(escaped=False), verdict.notice)
            case _E.AfterAgent if verdict.blocked:
                wire = specific(event, **block(verdict.refusal()))
                wire |= show(verdict.message)
            case _:
                return super().write(event, verdict)
        return json_answer(wire)


HOST = VSCodeHost()
