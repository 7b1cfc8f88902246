"""Validate the input of an event that came over the bus.

Used at the bus only (rule V1). What a predicate accepts has all required fields of its
type, each of the right type; unknown fields are allowed (V4). A request may leave some
out, so its input is completed before it is validated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from . import inputs
from .convert import Mistake, convert, keys_of
from .events import HookEventName

if TYPE_CHECKING:
    from typing_extensions import TypeIs

T = TypeVar("T")
_E = HookEventName


def completed(event: HookEventName, value: dict[str, Any]) -> dict[str, Any]:
    """The input of a request with what it may leave out.

    The handler sets the base fields; a request may choose session and transcript.
    ``null`` in an optional field counts as absent.
    """
    keys = keys_of(inputs.INPUT_TYPES[event])
    fields = {
        name: field
        for name, field in value.items()
        if field is not None
        or (name in keys and keys[name].is_required and name not in inputs.BASE_FIELDS)
    }
    return {
        **inputs.with_defaults(event, fields),
        "session_id": fields.get("session_id", ""),
        "transcript_path": fields.get("transcript_path", ""),
        "cwd": "",
        "hook_event_name": event.value,
        "timestamp": "",
    }


def explain(event: HookEventName, value: object) -> str:
    """Say what is wrong with an event's input; empty if it is valid."""
    mistakes: list[Mistake] = []
    convert(value, inputs.INPUT_TYPES[event], mistakes)
    return f"{event.value} input: {mistakes[0]}" if mistakes else ""


PREDICATES: dict[HookEventName, Callable[[object], bool]] = {}


def _predicate(
    event: HookEventName, input_type: type[T]
) -> Callable[[object], TypeIs[T]]:
    def is_input(value: object) -> TypeIs[T]:
        return isinstance(value, dict) and not explain(event, value)

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
