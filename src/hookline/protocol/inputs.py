"""The events as methods, and the inputs that hooks get.

The handler answers events in this process and ``RemoteHooks`` over a bus; both have the
methods of ``EventFirer``, so a caller need not know where the hooks run. The TypedDicts
describe what a hook finds on its standard input (public as ``hookline.types``).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypedDict

from hookline._internal.log import logger
from hookline.errors import UnknownTranslatorError

from .convert import Expected, one_of
from .events import (
    TRAITS,
    HookEventName,
    NotificationType,
    PreCompressTrigger,
    SessionEndReason,
    SessionStartSource,
)
from .results import ProcessedHookResult

Fields = dict[str, Any]
"""The fields of one event, without the base fields."""
Name = Annotated[str, Expected("a non-empty string", bool)]


class BaseInput(TypedDict):
    """The fields that every hook gets."""

    session_id: str
    cwd: str
    hook_event_name: str
    timestamp: str
    transcript_path: str


class HostInput(BaseInput):
    """What an event has in addition where a coding agent fired it."""

    host: NotRequired[dict[str, Any]]
    """``name``, ``event``, ``tool_name``, ``tool_input``: as the host spells them."""
    permission_mode: NotRequired[str]


class AgentInput(HostInput):
    """An event that may belong to a subagent."""

    agent_id: NotRequired[str]
    agent_type: NotRequired[str]


class BeforeToolInput(AgentInput):
    """A tool is about to run."""

    tool_name: Name
    tool_input: dict[str, Any]
    tool_use_id: NotRequired[str]
    mcp_context: NotRequired[dict[str, Any]]
    original_request_name: NotRequired[str]


class AfterToolInput(BeforeToolInput):
    """A tool has run."""

    tool_response: Any


class BeforeAgentInput(AgentInput):
    """A turn is about to start."""

    prompt: str


class AfterAgentInput(AgentInput):
    """A turn has ended with an answer."""

    prompt: str
    prompt_response: str
    stop_hook_active: bool


class BeforeModelInput(AgentInput):
    """A model is about to be called."""

    llm_request: dict[str, Any]


class AfterModelInput(BeforeModelInput):
    """A model has answered."""

    llm_response: dict[str, Any]


class BeforeToolSelectionInput(BeforeModelInput):
    """The tools for a model call are about to be chosen."""

    available_tools: NotRequired[list[Any]]


class SessionStartInput(AgentInput):
    """A session starts."""

    source: Annotated[str, one_of(SessionStartSource)]


class SessionEndInput(AgentInput):
    """A session ends."""

    reason: Annotated[str, one_of(SessionEndReason)]


class NotificationInput(AgentInput):
    """The host notifies its user."""

    message: str
    notification_type: Name
    details: dict[str, Any]
    level: NotRequired[str]


class PreCompressInput(AgentInput):
    """The history is about to be compressed."""

    trigger: Annotated[str, one_of(PreCompressTrigger)]


class SubagentStartInput(HostInput):
    """A subagent is about to start."""

    agent_id: str
    agent_type: Name
    prompt: NotRequired[str]


class SubagentStopInput(SubagentStartInput):
    """A subagent has ended."""

    prompt_response: NotRequired[str]
    stop_hook_active: bool


HookInput = (
    BeforeToolInput
    | AfterToolInput
    | BeforeAgentInput
    | AfterAgentInput
    | BeforeModelInput
    | AfterModelInput
    | BeforeToolSelectionInput
    | SessionStartInput
    | SessionEndInput
    | NotificationInput
    | PreCompressInput
    | SubagentStartInput
    | SubagentStopInput
)
"""The input of any event."""

INPUT_TYPES: dict[HookEventName, Any] = {
    event: globals()[f"{event.value}Input"] for event in HookEventName
}
EVENT_FIELDS = {
    event: frozenset(input_type.__annotations__)
    for event, input_type in INPUT_TYPES.items()
}
"""The names of all fields that an event can have."""

BASE_FIELDS = frozenset(BaseInput.__annotations__)
_ALIASES = {"model_request": "llm_request", "model_response": "llm_response"}
_DEFAULTS: dict[HookEventName, Fields] = {
    HookEventName.AfterAgent: {"stop_hook_active": False},
    HookEventName.SubagentStop: {"stop_hook_active": False},
    HookEventName.Notification: {
        "notification_type": NotificationType.ToolPermission.value,
        "details": {},
    },
}

# The two most frequent events. On Python 3.11 looking up an enum member takes as long
# as building the fields.
_BEFORE_TOOL, _AFTER_TOOL = HookEventName.BeforeTool, HookEventName.AfterTool


def event_fields(event: HookEventName, event_input: Mapping[str, Any]) -> Fields:
    """Normalize the fields of an event; raises ``ValueError`` for an invalid choice.

    Hooks see the same names and defaults whichever way an event came in.
    """
    fields, traits = with_defaults(event, event_input), TRAITS[event]
    if traits.choices is None:
        return fields
    value = fields.get(traits.matched_field)
    if not isinstance(value, str) or value not in tuple(traits.choices):
        problem = one_of(traits.choices).mismatch(value)
        message = f"{event.value} input: {traits.matched_field}: {problem}"
        # A coding agent may have more reasons than we know: hooks without a matcher
        # should still run. Any other caller has the enum (DELTA-HPAY-006).
        if not isinstance(value, str) or "host" not in fields:
            raise ValueError(message)
        logger.warning("%s", message)
    fields[traits.matched_field] = str(value)
    return fields


def with_defaults(event: HookEventName, event_input: Mapping[str, Any]) -> Fields:
    """The fields of an event under their usual names, with those it always has."""
    if not hasattr(event_input, "items"):
        raise ValueError(f"expected an object, got {event_input!r:.100}")
    fields = {
        _ALIASES.get(name, name): value
        for name, value in event_input.items()
        if name not in BASE_FIELDS
    }
    for name, default in _DEFAULTS.get(event, {}).items():
        if fields.get(name) is None:
            fields[name] = default
    return fields


TRANSLATORS = ("auto", "genai", "openai", "anthropic", "stable")
"""Names of the shapes in which model requests and responses may come."""


def checked_translator(name: str) -> str:
    """Return the name of a translator; raise for one that does not exist."""
    if name not in TRANSLATORS:
        raise UnknownTranslatorError(name, TRANSLATORS)
    return name


class EventFirer(ABC):
    """Has ``fire_*_event`` for every event; they raise nothing but cancellation."""

    @abstractmethod
    async def fire(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire an event by its name, with its fields as a mapping."""

    @abstractmethod
    async def fire_fields(
        self,
        event: HookEventName,
        fields: Fields,
        session_id: str | None = None,
        transcript_path: str | None = None,
    ) -> ProcessedHookResult:
        """Fire an event whose fields are normalized, for another session if given."""

    async def fire_before_tool_event(
        self,
        tool_name: str,
        tool_input: Mapping[str, Any],
        *,
        mcp_context: Mapping[str, Any] | None = None,
        original_request_name: str | None = None,
    ) -> ProcessedHookResult:
        """A tool is about to run.

        ``mcp_context`` describes the MCP server that has it; ``original_request_name``
        is what the model called it, where that differs.
        """
        fields: Fields = {"tool_name": tool_name, "tool_input": tool_input}
        if mcp_context is not None:
            fields["mcp_context"] = mcp_context
        if original_request_name is not None:
            fields["original_request_name"] = original_request_name
        return await self.fire_fields(_BEFORE_TOOL, fields)

    async def fire_after_tool_event(
        self,
        tool_name: str,
        tool_input: Mapping[str, Any],
        tool_response: Any,
        *,
        mcp_context: Mapping[str, Any] | None = None,
        original_request_name: str | None = None,
    ) -> ProcessedHookResult:
        """A tool has run; ``tool_response`` is its result, any JSON value."""
        fields: Fields = {
            "tool_name": tool_name,
            "tool_input": tool_input,
            "tool_response": tool_response,
        }
        if mcp_context is not None:
            fields["mcp_context"] = mcp_context
        if original_request_name is not None:
            fields["original_request_name"] = original_request_name
        return await self.fire_fields(_AFTER_TOOL, fields)

    async def fire_before_agent_event(self, prompt: str) -> ProcessedHookResult:
        """A turn is about to start."""
        return await self.fire_fields(HookEventName.BeforeAgent, {"prompt": prompt})

    async def fire_after_agent_event(
        self, prompt: str, prompt_response: str, stop_hook_active: bool = False
    ) -> ProcessedHookResult:
        """A turn has ended with an answer.

        ``stop_hook_active``: hooks rejected the answer before this one.
        """
        fields = {
            "prompt": prompt,
            "prompt_response": prompt_response,
            "stop_hook_active": stop_hook_active,
        }
        return await self.fire_fields(HookEventName.AfterAgent, fields)

    async def fire_before_model_event(self, llm_request: Any) -> ProcessedHookResult:
        """A model is about to be called; the request may be an SDK's own object."""
        return await self.fire_fields(
            HookEventName.BeforeModel, {"llm_request": llm_request}
        )

    async def fire_after_model_event(
        self, llm_request: Any, llm_response: Any
    ) -> ProcessedHookResult:
        """A model has answered completely."""
        fields = {"llm_request": llm_request, "llm_response": llm_response}
        return await self.fire_fields(HookEventName.AfterModel, fields)

    async def fire_before_tool_selection_event(
        self, llm_request: Any, available_tools: list[Any] | None = None
    ) -> ProcessedHookResult:
        """The tools for a model call are about to be chosen."""
        fields = {"llm_request": llm_request, "available_tools": available_tools}
        return await self.fire_fields(
            HookEventName.BeforeToolSelection, _present(fields)
        )

    async def fire_session_start_event(
        self, source: SessionStartSource | str = SessionStartSource.Startup
    ) -> ProcessedHookResult:
        """A session starts."""
        return await self.fire(HookEventName.SessionStart, {"source": source})

    async def fire_session_end_event(
        self, reason: SessionEndReason | str = SessionEndReason.Exit
    ) -> ProcessedHookResult:
        """A session ends."""
        return await self.fire(HookEventName.SessionEnd, {"reason": reason})

    async def fire_notification_event(
        self,
        message: str,
        *,
        notification_type: NotificationType | str = NotificationType.ToolPermission,
        details: Mapping[str, Any] | None = None,
        level: str | None = None,
    ) -> ProcessedHookResult:
        """The host notifies its user."""
        fields: Fields = {
            "message": message,
            "notification_type": str(notification_type),
            "details": {} if details is None else details,
            "level": level,
        }
        return await self.fire_fields(HookEventName.Notification, _present(fields))

    async def fire_pre_compress_event(
        self, trigger: PreCompressTrigger | str = PreCompressTrigger.Auto
    ) -> ProcessedHookResult:
        """The history is about to be compressed."""
        return await self.fire(HookEventName.PreCompress, {"trigger": trigger})

    async def fire_subagent_start_event(
        self, agent_id: str, agent_type: str, *, prompt: str | None = None
    ) -> ProcessedHookResult:
        """A subagent is about to start."""
        fields = {"agent_id": agent_id, "agent_type": agent_type, "prompt": prompt}
        return await self.fire_fields(HookEventName.SubagentStart, _present(fields))

    async def fire_subagent_stop_event(
        self,
        agent_id: str,
        agent_type: str,
        *,
        prompt: str | None = None,
        prompt_response: str | None = None,
        stop_hook_active: bool = False,
    ) -> ProcessedHookResult:
        """A subagent has ended; a block rejects its answer."""
        fields = {
            "agent_id": agent_id,
            "agent_type": agent_type,
            "prompt": prompt,
            "prompt_response": prompt_response,
            "stop_hook_active": stop_hook_active,
        }
        return await self.fire_fields(HookEventName.SubagentStop, _present(fields))


def _present(fields: Fields) -> Fields:
    """The fields that the caller has."""
    return {name: value for name, value in fields.items() if value is not None}
