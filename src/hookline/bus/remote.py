"""The handler's ``fire_*`` methods for hooks that run elsewhere.

Triggers, scheduler and chat work the same against these as against a handler in the
process. Like the handler they never raise, except for cancellation: no answer is a
failure envelope, and a block where the client's ``on_error`` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from hookline.events import (
    HookEventName,
    NotificationType,
    PreCompressTrigger,
    SessionEndReason,
    SessionStartSource,
)
from hookline.results import ProcessedHookResult

from .client import HookBusClient
from .contracts import ResponseCode, failed_response
from .wire import processed_from_wire

_REQUESTS = frozenset({"llm_request", "model_request"})
_RESPONSES = frozenset({"llm_response", "model_response"})


class RemoteHooks:
    """Fires events over a bus; hooks see this session and this requester."""

    def __init__(
        self,
        client: HookBusClient,
        *,
        session_id: str | None = None,
        transcript_path: str | None = None,
        requester: Mapping[str, Any] | None = None,
        translator: str = "auto",
    ) -> None:
        self._client = client
        self._translator = translator
        base = {
            "session_id": session_id,
            "transcript_path": transcript_path,
            "requester": None if requester is None else dict(requester),
        }
        self._base = {key: value for key, value in base.items() if value is not None}

    async def fire(
        self,
        event_name: HookEventName | str,
        input: Mapping[str, Any],  # noqa: A002 - the protocol's own word
    ) -> ProcessedHookResult:
        """Fire an event by its name; raises UnknownEventError for no event."""
        event = HookEventName.of(event_name)
        try:
            fields = {
                key: _stable(key, value, self._translator)
                for key, value in input.items()
            }
        # An SDK's objects are foreign code and may raise anything.
        except Exception as error:  # noqa: BLE001
            return self._untranslated(event, error)
        return await self._fire(event, fields)

    async def fire_before_tool_event(
        self,
        tool_name: str,
        tool_input: Mapping[str, Any],
        *,
        mcp_context: Mapping[str, Any] | None = None,
        original_request_name: str | None = None,
    ) -> ProcessedHookResult:
        """Before a tool runs."""
        fields = _tool_fields(tool_name, tool_input, mcp_context, original_request_name)
        return await self._fire(HookEventName.BeforeTool, fields)

    async def fire_after_tool_event(
        self,
        tool_name: str,
        tool_input: Mapping[str, Any],
        tool_response: Mapping[str, Any],
        *,
        mcp_context: Mapping[str, Any] | None = None,
        original_request_name: str | None = None,
    ) -> ProcessedHookResult:
        """After a tool has run."""
        fields = _tool_fields(tool_name, tool_input, mcp_context, original_request_name)
        fields["tool_response"] = tool_response
        return await self._fire(HookEventName.AfterTool, fields)

    async def fire_before_agent_event(self, prompt: str) -> ProcessedHookResult:
        """Before a turn of the agent."""
        return await self._fire(HookEventName.BeforeAgent, {"prompt": prompt})

    async def fire_after_agent_event(
        self, prompt: str, prompt_response: str, stop_hook_active: bool = False
    ) -> ProcessedHookResult:
        """After a turn of the agent."""
        fields = {
            "prompt": prompt,
            "prompt_response": prompt_response,
            "stop_hook_active": stop_hook_active,
        }
        return await self._fire(HookEventName.AfterAgent, fields)

    async def fire_before_model_event(self, llm_request: Any) -> ProcessedHookResult:
        """Before a model call; takes an SDK's request or the stable shape."""
        fields = {"llm_request": llm_request}
        return await self.fire(HookEventName.BeforeModel, fields)

    async def fire_after_model_event(
        self, llm_request: Any, llm_response: Any
    ) -> ProcessedHookResult:
        """After a model call; takes an SDK's objects or the stable shape."""
        fields = {"llm_request": llm_request, "llm_response": llm_response}
        return await self.fire(HookEventName.AfterModel, fields)

    async def fire_before_tool_selection_event(
        self, llm_request: Any, available_tools: Sequence[Any] | None = None
    ) -> ProcessedHookResult:
        """Before the tools for a model call are chosen."""
        fields = {"llm_request": llm_request}
        if available_tools is not None:
            fields["available_tools"] = list(available_tools)
        return await self.fire(HookEventName.BeforeToolSelection, fields)

    async def fire_session_start_event(
        self, source: SessionStartSource | str
    ) -> ProcessedHookResult:
        """A session starts."""
        return await self._fire(HookEventName.SessionStart, {"source": str(source)})

    async def fire_session_end_event(
        self, reason: SessionEndReason | str
    ) -> ProcessedHookResult:
        """A session ends."""
        return await self._fire(HookEventName.SessionEnd, {"reason": str(reason)})

    async def fire_notification_event(
        self,
        message: str,
        *,
        notification_type: NotificationType | str = NotificationType.ToolPermission,
        details: Mapping[str, Any] | None = None,
        level: str | None = None,
    ) -> ProcessedHookResult:
        """The host tells the user something."""
        fields: dict[str, Any] = {
            "message": message,
            "notification_type": str(notification_type),
            "details": dict(details or {}),
        }
        if level is not None:
            fields["level"] = level
        return await self._fire(HookEventName.Notification, fields)

    async def fire_pre_compress_event(
        self, trigger: PreCompressTrigger | str
    ) -> ProcessedHookResult:
        """The history is about to be compressed."""
        return await self._fire(HookEventName.PreCompress, {"trigger": str(trigger)})

    async def _fire(
        self, event: HookEventName, fields: Mapping[str, Any]
    ) -> ProcessedHookResult:
        response = await self._client.request(event, {**self._base, **fields})
        return processed_from_wire(response, event, fields.get("tool_input"))

    def _untranslated(
        self, event: HookEventName, error: Exception
    ) -> ProcessedHookResult:
        response = failed_response(
            str(uuid4()),
            ResponseCode.TRANSLATION_FAILURE,
            str(error) or type(error).__name__,
            stage="translation",
            event_name=event.value,
        )
        return processed_from_wire(self._client.judge(response, event), event)


def _tool_fields(
    tool_name: str,
    tool_input: Mapping[str, Any],
    mcp_context: Mapping[str, Any] | None,
    original_request_name: str | None,
) -> dict[str, Any]:
    fields: dict[str, Any] = {"tool_name": tool_name, "tool_input": dict(tool_input)}
    if mcp_context is not None:
        fields["mcp_context"] = dict(mcp_context)
    if original_request_name is not None:
        fields["original_request_name"] = original_request_name
    return fields


def _stable(key: str, value: Any, name: str) -> Any:
    """Bring a model's request or response into the shape that can be sent."""
    if key not in _REQUESTS and key not in _RESPONSES:
        return value
    from hookline.translators import pick_translator, to_wire

    translator = pick_translator(value, name)
    if key in _REQUESTS:
        return to_wire(translator.to_hook_llm_request(value))
    return to_wire(translator.to_hook_llm_response(value))
