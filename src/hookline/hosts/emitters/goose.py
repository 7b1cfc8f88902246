"""Goose, by Block: a bare block before a tool and at the end of a turn.

Written by its documentation alone: it was not run (docs/how-to/hosts/goose.md), and
everybody who uses it is told so.
"""

from __future__ import annotations

import re

from hookline.hosts import effects, verbs
from hookline.hosts.effects import Effect
from hookline.hosts.host import Host, HostEvent, HostFiles
from hookline.hosts.host_verdict import Answer, HostVerdict
from hookline.hosts.tools import Tool
from hookline.protocol.events import HookEventName

_E = HookEventName
_TOOLS = {
    "shell": Tool.SHELL,
    "write": Tool.WRITE,
    "edit": Tool.REPLACE,
    "text_editor": Tool.EDITOR,
    "tree": Tool.LIST,
}


class GooseHost(Host):
    """Goose."""

    name = "goose"
    title = "Goose"
    files = HostFiles(
        project=".agents/plugins/hookline/hooks/hooks.json",
        user="~/.agents/plugins/hookline/hooks/hooks.json",
        extra={"type": "command"},
        closed={"on_failure": "block"},
        manifest=("../plugin.json", {"name": "hookline", "version": "1.0.0"}),
    )
    places = r"(\.agents|goose)/plugins/[^/]+/(hooks/)?[^/]+"
    hook_keys = frozenset({"on_failure"})
    events = {
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
    spelled = {
        "hook_event_name": "event",
        "cwd": "working_dir",
        "tool_use_id": "tool_call_id",
        "tool_response": "tool_response tool_output",
        "prompt": "message",
        "last_assistant_message": "last_assistant_message assistant_response",
    }
    tools = {**{f"developer__{name}": _TOOLS[name] for name in _TOOLS}, **_TOOLS}
    server_tool = re.compile(r"(?s)(?!developer__)(.*?)__(.*)")
    limits = {
        _E.BeforeTool: effects.REFUSALS_ALONE,
        **effects.unheard(
            effects.NOT_READ,
            _E.AfterTool,
            _E.BeforeAgent,
            _E.SessionStart,
            _E.SessionEnd,
        ),
        **effects.unheard(
            effects.NOT_READ, _E.AfterAgent, keep=(Effect.BLOCK, Effect.STOP)
        ),
    }

    def answer(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Nothing at all where nothing is blocked: ``{}`` counts as a failure."""
        is_blocked = event.event is _E.BeforeTool and verdict.ends
        if is_blocked or (event.event is _E.AfterAgent and verdict.rejects):
            return self.refuse(verdict.refusal())
        return Answer()

    def refuse(self, reason: str) -> Answer:
        """Block a tool, or the end of a turn."""
        return verbs.json_answer(verbs.block(reason))


HOST = GooseHost()
