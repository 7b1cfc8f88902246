"""See every event with its verdict, between the agent and its hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from hookline.events import HookEventName
from hookline.firing import EventFirer, Fields
from hookline.handler import HookEventHandler
from hookline.results import HookExecutionResult, ProcessedHookResult

from .wording import change_of, verdict_of


class Sighting(Struct, frozen=True, kw_only=True):
    """What one hook did at one event."""

    event: HookEventName
    tool: str
    hook: str
    kind: str
    verdict: str
    change: str
    milliseconds: float


class WatchedHooks(EventFirer):
    """Fires on a handler and tells of each hook that ran."""

    def __init__(
        self, handler: HookEventHandler, tell: Callable[[Sighting], None]
    ) -> None:
        self._handler = handler
        self._tell = tell

    async def fire(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire by name."""
        return await self._fire(HookEventName.of(event_name), dict(event_input))

    async def _fire(self, event: HookEventName, fields: Fields) -> ProcessedHookResult:
        result = await self._handler.fire(event, fields)
        for hook in result.aggregated.hook_results:
            self._tell(_sighting(event, fields, hook))
        return result


def _sighting(
    event: HookEventName, fields: Fields, hook: HookExecutionResult
) -> Sighting:
    return Sighting(
        event=event,
        tool=str(fields.get("tool_name", "")),
        hook=hook.hook_name,
        kind=hook.hook_type,
        verdict=verdict_of(hook),
        change=change_of(hook, fields),
        milliseconds=hook.duration,
    )
