"""What the runner and the executors agree on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

from hookline.protocol.events import HookEventName
from hookline.protocol.jsontext import encode
from hookline.protocol.results import FailureCause, HookExecutionResult
from hookline.settings.load import HookOptions
from hookline.settings.model import (
    Approval,
    HookConfig,
    HookSource,
    OnFailure,
    TrustStatus,
)

HookFunction = Callable[[dict[str, Any]], Any]


class RegisteredHook(Struct, frozen=True, kw_only=True, eq=False):
    """One hook on one event, with all that settings say about it."""

    config: HookConfig
    event: HookEventName
    source: HookSource
    options: HookOptions
    matcher: str | None = None
    sequential: bool = False
    file: str | None = None
    enabled: bool = True
    trust: TrustStatus = TrustStatus.TRUSTED
    """As it was when the hook was registered."""
    approval: Approval | None = None
    """Of a trusted project's hook: whether it may run is asked each time."""
    function: HookFunction | None = None
    serial: int = 0
    """Tells hooks apart for as long as the system lives."""

    @property
    def name(self) -> str:
        """What people call it."""
        return self.config.name

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Equal keys are one hook; hooks registered in code are never equal."""
        # A hook that will not run must not push an equal one out.
        alone = self.source is HookSource.RUNTIME or self.trust is TrustStatus.CHANGED
        own = self.serial if alone else 0
        return (*self.config.key, own)

    def on(self, cause: FailureCause) -> OnFailure:
        """What a failure of this hook means for the event."""
        return self.options.on_error.get(cause) or OnFailure.ALLOW


class HookPlan(Struct, frozen=True):
    """The hooks to run for one event."""

    event: HookEventName
    hooks: tuple[RegisteredHook, ...]
    sequential: bool


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
