"""Claude Code: its JSON on a hook's stdin, and the answers that it obeys.

Observed with the program (docs/how-to/hosts). A deny goes out with a stop, because
Claude Code runs the tool before it obeys ``continue``; a result of another shape than
the tool's own is ignored, so one that must be withheld and cannot be replaced ends the
run. After a failed tool it obeys neither: the run ends at the PostToolBatch that
follows.
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
from hookline.protocol.outputs import BLOCKED_BY_HOOK

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
    known_event,
    required,
    session_fields,
    text_field,
    tool_result,
)
from .postponed import postpone_stop, take_stop
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
    "Monitor": SHELL,
    "PowerShell": SHELL,
    "Read": READ,
    "Write": WRITE,
    "Edit": REPLACE,
    "MultiEdit": REPLACE,
    "NotebookEdit": REPLACE,
    "Glob": GLOB,
    "Grep": GREP,
    "LS": LIST,
    "WebFetch": FETCH,
    "WebSearch": SEARCH,
    "Task": TASK,
    "Agent": TASK,
}
FAILURE = "PostToolUseFailure"
BATCH = "PostToolBatch"
"""Once all tools of a turn have run, and before the model is called."""
_SOURCES = {"compact": "compress"}
_CARRIED = (
    *("tool_use_id", "permission_mode", "agent_id", "agent_type"),
    *("agent_transcript_path", "custom_instructions"),
)
_NO_CLEAR = "the context stays as it is"
_AGENT_STARTS = "the subagent starts, and is told not to work"
_PERSON = "shown to the person, not to the model"

LIMITS: Limits = {
    _E.AfterTool: {
        Effect.WITHHOLD: "the run ends where a result cannot be replaced",
        Effect.SUPPRESS: "the result is shown to the person",
    },
    _E.AfterAgent: {Effect.CLEAR: _NO_CLEAR},
    _E.SessionEnd: {Effect.MESSAGE: _PERSON},
    _E.Notification: {Effect.MESSAGE: _PERSON},
    _E.PreCompress: {Effect.MESSAGE: _PERSON},
    _E.SubagentStart: {Effect.BLOCK: _AGENT_STARTS, Effect.STOP: _AGENT_STARTS},
    _E.SubagentStop: {Effect.CLEAR: _NO_CLEAR},
}


class ClaudeHost:
    """Claude Code."""

    name = HostName.CLAUDE
    title = "Claude Code"
    tested: str | None = "2.1.325"
    events: Mapping[str, HookEventName] = {
        **CLAUDE_EVENTS,
        FAILURE: _E.AfterTool,
        BATCH: _E.AfterTool,
    }
    ignored = frozenset({"MessageDisplay", "PostCompact"})
    asks = True
    project_variables: tuple[str, ...] = ("CLAUDE_PROJECT_DIR",)
    tools: Mapping[str, str] = TOOLS
    limits = LIMITS

    def event_name(self, given: Wire, argument: str | None) -> str:
        """Its name is in the JSON."""
        return text_field(given, "hook_event_name", default=argument)

    def read(self, given: Wire, name: str) -> HostEvent:
        """Read an event of this name."""
        known = known_event(self, name)
        ours = None if name == BATCH else known
        call = self._call(given) if ours in (_E.BeforeTool, _E.AfterTool) else None
        carried = {key: given[key] for key in _CARRIED if given.get(key) is not None}
        fields = {} if ours is None else _fields(ours, given, call)
        return HostEvent(
            name=name,
            event=ours,
            fields=carried | fields,
            call=call,
            given=given,
            **session_fields(given),
        )

    def _call(self, given: Wire) -> ToolCall:
        name = text_field(given, "tool_name")
        return read_call(name, required(given, "tool_input"), self.tools)

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
                if not verdict.blocked and not verdict.stopped:
                    wire |= self._own_answer(event, verdict)
            case _E.SessionStart:
                wire = _specific(event, verdict.told())
            case _E.SubagentStart:
                wire = _specific(event, verdict.told_to_subagent())
            case None if event.name == BATCH:
                wire = take_stop(event)
            case _E.PreCompress:
                wire = self._own_answer(event, verdict) | _shown(verdict.message)
            case _:
                wire = _shown(verdict.message)
        wire |= _shown(wire.get("systemMessage"), verdict.notice)
        # Some answers after a tool cannot say it, and this one does.
        withholds = "updatedToolOutput" in wire.get("hookSpecificOutput", {})
        return json_answer(wire, *([Effect.WITHHOLD] if withholds else []))

    def _own_answer(self, event: HostEvent, verdict: Verdict) -> Wire:
        """What hooks of its dialect say, and VS Code and Droid do not obey."""
        answers = verdict.host_answers if self.name is HostName.CLAUDE else ()
        blocks = [answer for answer in answers if "decision" in answer]
        if blocks:
            reasons = dict.fromkeys(block["reason"] for block in blocks)
            return {"decision": "block", "reason": "\n".join(reasons)}
        contexts = [escape(answer["additionalContext"]) for answer in answers]
        return _specific(event, "\n".join(contexts))

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
            return notification_fields(given)
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
        return tool_result(error, error)
    response = given["tool_response"]
    content = claude_content(name, response)
    found = tool_result(content)
    return found if content is response else found | {"metadata": response}


def _ending(given: Wire) -> Wire:
    answer = text_field(given, "last_assistant_message", default="")
    is_again = given.get("stop_hook_active") is True
    return {"prompt_response": answer, "stop_hook_active": is_again}


def _agent(given: Wire) -> Wire:
    kind = text_field(given, "agent_type", default="")
    return {"agent_id": text_field(given, "agent_id", default=""), "agent_type": kind}


def notification_fields(given: Wire) -> Wire:
    """The fields of a notification, with our name of its type."""
    kind = text_field(given, "notification_type", default="")
    fields: Wire = {"message": text_field(given, "message", default="")}
    if kind:
        fields["notification_type"] = CLAUDE_NOTIFICATIONS.get(kind, kind)
    title = given.get("title")
    return fields | ({"details": {"title": title}} if title else {})


def _before_tool(event: HostEvent, verdict: Verdict) -> Wire:
    if verdict.blocked or verdict.stopped:
        reason = verdict.refusal() or BLOCKED_BY_HOOK
        denied = {"permissionDecision": "deny", "permissionDecisionReason": reason}
        return _stopping(verdict) | _specific(event, **denied)
    said: Wire = {}
    if verdict.ask:
        said["permissionDecision"] = "ask"
        said["permissionDecisionReason"] = verdict.reason or verdict.message
    said["updatedInput"] = verdict.tool_input
    return _specific(event, verdict.told(), **said)


def _after_tool(event: HostEvent, verdict: Verdict) -> Wire:
    if event.name == FAILURE:
        return _after_failure(event, verdict)
    if verdict.withheld:
        return _withholding(event, verdict)
    objection = {"decision": "block", "reason": verdict.reason or BLOCKED_BY_HOOK}
    found = objection if verdict.blocked else {}
    return _stopping(verdict) | found | _specific(event, verdict.told())


def _after_failure(event: HostEvent, verdict: Verdict) -> Wire:
    """It obeys no stop here; the run ends at the PostToolBatch that follows."""
    stop = escape(verdict.stop_reason) if verdict.stopped else ""
    told = "\n\n".join(filter(None, [stop, verdict.remark()]))
    if verdict.withheld or verdict.stopped:
        postpone_stop(event, verdict.refusal() or BLOCKED_BY_HOOK)
    return _specific(event, told)


def _withholding(event: HostEvent, verdict: Verdict) -> Wire:
    name = "" if event.call is None else event.call.name
    reason = verdict.refusal() or "withheld by a hook"
    response = event.given.get("tool_response")
    replaced = claude_replacement(name, response, reason)
    if replaced is None:
        return {"continue": False, "stopReason": f"{name or 'A tool'}: {reason}"}
    return _stopping(verdict) | _specific(event, updatedToolOutput=replaced)


def _refusing(verdict: Verdict) -> Wire:
    """The block of a prompt."""
    if not verdict.blocked and not verdict.stopped:
        return {}
    reason = verdict.reason if verdict.blocked else verdict.stop_reason
    refusal = {"decision": "block", "reason": reason or BLOCKED_BY_HOOK}
    return _stopping(verdict) | refusal | _shown(verdict.message)


def _after_agent(verdict: Verdict) -> Wire:
    """A block goes on with the reason as the next prompt; a stop does not."""
    if verdict.stopped:
        return _stopping(verdict) | _shown(verdict.message)
    if verdict.blocked:
        return {"decision": "block", "reason": verdict.refusal() or BLOCKED_BY_HOOK}
    return _shown(verdict.message)


def _stopping(verdict: Verdict) -> Wire:
    if not verdict.stopped:
        return {}
    return {"continue": False, "stopReason": verdict.stop_reason or BLOCKED_BY_HOOK}


def _shown(*texts: str | None) -> Wire:
    found = "\n".join(filter(None, texts))
    return {"systemMessage": found} if found else {}


def _specific(event: HostEvent, context: str = "", **said: Any) -> Wire:
    found = {key: value for key, value in said.items() if value is not None}
    found |= {"additionalContext": context} if context else {}
    if not found:
        return {}
    return {"hookSpecificOutput": {"hookEventName": event.name, **found}}
