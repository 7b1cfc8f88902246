"""Whether what a hook returned is a model request or response, or a part of one.

Hooks may return any part of the stable shape. A part of a wrong shape must not reach
the next hook or the model, so it is judged as a whole: never half a change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct

from .events import TRAITS, HookEventName


def request_problem(value: Any) -> str | None:
    """Say what is wrong with an ``llm_request`` from a hook, or None."""
    if not isinstance(value, dict):
        return "expected an object"
    if not isinstance(value.get("model", ""), str):
        return "model: expected a string"
    for key in ("config", "toolConfig"):
        if not isinstance(value.get(key) or {}, dict):
            return f"{key}: expected an object"
    return _messages_problem(value.get("messages"))


def response_problem(value: Any) -> str | None:
    """Say what is wrong with an ``llm_response`` from a hook, or None."""
    if not isinstance(value, dict) or not value:
        return "expected an object with text or candidates"
    if not isinstance(value.get("text") or "", str):
        return "text: expected a string"
    if not isinstance(value.get("usageMetadata") or {}, dict):
        return "usageMetadata: expected an object"
    return _candidates_problem(value.get("candidates"))


def _messages_problem(messages: Any) -> str | None:
    if messages is None:
        return None
    if not isinstance(messages, list):
        return "messages: expected a list"
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            return f"messages[{index}]: expected an object"
        if not isinstance(message.get("role"), str):
            return f"messages[{index}].role: expected a string"
        if not isinstance(message.get("content"), str):
            return f"messages[{index}].content: expected a string"
    return None


def _candidates_problem(candidates: Any) -> str | None:
    if candidates is None:
        return None
    if not isinstance(candidates, list):
        return "candidates: expected a list"
    for index, candidate in enumerate(candidates):
        place = f"candidates[{index}]"
        if not isinstance(candidate, dict):
            return f"{place}: expected an object"
        content = candidate.get("content") or {}
        if not isinstance(content, dict):
            return f"{place}.content: expected an object"
        if not _is_texts(content.get("parts") or []):
            return f"{place}.content.parts: expected a list of strings"
    return None


def _is_texts(parts: Any) -> bool:
    return isinstance(parts, list) and all(isinstance(part, str) for part in parts)


NO_REASON = "No reason provided"

MODES = ("NONE", "ANY", "AUTO")
"""Of tool selection, the strictest first."""

T = TypeVar("T")


class Decision(StrEnum):
    """What a hook decided."""

    ALLOW = "allow"
    APPROVE = "approve"
    ASK = "ask"
    BLOCK = "block"
    DENY = "deny"

    __hash__ = str.__hash__  # Enum's own is a Python function, asked at every lookup


_FIELDS = frozenset(
    {
        *("decision", "reason", "continue", "stopReason", "suppressOutput"),
        *("systemMessage", "hookSpecificOutput"),
    }
)
_BLOCKING = frozenset({Decision.BLOCK, Decision.DENY})


class HookOutput(Struct, frozen=True, kw_only=True):
    """The fields of one output, or of several merged ones, each of its right type."""

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

    @property
    def is_blocking(self) -> bool:
        """Whether it says ``block`` or ``deny``, whatever the event makes of it."""
        return self.decision in _BLOCKING or self.permission in _BLOCKING

    @property
    def asks(self) -> bool:
        """Whether it wants a person to decide."""
        return not self.is_blocking and Decision.ASK in (self.decision, self.permission)

    @property
    def stops(self) -> bool:
        """Whether it wants the agent to stop."""
        return self.continues is False

    @property
    def own_reason(self) -> str | None:
        """The reason it gives for its decision, if any."""
        return self.permission_reason or self.reason

    @property
    def effective_reason(self) -> str:
        """The reason to show for a block."""
        return _first_said(self.permission_reason, self.stop_reason, self.reason)

    @property
    def effective_stop_reason(self) -> str:
        """The reason to show for a stop."""
        return _first_said(self.stop_reason, self.own_reason)

    @property
    def additional_context(self) -> str | None:
        """Text for the model, with angle brackets escaped."""
        text = self.hook_specific_output.get("additionalContext")
        if not text:
            return None
        return str(text).replace("<", "&lt;").replace(">", "&gt;")

    @property
    def tool_input(self) -> dict[str, Any] | None:
        """The keys of the tool input that it changes."""
        return self.hook_specific_output.get("tool_input")

    @property
    def replaces_tool_input(self) -> bool:
        """Whether these keys are the whole input, not changes to it."""
        return self.hook_specific_output.get("replacesToolInput") is True

    @property
    def llm_request(self) -> dict[str, Any] | None:
        """The parts of the model request that it changes, in the stable shape."""
        return self.hook_specific_output.get("llm_request")

    @property
    def llm_response(self) -> dict[str, Any] | None:
        """A model response or parts of one, in the stable shape."""
        return self.hook_specific_output.get("llm_response")

    @property
    def tool_config(self) -> dict[str, Any] | None:
        """The restriction of tools that it asks for."""
        return self.hook_specific_output.get("toolConfig")

    @property
    def withholds_result(self) -> bool:
        """Whether the tool's result must not reach the model (AfterTool)."""
        return self.hook_specific_output.get("withholdResult") is True

    @property
    def clear_context(self) -> bool:
        """Whether the agent's context is to be cleared."""
        return self.hook_specific_output.get("clearContext") is True

    def to_wire(self) -> dict[str, Any]:
        """Spell it as hooks do, without what was not said."""
        said = {
            "decision": None if self.decision is None else self.decision.value,
            "reason": self.reason,
            "continue": self.continues,
            "stopReason": self.stop_reason,
            "suppressOutput": self.suppress_output,
            "systemMessage": self.system_message,
            "hookSpecificOutput": self.hook_specific_output or None,
        }
        return {k: v for k, v in said.items() if v is not None} | self.extra


