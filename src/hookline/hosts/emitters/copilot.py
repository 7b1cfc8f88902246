"""GitHub Copilot CLI: its JSON on stdin in two spellings, and the answers it obeys.

Observed with the program (docs/how-to/hosts/copilot.md). Its events have camelCase
names, and the JSON none: the command line says which it is. Under PascalCase names, and
for hooks that it finds in ``.claude/settings.json``, it sends and takes Claude Code's
spelling before a tool; everywhere else its own keys work in both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hookline.hosts.copilot_session import last_answer
from hookline.hosts.host import (
    Answer,
    BadInputError,
    Host,
    HostEvent,
    HostName,
    json_answer,
    notification_fields,
    text_field,
    tool_result,
)
from hookline.hosts.host_verdict import (
    WITHHELD,
    Effect,
    HostVerdict,
    Limits,
    Wire,
    escape,
)
from hookline.hosts.tools import Tool, ToolCall, read_call
from hookline.protocol.dialects import CLAUDE_EVENTS
from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import BLOCKED_BY_HOOK

from .claude import FAILURE, TOOLS

_E = HookEventName
_TOOLS = TOOLS | {
    "bash": Tool.SHELL,
    "powershell": Tool.SHELL,
    # What they type into a shell that runs already.
    "write_bash": Tool.SHELL,
    "write_powershell": Tool.SHELL,
    "view": Tool.READ,
    "create": Tool.WRITE,
    "edit": Tool.REPLACE,
    "apply_patch": Tool.PATCH,
    "glob": Tool.GLOB,
    "grep": Tool.GREP,
    "rg": Tool.GREP,
    "web_fetch": Tool.FETCH,
    "web_search": Tool.SEARCH,
    "task": Tool.TASK,
}
_EVENTS = {
    "preToolUse": _E.BeforeTool,
    "postToolUse": _E.AfterTool,
    "postToolUseFailure": _E.AfterTool,
    "userPromptSubmitted": _E.BeforeAgent,
    "agentStop": _E.AfterAgent,
    "sessionStart": _E.SessionStart,
    "sessionEnd": _E.SessionEnd,
    "notification": _E.Notification,
    "preCompact": _E.PreCompress,
    "subagentStart": _E.SubagentStart,
    "subagentStop": _E.SubagentStop,
}
_PASCAL = {**CLAUDE_EVENTS, FAILURE: _E.AfterTool}
_OWN_NAMES = {"UserPromptSubmit": "userPromptSubmitted", "Stop": "agentStop"}
_IGNORED = frozenset(
    {"permissionRequest", "errorOccurred", "userPromptTransformed", "preMcpToolCall"}
)
_FAILURES = frozenset({"postToolUseFailure", FAILURE})
_SOURCES = {"new": "startup", "compact": "compress"}
_REASONS = {"complete": "exit", "user_exit": "prompt_input_exit"}
_OUR_REASONS = frozenset({"exit", "clear", "logout", "prompt_input_exit"})
_CARRIED = ("tool_use_id", "permission_mode", "agent_id", "agent_type")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NO_CLEAR = "the context stays as it is"
_NOBODY = "Copilot has no place for it"
_AGENT_STARTS = "the subagent starts, and is told not to work"

LIMITS: Limits = {
    _E.BeforeTool: {Effect.STOP: "the call is denied, and the turn goes on"},
    _E.AfterTool: {
        Effect.WITHHOLD: "the error of a tool that failed reaches the model",
        Effect.SUPPRESS: "the result is shown to the person",
        Effect.STOP: "the turn goes on, without the result unless the tool failed",
    },
    _E.AfterAgent: {Effect.CLEAR: _NO_CLEAR, Effect.MESSAGE: _NOBODY},
    _E.SessionEnd: {Effect.MESSAGE: _NOBODY},
    _E.Notification: {Effect.MESSAGE: _NOBODY},
    _E.PreCompress: {Effect.MESSAGE: _NOBODY},
    _E.SubagentStart: {Effect.BLOCK: _AGENT_STARTS, Effect.STOP: _AGENT_STARTS},
    _E.SubagentStop: {Effect.CLEAR: _NO_CLEAR, Effect.MESSAGE: _NOBODY},
}


class CopilotHost(Host):
    """GitHub Copilot CLI."""

    name = HostName.COPILOT
    title = "GitHub Copilot CLI"
    tested: str | None = "1.0.102"
    events: Mapping[str, HookEventName] = _EVENTS
    ignored = _IGNORED
    asks = True
    project_variables: tuple[str, ...] = ("COPILOT_PROJECT_DIR", "CLAUDE_PROJECT_DIR")
    limits = LIMITS

    def __init__(self, *, is_silent: bool = False) -> None:
        self._is_silent = is_silent

    def event_name(self, given: Wire, argument: str | None) -> str:
        """The one on the command line: the JSON has it in one spelling only."""
        if argument is None and "agentName" in given and "response" not in given:
            # The start of a subagent is the one event without a name in both.
            argument = "SubagentStart"
        return argument or text_field(given, "hook_event_name", "hookName")

    def read(self, given: Wire, name: str) -> HostEvent:
        """Read an event of this name."""
        ours = _EVENTS.get(name, _PASCAL.get(name))
        if ours is None and own_event(name) not in _IGNORED:
            raise BadInputError(f"unknown event {name!r}")
        plain = {_CAMEL.sub("_", key).lower(): value for key, value in given.items()}
        # Copilot fires these for subagents as well, beside the events of subagents.
        is_turn = ours in (_E.BeforeAgent, _E.AfterAgent)
        if self._is_silent or (is_turn and plain.get("agent_id") is not None):
            ours = None
        call = None
        if ours in (_E.BeforeTool, _E.AfterTool):
            tool_input = _present(plain, "tool_args", "tool_input")
            call = read_call(text_field(plain, "tool_name"), tool_input, _TOOLS)
        carried = {key: plain[key] for key in _CARRIED if plain.get(key) is not None}
        fields = {} if ours is None else _fields(ours, name, plain, call)
        return HostEvent(
            name=name,
            event=ours,
            fields=carried | fields,
            call=call,
            payload=given,
            session_id=text_field(plain, "session_id", default=""),
            transcript_path=text_field(plain, "transcript_path", default=""),
            cwd=text_field(plain, "cwd", default=""),
        )

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""
        match event.event:
            case _E.BeforeTool:
                return json_answer(_before_tool(event, verdict))
            case _E.AfterTool:
                return _after_tool(event, verdict)
            case _E.BeforeAgent if verdict.blocked or verdict.stop:
                return json_answer(_refusing(verdict))
            case _E.AfterAgent | _E.SubagentStop:
                # Without an answer the agent stops, which is all that a stop asks.
                is_rejected = verdict.blocked and not verdict.stop
                wire = _refusing(verdict) if is_rejected else {}
                return json_answer(wire, *([Effect.MESSAGE] if wire else []))
            case _E.BeforeAgent | _E.SessionStart:
                return json_answer({"additionalContext": verdict.model_text()})
            case _E.SubagentStart:
                return json_answer({"additionalContext": verdict.subagent_text()})
        return json_answer({})

    def refuse(self, reason: str) -> Answer:
        """Copilot ignores the keys of other events: together they block every one."""
        denied = {"permissionDecision": "deny", "permissionDecisionReason": reason}
        # Under PascalCase names it obeys Claude Code's shape alone.
        claude = {"hookSpecificOutput": {"hookEventName": "PreToolUse", **denied}}
        return json_answer(denied | claude | {"decision": "block", "reason": reason})


def own_event(name: str) -> str:
    """The camelCase name of an event."""
    return _OWN_NAMES.get(name, name[:1].lower() + name[1:])


def _present(given: Wire, *names: str) -> Any:
    """The first of these fields that is there, null included."""
    for name in names:
        if name in given:
            return given[name]
    raise BadInputError(f"{names[0]}: missing")


def _fields(
    event: HookEventName, name: str, given: Wire, call: ToolCall | None
) -> Wire:
    match event:
        case _E.BeforeTool | _E.AfterTool:
            return _tool_fields(event, name, given, call)
        case _E.BeforeAgent:
            return {"prompt": text_field(given, "prompt")}
        case _E.AfterAgent:
            return _ending(given, *last_answer(given.get("transcript_path")))
        case _E.SubagentStart:
            return _agent(given)
        case _E.SubagentStop:
            answer = text_field(given, "response", "last_assistant_message", default="")
            return _agent(given) | _ending(given, "", answer)
        case _E.SessionStart:
            source = text_field(given, "source", default="startup")
            return {"source": _SOURCES.get(source, source)}
        case _E.SessionEnd:
            reason = text_field(given, "reason", default="other")
            reason = _REASONS.get(reason, reason)
            return {"reason": reason if reason in _OUR_REASONS else "other"}
        case _E.Notification:
            return notification_fields(given)
    return {"trigger": text_field(given, "trigger", default="auto")}


def _tool_fields(
    event: HookEventName, name: str, given: Wire, call: ToolCall | None
) -> Wire:
    fields: Wire = {}
    # The tools of other servers are SERVER-TOOL; no tool of Copilot has a hyphen.
    server, hyphen, tool = (call.name if call else "").rpartition("-")
    if hyphen:
        fields["mcp_context"] = {"server_name": server, "tool_name": tool}
    if event is _E.AfterTool:
        fields["tool_response"] = _response(name, given)
    return fields


def _response(name: str, given: Wire) -> Wire:
    if name in _FAILURES:
        error = text_field(given, "error", default="the tool failed")
        return tool_result(error, error)
    result = _present(given, "tool_result", "tool_response")
    found = result if isinstance(result, dict) else {}
    text = found.get("textResultForLlm", found.get("text_result_for_llm"))
    shown = tool_result(result if text is None else text)
    return shown if text is None else shown | {"metadata": result}


def _ending(given: Wire, prompt: str, answer: str) -> Wire:
    is_again = given.get("stop_hook_active") is True
    ending = {"prompt_response": answer, "stop_hook_active": is_again}
    return {"prompt": prompt, **ending}


def _agent(given: Wire) -> Wire:
    kind = text_field(given, "agent_type", "agent_name", default="")
    return {"agent_id": text_field(given, "agent_id", default=""), "agent_type": kind}


def _before_tool(event: HostEvent, verdict: HostVerdict) -> Wire:
    is_claude = "tool_name" in event.payload
    said: Wire = {}
    if verdict.blocked or verdict.stop:
        said["permissionDecision"] = "deny"
        said["permissionDecisionReason"] = _reason(verdict)
    else:
        if verdict.ask:
            said["permissionDecision"] = "ask"
            said["permissionDecisionReason"] = verdict.reason or verdict.message
        said["updatedInput" if is_claude else "modifiedArgs"] = verdict.tool_input
    said["additionalContext"] = verdict.model_text()
    said = {key: value for key, value in said.items() if value not in (None, "")}
    if not is_claude or not said:
        return said
    return {"hookSpecificOutput": {"hookEventName": event.name, **said}}


def _after_tool(event: HostEvent, verdict: HostVerdict) -> Answer:
    is_hidden = verdict.withheld or verdict.stop
    if is_hidden and event.name not in _FAILURES:
        text = verdict.refusal(WITHHELD).strip()
        result = {"resultType": "success", "textResultForLlm": text}
        return json_answer({"modifiedResult": result}, Effect.WITHHOLD)
    reason = escape(verdict.stop_reason) if verdict.stop else ""
    remark = "\n\n".join(filter(None, [reason, verdict.remark()]))
    return json_answer({"additionalContext": remark})


def _refusing(verdict: HostVerdict) -> Wire:
    """A block without a reason is ignored by Copilot."""
    reason = verdict.refusal().strip()
    return {"decision": "block", "reason": reason}


def _reason(verdict: HostVerdict) -> str:
    stop = verdict.stop_reason if verdict.stop else ""
    found = [verdict.reason, stop] if verdict.blocked else [stop, verdict.reason]
    return next((one for one in found if one.strip()), BLOCKED_BY_HOOK)
