"""The events: their names and their traits.

``TRAITS`` is the one table that planner, runner, merge and handler read. It describes
each event once, so none of them compares event names.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from hookline.errors import UnknownEventError


class HookEventName(StrEnum):
    """The thirteen events."""

    BeforeTool = "BeforeTool"
    AfterTool = "AfterTool"
    BeforeAgent = "BeforeAgent"
    AfterAgent = "AfterAgent"
    BeforeModel = "BeforeModel"
    AfterModel = "AfterModel"
    BeforeToolSelection = "BeforeToolSelection"
    SessionStart = "SessionStart"
    SessionEnd = "SessionEnd"
    Notification = "Notification"
    PreCompress = "PreCompress"
    SubagentStart = "SubagentStart"
    SubagentStop = "SubagentStop"

    __hash__ = str.__hash__  # Enum's own is a Python function: slow in every lookup

    @classmethod
    def of(cls, name: object) -> HookEventName:
        """Convert a name; raises ``UnknownEventError``."""
        event = known_event(name)
        if event is None:
            raise UnknownEventError(name, tuple(cls))
        return event


_EVENTS = {event.value: event for event in HookEventName}


def known_event(name: object) -> HookEventName | None:
    """Return the event of this name; None for an unknown name or any other value."""
    return _EVENTS.get(name) if isinstance(name, str) else None


class SessionStartSource(StrEnum):
    """Why a session starts."""

    Startup = "startup"
    Resume = "resume"
    Clear = "clear"
    Compress = "compress"


class SessionEndReason(StrEnum):
    """Why a session ends."""

    Exit = "exit"
    Clear = "clear"
    Logout = "logout"
    PromptInputExit = "prompt_input_exit"
    Other = "other"


class NotificationType(StrEnum):
    """What a notification is about."""

    ToolPermission = "ToolPermission"


class PreCompressTrigger(StrEnum):
    """What caused the history to be compressed."""

    Manual = "manual"
    Auto = "auto"


class Matching(StrEnum):
    """How a matcher is compared with its field."""

    REGEX = "regex"
    EXACT = "exact"
    NOTHING = "nothing"


class Merge(StrEnum):
    """How the outputs of several hooks are merged."""

    ANY_BLOCKS = "any blocks"
    FIELDS = "fields"
    TOOL_SELECTION = "tool selection"
    LAST_WINS = "last wins"

    __hash__ = str.__hash__  # as above


class Chain(StrEnum):
    """Which field of the next hook's input a hook's output changes."""

    TOOL_INPUT = "tool_input"
    PROMPT = "prompt"
    LLM_REQUEST = "llm_request"
    LLM_RESPONSE = "llm_response"
    NOTHING = "nothing"


class EventTraits(Struct, frozen=True):
    """What the pipeline needs to know about one event."""

    merge: Merge
    matched_field: str = ""
    matching: Matching = Matching.NOTHING
    chain: Chain = Chain.NOTHING
    can_block: bool = False
    can_stop: bool = False
    reads_permission_decision: bool = False
    model_fields: tuple[str, ...] = ()
    choices: type[StrEnum] | None = None


TRAITS: dict[HookEventName, EventTraits] = {
    HookEventName.BeforeTool: EventTraits(
        Merge.ANY_BLOCKS,
        "tool_name",
        Matching.REGEX,
        chain=Chain.TOOL_INPUT,
        can_block=True,
        can_stop=True,
        reads_permission_decision=True,
    ),
    HookEventName.AfterTool: EventTraits(
        Merge.ANY_BLOCKS, "tool_name", Matching.REGEX, can_stop=True
    ),
    HookEventName.BeforeAgent: EventTraits(
        Merge.ANY_BLOCKS, chain=Chain.PROMPT, can_block=True, can_stop=True
    ),
    HookEventName.AfterAgent: EventTraits(
        Merge.ANY_BLOCKS, can_block=True, can_stop=True
    ),
    HookEventName.BeforeModel: EventTraits(
        Merge.FIELDS,
        chain=Chain.LLM_REQUEST,
        can_block=True,
        can_stop=True,
        model_fields=("llm_request",),
    ),
    HookEventName.AfterModel: EventTraits(
        Merge.FIELDS,
        chain=Chain.LLM_RESPONSE,
        can_stop=True,
        model_fields=("llm_request", "llm_response"),
    ),
    HookEventName.BeforeToolSelection: EventTraits(
        Merge.TOOL_SELECTION, can_stop=True, model_fields=("llm_request",)
    ),
    HookEventName.SessionStart: EventTraits(
        Merge.ANY_BLOCKS, "source", Matching.EXACT, choices=SessionStartSource
    ),
    HookEventName.SessionEnd: EventTraits(
        Merge.LAST_WINS, "reason", Matching.EXACT, choices=SessionEndReason
    ),
    HookEventName.Notification: EventTraits(
        Merge.LAST_WINS, "notification_type", Matching.EXACT
    ),
    HookEventName.PreCompress: EventTraits(
        Merge.LAST_WINS, "trigger", Matching.EXACT, choices=PreCompressTrigger
    ),
    **dict.fromkeys(
        (HookEventName.SubagentStart, HookEventName.SubagentStop),
        EventTraits(
            Merge.ANY_BLOCKS,
            "agent_type",
            Matching.EXACT,
            can_block=True,
            can_stop=True,
        ),
    ),
}
