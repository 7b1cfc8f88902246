"""Run a hook that was written for another host (protocol.md#dialects).

It is shown that host's names, and its answer is read as that host reads it. What such
a hook says to the person does not reach the model.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from msgspec import Struct, structs

from hookline.errors import EncodingError
from hookline.execute.answer import (
    EXIT_BLOCK,
    BrokenAnswerError,
    parse_answer,
    shortened,
    with_output,
)
from hookline.plan import HookCall, RegisteredHook
from hookline.protocol.dialects import (
    CLAUDE,
    DIALECTS,
    LLXPRT,
    HostNames,
    ambiguity,
    async_timeout,
    has_own_input,
    our_output,
    shown_input,
    withheld,
)
from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.protocol.outputs import NO_REASON
from hookline.protocol.results import FailureCause, HookExecutionResult
from hookline.protocol.values import encode, same_json

from .planner import match_names

Wire = dict[str, Any]
_REPLACED = (HookEventName.AfterTool, HookEventName.AfterModel)
"""Where a deny in Gemini CLI takes the place of what it is about."""
_E = HookEventName
_UNBLOCKED = (_E.SessionStart, _E.SessionEnd, _E.Notification, _E.SubagentStart)
"""Where Claude Code shows a block to the person, and goes on."""
_UNREAD: Wire = {"success": True, "cause": None, "error": None}
"""Before an answer is read: a decision of theirs need not be one of ours."""


class Translation(Struct, frozen=True):
    """One event as a hook for another host knows it, and how its answer is read."""

    host: HostNames
    call: HookCall
    event_input: Wire
    tool_name: str | None
    """Which of their names for the tool the hook is shown: one that it waits for."""
    ambiguity: str | None
    """Why the hook cannot judge the event."""

    def read(self, result: HookExecutionResult) -> HookExecutionResult:
        """Read an answer again, as that host does."""
        if self.host is CLAUDE:
            result = self._read_as_claude(result)
        else:
            result = self._read_as_gemini(result)
        output = result.output
        if self.ambiguity is None or (output is not None and output.decides):
            return result
        # A person decides what the hook could not judge.
        reason = f"hook {result.hook_name!r} cannot judge this call: {self.ambiguity}"
        wire = {**(result.raw_output or {}), "decision": "ask", "reason": reason}
        specific = wire.get("hookSpecificOutput")
        if isinstance(specific, dict):
            asks = {"permissionDecision": "ask", "permissionDecisionReason": reason}
            wire["hookSpecificOutput"] = {**specific, **asks}
        return _with_output(structs.replace(result, warnings=()), wire)

    def _read_as_claude(self, result: HookExecutionResult) -> HookExecutionResult:
        event, wire = result.event_name, result.raw_output
        if async_timeout(result.stdout.partition("\n")[0].encode(), 0) is not None:
            # What follows such a first line counts for nothing: it is no broken answer.
            healthy = _UNREAD if result.cause is FailureCause.OUTPUT else {}
            silent: Wire = {"output": None, "raw_output": None, "warnings": ()}
            return structs.replace(result, **silent, **healthy)
        if wire is None:
            return result
        if result.exit_code == 0:
            parsed, warnings = parse_answer(result.stdout)
            result = structs.replace(result, warnings=warnings, **_UNREAD)
            if parsed is not None:
                wire = our_output(
                    self.host, event, parsed, self.event_input, self.tool_name
                )
            elif result.stdout and event in (_E.BeforeAgent, _E.SessionStart):
                wire = {"hookSpecificOutput": {"additionalContext": result.stdout}}
            else:
                wire = {}
        if event in _UNBLOCKED and wire.get("decision") in ("block", "deny"):
            message = wire.get("systemMessage") or wire.get("reason")
            wire = {**wire, "decision": None, "systemMessage": message}
        result = _with_output(result, wire)
        # What has no effect on events of ours, and has one in Claude Code.
        output, host_answer = result.output, None
        if output is not None:
            context = output.hook_specific_output.get("additionalContext")
            if event is _E.PreCompress and output.is_blocking:
                reason = output.effective_reason
                host_answer = {"decision": "block", "reason": reason}
            elif event in (_E.AfterAgent, _E.SubagentStop) and context:
                host_answer = {"additionalContext": context}
        return structs.replace(result, host_answer=host_answer)

    def _read_as_gemini(self, result: HookExecutionResult) -> HookExecutionResult:
        event, wire = result.event_name, result.raw_output
        # llxprt-code reads stdout on exit 0 only, and denies on exit 2 only.
        is_read = self.host is not LLXPRT or (result.exit_code == 0 and result.stdout)
        answer = _gemini_answer(result) if is_read else None
        if answer is not None:
            healthy = _UNREAD if result.exit_code == 0 else {}
            result = structs.replace(result, warnings=(), **healthy)
            shown = self.event_input, self.tool_name
            wire = our_output(self.host, event, answer, *shown)
        if wire is None:
            return result
        read = _with_output(result, wire)
        if read.output is None or not read.output.is_blocking or event not in _REPLACED:
            return read
        wire = withheld(event, wire, read.output.effective_reason)
        closing = structs.replace(result, warnings=read.warnings, closed=True)
        return _with_output(closing, wire)


def translate(hook: RegisteredHook, call: HookCall) -> Translation:
    """Show the hook the names of its host; raises ``EncodingError``."""
    host, event_input = DIALECTS[hook.config.dialect.value], call.plain_input()
    try:
        tool_name = None
        if TRAITS[hook.event].matching is Matching.REGEX:
            names, matched_name = match_names(hook, event_input)
            tool_name = None if names is None else matched_name or names[0]
        # What other hooks have changed meanwhile.
        field = TRAITS[call.event].chain.value
        is_same = same_json(call.input.get(field), call.origin.input.get(field))
        changed = [] if is_same else [field]
        # The same for all hooks of a call and for its re-check, another for each call.
        digest = sha256(call.origin.payload or encode(event_input)).hexdigest()
        their_input = shown_input(
            host,
            call.event,
            event_input,
            tool_name=tool_name,
            changed=changed,
            call_id=f"toolu_{digest[:24]}",
        )
        is_own = "tool_input" not in changed and has_own_input(host, event_input)
        return Translation(
            host,
            call.with_input(their_input),
            event_input,
            tool_name,
            None if is_own else ambiguity(host, event_input, tool_name),
        )
    except Exception as error:
        # A hook that cannot be shown the event is no mere crash.
        raise EncodingError(f"cannot be translated: {error}") from error


def _gemini_answer(result: HookExecutionResult) -> Wire | None:
    """What Gemini CLI takes from a hook beyond our own table; None for nothing.

    It reads JSON whatever the exit code, stderr where stdout is empty, and any text as
    a deny where the exit code is above 1. Half an answer is never read as JSON.
    """
    code, is_broken = result.exit_code, result.cause is FailureCause.OUTPUT
    if code is None or code < 0 or (is_broken and result.raw_output is None):
        return None
    text = result.stdout or result.stderr
    try:
        answer = None if result.truncated else parse_answer(text)[0]
    except BrokenAnswerError:
        answer = None
    denies = answer is not None and answer.get("decision") in ("deny", "block")
    if code <= 1 or denies or (answer is not None and code != EXIT_BLOCK):
        return answer
    # Exit 2 blocks whatever the JSON says.
    reason = result.stderr or result.stdout if code == EXIT_BLOCK else text
    return {"decision": "deny", "reason": shortened(reason)} if reason else None


def _with_output(result: HookExecutionResult, wire: Wire) -> HookExecutionResult:
    """Read an output; its system message is for the person and not for the model."""
    result = with_output(result, wire)
    if "systemMessage" not in wire or result.output is None:
        return result
    message = result.output.system_message
    output = structs.replace(result.output, system_message=None)
    if output.decides and output.effective_reason == NO_REASON:
        # The question, or why: a model or a person may be told nothing else.
        output = structs.replace(output, reason=message)
    raw_output = {key: value for key, value in wire.items() if key != "systemMessage"}
    return structs.replace(
        result, output=output, raw_output=raw_output, user_message=message
    )
