"""Codex: Claude Code's JSON on stdin, and answers in keys that Codex accepts.

Observed with the program (docs/how-to/hosts/codex.md). Codex drops an answer with a key
that it does not know, or a block without a reason, and then runs the tool: every event
has its own keys here, and a reason is never empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from hookline.protocol.dialects import CLAUDE_EVENTS, CLAUDE_MCP_TOOL
from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import BLOCKED_BY_HOOK

from .claude import ClaudeHost
from .host import (
    Answer,
    BadInputError,
    Effect,
    HostEvent,
    HostName,
    Limits,
    Verdict,
    Wire,
    json_answer,
    tool_result,
)
from .tools import GREP, LIST, PATCH, READ, SHELL, TASK

_E = HookEventName
_TOOLS = {
    "Bash": SHELL,
    "shell": SHELL,
    "local_shell": SHELL,
    "shell_command": SHELL,
    "exec_command": SHELL,
    # What they type into a shell that runs already.
    "write_stdin": SHELL,
    "unified_exec": SHELL,
    "apply_patch": PATCH,
    "view_image": READ,
    "read_file": READ,
    "list_dir": LIST,
    "grep_files": GREP,
    "spawn_agent": TASK,
}
_NEEDED: Mapping[HookEventName | None, tuple[str, ...]] = {
    _E.BeforeTool: ("tool_input",),
    _E.AfterTool: ("tool_input", "tool_response"),
}
_WITHHELD = "withheld by a hook"
_NO_CLEAR = "the context stays as it is"
_TO_PERSON = "the person sees it, the model does not"
_AGENT_STARTS = "the subagent starts, and is told not to work"

LIMITS: Limits = {
    _E.BeforeTool: {
        Effect.ASK: "nobody can be asked: hooksConfig.onAsk decides",
        Effect.STOP: "the call is denied, and the turn goes on",
    },
    _E.AfterTool: {
        Effect.STOP: "the reason takes the place of the result, and the turn goes on",
        Effect.SUPPRESS: "the result is shown to the person",
    },
    _E.AfterAgent: {Effect.CLEAR: _NO_CLEAR, Effect.MESSAGE: _TO_PERSON},
    _E.SessionEnd: {Effect.MESSAGE: "Codex reads no answer when a session ends"},
    _E.PreCompress: {Effect.MESSAGE: _TO_PERSON},
    _E.SubagentStart: {Effect.BLOCK: _AGENT_STARTS, Effect.STOP: _AGENT_STARTS},
    _E.SubagentStop: {Effect.CLEAR: _NO_CLEAR, Effect.MESSAGE: _TO_PERSON},
}


class CodexHost(ClaudeHost):
    """Codex."""

    name = HostName.CODEX
    title = "Codex"
    tested: str | None = "0.166.0"
    events: Mapping[str, HookEventName] = {
        name: ours for name, ours in CLAUDE_EVENTS.items() if name != "Notification"
    }
    ignored = frozenset(
        {"PermissionRequest", "PostCompact", "Interrupt"}
        | {"PreModelRequest", "PostModelRequest"}
    )
    asks = False
    project_variables: tuple[str, ...] = ()
    tools: Mapping[str, str] = _TOOLS
    limits = LIMITS

    def read(self, given: Wire, name: str) -> HostEvent:
        """Read an event of this name."""
        event = super().read(given, name)
        needed = _NEEDED.get(event.event, ())
        if missing := [key for key in needed if key not in given]:
            raise BadInputError(f"{missing[0]}: missing")
        fields = event.fields
        if event.call is not None and event.event is _E.AfterTool:
            response = _response(event.call.name, given["tool_response"])
            fields = fields | {"tool_response": response}
        elif fields.get("source") == "fork":
            fields = fields | {"source": "resume"}
        return structs.replace(event, fields=fields)

    def write(self, event: HostEvent, verdict: Verdict) -> Answer:
        """Write what the hooks said."""
        match event.event:
            case _E.BeforeTool:
                wire = _before_tool(event, verdict)
            case _E.AfterTool:
                wire = _after_tool(event, verdict)
            case _E.BeforeAgent:
                wire = _refusing(verdict) or _specific(event, verdict.told())
            case _E.AfterAgent | _E.SubagentStop:
                wire = _after_agent(verdict)
            case _E.SessionStart:
                wire = _specific(event, verdict.told())
            case _E.SubagentStart:
                wire = _specific(event, verdict.told_to_subagent())
            case _E.PreCompress:
                wire = {"systemMessage": verdict.message}
            case _:
                return json_answer({})
        shown = [wire.get("systemMessage"), verdict.notice]
        # A message goes with the reason of a block.
        expressed = (Effect.MESSAGE,) if "decision" in wire else ()
        wire |= {"systemMessage": "\n".join(filter(None, shown))}
        return json_answer(wire, *expressed)


def _response(name: str, response: Any) -> Wire:
    """A result in our shape: text, but for tools of other servers."""
    content = response
    found: Wire = {}
    if CLAUDE_MCP_TOOL.fullmatch(name) and isinstance(response, dict):
        blocks = response.get("content")
        texts = [_text(one) for one in blocks] if isinstance(blocks, list) else [None]
        found["metadata"] = response
        if all(text is not None for text in texts):
            content = "\n".join(filter(None, texts))
        if response.get("isError") is True:
            found["error"] = {"message": content}
    return tool_result(content) | found


def _text(block: Any) -> str | None:
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else None


def _before_tool(event: HostEvent, verdict: Verdict) -> Wire:
    if verdict.blocked or verdict.stopped or verdict.ask:
        denied = {"permissionDecision": "deny"}
        denied["permissionDecisionReason"] = _reason(verdict, BLOCKED_BY_HOOK)
        return _specific(event, verdict.told(), **denied)
    if verdict.tool_input is None:
        return _specific(event, verdict.told())
    changed = {"permissionDecision": "allow", "updatedInput": verdict.tool_input}
    return _specific(event, verdict.told(), **changed)


def _after_tool(event: HostEvent, verdict: Verdict) -> Wire:
    """Its own block hides the result: an objection goes beside it.

    hosts/README.md#rules 3
    """
    if verdict.withheld:
        reason = verdict.refusal().strip() or _WITHHELD
        return {"decision": "block", "reason": reason}
    if verdict.stopped:
        reason = _reason(verdict, BLOCKED_BY_HOOK)
        stop = {"continue": False, "stopReason": reason}
        return stop | _specific(event, verdict.told())
    return _specific(event, verdict.remark())


def _refusing(verdict: Verdict) -> Wire:
    """The block of a prompt; nobody but the person reads its reason."""
    if not (verdict.blocked or verdict.stopped):
        return {}
    reason = verdict.refusal().strip() or BLOCKED_BY_HOOK
    return {"decision": "block", "reason": reason}


def _after_agent(verdict: Verdict) -> Wire:
    if verdict.stopped:
        stop = {"continue": False, "stopReason": verdict.stop_reason}
        return stop | {"systemMessage": verdict.message}
    if verdict.blocked:
        # The reason is the next prompt: everything for the model goes into it.
        return {
            "decision": "block",
            "reason": verdict.refusal().strip() or BLOCKED_BY_HOOK,
        }
    return {"systemMessage": verdict.message}


def _reason(verdict: Verdict, default: str) -> str:
    stop = verdict.stop_reason if verdict.stopped else ""
    found = [stop, verdict.reason] if not verdict.blocked else [verdict.reason, stop]
    return next((one.strip() for one in found if one.strip()), default)


def _specific(event: HostEvent, context: str = "", **said: Any) -> Wire:
    found = said | ({"additionalContext": context} if context else {})
    if not found:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event.name, **found}}
