"""Backends side by side, guarded: nothing that they raise reaches an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.executors.contract import HookCall, RegisteredHook
from hookline.log import logger
from hookline.protocol.events import HookEventName
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult

from .contract import Carrier, EventTelemetry, HookTelemetry, Telemetry


class Together:
    """Several backends as one; what they raise is logged once, and goes no further."""

    def __init__(self, *backends: Telemetry) -> None:
        self.backends = backends
        self._has_warned = False

    def start_event(
        self,
        event: HookEventName | None,
        fields: Mapping[str, Any],
        session_id: str,
        carrier: Carrier | None,
    ) -> EventTelemetry:
        """Tell all of them."""
        events = []
        for backend in self.backends:
            try:
                started = backend.start_event(event, fields, session_id, carrier)
            # A backend calls exporters and processors of the host.
            except Exception as error:  # noqa: BLE001
                self.warn(error)
            else:
                events.append(started)
        return _Events(self, events)

    def warn(self, error: Exception) -> None:
        """Log the first error: the next event will most likely bring it again."""
        if not self._has_warned:
            self._has_warned = True
            logger.warning("telemetry failed: %s: %s", type(error).__name__, error)


class _Events:
    """One event, for all backends."""

    __slots__ = ("_events", "_owner")

    def __init__(self, owner: Together, events: list[EventTelemetry]) -> None:
        self._owner = owner
        self._events = events

    def start_hook(self, hook: RegisteredHook, call: HookCall) -> HookTelemetry:
        hooks: list[HookTelemetry] = []
        for event in self._events:
            try:
                hooks.append(event.start_hook(hook, call))
            except Exception as error:  # noqa: BLE001 - as above
                self._owner.warn(error)
        return _Hooks(self._owner, hooks)

    def end(self, result: ProcessedHookResult | None) -> None:
        for event in self._events:
            try:
                event.end(result)
            except Exception as error:  # noqa: BLE001 - as above
                self._owner.warn(error)

    def carrier(self) -> Carrier:
        found: dict[str, str] = {}
        for event in self._events:
            try:
                found |= event.carrier()
            except Exception as error:  # noqa: BLE001 - as above
                self._owner.warn(error)
        return found


class _Hooks:
    """One run of a hook, for all backends."""

    __slots__ = ("_hooks", "_owner")

    def __init__(self, owner: Together, hooks: list[HookTelemetry]) -> None:
        self._owner = owner
        self._hooks = hooks

    def end(self, result: HookExecutionResult | None) -> None:
        # The last one started first ends first: contexts are nested.
        for hook in reversed(self._hooks):
            try:
                hook.end(result)
            except Exception as error:  # noqa: BLE001 - as above
                self._owner.warn(error)
