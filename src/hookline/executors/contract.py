"""What the runner and the executors agree on."""

from __future__ import annotations

from typing import Any, Protocol

from hookline.events import HookEventName
from hookline.jsontext import encode
from hookline.registry import RegisteredHook
from hookline.results import HookExecutionResult


class HookCall:
    """One event on its way to its hooks; encoded once, however many they are."""

    __slots__ = ("_payload", "cwd", "depth", "event", "input", "session_id")

    def __init__(
        self,
        event: HookEventName,
        event_input: dict[str, Any],
        depth: int = 0,
    ) -> None:
        self.event = event
        self.input = event_input
        self.cwd: str = event_input["cwd"]
        self.session_id: str = event_input["session_id"]
        self.depth = depth
        self._payload: bytes | None = None

    @property
    def payload(self) -> bytes:
        """The input as JSON; raises ``EncodingError`` where all else fails."""
        if self._payload is None:
            self._payload = encode(self.input)
        return self._payload

    @property
    def is_encoded(self) -> bool:
        """Whether the payload is there already."""
        return self._payload is not None

    def with_input(self, event_input: dict[str, Any]) -> HookCall:
        """The same event with another input, for the next hook of a chain."""
        if event_input is self.input:
            return self
        return HookCall(self.event, event_input, self.depth)


class Executor(Protocol):
    """Runs the hooks of one type; a crash, a timeout or a missing program is data."""

    async def run(self, hook: RegisteredHook, call: HookCall) -> HookExecutionResult:
        """Run one hook to its end."""
        ...

    async def close(self) -> None:
        """Give back what is kept between events."""
        ...
