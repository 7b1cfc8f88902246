"""Codex: Claude Code's JSON on stdin, and answers in keys that Codex accepts.

Observed with the program (docs/how-to/hosts/codex.md). Codex drops an answer with a key
that it does not know, or a block without a reason, and then runs the tool: every event
has its own keys here, and a reason is never empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.hosts.host import (
    Answer,
    HostEvent,
    HostFiles,
    block,
    deny,
    end,
    json_answer,
    required,
    show,
    specific,
    tool_result,
    with_notice,
)
from hookline.hosts.host_verdict import (
    NO_CLEAR,
    RESULT_SHOWN,
    TOLD_NOT_TO_WORK,
    WITHHELD,
    Effect,
    HostVerdict,
    Limits,
    Wire,
)
from hookline.hosts.tools import Tool, tool_names
from hookline.protocol.dialects import CLAUDE_EVENTS
from hookline.protocol.events import HookEventName

from .claude import ClaudeHost

_E = HookEventName
_TO_PERSON = "the person sees it, the model does not"
LIMITS: Limits = {
    _E.BeforeTool: {
        Effect.ASK: "nobody can be asked: hooksConfig.onAsk decides",
        Effect.STOP: "the call is denied, and the turn goes on",
    },
    _E.AfterTool: {
        Effect.STOP: "the reason takes the place of the result, and the turn goes on",
        Effect.SUPPRESS: RESULT_SHOWN,
    },
    _E.AfterAgent: {Effect.CLEAR: NO_CLEAR, Effect.MESSAGE: _TO_PERSON},
    _E.SessionEnd: {Effect.MESSAGE: "Codex reads no answer when a session ends"},
    _E.PreCompress: {Effect.MESSAGE: _TO_PERSON},
    _E.SubagentStart: {
        Effect.BLOCK: TOLD_NOT_TO_WORK,
        Effect.STOP: TOLD_NOT_TO_WORK,
    },
    _E.SubagentStop: {Effect.CLEAR: NO_CLEAR, Effect.MESSAGE: _TO_PERSON},
}


class CodexHost(ClaudeHost):
    """Codex."""

    name = "codex"
    files = HostFiles(
        project=".codex/hooks.json",
        user="$CODEX_HOME/hooks.json",
        homes={"CODEX_HOME": "~/.codex"},
        trusted_in="$CODEX_HOME/config.toml",
        is_strict=True,
        off=(("features", "hooks"), False),
        off_in=("$CODEX_HOME/config.toml",),
        extra={"type": "command"},
        default_ms=600_000,
        approval="only after you have trusted it in Codex (/hooks)",
        next_step="start codex, open /hooks and trust the hooks, again after each "
        "change: until then Codex does not run them, and does not say so",
    )
    places = r"\.codex/[^/]+"
    title = "Codex"
    tested: str | None = "0.166.0"
    events: Mapping[str, HookEventName] = {
        name: event for name, event in CLAUDE_EVENTS.items() if name != "Notification"
    }
    ignored = frozenset(
        {"PermissionRequest", "PostCompact", "Interrupt"}
        | {"PreModelRequest", "PostModelRequest"}
    )
    asks = False
    tools: Mapping[str, str] = tool_names(
        {
            # The last two are what is typed into a shell that runs already.
            Tool.SHELL: "Bash shell local_shell shell_command exec_command "
            "write_stdin unified_exec",
            Tool.PATCH: "apply_patch",
            Tool.READ: "view_image read_file",
            Tool.LIST: "list_dir",
            Tool.GREP: "grep_files",
            Tool.TASK: "spawn_agent",
        }
    )
    project_variables: tuple[str, ...] = ()
    limits = LIMITS

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """A result in our shape: text, but for tools of other servers."""
        response = required(payload, "tool_response")
        if not self.server(tool, payload) or not isinstance(response, dict):
            return tool_result(response)
        blocks = response.get("content")
        content: Any = response
        if isinstance(blocks, list):
            texts = [item.get("text") for item in blocks if isinstance(item, dict)]
            texts = [text for text in texts if isinstance(text, str)]
            if len(texts) == len(blocks):
                content = "\n".join(filter(None, texts))
        is_error = response.get("isError") is True
        result = tool_result(content, content if is_error else None)
        return result | {"metadata": response}

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""
        match event.event:
            case _E.BeforeTool if verdict.ends or verdict.ask:
                reason = verdict.short_refusal().strip()
                wire = deny(event, reason, verdict.model_text())
            case _E.BeforeTool:
                values: Wire = {}
                if verdict.tool_input is not None:
                    values["permissionDecision"] = "allow"
                    values["updatedInput"] = verdict.tool_input
                wire = specific(event, verdict.model_text(), **values)
            # Its own block hides the result: an objection goes beside it
            # (hosts/README.md#rules 3).
            case _E.AfterTool if verdict.withheld:
                wire = block(verdict.refusal(WITHHELD).strip())
            case _E.AfterTool if verdict.stop:
                wire = end(verdict.short_refusal().strip())
                wire |= specific(event, verdict.model_text())
            case _E.AfterTool:
                wire = specific(event, verdict.remark())
            case _E.BeforeAgent if verdict.ends:
                # Nobody but the person reads the reason of a blocked prompt.
                wire = block(verdict.refusal().strip())
            case _E.BeforeAgent | _E.SessionStart | _E.SubagentStart:
                return super().write(event, verdict)
            case _E.AfterAgent | _E.SubagentStop if verdict.stop:
                wire = end(verdict.stop_reason) | show(verdict.message)
            case _E.AfterAgent | _E.SubagentStop if verdict.blocked:
                # The reason is the next prompt: everything for the model is in it.
                wire = block(verdict.refusal().strip())
            case _E.AfterAgent | _E.SubagentStop | _E.PreCompress:
                wire = show(verdict.message)
            case _:
                return json_answer({})
        # A message goes with the reason of a block.
        expressed = (Effect.MESSAGE,) if "decision" in wire else ()
        return json_answer(with_notice(wire, verdict), *expressed)


HOST = CodexHost()
