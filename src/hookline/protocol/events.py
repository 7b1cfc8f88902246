"""What can happen in an agent: event names, their inputs, and their traits.

``TRAITS`` is the one table that planner, runner, aggregator and handler read. An
event is described there once, and none of them asks for an event by name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NotRequired, TypedDict

from msgspec import Struct

from hookline.errors import UnknownEventError


class HookEventName(StrEnum):
    """The eleven events."""

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

    __hash__ = str.__hash__  # Enum's own is a Python function, asked at every lookup

    @classmethod
    def of(cls, name: object) -> HookEventName:
        """Convert a name at the edge; inside the library it is always the enum."""
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
    """Who asked for the history to be compressed."""

    Manual = "manual"
    Auto = "auto"


class Matching(StrEnum):
    """How a matcher is held against its field."""

    REGEX = "regex"
    EXACT = "exact"
    NOTHING = "nothing"


class Merge(StrEnum):
    """How the outputs of several hooks become one."""

    ANY_BLOCKS = "any blocks"
    FIELDS = "fields"
    TOOL_SELECTION = "tool selection"
    LAST_WINS = "last wins"


class Chain(StrEnum):
    """What one hook's output changes in the next one's input."""

    TOOL_INPUT = "tool_input"
    PROMPT = "prompt"
    LLM_REQUEST = "llm_request"
    LLM_RESPONSE = "llm_response"
    NOTHING = "nothing"


class EventTraits(Struct, frozen=True):
    """All that the pipeline needs to know about one event."""

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
}


class BaseInput(TypedDict):
    """The fields that every hook gets."""

    session_id: str
    cwd: str
    hook_event_name: str
    timestamp: str
    transcript_path: str


class BeforeToolInput(BaseInput):
    """Before a tool runs."""

    tool_name: str
    tool_input: dict[str, Any]
    mcp_context: NotRequired[dict[str, Any]]
    original_request_name: NotRequired[str]


class AfterToolInput(BeforeToolInput):
    """After a tool has run."""

    tool_response: dict[str, Any]


class BeforeAgentInput(BaseInput):
    """Before a turn of the agent."""

    prompt: str


class AfterAgentInput(BaseInput):
    """After a turn of the agent."""

    prompt: str
    prompt_response: str
    stop_hook_active: bool


class BeforeModelInput(BaseInput):
    """Before a model call."""

    llm_request: dict[str, Any]


class AfterModelInput(BeforeModelInput):
    """After a model call."""

    llm_response: dict[str, Any]


class BeforeToolSelectionInput(BeforeModelInput):
    """Before the tools for a model call are chosen."""

    available_tools: NotRequired[list[Any]]


class SessionStartInput(BaseInput):
    """A session starts."""

    source: str


class SessionEndInput(BaseInput):
    """A session ends."""

    reason: str


class NotificationInput(BaseInput):
    """The host tells the user something."""

    message: str
    notification_type: str
    details: dict[str, Any]
    level: NotRequired[str]


class PreCompressInput(BaseInput):
    """The history is about to be compressed."""

    trigger: str
