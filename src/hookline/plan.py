"""What the engine and the executors share: hooks, plans, calls, and the depth."""

from __future__ import annotations

import os
import time
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct
from msgspec.structs import asdict, replace

from hookline.errors import EncodingError
from hookline.protocol.events import HookEventName
from hookline.protocol.results import (
    FailureCause,
    HookExecutionResult,
    ProcessedHookResult,
)
from hookline.protocol.values import (
    TooDeepError,
    decode,
    encode,
    encode_whole,
    is_read_back,
    text_of,
)
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

start_by: ContextVar[float | None] = ContextVar("hookline_start_by", default=None)
"""When the requester of an event gives up, by ``time.monotonic``."""


def depth_outside() -> int:
    """How deep this process is nested in hooks, as it was started."""
    text = os.environ.get(DEPTH_VARIABLE, "")
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else 0


def current_depth() -> int:
    """How deep the caller is nested in hooks: in processes, and in this one."""
    return max(depth_outside(), depth_inside.get())


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
    def is_active(self) -> bool:
        """Whether it is enabled, and approved or one that closes its event if not."""
        is_approved = self.trust is not TrustStatus.UNTRUSTED
        return self.enabled and (is_approved or self.approval is not None)

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
        # One whose files have changed, or may change, fails where an equal one may not.
        has_changed = self.trust is TrustStatus.CHANGED
        allows_changed = self.on(FailureCause.CHANGED) is OnFailure.ALLOW
        may_fail_open = has_changed or (self.approval is not None and allows_changed)
        if self.source is HookSource.RUNTIME or may_fail_open:
            return self.serial
        config = asdict(self.config)
        for name in ("description", "managed", "on_error", "env_policy"):
            del config[name]  # decides nothing, or is in the effective options
        pairs = [sorted(config.pop(name).items()) for name in ("env", "headers")]
        objects = encode([*pairs, config.pop("then")])
        return (*config.values(), objects, self.options, self.folder)

    def facts(self) -> dict[str, Any]:
        """What every report says of it, as JSON."""
        config = self.config
        return {
            "event": self.event.value,
            "matcher": self.matcher,
            "name": self.name,
            "source": self.source.value,
            "type": config.type.value,
            "enabled": self.enabled,
            "trust": self.trust.value,
            "mode": config.mode.value,
            "sequential": self.sequential,
            "managed": config.managed,
            "dialect": config.dialect.value,
            "async": config.is_async,
            "standby": config.standby,
            "description": config.description,
            "timeout_ms": config.timeout_ms,
            "file": self.file,
            "project": self.project,
        }

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
    needs_json: bool = True
    """Whether a hook is shown the input as text; rules and policies read its values."""


@lru_cache(maxsize=2)
def timestamp(milliseconds: int) -> str:
    """Format a time for hooks: ISO 8601, UTC, milliseconds, ``Z``."""
    seconds, fraction = divmod(milliseconds, 1000)
    return time.strftime(f"%Y-%m-%dT%H:%M:%S.{fraction:03d}Z", time.gmtime(seconds))


class HookCall(Struct, eq=False):
    """One event on its way to its hooks; encoded once for all of them."""

    event: HookEventName
    input: dict[str, Any]
    depth: int = 0
    recheck: bool = False
    """Whether hooks are asked again, on the input after all changes."""
    fired: HookCall | None = None
    """The same event as it was fired; None if it is this one."""
    payload: bytes = b""
    """The input as JSON, once it is encoded."""
    telemetry: EventTelemetry | None = None
    """Who is told of each hook; None where telemetry is off."""
    on_late: Callable[[HookCall, HookExecutionResult], None] | None = None
    """Takes what a hook says after nobody waited for it."""
    on_start: OnStart | None = None
    """Is shown how the output of a command starts; see ``ProcessSpec``."""
    start_by: float | None = None
    """When its requester gives up: no hook that waited for its turn starts then."""
    activations: dict[str, Activation] = {}
    """What expressions share of this event."""
    plain_values: dict[str, Any] | None = None

    cwd: str = ""
    session_id: str = ""
    """As the event was fired, whatever hooks change."""

    def __post_init__(self) -> None:
        if self.fired is None:
            self.cwd, self.session_id = self.input["cwd"], self.input["session_id"]

    @classmethod
    def of(
        cls,
        event: HookEventName,
        fields: dict[str, Any],
        cwd: str,
        session_id: Any,
        transcript_path: Any = "",
        depth: int = 0,
    ) -> HookCall:
        """An event as it was fired, with the fields that every hook gets (HOOK-062)."""
        if type(session_id) is not str:
            session_id = text_of(session_id)
        if type(transcript_path) is not str:
            transcript_path = text_of(transcript_path)
        base = {
            "session_id": session_id,
            "cwd": cwd,
            "hook_event_name": event._value_,  # a plain attribute; value is a property
            "timestamp": timestamp(time.time_ns() // 1_000_000),
            "transcript_path": transcript_path,
        }
        return cls(event, base | fields, depth)

    def check_start(self) -> None:
        """Cancel the event if its requester has given up."""
        if self.start_by is not None and time.monotonic() >= self.start_by:
            raise CancelledError

    @property
    def origin(self) -> HookCall:
        """The same event as it was fired."""
        return self.fired or self

    def encode(self, *, needs_json: bool = True) -> None:
        """Write the input as JSON; raises ``EncodingError`` if a part is not shown.

        Without ``needs_json`` what hooks would read from the text is enough.
        """
        try:
            if not needs_json and is_read_back(self.input):
                self.plain_values = self.input
                return
        except RecursionError:
            pass  # the host's own stack is deep
        self.payload = encode_whole(self.input)

    def values(self) -> dict[str, Any]:
        """The input as hooks see it, to be read only."""
        if self.plain_values is None:
            self.plain_values = self.plain_input()
        return self.plain_values

    def plain_input(self) -> dict[str, Any]:
        """A private copy of the input as hooks see it: plain JSON values.

        Raises ``EncodingError`` where the stack has no room left for it.
        """
        try:
            copy: dict[str, Any] = decode(self.payload or encode_whole(self.input))
        except TooDeepError as error:
            raise EncodingError(f"the input cannot be copied: {error}") from error
        return copy

    def with_input(
        self, event_input: dict[str, Any], *, recheck: bool = False
    ) -> HookCall:
        """The same event with another input, for the next hook, or hooks asked again.

        Raises ``EncodingError`` where that cannot be shown.
        """
        if event_input is self.input and not recheck:
            return self
        call = replace(
            self,
            input=event_input,
            recheck=recheck or self.recheck,
            fired=self.origin,
            activations={},
            plain_values=None,
        )
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


class Executor:
    """Runs the hooks of one type; a crash, a timeout or a missing file is a result."""

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Run one hook to its end."""
        raise NotImplementedError

    def retain(self, hooks: Iterable[RegisteredHook]) -> None:
        """Release what it has of all other hooks, from any thread.

        What an event in flight uses is released after it.
        """

    async def close(self) -> None:
        """Release what is kept between events; again if that was cancelled."""
