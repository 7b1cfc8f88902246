"""Kiro, and the Amazon Q CLI that it comes from: exit 2 is a block.

Written by its documentation alone: it was not run (docs/how-to/hosts/kiro.md), and
everybody who uses it is told so.
"""

from __future__ import annotations

import re

from hookline.hosts import effects
from hookline.hosts.effects import Effect
from hookline.hosts.host import Host, HostEvent, HostFiles, Layout
from hookline.hosts.host_verdict import Answer, HostVerdict, Wire
from hookline.hosts.tools import Tool, tool_names
from hookline.protocol.events import HookEventName

_E = HookEventName


class KiroHost(Host):
    """Kiro."""

    name = "kiro"
    title = "Kiro"
    files = HostFiles(
        project=".kiro/hooks/hookline.json",
        user="~/.kiro/hooks/hookline.json",
        layout=Layout.TRIGGERS,
        head={"version": "v1"},
        names_event=True,
    )
    places = r"\.(kiro|amazonq)/([^/]+/)?[^/]+|amazonq/cli-agents/[^/]+"
    hook_keys = frozenset({"timeout_ms", "trigger"})
    events = {
        "PreToolUse": _E.BeforeTool,
        "PostToolUse": _E.AfterTool,
        "UserPromptSubmit": _E.BeforeAgent,
        "Stop": _E.AfterAgent,
        "SessionStart": _E.SessionStart,
    }
    # The names before version 3, which Amazon Q has too.
    aliases = {
        "agentSpawn": "SessionStart",
        "userPromptSubmit": "UserPromptSubmit",
        "preToolUse": "PreToolUse",
        "postToolUse": "PostToolUse",
        "stop": "Stop",
    }
    ignored = frozenset(
        {
            *("PreTaskExec", "PostTaskExec", "Manual"),
            *("PostFileCreate", "PostFileSave", "PostFileDelete"),
        }
    )
    spelled = {"last_assistant_message": "last_assistant_message assistant_response"}
    tools = tool_names(
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
    server_tool = re.compile(r"(?s)@(.*?)/(.*)")
    limits = {
        _E.BeforeTool: effects.REFUSALS_ALONE,
        **effects.unheard(effects.NOT_READ, _E.AfterTool),
        **effects.unheard(effects.NOT_READ, _E.AfterAgent, keep=(Effect.STOP,)),
    }

    def answer(self, event: HostEvent, verdict: HostVerdict) -> Wire | Answer:
        """What a hook prints is context of a prompt or a session."""
        context = verdict.model_text()
        is_refused = event.event is _E.BeforeAgent and verdict.ends
        is_heard = event.event in (_E.BeforeAgent, _E.SessionStart)
        if context and is_heard and not is_refused:
            return Answer(f"{context}\n".encode(errors="replace"))
        return super().answer(event, verdict)


HOST = KiroHost()
