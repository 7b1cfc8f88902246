"""The output of a hook: its fields, read from what the hook returned.

A value of the wrong type is ignored by itself, with a warning; reading never raises.
Hooks may return any part of a model request or response, and an invalid value in it
does not take the rest away: a redaction holds whatever stands beside it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from math import isfinite
from types import UnionType
from typing import Any

from msgspec import Struct

from hookline.errors import nearest

from .events import TRAITS, HookEventName
from .values import describe, key_text


class ValueType(Struct, frozen=True):
    """What a field of an input or output may hold."""

    description: str
    kind: type | UnionType
    accepts: Callable[[Any], bool] | None = None

    def problem(self, value: Any) -> str | None:
        """Say what was expected, or None if the value is valid."""
        if isinstance(value, self.kind) and (
            self.accepts is None or self.accepts(value)
        ):
            return None
        return f"expected {self.description}, got {describe(value)}"


STRING = ValueType("a string", str)
OBJECT = ValueType("an object", dict)
LIST = ValueType("a list", list)
BOOLEAN = ValueType("true or false", bool)


def one_of(choices: Iterable[str]) -> ValueType:
    """Accept these strings and nothing else."""
    known = tuple(choices)
    return ValueType(f"one of {', '.join(known)}", str, known.__contains__)


NO_REASON = "No reason provided"
BLOCKED_BY_HOOK = "Blocked by hook"
"""What a model or a person is told of a block without a reason."""

MODES = ("NONE", "ANY", "AUTO")
"""Of tool selection, the strictest first."""


class Decision(StrEnum):
    """What a hook decided."""

    ALLOW = "allow"
    APPROVE = "approve"
    ASK = "ask"
    BLOCK = "block"
    DENY = "deny"

    __hash__ = str.__hash__  # Enum's own is a Python function: slow in every lookup


_FIELDS = frozenset(
    {
        *("decision", "reason", "continue", "stopReason", "suppressOutput"),
        *("systemMessage", "hookSpecificOutput"),
    }
)
_BLOCKING = frozenset({Decision.BLOCK, Decision.DENY})
_ASK = (
    Decision.ASK
)  # on Python 3.11 finding a member in its enum costs more than a call


CHANGING = frozenset(
    {"tool_input", "llm_request", "llm_response", "toolConfig", "withholdResult"}
)
"""The fields of ``hookSpecificOutput`` that change something."""


class HookOutput(Struct, frozen=True, kw_only=True):
    """The fields of one output, or of several merged, each of the right type."""

    decision: Decision | None = None
    reason: str | None = None
    continues: bool | None = None
    stop_reason: str | None = None
    suppress_output: bool | None = None
    system_message: str | None = None
    hook_specific_output: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    permission: Decision | None = None
    permission_reason: str | None = None
    modified_tool_input: dict[str, Any] | None = None
    """The whole tool input after the merge; on a final output only."""
    unreadable: str | None = None
    """Of one hook's output: why its decision cannot be read, so that it failed."""

    @property
    def is_blocking(self) -> bool:
        """Whether it is ``block`` or ``deny``, even where the event cannot block."""
        return self.decision in _BLOCKING or self.permission in _BLOCKING

    @property
    def asks(self) -> bool:
        """Whether it leaves the decision to a person."""
        asked = self.decision is _ASK or self.permission is _ASK
        return asked and not self.is_blocking

    @property
    def stops(self) -> bool:
        """Whether it stops the agent."""
        return self.continues is False

    @property
    def decides(self) -> bool:
        """Whether it blocks, asks or stops."""
        return self.is_blocking or self.asks or self.stops

    @property
    def own_reason(self) -> str | None:
        """The reason given for the decision, if any."""
        reasons = (self.permission_reason, self.reason)
        return next((text for text in reasons if text and text.strip()), None)

    @property
    def effective_reason(self) -> str:
        """The reason to show for a block."""
        return _first_reason(self.permission_reason, self.stop_reason, self.reason)

    @property
    def effective_stop_reason(self) -> str:
        """The reason to show for a stop."""
        return _first_reason(self.stop_reason, self.own_reason)

    @property
    def additional_context(self) -> str | None:
        """Text for the model, with angle brackets escaped."""
        text = self.hook_specific_output.get("additionalContext")
        if not text:
            return None
        return str(text).replace("<", "&lt;").replace(">", "&gt;")

    @property
    def tool_input(self) -> dict[str, Any] | None:
        """The keys of the tool input to change."""
        return self.hook_specific_output.get("tool_input")

    @property
    def replaces_tool_input(self) -> bool:
        """Whether ``tool_input`` is the whole input and not a change to it."""
        return self.hook_specific_output.get("replacesToolInput") is True

    @property
    def llm_request(self) -> dict[str, Any] | None:
        """The parts of the model request to change, in the stable shape."""
        return self.hook_specific_output.get("llm_request")

    @property
    def llm_response(self) -> dict[str, Any] | None:
        """A model response or a part of one, in the stable shape."""
        return self.hook_specific_output.get("llm_response")

    @property
    def tool_config(self) -> dict[str, Any] | None:
        """The restriction of tools."""
        return self.hook_specific_output.get("toolConfig")

    @property
    def withholds_result(self) -> bool:
        """Whether the tool's result must not reach the model (AfterTool)."""
        return self.hook_specific_output.get("withholdResult") is True

    @property
    def clear_context(self) -> bool:
        """Whether to clear the agent's context."""
        return self.hook_specific_output.get("clearContext") is True

    def to_wire(self) -> dict[str, Any]:
        """Convert it to wire spelling, without absent fields."""
        fields = {
            "decision": None if self.decision is None else self.decision.value,
            "reason": self.reason,
            "continue": self.continues,
            "stopReason": self.stop_reason,
            "suppressOutput": self.suppress_output,
            "systemMessage": self.system_message,
            "hookSpecificOutput": self.hook_specific_output or None,
        }
        return {k: v for k, v in fields.items() if v is not None} | self.extra


