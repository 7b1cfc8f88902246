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
from hookline.protocol.dialect_payloads import (
    ambiguity,
    async_timeout,
    claude_output,
    claude_text,
    gemini_output,
    has_own_input,
    shown_input,
    withheld,
)
from hookline.protocol.dialects import CLAUDE, DIALECTS, LLXPRT, HostNames
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

    call: HookCall
    theirs: HostNames
    event_input: Wire
    tool_name: str | None
    unclear: str | None
    """Why the hook cannot judge the event."""

    def read(self, result: HookExecutionResult) -> HookExecutionResult:
        """Read an answer again, as that host does."""
        read = _read_claude if self.theirs is CLAUDE else _read_gemini
        result = read(self.theirs, result, self.event_input, self.tool_name)
        return result if self.unclear is None else _asking(result, self.unclear)


def translate(hook: RegisteredHook, call: HookCall) -> Translation:
    """Show the hook the names of its host; raises ``EncodingError``."""
    theirs = DIALECTS[hook.config.dialect.value]
    given = call.plain_input()
    try:
        name, changed = _tool_name(hook, given), _changed_fields(call)
        # The same for all hooks of a call and for its re-check, another for each call.
        digest = sha256(call.origin.payload or encode(given)).hexdigest()
        shown = shown_input(
            theirs,
            call.event,
            given,
            tool_name=name,
            changed=changed,
            call_id=f"toolu_{digest[:24]}",
        )
        translated = call.with_input(shown)
        is_own = "tool_input" not in changed and has_own_input(theirs, given)
        unclear = None if is_own else ambiguity(theirs, given, name)
    except Exception as error:
        # A hook that cannot be shown the event is no mere crash.
        raise EncodingError(f"cannot be translated: {error}") from error
    return Translation(translated, theirs, given, name, unclear)


def _tool_name(hook: RegisteredHook, given: Wire) -> str | None:
    """Which of their names for the tool the hook is shown: one that it waits for."""
    if TRAITS[hook.event].matching is not Matching.REGEX:
        return None
    names, matched_name = match_names(hook, given)
    return None if names is None else matched_name or names[0]


def _changed_fields(call: HookCall) -> list[str]:
    """What other hooks have changed meanwhile."""
    field = TRAITS[call.event].chain.value
    is_same = same_json(call.input.get(field), call.origin.input.get(field))
    return [] if is_same else [field]


def _read_claude(
    theirs: HostNames, result: HookExecutionResult, given: Wire, name: str | None
) -> HookExecutionResult:
    if async_timeout(result.stdout.partition("\n")[0].encode(), 0) is not None:
        # What follows such a first line counts for nothing: it is no broken answer.
        healthy = _UNREAD if result.cause is FailureCause.OUTPUT else {}
        silent: Wire = {"output": None, "raw_output": None, "warnings": ()}
        return structs.replace(result, **silent, **healthy)
    if result.raw_output is None:
        return result
    said = result.raw_output
    if result.exit_code == 0:
        parsed, warnings = parse_answer(result.stdout)
        result = structs.replace(result, warnings=warnings, **_UNREAD)
        event = result.event_name
        if parsed is None:
            said = claude_text(event, result.stdout)
        else:
            said = claude_output(event, parsed, given, name)
    if result.event_name in _UNBLOCKED and said.get("decision") in ("block", "deny"):
        message = said.get("systemMessage") or said.get("reason")
        said = {**said, "decision": None, "systemMessage": message}
    read = _for_the_person(result, said)
    return structs.replace(read, host_answer=_for_claude(read))


def _for_claude(result: HookExecutionResult) -> Wire | None:
    """What has no effect on events of ours, and has one in Claude Code."""
    event, output = result.event_name, result.output
    assert output is not None  # it has just been read
    if event is HookEventName.PreCompress and output.is_blocking:
        return {"decision": "block", "reason": output.effective_reason}
    context = output.hook_specific_output.get("additionalContext")
    if event in (HookEventName.AfterAgent, HookEventName.SubagentStop) and context:
        return {"additionalContext": context}
    return None


def _read_gemini(
    theirs: HostNames, result: HookExecutionResult, given: Wire, name: str | None
) -> HookExecutionResult:
    event, said = result.event_name, result.raw_output
    # llxprt-code reads stdout on exit 0 only, and denies on exit 2 only.
    is_read = theirs is not LLXPRT or (result.exit_code == 0 and result.stdout)
    parsed = _gemini_answer(result) if is_read else None
    if parsed is not None:
        unread = _UNREAD if result.exit_code == 0 else {}
        result = structs.replace(result, warnings=(), **unread)
        said = gemini_output(theirs, event, parsed, given, name)
    if said is None:
        return result
    read = _for_the_person(result, said)
    if read.output is None or not read.output.is_blocking or event not in _REPLACED:
        return read
    said = withheld(event, said, read.output.effective_reason)
    replaced = structs.replace(result, warnings=read.warnings, closed=True)
    return _for_the_person(replaced, said)


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
        said = None if result.truncated else parse_answer(text)[0]
    except BrokenAnswerError:
        said = None
    denies = said is not None and said.get("decision") in ("deny", "block")
    if code <= 1 or denies or (said is not None and code != EXIT_BLOCK):
        return said
    # Exit 2 blocks whatever the JSON says.
    reason = result.stderr or result.stdout if code == EXIT_BLOCK else text
    return {"decision": "deny", "reason": shortened(reason)} if reason else None


def _for_the_person(result: HookExecutionResult, said: Wire) -> HookExecutionResult:
    """Read an output; its system message is for the person and not for the model."""
    read = with_output(result, said)
    assert read.output is not None  # it has just been read
    if "systemMessage" not in said:
        return read
    message = read.output.system_message
    output = structs.replace(read.output, system_message=None)
    if output.decides and output.effective_reason == NO_REASON:
        # The question, or why: a model or a person may be told nothing else.
        output = structs.replace(output, reason=message)
    rest = {key: value for key, value in said.items() if key != "systemMessage"}
    return structs.replace(read, output=output, raw_output=rest, user_message=message)


def _asking(result: HookExecutionResult, unclear: str) -> HookExecutionResult:
    """Let a person decide what the hook could not judge, unless it blocks or asks."""
    said = result.output
    if said is not None and said.decides:
        return result
    reason = f"hook {result.hook_name!r} cannot judge this call: {unclear}"
    asks = {**(result.raw_output or {}), "decision": "ask", "reason": reason}
    specific = asks.get("hookSpecificOutput")
    if isinstance(specific, dict):
        said_so = {"permissionDecision": "ask", "permissionDecisionReason": reason}
        asks["hookSpecificOutput"] = {**specific, **said_so}
    return _for_the_person(structs.replace(result, warnings=()), asks)
