"""Validate the input of an event that came over the bus.

Used at the bus only (rule V1). What a predicate accepts has all required fields of its
type, each of the right type; unknown fields are allowed (V4). A request may leave some
out, so its input is completed before it is validated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from . import inputs
from .events import TRAITS, HookEventName
from .outputs import BOOLEAN, LIST, OBJECT, STRING, ValueType, one_of
from .values import describe

if TYPE_CHECKING:
    from typing_extensions import TypeIs

T = TypeVar("T")
_E = HookEventName
_NAME = ValueType("a non-empty string", str, bool)
_ANYTHING = ValueType("any value", object)


class Field(Struct, frozen=True):
    """One field of an input."""

    name: str
    type: ValueType
    required: bool = True

    def problem(self, value: Mapping[str, Any]) -> str | None:
        """Say what is wrong with this field of an input, or None."""
        if self.name in value:
            problem = self.type.problem(value[self.name])
            return problem and f"{self.name}: {problem}"
        if not self.required:
            return None
        return f"{self.name}: expected {self.type.description}, got nothing"


_BASE = (
    *(Field(name, STRING) for name in inputs.BaseInput.__annotations__),
    Field("host", OBJECT, required=False),
    Field("permission_mode", STRING, required=False),
)
_AGENT = (
    Field("agent_id", STRING, required=False),
    Field("agent_type", STRING, required=False),
)
_TOOL = (
    Field("tool_name", _NAME),
    Field("tool_input", OBJECT),
    Field("tool_use_id", STRING, required=False),
    Field("mcp_context", OBJECT, required=False),
    Field("original_request_name", STRING, required=False),
)
_REQUEST = Field("llm_request", OBJECT)
_SUBAGENT = (
    Field("agent_id", STRING),
    Field("agent_type", _NAME),
    Field("prompt", STRING, required=False),
)
_EVENT_FIELDS: dict[HookEventName, tuple[Field, ...]] = {
    _E.BeforeTool: _TOOL,
    _E.AfterTool: (*_TOOL, Field("tool_response", _ANYTHING)),
    _E.BeforeAgent: (Field("prompt", STRING),),
    _E.AfterAgent: (
        Field("prompt", STRING),
        Field("prompt_response", STRING),
        Field("stop_hook_active", BOOLEAN),
    ),
    _E.BeforeModel: (_REQUEST,),
    _E.AfterModel: (_REQUEST, Field("llm_response", OBJECT)),
    _E.BeforeToolSelection: (_REQUEST, Field("available_tools", LIST, required=False)),
    _E.Notification: (
        Field("message", STRING),
        Field("notification_type", _NAME),
        Field("details", OBJECT),
        Field("level", STRING, required=False),
    ),
    _E.SubagentStart: _SUBAGENT,
    _E.SubagentStop: (
        *_SUBAGENT,
        Field("prompt_response", STRING, required=False),
        Field("stop_hook_active", BOOLEAN),
    ),
    **{
        event: (Field(traits.matched_field, one_of(traits.choices)),)
        for event, traits in TRAITS.items()
        if traits.choices
    },
}
FIELDS = {
    event: (*own, *_BASE, *(() if own[:3] == _SUBAGENT else _AGENT))
    for event, own in _EVENT_FIELDS.items()
}
"""The one description of each event's input: the predicates and ``explain`` read it."""


def completed(event: HookEventName, value: dict[str, Any]) -> dict[str, Any]:
    """The input of a request with what it may leave out.

    The handler sets the base fields; a request may choose session and transcript.
    ``null`` in an optional field counts as absent.
    """
    required = {field.name for field in FIELDS[event] if field.required}
    required -= inputs.BASE_FIELDS
    given = {k: v for k, v in value.items() if v is not None or k in required}
    return {
        **inputs.with_defaults(event, given),
        "session_id": given.get("session_id", ""),
        "transcript_path": given.get("transcript_path", ""),
        "cwd": "",
        "hook_event_name": event.value,
        "timestamp": "",
    }


def explain(event: HookEventName, value: object) -> str:
    """Say what is wrong with an event's input; empty if it is valid."""
    if not isinstance(value, dict):
        return f"{event.value} input: expected an object, got {describe(value)}"
    for field in FIELDS[event]:
        problem = field.problem(value)
        if problem:
            return f"{event.value} input: {problem}"
    return ""


PREDICATES: dict[HookEventName, Callable[[object], bool]] = {}


def _predicate(
    event: HookEventName, input_type: type[T]
) -> Callable[[object], TypeIs[T]]:
    def is_input(value: object) -> TypeIs[T]:
        return not explain(event, value)

    PREDICATES[event] = is_input
    return is_input


is_before_tool_input = _predicate(_E.BeforeTool, inputs.BeforeToolInput)
is_after_tool_input = _predicate(_E.AfterTool, inputs.AfterToolInput)
is_before_agent_input = _predicate(_E.BeforeAgent, inputs.BeforeAgentInput)
is_after_agent_input = _predicate(_E.AfterAgent, inputs.AfterAgentInput)
is_before_model_input = _predicate(_E.BeforeModel, inputs.BeforeModelInput)
is_after_model_input = _predicate(_E.AfterModel, inputs.AfterModelInput)
is_before_tool_selection_input = _predicate(
    _E.BeforeToolSelection, inputs.BeforeToolSelectionInput
)
is_notification_input = _predicate(_E.Notification, inputs.NotificationInput)
is_session_start_input = _predicate(_E.SessionStart, inputs.SessionStartInput)
is_session_end_input = _predicate(_E.SessionEnd, inputs.SessionEndInput)
is_pre_compress_input = _predicate(_E.PreCompress, inputs.PreCompressInput)
is_subagent_start_input = _predicate(_E.SubagentStart, inputs.SubagentStartInput)
is_subagent_stop_input = _predicate(_E.SubagentStop, inputs.SubagentStopInput)


def is_hook_input(value: object, event: HookEventName) -> TypeIs[inputs.HookInput]:
    """Whether a value is a valid input of an event."""
    return PREDICATES[event](value)
