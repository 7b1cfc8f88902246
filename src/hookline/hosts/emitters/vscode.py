"""VS Code: the shape of Claude Code, and fewer answers.

Written by its documentation alone: it was not run (docs/how-to/hosts/vscode.md), and
everybody who uses it is told so.
"""

from __future__ import annotations

from hookline.hosts import effects, verbs
from hookline.hosts.effects import Effect
from hookline.hosts.host import HostEvent, HostFiles, Layout
from hookline.hosts.host_verdict import Answer, HostVerdict, Wire
from hookline.hosts.tools import Tool, tool_names
from hookline.protocol.dialects import CLAUDE_EVENTS
from hookline.protocol.events import HookEventName

from .claude import ClaudeHost

_E = HookEventName
_SESSION_ENDS = "the whole session stops"


class VSCodeHost(ClaudeHost):
    """The agent of Visual Studio Code."""

    name = "vscode"
    title = "VS Code"
    tested = None
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
    project_variables = ()
    events = {
        name: event
        for name, event in CLAUDE_EVENTS.items()
        if event not in (_E.SessionEnd, _E.Notification)
    }
    ignored = frozenset()
    spelled = {
        "hook_event_name": "hookEventName hook_event_name",
        "session_id": "sessionId session_id",
    }
    tools = ClaudeHost.tools | tool_names(
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
    limits = {
        _E.AfterTool: {
            Effect.BLOCK: effects.TO_PERSON,
            Effect.CONTEXT: effects.TO_PERSON,
            Effect.MESSAGE: effects.TO_PERSON,
            Effect.WITHHOLD: "the whole session stops before the model sees the result",
        },
        _E.BeforeAgent: {
            Effect.BLOCK: _SESSION_ENDS,
            Effect.CONTEXT: effects.TO_PERSON,
            Effect.MESSAGE: effects.TO_PERSON,
        },
        _E.SubagentStart: {Effect.BLOCK: _SESSION_ENDS},
    }

    def event_name(self, payload: Wire, argument: str | None) -> str:
        """Its name is in the JSON; Copilot's files call it by another name."""
        name = super().event_name(payload, argument)
        return f"{name[:1].upper()}{name[1:]}"

    def answer(self, event: HostEvent, verdict: HostVerdict) -> Wire | Answer:
        """What to write."""
        match event.event:
            case _E.AfterTool if verdict.withheld or verdict.stop:
                return verbs.end(verdict.refusal())
            case _E.BeforeAgent | _E.SubagentStart if verdict.ends:
                return verbs.end(verdict.refusal())
            case _E.AfterAgent if verdict.stop:
                return verbs.end(verdict.refusal())
            case _E.AfterTool:
                return verbs.show(verdict.remark(escaped=False))
            case _E.BeforeAgent:
                return verbs.show(verdict.model_text(escaped=False))
            case _E.AfterAgent if verdict.blocked:
                rejected = verbs.specific(event.name, **verbs.block(verdict.refusal()))
                return rejected | verbs.show(verdict.message)
        return super().answer(event, verdict)


HOST = VSCodeHost()
