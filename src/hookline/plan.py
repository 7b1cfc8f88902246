"""What the engine and the executors share: hooks, plans, calls, and the depth."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from msgspec import Struct
from msgspec.structs import asdict

from hookline.errors import EncodingError
from hookline.protocol.events import HookEventName
from hookline.protocol.results import (
    FailureCause,
    HookExecutionResult,
    ProcessedHookResult,
)
from hookline.protocol.values import TooDeepError, decode, encode, encode_whole
from hookline.settings.load import HookOptions
from hookline.settings.model import (
    Approval,
    HookConfig,
    HookSource,
    OnFailure,
    TrustStatus,
)

if TYPE_CHECKING:
    from hookline.rules.program import Activation

DEPTH_VARIABLE = "HOOKLINE_DEPTH"
"""Counts up in the environment of every hook's process."""

depth_inside: ContextVar[int] = ContextVar("hookline_depth", default=0)
"""How deep what runs here, and the tasks it starts, is nested in Python hooks."""
_MAX_DIGITS = 9
_raw_environment: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
_RAW_NAME = os.environ.encodekey(DEPTH_VARIABLE)


def current_depth() -> int:
    """How deep the caller is nested in hooks: in processes, and in this one."""
    # Most hosts are at depth 0: the raw mapping tells that a microsecond faster.
    if _RAW_NAME not in _raw_environment:
        return depth_inside.get()
    text = os.environ.get(DEPTH_VARIABLE, "")
    outside = int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else 0
    return max(outside, depth_inside.get())


class UnapprovedModuleError(ImportError):
    """A module of a project that is not as it was approved, or never was."""


HookFunction = Callable[[dict[str, Any]], Any]
OnStart = Callable[[bytes], float | None]
"""See ``ProcessSpec.on_start``."""


class RegisteredHook(Struct, frozen=True, kw_only=True, eq=False):
    """One hook on one event, with its effective options."""

    config: HookConfig
    event: HookEventName
    source: HookSource
    options: HookOptions
    matcher: str | None = None
    sequential: bool = False
    file: str | None = None
    project: str | None = None
    """The project that it belongs to: its command runs there."""
    folder: str | None = None
    """Where it runs, to tell duplicates; None where all run in the same folder."""
    project_dir: str | None = None
    """What ``$HOOKLINE_PROJECT_DIR`` is; None for the working directory."""
    enabled: bool = True
    trust: TrustStatus = TrustStatus.TRUSTED
    """As it was when the hook was registered."""
    approval: Approval | None = None
    """Of a trusted project's hook: checked each time it runs."""
    function: HookFunction | None = None
    serial: int = 0
    """Unique within one hook system; the same after a reload that left it as it is."""
    executor: Executor | None = None
    """What runs it in place of the executor of its type."""

    @property
    def is_skipped(self) -> bool:
        """Whether it is ignored for want of an approval, or closes its event."""
        return self.trust is TrustStatus.UNTRUSTED and self.approval is None

    @property
    def may_start(self) -> bool:
        """Whether it is enabled, and its files are as they were approved."""
        if not self.enabled or self.trust is not TrustStatus.TRUSTED:
            return False
        return self.approval is None or self.approval.check()[0] is None

    @property
    def name(self) -> str:
        """The name that people see."""
        return self.config.name

    @property
    def identity(self) -> str:
        """All that its processes were started with: if that changes, they have to go.

        Whether it is approved is not in it: that is checked each time it runs.
        """
        options = self.options
        limits = (options.env_policy, options.max_output_bytes, options.worker_idle_ms)
        places = (self.source, self.project, self.folder, self.project_dir)
        return repr((self.event, self.config, limits, places))

    @property
    def key(self) -> object:
        """Hooks with equal keys are duplicates (protocol.md#planning).

        Everything that decides what a hook does and what its failure means is in it:
        nobody weakens a guard by repeating it.
        """
        if self.source is HookSource.RUNTIME or self._may_fail_open:
            return self.serial
        config = asdict(self.config)
        for name in ("description", "managed", "on_error", "env_policy"):
            del config[name]  # decides nothing, or is in the effective options
        pairs = [sorted(config.pop(name).items()) for name in ("env", "headers")]
        objects = encode([*pairs, config.pop("then")])
        return (*config.values(), objects, self.options, self.folder)

    @property
    def _may_fail_open(self) -> bool:
        """Whether it fails, or may fail later, where an equal hook would not."""
        if self.trust is TrustStatus.CHANGED:
            return True
        changed = self.on(FailureCause.CHANGED)
        return self.approval is not None and changed is OnFailure.ALLOW

    def on(self, cause: FailureCause) -> OnFailure:
        """What a failure of this hook means for the event."""
        return self.options.on_error.get(cause) or OnFailure.ALLOW


