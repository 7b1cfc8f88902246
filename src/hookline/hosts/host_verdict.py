"""What the hooks of one event said together, and the verbs to say it to a host.

``HostVerdict`` has the texts. The verbs (deny, block, end, show, specific) are Claude
Code's, which most hosts took over; a key without a value is left out of an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import BLOCKED_BY_HOOK
from hookline.protocol.results import ProcessedHookResult, blocking_reasons
from hookline.protocol.values import encode
from hookline.protocol.verdict import Verdict

Wire = dict[str, Any]
_E = HookEventName
WITHHELD = "withheld by a hook"
_LONGEST = 64 * 1024
_LONGEST_CONTEXT = 256 * 1024
"""A host may drop an answer that is too long, and then runs the tool."""
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


class Effect(StrEnum):
    """What the hooks of an event can ask of a host."""

    BLOCK = "block"
    ASK = "ask"
    CHANGE = "change"
    CONTEXT = "context"
    MESSAGE = "message"
    WITHHOLD = "withhold"
    STOP = "stop"
    CLEAR = "clear context"
    SUPPRESS = "suppress output"


def _effects(*names: str) -> tuple[Effect, ...]:
    return tuple(Effect[name] for name in names)


EFFECTS: dict[HookEventName, tuple[Effect, ...]] = {
    _E.BeforeTool: _effects("BLOCK", "ASK", "CHANGE", "CONTEXT", "MESSAGE", "STOP"),
    _E.AfterTool: _effects(
        *("BLOCK", "CONTEXT", "MESSAGE", "WITHHOLD", "SUPPRESS", "STOP")
    ),
    _E.BeforeAgent: _effects("BLOCK", "CONTEXT", "MESSAGE", "STOP"),
    _E.AfterAgent: _effects("BLOCK", "MESSAGE", "CLEAR", "STOP"),
    _E.BeforeModel: _effects("BLOCK", "CHANGE", "CONTEXT", "MESSAGE", "STOP"),
    _E.AfterModel: _effects("CHANGE", "MESSAGE", "SUPPRESS", "STOP"),
    _E.BeforeToolSelection: _effects("CHANGE", "MESSAGE", "STOP"),
    _E.SessionStart: _effects("CONTEXT", "MESSAGE"),
    _E.SessionEnd: _effects("MESSAGE"),
    _E.Notification: _effects("MESSAGE"),
    _E.PreCompress: _effects("MESSAGE"),
    _E.SubagentStart: _effects("BLOCK", "CONTEXT", "MESSAGE", "STOP"),
    _E.SubagentStop: _effects("BLOCK", "MESSAGE", "CLEAR", "STOP"),
}
"""What callers apply of each event (protocol.md#events)."""

Limits = Mapping[HookEventName, Mapping[Effect, str]]
"""What a host cannot express, and what happens instead."""
TO_PERSON = "shown to the person, not to the model"
ONLY_REFUSED = "the model sees it only with a refusal"
NOT_BEFORE = "lost, unless it comes with a block: say it after the tool"
REFUSED_ONLY = "the call is refused, and the agent goes on"
NOT_STARTED: Mapping[Effect, str] = dict.fromkeys(
    (Effect.BLOCK, Effect.STOP), "the subagent starts, and is told not to work"
)
REFUSALS_ALONE: Mapping[Effect, str] = {
    Effect.ASK: "hooks cannot ask here, hooksConfig.onAsk decides",
    Effect.CHANGE: "the call is refused, with the input that hooks want",
    Effect.CONTEXT: ONLY_REFUSED,
    Effect.MESSAGE: ONLY_REFUSED,
    Effect.STOP: REFUSED_ONLY,
}
"""Before a tool, in hosts that know a block and nothing else."""


_NO_CLEAR = {Effect.CLEAR: "the context stays as it is"}
COMMON_LIMITS: Limits = {
    _E.AfterTool: {Effect.SUPPRESS: "the result is shown to the person"},
    _E.AfterAgent: _NO_CLEAR,
    _E.SubagentStop: _NO_CLEAR,
    _E.SessionEnd: {Effect.MESSAGE: TO_PERSON},
    _E.Notification: {Effect.MESSAGE: TO_PERSON},
    _E.PreCompress: {Effect.MESSAGE: TO_PERSON},
}
"""Of all hosts that say nothing else."""


def unheard(*events: HookEventName, keep: tuple[Effect, ...] = ()) -> Limits:
    """Limits of events whose answers are not read at all."""
    lost = "the answer of a hook is not read here"
    return {
        event: {effect: lost for effect in EFFECTS[event] if effect not in keep}
        for event in events
    }


class HostVerdict(Verdict, frozen=True, kw_only=True):
    """The verdict on an event of a host, or on all files that a call touches.

    After a tool, ``blocked`` means that a hook objects and the model is told.
    """

    reason: str = ""
    """Of the block, else of the withheld result or of the question."""
    stop_reason: str = ""
    context: str = ""
    """For the model, as the hooks gave it."""
    message: str = ""
    """For the model and the person."""
    notice: str = ""
    """For the person alone."""
    suppressed: bool = False
    clear_context: bool = False
    host_answers: tuple[Wire, ...] = ()
    """What hooks of the host's own dialect say and no other host obeys."""

    @property
    def rejects(self) -> bool:
        """Whether an agent goes on after its answer; a stop ends it all the same."""
        return self.blocked and not self.stop

    def model_text(self, *, escaped: bool = True) -> str:
        """Everything for the model that is not a reason."""
        context = escape(self.context) if escaped else self.context
        return "\n".join(filter(None, [context, self.message]))

    def refusal(self, default: str = BLOCKED_BY_HOOK) -> str:
        """What a model is told in place of a tool's result or a turn."""
        reason = self.stop_reason if self.stop and not self.blocked else self.reason
        texts = (text for text in (reason, self.model_text()) if text.strip())
        return "\n\n".join(texts) or default

    def short_refusal(self) -> str:
        """The reason of a block or a stop alone, never empty."""
        reasons = [self.stop_reason if self.stop else "", self.reason]
        reasons = reasons[::-1] if self.blocked else reasons
        return next((reason for reason in reasons if reason.strip()), BLOCKED_BY_HOOK)

    def subagent_text(self) -> str:
        """What a subagent is told where its start cannot be blocked."""
        if self.ends:
            return escape(f"Do not start: {self.refusal('')}")
        return self.model_text()

    def remark(self, *, escaped: bool = True) -> str:
        """What a model is told after a tool: an objection, and everything else."""
        objection = self.reason if self.blocked or self.withheld else ""
        objection = escape(objection) if escaped else objection
        return _paragraphs(objection, self.model_text(escaped=escaped))

    def remark_with_stop(self) -> str:
        """The same where the host does not obey a stop: its reason comes first."""
        return _paragraphs(escape(self.stop_reason) if self.stop else "", self.remark())

    def asked(self) -> set[Effect]:
        """What this verdict asks of the host."""
        changes = (self.tool_input, self.llm_request, self.llm_response, self.tools)
        effects = {
            Effect.BLOCK: self.blocked,
            Effect.ASK: self.ask,
            Effect.CHANGE: any(change is not None for change in changes),
            Effect.CONTEXT: self.context,
            Effect.MESSAGE: self.message,
            Effect.WITHHOLD: self.withheld,
            Effect.STOP: self.stop,
            Effect.CLEAR: self.clear_context,
            Effect.SUPPRESS: self.suppressed,
        }
        return {effect for effect, is_asked in effects.items() if is_asked}


def host_verdict(results: Iterable[ProcessedHookResult]) -> HostVerdict:
    """What the hooks of one event said, or of each file that a call touches.

    The changed input is left out: only the host's own call can spell it.
    """
    results = list(results)
    outputs = [each.final_output for each in results if each.final_output is not None]
    objections = [why for each in results for why in blocking_reasons(each.aggregated)]
    withholding = [output for output in outputs if output.withholds_result]
    blocked = any(result.blocked for result in results) or bool(objections)
    asking = [result for result in results if result.ask]
    reasons = [result.reason for result in results if result.blocked]
    reasons += objections if not any(reasons) else []
    if not blocked:
        reasons = [each.final_output.reason for each in asking if each.final_output]
        reasons += [output.reason for output in withholding]
    # A context without what the reason says: a closed form repeats it
    # (protocol.md#results).
    lines = {line for reason in reasons if reason for line in reason.split("\n")}
    contexts = [each.hook_specific_output.get("additionalContext") for each in outputs]
    contexts = [
        "\n".join(line for line in context.split("\n") if line not in lines)
        for context in contexts
        if isinstance(context, str)
    ]
    return HostVerdict(
        blocked=blocked,
        reason=_joined(reasons),
        ask=bool(asking) and not blocked,
        stop=any(result.should_stop for result in results),
        stop_reason=_joined(result.stop_reason for result in results),
        context=_joined(contexts, _LONGEST_CONTEXT),
        message=_joined(result.system_message for result in results),
        notice=_joined(result.user_message for result in results),
        withheld=bool(withholding),
        suppressed=any(result.suppress_output for result in results),
        clear_context=any(output.clear_context for output in outputs),
        llm_request=_last(output.llm_request for output in outputs),
        llm_response=_last(output.llm_response for output in outputs),
        tools=_last(output.tool_config for output in outputs),
        host_answers=tuple(
            hook.host_answer
            for result in results
            for hook in result.aggregated.hook_results
            if hook.host_answer is not None and not hook.observed
        ),
    )


def _joined(texts: Iterable[object], longest: int = _LONGEST) -> str:
    """Texts on lines of their own, each once."""
    unique = dict.fromkeys(text for text in texts if isinstance(text, str) and text)
    joined = "\n".join(unique)
    return joined if len(joined) <= longest else f"{joined[:longest]} [...]"


def _last(values: Iterable[Wire | None]) -> Wire | None:
    return next((value for value in reversed([*values]) if value is not None), None)


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


def escape(text: str) -> str:
    """Keep what hooks add from looking like the host's own tags.

    protocol.md#process
    """
    return text.replace("<", "&lt;").replace(">", "&gt;")


class Answer(Struct, frozen=True):
    """What a host reads."""

    stdout: bytes = b""
    status: int = 0
    stderr: str = ""
    lost: tuple[str, ...] = ()
    """What this event could not express, beyond the limits of the host."""
    expressed: frozenset[Effect] = frozenset()
    """What the host cannot express on every event, and could on this one."""


def json_answer(wire: Wire, longest_text: int | None = None) -> Answer:
    """An answer in JSON, in ASCII because hosts decode their pipes piece by piece.

    An empty object is a value: that of a changed input.
    """
    wire = {key: value for key, value in wire.items() if value not in (None, "")}
    text = encode(wire if longest_text is None else _cut(wire, longest_text))
    if not text.isascii():
        text = _BEYOND_ASCII.sub(_as_escapes, text.decode()).encode()
    return Answer(text + b"\n")


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, dict):
        return {key: _cut(field, longest) for key, field in value.items()}
    is_long = isinstance(value, str) and len(value) > longest
    return f"{value[:longest]} [cut]" if is_long else value


