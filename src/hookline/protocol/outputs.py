"""The output of a hook: its fields, read from what the hook returned.

A value of the wrong type is ignored by itself, with a warning; reading never raises.
Hooks may return any part of a model request or response, and an invalid value in it
does not take the rest away: a redaction holds whatever stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from math import isfinite
from typing import Annotated, Any, TypedDict

from msgspec import Struct

from hookline.errors import nearest

from .convert import Expected, KeyPath, Mistake, TypePlan, convert, one_of
from .events import TRAITS, HookEventName
from .values import describe, key_text

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


_DECISIONS = {choice.value: choice for choice in Decision}
_BLOCKING = frozenset({Decision.BLOCK, Decision.DENY})
# On Python 3.11 finding a member in its enum costs more than a call.
_ASK = Decision.ASK
_STRICT = (Decision.DENY, Decision.BLOCK, Decision.ASK)
_STRICTEST_FIRST = (*_STRICT, Decision.ALLOW, Decision.APPROVE)


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
        if self.is_blocking:
            return False
        return self.decision is _ASK or self.permission is _ASK

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


_FIELDS: dict[str, type] = {
    "decision": object,
    "reason": str,
    "continue": bool,
    "stopReason": str,
    "suppressOutput": bool,
    "systemMessage": str,
    "hookSpecificOutput": dict,
}
_PERMISSION: dict[str, type] = {
    "permissionDecision": object,
    "permissionDecisionReason": str,
}
_FIELDS_WITH_PERMISSION = _FIELDS | _PERMISSION
_SPECIFIC: dict[str, type] = _PERMISSION | {
    "hookEventName": object,
    "additionalContext": str,
    "tool_input": dict,
    "replacesToolInput": bool,
    "clearContext": bool,
    "llm_request": dict,
    "llm_response": dict,
    "toolConfig": dict,
    "withholdResult": bool,
}
_HARMLESS = frozenset({"hookEventName", "additionalContext", "withholdResult"})
"""What counts of ``hookSpecificOutput`` where the decision cannot be read."""


def read_output(
    wire: Mapping[str, Any], event: HookEventName
) -> tuple[HookOutput, tuple[str, ...]]:
    """Read what a hook returned; the second value is a warning per ignored field.

    Where a decision cannot be read, what would change something is left out; a stop, a
    withheld result, context, messages and a readable block or question count.
    """
    warnings: list[str] = []
    unreadable: list[str] = []
    reads_permission = TRAITS[event].reads_permission_decision
    known_fields = _FIELDS_WITH_PERMISSION if reads_permission else _FIELDS
    fields = _fitting(wire, known_fields, "", warnings)
    extra = {name: value for name, value in wire.items() if name not in known_fields}
    if extra:
        _warn_of_unknown(extra, "", warnings)
    effects: dict[str, Any] = {}
    if "hookSpecificOutput" in fields:
        effects = _read_specific(fields["hookSpecificOutput"], warnings)
    decision = _decision(fields, "", "decision", unreadable)
    permission, permission_reason = None, None
    names = _PERMISSION.keys()
    if reads_permission and not (
        names.isdisjoint(fields) and names.isdisjoint(effects)
    ):
        decisions = (
            _decision(fields, "", "permissionDecision", unreadable),
            _decision(effects, _PREFIX, "permissionDecision", unreadable),
        )
        permission = next(
            (word for word in _STRICTEST_FIRST if word in decisions), None
        )
        effects.pop("permissionDecision", None)
        permission_reason = effects.pop("permissionDecisionReason", None) or fields.get(
            "permissionDecisionReason"
        )
    if unreadable:
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
        reason=fields.get("reason"),
        continues=fields.get("continue"),
        stop_reason=fields.get("stopReason"),
        suppress_output=fields.get("suppressOutput"),
        system_message=fields.get("systemMessage"),
        hook_specific_output=effects,
        extra=extra,
        permission=permission,
        permission_reason=permission_reason,
        unreadable="; ".join(unreadable) or None,
    )
    return output, tuple(warnings)


_PREFIX = "hookSpecificOutput."


def _fitting(
    wire: Mapping[str, Any], types: Mapping[str, type], prefix: str, warnings: list[str]
) -> dict[str, Any]:
    """The fields of the right type, and those that have no type here; without nulls."""
    fields = {}
    for name, value in wire.items():
        if value is None:
            continue
        field_type = types.get(name, object)
        if isinstance(value, field_type):
            fields[name] = value
        else:
            problem = TypePlan(field_type).expected.mismatch(value)
            warnings.append(f"{prefix}{name}: {problem}; ignored")
    return fields


def _decision(
    fields: Mapping[str, Any], prefix: str, name: str, unreadable: list[str]
) -> Decision | None:
    if name not in fields:
        return None
    try:
        return read_decision(fields[name])
    except ValueError as error:
        unreadable.append(f"{prefix}{name}: {error}")
        return None


def read_decision(value: Any) -> Decision | None:
    """Read a decision without regard to case; null and blank text are None.

    Raises ``ValueError`` for anything else, whatever its type.
    """
    if value is None:
        return None
    word = value.strip().lower() if isinstance(value, str) else None
    if word == "":
        return None
    if word not in _DECISIONS:
        raise ValueError(
            f"expected one of {', '.join(_DECISIONS)}, got {describe(value)}"
        )
    return _DECISIONS[word]


def _warn_of_unknown(
    names: Mapping[str, Any], prefix: str, warnings: list[str]
) -> None:
    """Warn of keys that look like known ones, or are in the wrong place."""
    keys, other_keys, place = _FIELDS, _SPECIFIC, "in hookSpecificOutput"
    if prefix:
        keys, other_keys, place = _SPECIFIC, _FIELDS, "at the top level"
    by_lower_case = {key.lower(): key for key in keys}
    for name in islice(names, _MAX_UNKNOWN):
        if name in other_keys:
            hint = f"it belongs {place}"
        elif len(name) <= _MAX_KEY and (
            near := nearest(
                name.replace("_", "").replace("-", ""), by_lower_case, _NEAR
            )
        ):
            hint = f"did you mean {by_lower_case[near]!r}?"
        else:
            continue
        warnings.append(f"{prefix}{name}: unknown key, ignored: {hint}")


_MAX_UNKNOWN, _MAX_KEY, _NEAR = 20, 64, 0.75


def _read_specific(wire: Mapping[str, Any], warnings: list[str]) -> dict[str, Any]:
    effects = _fitting(wire, _SPECIFIC, _PREFIX, warnings)
    for name in _PARTS:
        if name not in effects:
            continue
        if not effects[name]:
            warnings.append(f"{_PREFIX}{name}: the object is empty; ignored")
        part, problems = read_part(name, effects.pop(name), _PARTS)
        warnings += (f"{_PREFIX}{problem}" for problem in problems)
        if part:
            effects[name] = part
    if unknown := {name: None for name in effects if name not in _SPECIFIC}:
        _warn_of_unknown(unknown, _PREFIX, warnings)
    return effects


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or isfinite(value)


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_Number = Annotated[float, Expected("a number", _is_finite)] | None
_WholeNumber = Annotated[int, Expected("a whole number")] | None
_Strings = Annotated[list[str], Expected("a list of strings", _is_strings)] | None


class _Message(TypedDict):
    role: str
    content: str


class _Config(TypedDict, total=False):
    temperature: _Number
    topP: _Number
    topK: Annotated[int | float, Expected("a number", _is_finite)] | None
    frequencyPenalty: _Number
    presencePenalty: _Number
    maxOutputTokens: _WholeNumber
    candidateCount: _WholeNumber
    seed: _WholeNumber
    stopSequences: _Strings


class _ToolConfig(TypedDict, total=False):
    mode: Annotated[str, one_of(MODES)] | None
    allowedFunctionNames: list[str] | None


class _SdkToolConfig(TypedDict, total=False):
    mode: str | None  # some SDK has more of them
    allowedFunctionNames: list[str] | None


class _RequestFields(TypedDict, total=False):
    model: str
    messages: list[_Message] | None
    config: _Config | None


class _Request(_RequestFields, total=False):
    toolConfig: _ToolConfig | None


class _SdkRequest(_RequestFields, total=False):
    toolConfig: _SdkToolConfig | None


class _Content(TypedDict, total=False):
    parts: list[str] | None


class _Rating(TypedDict, total=False):
    category: str | None
    probability: str | None


class _Candidate(TypedDict, total=False):
    content: _Content | None
    finishReason: str | None
    index: _WholeNumber
    safetyRatings: list[_Rating] | None


class _Usage(TypedDict, total=False):
    promptTokenCount: _WholeNumber
    candidatesTokenCount: _WholeNumber
    totalTokenCount: _WholeNumber


class _Response(TypedDict, total=False):
    text: str | None
    candidates: list[Any] | None
    usageMetadata: _Usage | None


_PARTS: dict[str, Any] = {
    "llm_request": _Request,
    "llm_response": _Response,
    "toolConfig": _ToolConfig,
}
SDK_PARTS = _PARTS | {"llm_request": _SdkRequest, "toolConfig": _SdkToolConfig}
"""The same for translators."""


def read_part(
    name: str, wire: Mapping[str, Any], parts: Mapping[str, Any] = SDK_PARTS
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read ``llm_request``, ``llm_response`` or ``toolConfig``, or a part of one.

    Of a list the valid items count, if none is left too: a hook that rewrites messages
    or an answer never means the original to return.
    """
    mistakes: list[Mistake] = []
    part: dict[str, Any] = convert(wire, parts[name], mistakes, (name,)) or {}
    if name == "llm_request" and "config" in part:  # null removes a setting
        removed = {k: None for k, value in wire["config"].items() if value is None}
        part["config"] = removed | part["config"]
    if name == "llm_response":
        # Null empties an answer, and is no value of a wrong type.
        emptied = ("text", "candidates")
        part = {k: None for k in emptied if wire.get(k, "") is None} | part
        if part.get("candidates"):
            part["candidates"] = [
                _read_candidate(candidate, mistakes, (name, "candidates", index))
                for index, candidate in enumerate(part["candidates"])
            ]
    return part, tuple(f"{mistake}; ignored" for mistake in mistakes)


def _read_candidate(
    wire: Any, mistakes: list[Mistake], path: KeyPath
) -> dict[str, Any]:
    """A candidate; without valid text it is an empty one, never the original."""
    candidate: Any = convert(wire, _Candidate, mistakes, path) or {}
    content = candidate.get("content", {})
    return {**candidate, "content": {**content, "parts": content.get("parts", [])}}


def _first_reason(*reasons: str | None) -> str:
    """The first reason that is not blank, trimmed."""
    return next((text for r in reasons if r and (text := r.strip())), NO_REASON)