def read_output(
    wire: Mapping[str, Any], event: HookEventName
) -> tuple[HookOutput, tuple[str, ...]]:
    """Read what a hook said; the second value holds a warning per ignored field."""
    reader = _Reader(wire)
    decision = reader.take("decision", _decision)
    specific = reader.take("hookSpecificOutput", _object) or {}
    inner = _Reader(specific, "hookSpecificOutput.")
    permission = permission_reason = None
    if TRAITS[event].reads_permission_decision:
        permission = inner.take("permissionDecision", _decision)
        permission_reason = inner.take("permissionDecisionReason", _text)
    kept = _read_specific(inner, specific)
    output = HookOutput(
        decision=decision,
        reason=reader.take("reason", _text),
        continues=reader.take("continue", _flag),
        stop_reason=reader.take("stopReason", _text),
        suppress_output=reader.take("suppressOutput", _flag),
        system_message=reader.take("systemMessage", _text),
        hook_specific_output=kept,
        extra={k: v for k, v in wire.items() if k not in _FIELDS},
        permission=permission,
        permission_reason=permission_reason,
    )
    return output, (*reader.warnings, *inner.warnings)


def _read_specific(inner: _Reader, specific: Mapping[str, Any]) -> dict[str, Any]:
    if not specific:
        return {}
    read = {
        key: inner.take(key, _SPECIFIC[key]) if key in _SPECIFIC else value
        for key, value in specific.items()
    }
    config = read.get("toolConfig")
    if config:
        read["toolConfig"] = _read_tool_config(inner, config)
    return {key: value for key, value in read.items() if value is not None}


def _read_tool_config(inner: _Reader, config: dict[str, Any]) -> dict[str, Any]:
    reader = _Reader(config, "hookSpecificOutput.toolConfig.")
    mode = reader.take("mode", _mode)
    names = reader.take("allowedFunctionNames", _names)
    inner.warnings += reader.warnings
    kept = {**config, "mode": mode, "allowedFunctionNames": names}
    return {key: value for key, value in kept.items() if value is not None}


class _Wrong(Exception):  # noqa: N818 - never leaves this module
    """Why a value is not what its field holds."""


class _Reader:
    """Takes typed fields out of a wire object and remembers what was wrong."""

    def __init__(self, wire: Mapping[str, Any], prefix: str = "") -> None:
        self._wire = wire
        self._prefix = prefix
        self.warnings: list[str] = []

    def take(self, name: str, check: Callable[[Any], T]) -> T | None:
        value = self._wire.get(name)
        if value is None:
            return None
        try:
            return check(value)
        except _Wrong as wrong:
            self.warnings.append(f"{self._prefix}{name}: {wrong}; ignored")
            return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"expected a string, got {_shown(value)}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong(f"expected true or false, got {_shown(value)}")
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(f"expected an object, got {_shown(value)}")
    return value


def _decision(value: Any) -> Decision:
    try:
        return Decision(value)
    except ValueError:
        known = ", ".join(Decision)
        raise _Wrong(f"expected one of {known}, got {_shown(value)}") from None


def _mode(value: Any) -> str:
    if value not in MODES:
        raise _Wrong(f"expected one of {', '.join(MODES)}, got {_shown(value)}")
    return str(value)


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _Wrong(f"expected a list of strings, got {_shown(value)}")
    return value


def _checked_by(problem: Callable[[Any], str | None]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        found = problem(value)
        if found:
            raise _Wrong(found)
        return value

    return check


_SPECIFIC: dict[str, Callable[[Any], Any]] = {
    "additionalContext": _text,
    "tool_input": _object,
    "clearContext": _flag,
    "llm_request": _checked_by(request_problem),
    "llm_response": _checked_by(response_problem),
    "toolConfig": _object,
    "withholdResult": _flag,
}


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


def _first_said(*reasons: str | None) -> str:
    for reason in reasons:
        if reason and reason.strip():
            return reason.strip()
    return NO_REASON