def _as_escapes(characters: re.Match[str]) -> str:
    units = characters[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def specific(event: str, context: str = "", **values: Any) -> Wire:
    """What goes beside the common keys; nothing where there are no values."""
    values = {key: value for key, value in values.items() if value is not None}
    values |= {"additionalContext": context} if context else {}
    return {"hookSpecificOutput": {"hookEventName": event, **values}} if values else {}


def deny(reason: str) -> Wire:
    """Refuse the call of a tool: values for ``specific``."""
    return {"permissionDecision": "deny", "permissionDecisionReason": reason}


def question(verdict: HostVerdict) -> Wire:
    """Let a person decide, if a hook asks for that: values for ``specific``."""
    if not verdict.ask:
        return {}
    reason = verdict.reason or verdict.message
    return {"permissionDecision": "ask", "permissionDecisionReason": reason}


def block(reason: str) -> Wire:
    """Reject a prompt or an answer."""
    return {"decision": "block", "reason": reason}


def end(reason: str) -> Wire:
    """End the run."""
    return {"continue": False, "stopReason": reason}


def stop(verdict: HostVerdict) -> Wire:
    """End the run if a hook asks for that."""
    return end(verdict.stop_reason or BLOCKED_BY_HOOK) if verdict.stop else {}


def show(*texts: str | None) -> Wire:
    """Show texts to the person."""
    message = "\n".join(filter(None, texts))
    return {"systemMessage": message} if message else {}
