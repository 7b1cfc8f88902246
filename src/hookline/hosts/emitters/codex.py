"""Codex: Claude Code's JSON on stdin, and answers in keys that Codex accepts.

Observed with the program (docs/how-to/hosts/codex.md). Codex drops an answer with a key
that it does not know, or a block without a reason, and then runs the tool: every event
has its own keys here, and a reason is never empty.
"""

from __future__ import annotations

from typing import Any

from hookline.hosts import effects, verbs
from hookline.hosts.effects import Effect
from hookline.hosts.host import HostEvent, HostFiles, required, tool_result
from hookline.hosts.host_verdict import WITHHELD, Answer, HostVerdict, Wire
from hookline.hosts.tools import Tool, tool_names
from hookline.protocol.dialects import CLAUDE_EVENTS
from hookline.protocol.events import HookEventName

from .claude import ClaudeHost

_E = HookEventName
_TO_PERSON = "the person sees it, the model does not"


class CodexHost(ClaudeHost):
    """Codex."""

    name = "codex"
    title = "Codex"
    tested = "0.166.0"
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
    hook_keys = frozenset({"commandWindows", "additionalContextLimit"})
    project_variables = ()
    events = {
        name: event for name, event in CLAUDE_EVENTS.items() if name != "Notification"
    }
    ignored = frozenset(
        {"PermissionRequest", "PostCompact", "Interrupt"}
        | {"PreModelRequest", "PostModelRequest"}
    )
    tools = tool_names(
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
    limits = {
        _E.BeforeTool: {
            Effect.ASK: "nobody can be asked: hooksConfig.onAsk decides",
            Effect.STOP: "the call is denied, and the turn goes on",
        },
        _E.AfterTool: {
            Effect.STOP: "the reason takes the place of the result, "
            "and the turn goes on",
        },
        _E.AfterAgent: {Effect.MESSAGE: _TO_PERSON},
        _E.SessionEnd: {Effect.MESSAGE: "Codex reads no answer when a session ends"},
        _E.PreCompress: {Effect.MESSAGE: _TO_PERSON},
        _E.SubagentStart: effects.NOT_STARTED,
        _E.SubagentStop: {Effect.MESSAGE: _TO_PERSON},
    }
    asks = False

    def response(self, tool: str, name: str, payload: Wire) -> Wire:
        """A result in our shape: text, but for tools of other servers."""
        response = required(payload, "tool_response")
        if not self.server_tool.fullmatch(tool) or not isinstance(response, dict):
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

    def answer(self, event: HostEvent, verdict: HostVerdict) -> Wire | Answer:
        """What to write."""
        context = verdict.model_text()
        match event.event:
            case _E.BeforeTool if verdict.ends or verdict.ask:
                denied = verbs.deny(verdict.short_refusal().strip())
                return verbs.specific(event.name, context, **denied)
            case _E.BeforeTool if verdict.tool_input is not None:
                changed = {"permissionDecision": "allow"}
                changed |= {"updatedInput": verdict.tool_input}
                return verbs.specific(event.name, context, **changed)
            case _E.BeforeTool:
                return verbs.specific(event.name, context)
            # Its own block hides the result: an objection goes beside it
            # (hosts/README.md#rules 3).
            case _E.AfterTool if verdict.withheld:
                return verbs.block(verdict.refusal(WITHHELD).strip())
            case _E.AfterTool if verdict.stop:
                reason = verdict.short_refusal().strip()
                return verbs.end(reason) | verbs.specific(event.name, context)
            case _E.AfterTool:
                return verbs.specific(event.name, verdict.remark())
            case _E.BeforeAgent if verdict.ends:
                # Nobody but the person reads the reason of a blocked prompt.
                return verbs.block(verdict.refusal().strip())
            case _E.BeforeAgent | _E.SessionStart | _E.SubagentStart:
                return super().answer(event, verdict)
            case _E.AfterAgent | _E.SubagentStop if verdict.stop:
                return verbs.end(verdict.stop_reason) | verbs.show(verdict.message)
            case _E.AfterAgent | _E.SubagentStop if verdict.blocked:
                # The reason is the next prompt: everything for the model is in it.
                return verbs.block(verdict.refusal().strip())
            case _E.AfterAgent | _E.SubagentStop | _E.PreCompress:
                return verbs.show(verdict.message)
        return verbs.json_answer({})


HOST = CodexHost()
