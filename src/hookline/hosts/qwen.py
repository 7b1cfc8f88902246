"""Qwen Code: Claude Code's events, Gemini CLI's tools, and fewer answers.

Observed with the program (docs/how-to/hosts/qwen.md). It goes on where a hook of Stop
says ``continue: false``, ignores a changed input and a block after a tool, and runs the
tool if an answer is longer than it reads: what it cannot do is written in the stricter
form, and texts are cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import BLOCKED_BY_HOOK

from .claude import BATCH, FAILURE, ClaudeHost
from .host import (
    Answer,
    Effect,
    HostEvent,
    HostName,
    Limits,
    Verdict,
    Wire,
    escape,
    json_answer,
)
from .postponed import postpone_stop, take_stop
from .tools import GREP, REPLACE, SHELL, TASK

_E = HookEventName
TOOLS = {
    "edit": REPLACE,
    "notebook_edit": REPLACE,
    "monitor": SHELL,
    "grep_search": GREP,
    "agent": TASK,
}
_LONGEST = 64 * 1024
_PERSON = "shown to the person, not to the model"
_NOT_BEFORE = "lost, unless it comes with a block: say it after the tool"
_AGENT_STARTS = "the subagent starts: block the tool task instead"
_NO_CLEAR = "the context stays as it is"

LIMITS: Limits = {
    _E.BeforeTool: {
        Effect.CHANGE: "the tool does not run; the model is told the changed input",
        Effect.CONTEXT: _NOT_BEFORE,
        Effect.MESSAGE: _PERSON,
        Effect.STOP: "the tool does not run, and the turn goes on",
    },
    _E.AfterTool: {
        Effect.WITHHOLD: "that of a failed tool, with all results of its turn",
        Effect.SUPPRESS: "the result is shown to the person",
        Effect.STOP: "the turn goes on without the result",
    },
    _E.AfterAgent: {Effect.CLEAR: _NO_CLEAR},
    _E.SessionEnd: {Effect.MESSAGE: _PERSON},
    _E.Notification: {Effect.MESSAGE: _PERSON},
    _E.PreCompress: {Effect.MESSAGE: _PERSON},
    _E.SubagentStart: {
        Effect.BLOCK: _AGENT_STARTS,
        Effect.CONTEXT: "lost",
        Effect.MESSAGE: _PERSON,
        Effect.STOP: _AGENT_STARTS,
    },
    _E.SubagentStop: {Effect.CLEAR: _NO_CLEAR},
}


class QwenHost(ClaudeHost):
    """Qwen Code."""

    name = HostName.QWEN
    title = "Qwen Code"
    tested: str | None = "0.24.4"
    ignored = frozenset(
        {
            *("UserPromptExpansion", "MessageDisplay", "PostCompact"),
            *("SessionDelete", "PermissionRequest", "PermissionDenied", "StopFailure"),
            *("TodoCreated", "TodoCompleted", "InstructionsLoaded"),
        }
    )
    project_variables: tuple[str, ...] = ("QWEN_PROJECT_DIR",)
    tools: Mapping[str, str] = TOOLS
    limits = LIMITS

    def read(self, given: Wire, name: str) -> HostEvent:
        """Read an event of this name."""
        read = super().read(given, name)
        if read.event is _E.BeforeAgent and not read.fields["prompt"]:
            # The result of a tool, and no prompt (hosts/README.md#rules 6).
            return structs.replace(read, event=None)
        return structs.replace(read, fields=read.fields | _own_fields(read))

    def write(self, event: HostEvent, verdict: Verdict) -> Answer:
        """Write what the hooks said."""
        match event.event:
            case _E.BeforeTool:
                wire = _before_tool(verdict)
            case _E.AfterTool:
                wire = _after_tool(event, verdict)
            case _E.BeforeAgent:
                wire = _blocking(verdict) or _context(verdict.told())
            case _E.AfterAgent | _E.SubagentStop:
                wire = _ending(verdict)
            case _E.SessionStart:
                wire = _context(verdict.told())
            case None if event.name == BATCH:
                # It replaces the results of all tools of the turn.
                wire = take_stop(event)
            case _:
                wire = _shown(verdict.message)
        wire |= _shown(wire.get("systemMessage"), verdict.notice)
        if specific := wire.get("hookSpecificOutput"):
            wire["hookSpecificOutput"] = {"hookEventName": event.name, **specific}
        return json_answer(wire, *_expressed(event, verdict))


def _own_fields(read: HostEvent) -> Wire:
    """What it sends in another way than Claude Code."""
    response = read.given.get("tool_response")
    if read.event is _E.AfterTool and isinstance(response, dict):
        return {"tool_response": response}
    if read.event is _E.AfterAgent and "prompt_id" not in read.given:
        # Versions that do not send it call the first answer a second one.
        return {"stop_hook_active": False}
    return {}


def _expressed(event: HostEvent, verdict: Verdict) -> tuple[Effect, ...]:
    """What some answers about a tool cannot say, and this one does."""
    if event.event is _E.BeforeTool and (verdict.blocked or verdict.stopped):
        return Effect.CONTEXT, Effect.MESSAGE
    is_result = event.event is _E.AfterTool and event.name != FAILURE
    return (Effect.WITHHOLD,) if is_result else ()


def _before_tool(verdict: Verdict) -> Wire:
    if verdict.blocked or verdict.stopped:
        return _decision("deny", verdict.refusal() or BLOCKED_BY_HOOK)
    shown = _shown(verdict.message)
    if not verdict.ask:
        return shown
    return _decision("ask", verdict.reason or verdict.message) | shown


def _decision(decision: str, reason: str) -> Wire:
    said = {"permissionDecision": decision, "permissionDecisionReason": _cut(reason)}
    return {"hookSpecificOutput": said}


def _after_tool(event: HostEvent, verdict: Verdict) -> Wire:
    remark = verdict.remark()
    if event.name == FAILURE:
        if verdict.withheld or verdict.stopped:
            postpone_stop(event, _cut(verdict.refusal() or BLOCKED_BY_HOOK))
        stop = escape(verdict.stop_reason) if verdict.stopped else ""
        return _context("\n\n".join(filter(None, [stop, remark])))
    if verdict.withheld or verdict.stopped:
        reason = verdict.refusal() or "withheld by a hook"
        return {"continue": False, "stopReason": _cut(reason)}
    return _context(remark)


def _blocking(verdict: Verdict) -> Wire:
    if not verdict.blocked and not verdict.stopped:
        return {}
    return {"decision": "block", "reason": _cut(verdict.refusal() or BLOCKED_BY_HOOK)}


def _ending(verdict: Verdict) -> Wire:
    if verdict.stopped:
        # ``continue: false`` would be a block: it ends if nothing is said.
        return _shown(verdict.stop_reason, verdict.message)
    return _blocking(verdict) or _shown(verdict.message)


def _context(text: str) -> Wire:
    said: Wire = {"additionalContext": _cut(text)}
    return {"hookSpecificOutput": said} if text else {}


def _shown(*texts: Any) -> Wire:
    found = "\n".join(filter(None, texts))
    return {"systemMessage": _cut(found)} if found else {}


def _cut(text: str) -> str:
    """Keep an answer below the 1 MiB that Qwen Code reads of it."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [cut]"