def changed_tool_input(tool_input: Any, output: HookOutput) -> dict[str, Any]:
    """The tool input after one output: key by key, or replaced as a whole."""
    changes = output.tool_input or {}
    if isinstance(tool_input, Mapping) and not output.replaces_tool_input:
        return {**named_input(tool_input), **changes}
    return dict(changes)


def named_input(tool_input: Mapping[Any, Any]) -> Mapping[str, Any]:
    """An input with the names that hooks were shown: a change must hit its key."""
    if all(type(key) is str for key in tool_input):
        return tool_input
    return {key_text(key): value for key, value in tool_input.items()}


def read_output(
    wire: Mapping[str, Any], event: HookEventName
) -> tuple[HookOutput, tuple[str, ...]]:
    """Read what a hook returned; the second value is a warning per ignored field.

    Where a decision cannot be read, what would change something is left out; a stop, a
    withheld result, context, messages and a readable block or question count.
    """
    fields, known = _Reader(wire), _FIELDS
    decision, permission, permission_reason = fields.decision("decision"), None, None
    part = fields.take("hookSpecificOutput", _object)
    specific = _Reader(part, "hookSpecificOutput.") if part else _Reader({})
    effects = _read_specific(specific)
    if TRAITS[event].reads_permission_decision and not (
        _PERMISSION.isdisjoint(wire) and _PERMISSION.isdisjoint(specific.wire)
    ):
        known = _FIELDS | _PERMISSION
        words = [one.decision("permissionDecision") for one in (specific, fields)]
        permission = next((word for word in _STRICTEST_FIRST if word in words), None)
        name = "permissionDecisionReason"
        permission_reason = specific.take(name, _string) or fields.take(name, _string)
        effects = {k: v for k, v in effects.items() if k not in _PERMISSION}
    unreadable = "; ".join((*fields.unreadable, *specific.unreadable)) or None
    if unreadable is not None:
        effects = {k: v for k, v in effects.items() if k in _HARMLESS}
        decision = decision if decision in _STRICT else None
        permission = permission if permission in _STRICT else None
    # In one place and one spelling from here on.
    if permission is not None:
        effects["permissionDecision"] = permission.value
    if permission_reason is not None:
        effects["permissionDecisionReason"] = permission_reason
    output = HookOutput(
        decision=decision,
        reason=fields.take("reason", _string),
        continues=fields.take("continue", _boolean),
        stop_reason=fields.take("stopReason", _string),
        suppress_output=fields.take("suppressOutput", _boolean),
        system_message=fields.take("systemMessage", _string),
        hook_specific_output=effects,
        extra={}
        if known.issuperset(wire)
        else {k: v for k, v in wire.items() if k not in known},
        permission=permission,
        permission_reason=permission_reason,
        unreadable=unreadable,
    )
    if output.extra:
        fields.warn_of_unknown(output.extra, _FIELDS, _SPECIFIC_FIELDS)
    return output, (*fields.warnings, *specific.warnings)


