"""What a telemetry backend is told of each event and each hook.

``EventTelemetry`` and ``HookTelemetry`` are beside ``HookCall``, which carries them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hookline.plan import (
    EventTelemetry,
    HookTelemetry,
)
from hookline.protocol.events import TRAITS, Chain, HookEventName, Merge
from hookline.protocol.results import ProcessedHookResult

__all__ = ["Carrier", "EventTelemetry", "HookTelemetry", "Telemetry", "verdict_word"]

Carrier = Mapping[str, str]


class Telemetry(Protocol):
    """A backend; None in its place costs one comparison per event."""

    def start_event(
        self,
        event: HookEventName | None,
        fields: Mapping[str, Any],
        session_id: str,
        carrier: Carrier | None,
    ) -> EventTelemetry:
        """Take the beginning of an event; must not block.

        ``event`` is None for a name that no event has. The fields are the caller's own:
        model payloads may be objects of an SDK. ``carrier`` is the trace context of a
        request from a bus.
        """
        ...


def verdict_word(event: HookEventName, result: ProcessedHookResult) -> str:
    """The verdict as the journal calls it, without its cost."""
    if result.should_stop:
        return "stopped"
    if result.blocked:
        return "blocked"
    if result.ask:
        return "ask"
    final = result.final_output
    if final is None:
        return "allowed"
    traits = TRAITS[event]
    is_changed = (
        (final.modified_tool_input is not None and traits.chain is Chain.TOOL_INPUT)
        or (final.llm_request is not None and traits.chain is Chain.LLM_REQUEST)
        or (final.llm_response is not None and traits.merge is Merge.FIELDS)
        or (final.tool_config is not None and traits.merge is Merge.TOOL_SELECTION)
        or (final.withholds_result and event is HookEventName.AfterTool)
    )
    return "changed" if is_changed else "allowed"
