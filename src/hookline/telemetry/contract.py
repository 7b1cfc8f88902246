"""What a telemetry backend is told of each event and each hook.

``EventTelemetry`` and ``HookTelemetry`` are beside ``HookCall``, which carries them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hookline.plan import EventTelemetry, HookTelemetry
from hookline.protocol.events import HookEventName

__all__ = ["Carrier", "EventTelemetry", "HookTelemetry", "Telemetry"]

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
