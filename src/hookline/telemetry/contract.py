"""What a telemetry backend is told of each event and each hook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hookline.executors.contract import RegisteredHook
from hookline.protocol.events import HookEventName
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult


class Telemetry(Protocol):
    """A backend; None in its place costs one comparison per event."""

    def start_event(
        self, event: HookEventName, fields: Mapping[str, Any]
    ) -> EventTelemetry:
        """Take the beginning of an event; must neither raise nor block."""
        ...


class EventTelemetry(Protocol):
    """One event, from its beginning to its end."""

    def start_hook(self, hook: RegisteredHook) -> HookTelemetry:
        """Take the beginning of one hook; its span is the current one until the end."""
        ...

    def end(self, result: ProcessedHookResult) -> None:
        """Take the verdict."""
        ...

    def carrier(self) -> Mapping[str, str]:
        """The trace context of the current span, such as ``traceparent``."""
        ...


class HookTelemetry(Protocol):
    """One run of a hook."""

    def end(self, result: HookExecutionResult) -> None:
        """Take what the hook said."""
        ...
