"""The eleven events as methods, for whoever can answer them.

The handler answers in this process and ``RemoteHooks`` over a bus; both are fired in
the same words, so that callers need not know where the hooks run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from .events import (
    HookEventName,
    NotificationType,
    PreCompressTrigger,
    SessionEndReason,
    SessionStartSource,
)
from .results import ProcessedHookResult

Fields = dict[str, Any]

# The two that fire most. On Python 3.11 finding a member in its enum takes as long as
# making the fields of an event.
_BEFORE_TOOL, _AFTER_TOOL = HookEventName.BeforeTool, HookEventName.AfterTool


class EventFirer(ABC):
    """Has ``fire_*_event`` for every event; they never raise, but for cancellation."""

    @abstractmethod
    async def fire(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire an event by its name, with its fields as a mapping."""

    @abstractmethod
    async def _fire(self, event: HookEventName, fields: Fields) -> ProcessedHookResult:
        """Answer one event whose fields have their right names."""

    async def fire_before_tool_event(
        self,
        tool_name: str,
        tool_input: Mapping[str, Any],
        *,
        mcp_context: Mapping[str, Any] | None = None,
        original_request_name: str | None = None,
    ) -> ProcessedHookResult:
        """A tool is about to run."""
        fields: Fields = {"tool_name": tool_name, "tool_input": tool_input}
        if mcp_context is not None:
            fields["mcp_context"] = mcp_context
        if original_request_name is not None:
            fields["original_request_name"] = original_request_name
        return await self._fire(_BEFORE_TOOL, fields)

    async def fire_after_tool_event(
        self,
        tool_name: str,
        tool_input: Mapping[str, Any],
        tool_response: Mapping[str, Any],
        *,
        mcp_context: Mapping[str, Any] | None = None,
        original_request_name: str | None = None,
    ) -> ProcessedHookResult:
        """A tool has run."""
        fields: Fields = {
            "tool_name": tool_name,
            "tool_input": tool_input,
            "tool_response": tool_response,
        }
        if mcp_context is not None:
            fields["mcp_context"] = mcp_context
        if original_request_name is not None:
            fields["original_request_name"] = original_request_name
        return await self._fire(_AFTER_TOOL, fields)

    async def fire_before_agent_event(self, prompt: str) -> ProcessedHookResult:
        """A turn is about to start."""
        return await self._fire(HookEventName.BeforeAgent, {"prompt": prompt})

    async def fire_after_agent_event(
        self, prompt: str, prompt_response: str, stop_hook_active: bool = False
    ) -> ProcessedHookResult:
        """A turn has ended with an answer."""
        fields = {
            "prompt": prompt,
            "prompt_response": prompt_response,
            "stop_hook_active": stop_hook_active,
        }
        return await self._fire(HookEventName.AfterAgent, fields)

    async def fire_before_model_event(self, llm_request: Any) -> ProcessedHookResult:
        """A model is about to be called; the request may be an SDK's own."""
        return await self._fire(HookEventName.BeforeModel, {"llm_request": llm_request})

    async def fire_after_model_event(
        self, llm_request: Any, llm_response: Any
    ) -> ProcessedHookResult:
        """A model has answered completely."""
        fields = {"llm_request": llm_request, "llm_response": llm_response}
        return await self._fire(HookEventName.AfterModel, fields)

    async def fire_before_tool_selection_event(
        self, llm_request: Any, available_tools: list[Any] | None = None
    ) -> ProcessedHookResult:
        """The tools for a model call are about to be chosen."""
        fields: Fields = {"llm_request": llm_request}
        if available_tools is not None:
            fields["available_tools"] = available_tools
        return await self._fire(HookEventName.BeforeToolSelection, fields)

    async def fire_session_start_event(
        self, source: SessionStartSource | str
    ) -> ProcessedHookResult:
        """A session starts (DELTA-HPAY-006)."""
        return await self.fire(HookEventName.SessionStart, {"source": source})

    async def fire_session_end_event(
        self, reason: SessionEndReason | str
    ) -> ProcessedHookResult:
        """A session ends (DELTA-HPAY-006)."""
        return await self.fire(HookEventName.SessionEnd, {"reason": reason})

    async def fire_notification_event(
        self,
        message: str,
        *,
        notification_type: NotificationType | str = NotificationType.ToolPermission,
        details: Mapping[str, Any] | None = None,
        level: str | None = None,
    ) -> ProcessedHookResult:
        """The host tells its user something."""
        fields: Fields = {
            "message": message,
            "notification_type": str(notification_type),
            "details": {} if details is None else details,
        }
        if level is not None:
            fields["level"] = level
        return await self._fire(HookEventName.Notification, fields)

    async def fire_pre_compress_event(
        self, trigger: PreCompressTrigger | str
    ) -> ProcessedHookResult:
        """The history is about to be compressed."""
        return await self.fire(HookEventName.PreCompress, {"trigger": trigger})
