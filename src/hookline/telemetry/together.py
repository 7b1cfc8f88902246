"""Backends side by side: what they raise, and how long they take, reaches no event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import Any

from hookline._internal.log import Courier, Guard
from hookline._internal.trace_context import checked_trace
from hookline.plan import HookCall, RegisteredHook
from hookline.protocol.events import HookEventName
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult

from .contract import Carrier, EventTelemetry, HookTelemetry, Telemetry

Ask = Callable[..., Any]
"""Calls a backend, and gives what it returns; None if it fails."""


class Together:
    """Several backends as one; one of the host's own is called in a thread."""

    def __init__(self, *backends: Telemetry) -> None:
        self.backends = backends
        self._couriers: list[Courier] = []
        self._asks: list[Ask] = []
        for backend in backends:
            courier = getattr(backend, "courier", None)
            if isinstance(courier, Courier):  # ours calls nothing else that may hang
                self._asks.append(Guard("telemetry"))
            else:
                courier = Courier("telemetry")
                self._asks.append(courier.ask)
            self._couriers.append(courier)

    def close(self) -> None:
        """End the threads once they have told everything; later events start others."""
        for courier in self._couriers:
            courier.close()

    def start_event(
        self,
        event: HookEventName | None,
        fields: Mapping[str, Any],
        session_id: str,
        carrier: Carrier | None,
    ) -> EventTelemetry:
        """Tell all of them."""
        start = methodcaller("start_event", event, dict(fields), session_id, carrier)
        backends = zip(self.backends, self._asks, strict=True)
        return _Events([(ask(start, backend), ask) for backend, ask in backends])


class _Events:
    """One event, for all backends."""

    __slots__ = ("_events",)

    def __init__(self, events: list[tuple[EventTelemetry | None, Ask]]) -> None:
        self._events = [(event, ask) for event, ask in events if event is not None]

    def start_hook(self, hook: RegisteredHook, call: HookCall) -> HookTelemetry:
        start = methodcaller("start_hook", hook, call)
        return _Hooks([(ask(start, event), ask) for event, ask in self._events])

    def end(self, result: ProcessedHookResult | None) -> None:
        for event, ask in self._events:
            ask(methodcaller("end", result), event)

    def carrier(self) -> Carrier:
        trace: dict[str, str] = {}
        for event, ask in self._events:
            # What is no text cannot go into an environment or a header.
            trace |= checked_trace(ask(methodcaller("carrier"), event))
        return trace


class _Hooks:
    """One run of a hook, for all backends."""

    __slots__ = ("_hooks",)

    def __init__(self, hooks: list[tuple[HookTelemetry | None, Ask]]) -> None:
        self._hooks = [(hook, ask) for hook, ask in hooks if hook is not None]

    def end(self, result: HookExecutionResult | None) -> None:
        # The last one started first ends first: contexts are nested.
        for hook, ask in reversed(self._hooks):
            ask(methodcaller("end", result), hook)
