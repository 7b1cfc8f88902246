"""Claude Code: its JSON on a hook's stdin, and the answers that it obeys.

Observed with the program (docs/hosts.md). A deny goes out with a stop, because Claude
Code runs the tool before it obeys ``continue``; a result of another shape than the
tool's own is ignored, so one that must be withheld and cannot be replaced ends the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.protocol.dialects import (
    CLAUDE_EVENTS,
    CLAUDE_MCP_TOOL,
    CLAUDE_NOTIFICATIONS,
    claude_content,
    claude_replacement,
)
from hookline.protocol.events import HookEventName

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
    text_field,
)
from .tools import (
    FETCH,
    GLOB,
    GREP,
    LIST,
    READ,
    REPLACE,
    SEARCH,
    SHELL,
    TASK,
    WRITE,
    ToolCall,
    read_call,
)

_E = HookEventName
TOOLS = {
    "Bash": SHELL,
    "Read": READ,
    "Write": WRITE,
    "Edit": REPLACE,
    "MultiEdit": REPLACE,
    "Glob": GLOB,
    "Grep": GREP,
    "LS": LIST,
    "WebFetch": FETCH,
    "WebSearch": SEARCH,
    "Task": TASK,
    "Agent": TASK,
}
FAILURE = "PostToolUseFailure"
_SOURCES = {"compact": "compress"}
_CARRIED = ("tool_use_id", "permission_mode", "agent_id", "agent_type")
_NO_CLEAR = "the context stays as it is"
_AGENT_STARTS = "the subagent starts, and is told not to work"

LIMITS: Limits = {
    _E.AfterTool: {
        Effect.WITHHOLD: "the run ends where a tool's result cannot be replaced",
        Effect.SUPPRESS: "the result is shown to the person",
    },
    _E.AfterAgent: {Effect.CLEAR: _NO_CLEAR},
    _E.SubagentStart: {Effect.BLOCK: _AGENT_STARTS, Effect.STOP: _AGENT_STARTS},
    _E.SubagentStop: {Effect.CLEAR: _NO_CLEAR},
}


class ClaudeHost:
    """Claude Code."""

    name = HostName.CLAUDE
    title = "Claude Code"
    tested: str | None = "2.1.325"
    events: Mapping[str, HookEventName] = {**CLAUDE_EVENTS, FAILURE: _E.AfterTool}
    ignored = frozenset({"PostToolBatch", "MessageDisplay", "PostCompact"})
    asks = True
    project_variables: tuple[str, ...] = ("CLAUDE_PROJECT_DIR",)
    tools: Mapping[str, str] = TOOLS
    limits = LIMITS

    def event_name(self, given: Wire, argument: str | None) -> str:
        """Its name is in the JSON."""
        return text_field(given, "hook_event_name", default=argument)

    def read(self, given: Wire, name: str) -> HostEvent:
        """Read an event of this name."""
        ours = self.events.get(name)
        if ours is None and name not in self.ignored:
            raise BadInputError(f"unknown event {name!r}")
        call = self._call(given) if ours in (_E.BeforeTool, _E.AfterTool) else None
        carried = {key: given[key] for key in _CARRIED if given.get(key) is not None}
        fields = {} if ours is None else _fields(ours, given, call)
        return HostEvent(
            name=name,
            event=ours,
            fields=carried | fields,
            call=call,
            given=given,
            session_id=text_field(given, "session_id", default=""),
            transcript_path=text_field(given, "transcript_path", default=""),
            cwd=text_field(given, "cwd", default=""),
        )

    def _call(self, given: Wire) -> ToolCall:
        name = text_field(given, "tool_name")
        return read_call(name, given.get("tool_input"), self.tools)

    def write(self, event: HostEvent, verdict: Verdict) -> Answer:
        """Write what the hooks said."""
        match event.event:
            case _E.BeforeTool:
                wire = _before_tool(event, verdict)
            case _E.AfterTool:
                wire = _after_tool(event, verdict)
            case _E.BeforeAgent:
                wire = _blocking(verdict) | _specific(event, _told(verdict))
            case _E.AfterAgent | _E.SubagentStop:
                wire = _blocking(verdict) | _shown(verdict.message)
            case _E.SessionStart:
                wire = _specific(event, _told(verdict))
            case _E.SubagentStart:
                wire = _specific(event, _told_to_subagent(verdict))
            case _:
                wire = _shown(verdict.message)
        return json_answer(wire | _shown(wire.get("systemMessage"), verdict.notice))

    def refuse(self, reason: str) -> Answer:
        """Exit 2 blocks every event of Claude Code that can be blocked."""
        return Answer(status=2, stderr=reason)


def _fields(event: HookEventName, given: Wire, call: ToolCall | None) -> Wire:
    match event:
        case _E.BeforeTool | _E.AfterTool:
            return _tool_fields(event, given, call)
        case _E.BeforeAgent:
            return {"prompt": text_field(given, "prompt")}
        case _E.AfterAgent:
            return {"prompt": "", **_ending(given)}
        case _E.SubagentStop:
            return {**_agent(given), **_ending(given)}
        case _E.SubagentStart:
            return _agent(given)
        case _E.SessionStart:
            source = text_field(given, "source", default="startup")
            return {"source": _SOURCES.get(source, source)}
        case _E.SessionEnd:
            return {"reason": text_field(given, "reason", default="other")}
        case _E.Notification:
            return _notification(given)
    return {"trigger": text_field(given, "trigger", default="auto")}


def _tool_fields(event: HookEventName, given: Wire, call: ToolCall | None) -> Wire:
    name = "" if call is None else call.name
    fields: Wire = {}
    if server := CLAUDE_MCP_TOOL.fullmatch(name):
        fields["mcp_context"] = {"server_name": server[1], "tool_name": server[2]}
    if event is _E.AfterTool:
        fields["tool_response"] = _response(name, given)
    return fields


def _response(name: str, given: Wire) -> Wire:
    """A result in our shape; of a failed tool the error is all there is."""
    if "tool_response" not in given:
        error = text_field(given, "error", default="the tool failed")
        failed: Wire = {"llmContent": error, "returnDisplay": error}
        return failed | {"error": {"message": error}}
    response = given["tool_response"]
    content = claude_content(name, response)
    found: Wire = {"llmContent": content, "returnDisplay": content}
    return found if content is response else found | {"metadata": response}


def _ending(given: Wire) -> Wire:
    answer = text_field(given, "last_assistant_message", default="")
    is_again = given.get("stop_hook_active") is True
    return {"prompt_response": answer, "stop_hook_active": is_again}


def _agent(given: Wire) -> Wire:
    kind = text_field(given, "agent_type", default="")
    return {"agent_id": text_field(given, "agent_id", default=""), "agent_type": kind}


def _notification(given: Wire) -> Wire:
    kind = text_field(given, "notification_type", default="")
    fields: Wire = {"message": text_field(given, "message", default="")}
    if kind:
        fields["notification_type"] = CLAUDE_NOTIFICATIONS.get(kind, kind)
    title = given.get("title")
    return fields | ({"details": {"title": title}} if title else {})


def _before_tool(event: HostEvent, verdict: Verdict) -> Wire:
    if verdict.blocked or verdict.stopped:
        reason = verdict.refusal() or "Blocked by hook"
        denied = {"permissionDecision": "deny", "permissionDecisionReason": reason}
        return _stopping(verdict) | _specific(event, **denied)
    said: Wire = {}
    if verdict.ask:
        said["permissionDecision"] = "ask"
        said["permissionDecisionReason"] = verdict.reason or verdict.message
    said["updatedInput"] = verdict.tool_input
    return _specific(event, verdict.told(), **said)


def _after_tool(event: HostEvent, verdict: Verdict) -> Wire:
    stop, told = _stopping(verdict), verdict.told()
    name = "" if event.call is None else event.call.name
    if verdict.withheld:
        response = event.given.get("tool_response")
        reason = verdict.refusal() or "withheld by a hook"
        replaced = claude_replacement(name, response, reason)
        if replaced is not None and event.name != FAILURE:
            return stop | _specific(event, updatedToolOutput=replaced)
        return {"continue": False, "stopReason": f"{name}: {reason}"}
    if event.name == FAILURE:
        told = "\n".join(
            filter(None, [verdict.reason if verdict.blocked else "", told])
        )
        return stop | _specific(event, told)
    objection = {"decision": "block", "reason": verdict.reason or "Blocked by hook"}
    return stop | (objection if verdict.blocked else {}) | _specific(event, told)


def _blocking(verdict: Verdict) -> Wire:
    """The top-level block of prompts and answers."""
    wire = _stopping(verdict)
    if verdict.blocked or verdict.stopped:
        reason = verdict.reason or verdict.stop_reason or "Blocked by hook"
        wire |= {"decision": "block", "reason": reason}
    return wire


def _stopping(verdict: Verdict) -> Wire:
    if not verdict.stopped:
        return {}
    return {"continue": False, "stopReason": verdict.stop_reason}


def _told(verdict: Verdict) -> str:
    return "" if verdict.blocked or verdict.stopped else verdict.told()


def _told_to_subagent(verdict: Verdict) -> str:
    if verdict.blocked or verdict.stopped:
        return f"Do not start: {verdict.refusal()}"
    return verdict.told()


def _shown(*texts: str | None) -> Wire:
    found = "\n".join(filter(None, texts))
    return {"systemMessage": found} if found else {}


def _specific(event: HostEvent, context: str = "", **said: Any) -> Wire:
    found = {key: value for key, value in said.items() if value is not None}
    found |= {"additionalContext": context} if context else {}
    if not found:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event.name, **found}}
