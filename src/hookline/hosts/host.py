"""What the bridge knows about a coding agent: its events, its answers, its limits.

A host reads its own JSON into a ``HostEvent`` and writes what the hooks said together,
a ``Verdict``, in the form that it obeys. Everything between the two is the same for
all hosts (``bridge.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

from hookline.errors import HooklineError
from hookline.protocol.events import HookEventName
from hookline.protocol.results import ProcessedHookResult, blocking_reasons
from hookline.protocol.values import describe, encode, text_of

from .tools import ToolCall

Wire = dict[str, Any]
_E = HookEventName
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


class HostName(StrEnum):
    """The coding agents that ``hookline bridge`` answers."""

    CLAUDE = "claude"
    GEMINI = "gemini"
    LLXPRT = "llxprt"
    CODEX = "codex"
    COPILOT = "copilot"
    QWEN = "qwen"
    OPENCODE = "opencode"
    CURSOR = "cursor"
    VSCODE = "vscode"
    DROID = "droid"
    GOOSE = "goose"
    KIRO = "kiro"
    WINDSURF = "windsurf"
    CLINE = "cline"


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


EFFECTS: dict[HookEventName, tuple[Effect, ...]] = {
    _E.BeforeTool: (
        *(Effect.BLOCK, Effect.ASK, Effect.CHANGE),
        *(Effect.CONTEXT, Effect.MESSAGE, Effect.STOP),
    ),
    _E.AfterTool: (
        *(Effect.BLOCK, Effect.CONTEXT, Effect.MESSAGE),
        *(Effect.WITHHOLD, Effect.SUPPRESS, Effect.STOP),
    ),
    _E.BeforeAgent: (Effect.BLOCK, Effect.CONTEXT, Effect.MESSAGE, Effect.STOP),
    _E.AfterAgent: (Effect.BLOCK, Effect.MESSAGE, Effect.CLEAR, Effect.STOP),
    _E.BeforeModel: (
        *(Effect.BLOCK, Effect.CHANGE, Effect.CONTEXT),
        *(Effect.MESSAGE, Effect.STOP),
    ),
    _E.AfterModel: (Effect.CHANGE, Effect.MESSAGE, Effect.SUPPRESS, Effect.STOP),
    _E.BeforeToolSelection: (Effect.CHANGE, Effect.MESSAGE, Effect.STOP),
    _E.SessionStart: (Effect.CONTEXT, Effect.MESSAGE),
    _E.SessionEnd: (Effect.MESSAGE,),
    _E.Notification: (Effect.MESSAGE,),
    _E.PreCompress: (Effect.MESSAGE,),
    _E.SubagentStart: (Effect.BLOCK, Effect.CONTEXT, Effect.MESSAGE, Effect.STOP),
    _E.SubagentStop: (Effect.BLOCK, Effect.MESSAGE, Effect.CLEAR, Effect.STOP),
}
"""What callers apply of each event (protocol.md#events)."""

_LONGEST = 64 * 1024
_LONGEST_CONTEXT = 256 * 1024
"""A host may drop an answer that is too long, and then runs the tool."""

Limits = Mapping[HookEventName, Mapping[Effect, str]]
"""What a host cannot express, and what happens instead."""


class BadInputError(HooklineError):
    """A host sent something that is not the event it should be."""


class HostEvent(Struct, frozen=True, kw_only=True):
    """One event, read from a host."""

    name: str
    """The host's own name of it."""
    event: HookEventName | None
    """None: the host has this event, and Hookline does not."""
    fields: Wire = {}
    """The fields of the event in our spelling, without the call of a tool."""
    call: ToolCall | None = None
    """Of a tool event: what the tool is about to do, in our spelling."""
    given: Wire = {}
    """As the host sent it."""
    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""

    def inputs(self, host: HostName) -> list[Wire]:
        """The fields of each event to fire: one for each file that a call touches."""
        about: Wire = {"name": host.value, "event": self.name}
        if self.call is None:
            return [self.fields | {"host": about}]
        about |= {"tool_name": self.call.name, "tool_input": self.call.given}
        return [
            {"tool_name": name, "tool_input": given, **self.fields, "host": about}
            for name, given in self.call.parts
        ]


class Verdict(Struct, frozen=True, kw_only=True):
    """What the hooks of an event said together."""

    blocked: bool = False
    """After a tool: a hook objects, and the model is told."""
    reason: str = ""
    """Of the block, else of the withheld result or of the question."""
    ask: bool = False
    stopped: bool = False
    stop_reason: str = ""
    context: str = ""
    """For the model, as the hooks gave it."""
    message: str = ""
    """For the model and the person."""
    notice: str = ""
    """For the person alone."""
    tool_input: Wire | None = None
    """The changed input of a tool, whole, in the host's spelling."""
    withheld: bool = False
    """The model must not see the tool's result; ``reason`` takes its place."""
    suppressed: bool = False
    clear_context: bool = False
    llm_request: Wire | None = None
    llm_response: Wire | None = None
    tool_config: Wire | None = None
    host_answers: tuple[Wire, ...] = ()
    """What hooks of the host's own dialect say and no other host obeys."""

    def told(self, *, escaped: bool = True) -> str:
        """Everything for the model that is not a reason."""
        context = escape(self.context) if escaped else self.context
        return "\n".join(filter(None, [context, self.message]))

    def refusal(self, *, escaped: bool = True) -> str:
        """What a model is told in place of a tool's result or a turn."""
        reason = self.stop_reason if self.stopped and not self.blocked else self.reason
        texts = (reason, self.told(escaped=escaped))
        return "\n\n".join(text for text in texts if text and text.strip())

    def told_to_subagent(self) -> str:
        """What a subagent is told where its start cannot be blocked."""
        if self.blocked or self.stopped:
            return escape(f"Do not start: {self.refusal()}")
        return self.told()

    def remark(self, *, escaped: bool = True) -> str:
        """What a model is told after a tool: an objection, and everything else."""
        objection = self.reason if self.blocked or self.withheld else ""
        objection = escape(objection) if escaped else objection
        return "\n\n".join(filter(None, [objection, self.told(escaped=escaped)]))

    def effects(self) -> set[Effect]:
        """What this verdict asks of the host."""
        changes = (self.tool_input, self.llm_request, self.llm_response)
        found = {
            Effect.BLOCK: self.blocked,
            Effect.ASK: self.ask,
            Effect.CHANGE: any(one is not None for one in (*changes, self.tool_config)),
            Effect.CONTEXT: bool(self.context),
            Effect.MESSAGE: bool(self.message),
            Effect.WITHHOLD: self.withheld,
            Effect.STOP: self.stopped,
            Effect.CLEAR: self.clear_context,
            Effect.SUPPRESS: self.suppressed,
        }
        return {effect for effect, is_asked in found.items() if is_asked}


class Answer(Struct, frozen=True):
    """What a host reads."""

    stdout: bytes = b""
    status: int = 0
    stderr: str = ""
    lost: tuple[str, ...] = ()
    """What this event could not express, beyond the limits of the host."""
    refused: str = ""
    """Why the event is refused, where it cannot express what the verdict allows."""
    expressed: frozenset[Effect] = frozenset()
    """What the host cannot express on every event, and could on this one."""


class Host(Protocol):
    """One coding agent."""

    name: HostName
    title: str
    """As people call it."""
    tested: str | None
    """The version that was observed; None: written by its documentation alone."""
    events: Mapping[str, HookEventName]
    """Their events, and ours."""
    ignored: frozenset[str]
    """Further events that the host is known to have."""
    limits: Limits
    asks: bool
    """Whether it can ask a person before a tool runs."""
    project_variables: tuple[str, ...]
    """What holds the folder where the search for projects starts.

    hosts/README.md#rules 8
    """

    def event_name(self, given: Wire, argument: str | None) -> str:
        """The host's name of an event; raises ``BadInputError``.

        ``argument`` is the one on the command line, for hosts whose JSON has none.
        """
        ...

    def read(self, given: Wire, name: str) -> HostEvent:
        """Read an event of this name; raises ``BadInputError``."""
        ...

    def write(self, event: HostEvent, verdict: Verdict) -> Answer:
        """Write what the hooks said, in keys that this host accepts."""
        ...

    def refuse(self, reason: str) -> Answer:
        """Block an event that could not be read, whichever it is."""
        ...


def lost(
    host: Host, event: HookEventName, verdict: Verdict, answer: Answer
) -> list[str]:
    """What a verdict asks and the answer cannot say, and what happens instead."""
    limits = host.limits.get(event, {})
    asked = sorted(verdict.effects() & limits.keys() - answer.expressed)
    found = [f"{one}: {limits[one]}" for one in asked]
    return [f"{host.title}: {event.value}: {one}" for one in (*found, *answer.lost)]


def verdict_of(results: Iterable[ProcessedHookResult]) -> Verdict:
    """What the hooks of one event said, or of each file that a call touches.

    The changed input is left out: only the host's own call can spell it.
    """
    listed = list(results)
    finals = [one.final_output for one in listed if one.final_output is not None]
    objections = [why for one in listed for why in blocking_reasons(one.aggregated)]
    withheld = [one for one in finals if one.withholds_result]
    blocked = any(one.blocked for one in listed) or bool(objections)
    asking = [one for one in listed if one.ask]
    others = [one.final_output and one.final_output.reason for one in asking]
    others += [one.reason for one in withheld]
    specific = [one.hook_specific_output for one in finals]
    reasons = [one.reason for one in listed if one.blocked]
    reasons += objections if not any(reasons) else []
    told = reasons if blocked else others
    contexts = [one.get("additionalContext") for one in specific]
    return Verdict(
        blocked=blocked,
        reason=_joined(told),
        ask=bool(asking) and not blocked,
        stopped=any(one.should_stop for one in listed),
        stop_reason=_joined(one.stop_reason for one in listed),
        context=_joined(_beside(told, contexts), _LONGEST_CONTEXT),
        message=_joined(one.system_message for one in listed),
        notice=_joined(one.user_message for one in listed),
        withheld=bool(withheld),
        suppressed=any(one.suppress_output for one in listed),
        clear_context=any(one.clear_context for one in finals),
        llm_request=_last(one.llm_request for one in finals),
        llm_response=_last(one.llm_response for one in finals),
        tool_config=_last(one.tool_config for one in finals),
        host_answers=tuple(
            hook.host_answer
            for one in listed
            for hook in one.aggregated.hook_results
            if hook.host_answer is not None and not hook.observed
        ),
    )


def _joined(texts: Iterable[object], longest: int = _LONGEST) -> str:
    """Texts on lines of their own, each once."""
    found = (one for one in texts if isinstance(one, str) and one)
    joined = "\n".join(dict.fromkeys(found))
    return joined if len(joined) <= longest else f"{joined[:longest]} [...]"


def _beside(told: Iterable[object], contexts: Iterable[object]) -> list[str]:
    """Contexts without what the reason says: a closed form repeats it.

    protocol.md#results
    """
    reasons = (one for one in told if isinstance(one, str))
    said = {line for reason in reasons for line in reason.split("\n")}
    texts = (one for one in contexts if isinstance(one, str))
    return ["\n".join(x for x in one.split("\n") if x not in said) for one in texts]


def _last(values: Iterable[Wire | None]) -> Wire | None:
    return next((one for one in reversed(list(values)) if one is not None), None)


def escape(text: str) -> str:
    """Keep what hooks add from looking like the host's own tags.

    protocol.md#process
    """
    return text.replace("<", "&lt;").replace(">", "&gt;")


def json_answer(wire: Wire, *expressed: Effect) -> Answer:
    """An answer in JSON; keys without a value are left out.

    An empty object is the value of a changed input, unless it holds what is specific.
    """
    found = {key: value for key, value in wire.items() if value not in (None, "")}
    if not found.get("hookSpecificOutput", True):
        del found["hookSpecificOutput"]
    return Answer(_ascii(encode(found)) + b"\n", expressed=frozenset(expressed))


def _ascii(text: bytes) -> bytes:
    """The same JSON in ASCII: hosts decode their pipes piece by piece."""
    if text.isascii():
        return text
    return _BEYOND_ASCII.sub(_escaped, text.decode()).encode()


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def session_fields(given: Wire) -> dict[str, str]:
    """Where an event belongs; none of it keeps hooks from seeing the event."""
    fields = ("session_id", "transcript_path", "cwd")
    return {one: text_of(given[one]) for one in fields if given.get(one) is not None}


def known_event(host: Host, name: str) -> HookEventName | None:
    """Our event for one of the host's; raises for one that it is not known to have."""
    ours = host.events.get(name)
    if ours is None and name not in host.ignored:
        raise BadInputError(f"unknown event {describe(name)}")
    return ours


def tool_result(content: Any, error: str | None = None) -> Wire:
    """The result of a tool in our shape (protocol.md#events)."""
    found: Wire = {"llmContent": content, "returnDisplay": content}
    return found if error is None else found | {"error": {"message": error}}


def object_field(given: Wire, name: str) -> Wire:
    """A field that is an object; raises if it is missing or something else."""
    value = given.get(name)
    if isinstance(value, dict):
        return value
    found = "missing" if value is None else f"expected an object, got {value!r:.60}"
    raise BadInputError(f"{name}: {found}")


def required(given: Wire, name: str) -> Any:
    """A field of any type; raises if it is missing."""
    if name not in given:
        raise BadInputError(f"{name}: missing")
    return given[name]


def text_field(given: Wire, *names: str, default: str | None = None) -> str:
    """The first of these fields that is there; raises if it is no text."""
    for name in names:
        if given.get(name) is not None:
            value = given[name]
            if isinstance(value, str):
                return value
            raise BadInputError(f"{name}: expected text, got {value!r:.60}")
    if default is None:
        raise BadInputError(f"{names[0]}: missing")
    return default