class RunEnd(Struct, frozen=True, kw_only=True):
    """How a run ended, as its executor tells it; ``read_end`` reads and times it."""

    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    stdout_truncated: bool = False
    stdout_open: bool = False
    """Another process still held it when reading ended: more may have come."""
    truncated: bool = False
    """Whether either stream is not complete."""
    answer: dict[str, Any] | None = None
    """What it answered, where that was not text: a function, a rule."""
    cause: FailureCause | None = None
    """Set where it failed; the exit code and the streams say the rest."""
    error: str | None = None
    """Why it failed, for people."""
    warnings: tuple[str, ...] = ()
    started: float = 0.0
    """By ``time.perf_counter``, after it waited for its turn; 0 where it did not."""
    reran: bool = False
    standby: bool | None = None
    """Whether a process that was started ahead answered; None without standby."""
    cwd: str | None = None
    """Where its process ran."""
    result: HookExecutionResult | None = None
    """Of remote hooks: what the other side has read already."""


SILENT = RunEnd(exit_code=0)
"""It ran well and says nothing."""


class HookPlan(Struct, frozen=True):
    """The hooks to run for one event."""

    event: HookEventName
    hooks: tuple[RegisteredHook, ...]
    sequential: bool
    special: bool = False
    """Whether a hook has a condition, or is not waited for."""


class HookCall:
    """One event on its way to its hooks; encoded once for all of them."""

    __slots__ = (
        *("_values", "activations", "cwd", "depth", "event", "input", "on_late"),
        "on_start",
        *("origin", "payload", "recheck", "session_id", "telemetry", "translated"),
    )

    def __init__(
        self,
        event: HookEventName,
        event_input: dict[str, Any],
        depth: int = 0,
        *,
        recheck: bool = False,
        origin: HookCall | None = None,
    ) -> None:
        self.event = event
        self.origin = origin or self
        """The same event as it was fired."""
        self.input = event_input
        self.cwd: str = self.origin.input["cwd"]
        self.session_id: str = self.origin.input["session_id"]
        self.depth = depth
        self.recheck = recheck
        """Whether hooks are asked again, on the input after all changes."""
        self.payload = b""
        """The input as JSON, once it is encoded."""
        self.telemetry: EventTelemetry | None = None
        """Who is told of each hook; None where telemetry is off."""
        self.on_late: Callable[[HookCall, HookExecutionResult], None] | None = None
        """Takes what a hook says after nobody waited for it."""
        self.on_start: OnStart | None = None
        """Is shown how the output of a command starts; see ``ProcessSpec``."""
        self.translated = False
        """Whether model payloads are in the stable shape; so they are for hooks."""
        self.activations: dict[str, Activation] = {}
        """What expressions share of this event."""
        self._values: dict[str, Any] | None = None

    def encode(self) -> None:
        """Write the input as JSON; raises ``EncodingError`` if a part is not shown."""
        self.translated = True
        self.payload = encode_whole(self.input)

    def values(self) -> dict[str, Any]:
        """The input as hooks see it, to be read only."""
        if self._values is None:
            self._values = self.plain_input()
        return self._values

    def plain_input(self) -> dict[str, Any]:
        """A private copy of the input as hooks see it: plain JSON values.

        Raises ``EncodingError`` where the stack has no room left for it.
        """
        try:
            copy: dict[str, Any] = decode(self.payload or encode_whole(self.input))
        except TooDeepError as error:
            raise EncodingError(f"the input cannot be copied: {error}") from error
        return copy

    def with_input(self, event_input: dict[str, Any]) -> HookCall:
        """The same event with another input, for the next hook of a chain."""
        if event_input is self.input:
            return self
        return self._with(event_input, recheck=self.recheck)

    def as_recheck(self, event_input: dict[str, Any]) -> HookCall:
        """The same event with its final input, for hooks that saw another one."""
        return self._with(event_input, recheck=True)

    def _with(self, event_input: dict[str, Any], *, recheck: bool) -> HookCall:
        call = HookCall(
            self.event, event_input, self.depth, recheck=recheck, origin=self.origin
        )
        call.telemetry, call.on_start = self.telemetry, self.on_start
        call.on_late = self.on_late
        call.encode()
        return call


class HookTelemetry(Protocol):
    """One run of a hook, as a telemetry backend sees it."""

    def end(self, result: HookExecutionResult | None) -> None:
        """Take what the hook said; None if its run was cancelled."""
        ...


class EventTelemetry(Protocol):
    """One event, from its beginning to its end, as a telemetry backend sees it."""

    def start_hook(self, hook: RegisteredHook, call: HookCall) -> HookTelemetry:
        """Take the beginning of one hook; its span is the current one until the end."""
        ...

    def end(self, result: ProcessedHookResult | None) -> None:
        """Take the verdict; None if the event was cancelled.

        Hooks that nobody waits for start and end after that.
        """
        ...

    def carrier(self) -> Mapping[str, str]:
        """The trace context of the current span: ``traceparent``, ``tracestate``."""
        ...


@runtime_checkable
class KeepsHooks(Protocol):
    """An executor that keeps something of each hook from one event to the next."""

    def retain(self, hooks: Iterable[RegisteredHook]) -> None:
        """Release what it has of all other hooks, from any thread.

        What an event in flight uses is released after it.
        """
        ...


class Executor(Protocol):
    """Runs the hooks of one type; a crash, a timeout or a missing file is a result."""

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Run one hook to its end."""
        ...

    async def close(self) -> None:
        """Release what is kept between events."""
        ...