def _read_specific(specific: _Reader) -> dict[str, Any]:
    if not specific.wire:
        return {}
    found = specific.take_all(_SPECIFIC)
    for name, read in _PARTS.items():
        if name not in found:
            continue
        if not found[name]:
            specific.ignore(name, "the object is empty")
        part = read(specific.inside(name, found.pop(name)))
        if part:
            found[name] = part
    unknown = [name for name in found if name not in _SPECIFIC_FIELDS]
    if unknown:
        specific.warn_of_unknown(unknown, _SPECIFIC_FIELDS, _FIELDS)
    return found


def read_part(
    name: str, wire: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read ``llm_request``, ``llm_response`` or ``toolConfig``, or a part of one.

    For translators: a choice of tools may have a mode that only one SDK knows.
    """
    part = _Reader(wire, f"{name}.")
    if name == "llm_response":
        return _read_response(part), tuple(part.warnings)
    read = _read_request if name == "llm_request" else _read_tool_config
    return read(part, _string), tuple(part.warnings)


_Check = Callable[[Any], str | None]
"""Says what is wrong with a value, or None."""


class _Reader:
    """Takes fields out of a wire object and collects warnings about invalid ones."""

    def __init__(
        self,
        wire: Mapping[str, Any],
        prefix: str = "",
        warnings: list[str] | None = None,
    ) -> None:
        self.wire = wire
        self._prefix = prefix
        self.warnings: list[str] = [] if warnings is None else warnings
        self.unreadable: list[str] = []

    def inside(self, name: str, part: Mapping[str, Any]) -> _Reader:
        """Read a part of this object; its warnings are collected here."""
        return _Reader(part, f"{self._prefix}{name}.", self.warnings)

    def ignore(self, name: str, problem: str) -> None:
        self.warnings.append(f"{self._prefix}{name}: {problem}; ignored")

    def take(self, name: str, check: _Check) -> Any:
        value = self.wire.get(name)
        if value is None:
            return None
        problem = check(value)
        if problem is None:
            return value
        self.ignore(name, problem)
        return None

    def take_items(self, name: str, items: list[Any], check: _Check) -> list[Any]:
        """Take the valid items of a list."""
        kept = []
        for at, item in enumerate(items):
            problem = check(item)
            if problem is None:
                kept.append(item)
            else:
                self.ignore(f"{name}[{at}]", problem)
        return kept

    def warn_of_unknown(
        self, names: Iterable[str], known: frozenset[str], elsewhere: frozenset[str]
    ) -> None:
        """Warn of keys that look like known ones, or are in the wrong place."""
        for name in itertools.islice(names, _MAX_UNKNOWN):
            if name in elsewhere:
                inside = known is _FIELDS
                place = "in hookSpecificOutput" if inside else "at the top level"
                hint = f"it belongs {place}"
            elif near := _nearest_key(name, known):
                hint = f"did you mean {near!r}?"
            else:
                continue
            self.warnings.append(f"{self._prefix}{name}: unknown key, ignored: {hint}")

    def take_all(self, checks: Mapping[str, _Check]) -> dict[str, Any]:
        """Take the valid fields; those without a check are kept as they are."""
        read = {
            name: self.take(name, checks[name]) if name in checks else value
            for name, value in self.wire.items()
        }
        return {name: value for name, value in read.items() if value is not None}

    def decision(self, name: str) -> Decision | None:
        try:
            return read_decision(self.wire.get(name))
        except ValueError as error:
            self.unreadable.append(f"{self._prefix}{name}: {error}")
            return None


def read_decision(value: Any) -> Decision | None:
    """Read a decision without regard to case; null and blank text are None.

    Raises ``ValueError`` for anything else, whatever its type.
    """
    word = value.strip().lower() if isinstance(value, str) else value
    if word is None or word == "":
        return None
    if not isinstance(word, str) or word not in _DECISIONS:
        raise ValueError(f"expected one of {_WORDS}, got {describe(value)}")
    return _DECISIONS[word]


def _nearest_key(name: str, known: frozenset[str]) -> str | None:
    if len(name) > _MAX_KEY:
        return None
    folded = {key.lower(): key for key in known}
    near = nearest(name.replace("_", "").replace("-", ""), folded, _NEAR)
    return None if near is None else folded[near]


# Of a list the valid items count, if none is left too: a hook that rewrites messages or
# an answer never means the original to return.


def _read_request(part: _Reader, mode: _Check | None = None) -> dict[str, Any]:
    found = part.take_all(_REQUEST)
    if part.wire.get("model", "") is None:
        part.ignore("model", "expected a string, got null")
    if "messages" in found:
        valid = part.take_items("messages", found["messages"], _message_problem)
        found["messages"] = valid
    if "config" in found:
        config = part.inside("config", found["config"])
        removed = {k: None for k, value in config.wire.items() if value is None}
        found["config"] = removed | _with_whole_numbers(config.take_all(_CONFIG))
    if "toolConfig" in found:
        found["toolConfig"] = _read_tool_config(
            part.inside("toolConfig", found["toolConfig"]), mode
        )
    return found


def _read_response(part: _Reader) -> dict[str, Any]:
    # Null empties an answer, and is no value of a wrong type.
    emptied = {k: None for k in ("text", "candidates") if part.wire.get(k, "") is None}
    found = emptied | part.take_all(_RESPONSE)
    if found.get("candidates"):
        found["candidates"] = [
            _read_candidate(part, at, value)
            for at, value in enumerate(found["candidates"])
        ]
    if "usageMetadata" in found:
        usage = part.inside("usageMetadata", found["usageMetadata"])
        found["usageMetadata"] = _with_whole_numbers(usage.take_all(_COUNTS))
    return found


def _read_candidate(part: _Reader, at: int, value: Any) -> dict[str, Any]:
    """A candidate; without valid text it is an empty one, never the original."""
    name = f"candidates[{at}]"
    if not isinstance(value, dict):
        part.ignore(name, f"expected an object, got {describe(value)}")
        value = {}
    candidate = part.inside(name, value)
    found = _with_whole_numbers(candidate.take_all(_CANDIDATE))
    content = candidate.inside("content", found.get("content") or {})
    parts = content.take("parts", _list) or []
    texts = content.take_items("parts", parts, _string)
    if "safetyRatings" in found:
        ratings = candidate.take_items("safetyRatings", found["safetyRatings"], _object)
        found["safetyRatings"] = [
            candidate.inside(f"safetyRatings[{at}]", one).take_all(_RATING)
            for at, one in enumerate(ratings)
        ]
    return {**found, "content": {**content.wire, "parts": texts}}


def _read_tool_config(part: _Reader, mode: _Check | None = None) -> dict[str, Any]:
    found = part.take_all({"mode": mode or _mode, "allowedFunctionNames": _list})
    if "allowedFunctionNames" in found:
        names = found["allowedFunctionNames"]
        names = part.take_items("allowedFunctionNames", names, _string)
        found["allowedFunctionNames"] = names
    return found


def _with_whole_numbers(found: dict[str, Any]) -> dict[str, Any]:
    """The same with 4096 for 4096.0 where a whole number belongs."""
    return {
        key: int(value) if key in _WHOLE_KEYS and _is_whole_float(value) else value
        for key, value in found.items()
    }


def _is_whole_float(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _message_problem(message: Any) -> str | None:
    if not isinstance(message, dict):
        return f"expected an object, got {describe(message)}"
    for key in ("role", "content"):
        problem = _string(message.get(key))
        if problem:
            return f"{key}: {problem}"
    return None


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and (isinstance(value, int) or isfinite(value))


def _is_whole(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


_STRINGS = ValueType(
    "a list of strings", list, lambda items: all(isinstance(one, str) for one in items)
)
_NUMBER = ValueType("a number", int | float, _is_number)
_WHOLE_NUMBER = ValueType("a whole number", int | float, _is_whole)
_DECISIONS = {choice.value: choice for choice in Decision}
_WORDS = ", ".join(Decision)
_STRICT = (Decision.DENY, Decision.BLOCK, Decision.ASK)
_STRICTEST_FIRST = (*_STRICT, Decision.ALLOW, Decision.APPROVE)
_PERMISSION = frozenset({"permissionDecision", "permissionDecisionReason"})
_HARMLESS = frozenset({"hookEventName", "additionalContext", "withholdResult"})
# Bound once: reading an output asks for them seven times.
_string, _boolean, _object = STRING.problem, BOOLEAN.problem, OBJECT.problem
_list, _mode = LIST.problem, one_of(MODES).problem
_SPECIFIC: dict[str, _Check] = {
    "additionalContext": _string,
    "tool_input": _object,
    "replacesToolInput": _boolean,
    "clearContext": _boolean,
    "llm_request": _object,
    "llm_response": _object,
    "toolConfig": _object,
    "withholdResult": _boolean,
}
_SPECIFIC_FIELDS = frozenset(
    {
        *_SPECIFIC,
        *("hookEventName", *_PERMISSION),
        "replacesToolInput",
    }
)
_REQUEST: dict[str, _Check] = {
    "model": _string,
    "messages": _list,
    "config": _object,
    "toolConfig": _object,
}
_CONFIG: dict[str, _Check] = {
    **dict.fromkeys(("temperature", "topP", "topK"), _NUMBER.problem),
    **dict.fromkeys(("frequencyPenalty", "presencePenalty"), _NUMBER.problem),
    **dict.fromkeys(
        ("maxOutputTokens", "candidateCount", "seed"), _WHOLE_NUMBER.problem
    ),
    "stopSequences": _STRINGS.problem,
}
_RESPONSE: dict[str, _Check] = {
    "text": _string,
    "candidates": _list,
    "usageMetadata": _object,
}
_CANDIDATE: dict[str, _Check] = {
    "content": _object,
    "finishReason": _string,
    "index": _WHOLE_NUMBER.problem,
    "safetyRatings": _list,
}
_RATING: dict[str, _Check] = dict.fromkeys(("category", "probability"), _string)
_COUNTS: dict[str, _Check] = dict.fromkeys(
    ("promptTokenCount", "candidatesTokenCount", "totalTokenCount"),
    _WHOLE_NUMBER.problem,
)
_WHOLE_KEYS = frozenset(
    {"maxOutputTokens", "candidateCount", "seed", "topK", "index", *_COUNTS}
)
_PARTS: dict[str, Callable[[_Reader], dict[str, Any]]] = {
    "llm_request": _read_request,
    "llm_response": _read_response,
    "toolConfig": _read_tool_config,
}
_MAX_UNKNOWN, _MAX_KEY, _NEAR = 20, 64, 0.75


def _first_reason(*reasons: str | None) -> str:
    for reason in reasons:
        if reason and (said := reason.strip()):
            return said
    return NO_REASON
