"""Whether an input that came over the bus is what its event needs.

Run at the bus only (V1); unknown fields are tolerated (V4), ``null`` in an optional
field is the same as no field. The base fields are the handler's own business, so an
input need not hold them; what a request may set of them has to be of the right type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from .events import (
    TRAITS,
    AfterAgentInput,
    AfterModelInput,
    AfterToolInput,
    BeforeAgentInput,
    BeforeModelInput,
    BeforeToolInput,
    BeforeToolSelectionInput,
    HookEventName,
    NotificationInput,
    PreCompressInput,
    SessionEndInput,
    SessionStartInput,
)

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_LONGEST_SHOWN = 80
_NOTHING = object()


class Field(Struct, frozen=True):
    """One field of an input: its name, what it holds, and whether it must be there."""

    name: str
    expected: str
    fits: Callable[[Any], bool]
    required: bool = True
    other_name: str = ""
    """Another spelling under which it may come."""

    def problem(self, value: Mapping[str, Any]) -> str | None:
        """Say what is wrong with this field of an input, or None."""
        found, other = value.get(self.name), None
        if found is not None and not self.fits(found):
            return self._complaint(self.name, found)
        if self.other_name:
            other = value.get(self.other_name)
            if other is not None and not self.fits(other):
                return self._complaint(self.other_name, other)
        if found is None and other is None and self.required:
            names = (
                f"{self.name} or {self.other_name}" if self.other_name else self.name
            )
            return self._complaint(names, value.get(self.name, _NOTHING))
        return None

    def _complaint(self, name: str, found: Any) -> str:
        return f"{name}: expected {self.expected}, got {_shown(found)}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _name(name: str, *, required: bool = True) -> Field:
    return Field(name, "a non-empty string", _is_name, required)


def _text(name: str, *, required: bool = True) -> Field:
    return Field(name, "a string", _is_text, required)


def _object(name: str, *, required: bool = True, other_name: str = "") -> Field:
    return Field(name, "an object", _is_object, required, other_name)


def _choice(event: HookEventName) -> tuple[Field, ...]:
    traits = TRAITS[event]
    choices: type[StrEnum] | None = traits.choices
    assert choices is not None
    known = frozenset(choice.value for choice in choices)
    expected = f"one of {', '.join(choices)}"
    return (
        Field(
            traits.matched_field,
            expected,
            lambda value: isinstance(value, str) and value in known,
        ),
    )


_BASE = (_text("session_id", required=False), _text("transcript_path", required=False))
_TOOL = (
    _name("tool_name"),
    _object("tool_input"),
    _object("mcp_context", required=False),
    _text("original_request_name", required=False),
)
_REQUEST = _object("llm_request", other_name="model_request")
_RESPONSE = _object("llm_response", other_name="model_response")

_OWN_FIELDS: dict[HookEventName, tuple[Field, ...]] = {
    HookEventName.BeforeTool: _TOOL,
    HookEventName.AfterTool: (*_TOOL, _object("tool_response")),
    HookEventName.BeforeAgent: (_text("prompt"),),
    HookEventName.AfterAgent: (
        _text("prompt"),
        _text("prompt_response"),
        Field("stop_hook_active", "true or false", _is_flag, required=False),
    ),
    HookEventName.BeforeModel: (_REQUEST,),
    HookEventName.AfterModel: (_REQUEST, _RESPONSE),
    HookEventName.BeforeToolSelection: (
        _REQUEST,
        Field("available_tools", "a list", _is_list, required=False),
    ),
    HookEventName.Notification: (
        _text("message"),
        _name("notification_type", required=False),
        _object("details", required=False),
        _text("level", required=False),
    ),
    HookEventName.SessionStart: _choice(HookEventName.SessionStart),
    HookEventName.SessionEnd: _choice(HookEventName.SessionEnd),
    HookEventName.PreCompress: _choice(HookEventName.PreCompress),
}
FIELDS = {event: (*own, *_BASE) for event, own in _OWN_FIELDS.items()}
"""What is checked in the input of each event."""


def explain(event: HookEventName, value: object) -> str | None:
    """Say what is wrong with an event's input, or None where it is valid."""
    if not isinstance(value, dict):
        return f"{event.value} input: expected an object, got {_shown(value)}"
    for field in FIELDS[event]:
        problem = field.problem(value)
        if problem:
            return f"{event.value} input: {problem}"
    return None


def is_before_tool_input(value: object) -> TypeIs[BeforeToolInput]:
    """Whether it is an input of BeforeTool."""
    return explain(HookEventName.BeforeTool, value) is None


def is_after_tool_input(value: object) -> TypeIs[AfterToolInput]:
    """Whether it is an input of AfterTool."""
    return explain(HookEventName.AfterTool, value) is None


def is_before_agent_input(value: object) -> TypeIs[BeforeAgentInput]:
    """Whether it is an input of BeforeAgent."""
    return explain(HookEventName.BeforeAgent, value) is None


def is_after_agent_input(value: object) -> TypeIs[AfterAgentInput]:
    """Whether it is an input of AfterAgent."""
    return explain(HookEventName.AfterAgent, value) is None


def is_before_model_input(value: object) -> TypeIs[BeforeModelInput]:
    """Whether it is an input of BeforeModel."""
    return explain(HookEventName.BeforeModel, value) is None


def is_after_model_input(value: object) -> TypeIs[AfterModelInput]:
    """Whether it is an input of AfterModel."""
    return explain(HookEventName.AfterModel, value) is None


def is_before_tool_selection_input(
    value: object,
) -> TypeIs[BeforeToolSelectionInput]:
    """Whether it is an input of BeforeToolSelection."""
    return explain(HookEventName.BeforeToolSelection, value) is None


def is_notification_input(value: object) -> TypeIs[NotificationInput]:
    """Whether it is an input of Notification."""
    return explain(HookEventName.Notification, value) is None


def is_session_start_input(value: object) -> TypeIs[SessionStartInput]:
    """Whether it is an input of SessionStart."""
    return explain(HookEventName.SessionStart, value) is None


def is_session_end_input(value: object) -> TypeIs[SessionEndInput]:
    """Whether it is an input of SessionEnd."""
    return explain(HookEventName.SessionEnd, value) is None


def is_pre_compress_input(value: object) -> TypeIs[PreCompressInput]:
    """Whether it is an input of PreCompress."""
    return explain(HookEventName.PreCompress, value) is None


def _shown(value: Any) -> str:
    """Show a value as the requester wrote it, without walking through a big one."""
    if value is _NOTHING:
        return "nothing"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        clipped = value[:_LONGEST_SHOWN]
        return repr(clipped) + ("..." if clipped != value else "")
    if isinstance(value, int | float):
        return _shown_number(value)
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else f"a {type(value).__name__}"


def _shown_number(number: float) -> str:
    # CPython refuses to write out whole numbers of more than 4300 digits.
    if isinstance(number, int) and abs(number) >= 1 << 63:
        return "a huge number"
    return repr(number)
