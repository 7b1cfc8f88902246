"""What hooks did: one hook's result, the results of an event, and their meaning.

``process_common_hook_output_fields`` is the only place where stop, block, message
and suppression are interpreted (DELTA-HRUN-001..004, DELTA-HAPP-001).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct

from .events import TRAITS, HookEventName
from .outputs import HookOutput


class Stage(StrEnum):
    """Where in the pipeline something went wrong."""

    VALIDATION = "validation"
    TRANSLATION = "translation"
    PLANNING = "planning"
    EXECUTION = "execution"
    AGGREGATION = "aggregation"
    INTERNAL = "internal"


class FailureCause(StrEnum):
    """Why a hook failed, as the failure policy sees it."""

    SPAWN = "spawn"
    CRASH = "crash"
    TIMEOUT = "timeout"
    OUTPUT = "output"
    CHANGED = "changed"


class HookError(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that went wrong, for people and for the wire."""

    stage: Stage
    message: str
    details: str | None = None
    hook_name: str | None = None
    event_name: HookEventName | None = None
    correlation_id: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """Spell it for JSON, without what is not known."""
        known = {
            "stage": self.stage.value,
            "message": self.message,
            "details": self.details,
            "hook_name": self.hook_name,
            "event_name": self.event_name and self.event_name.value,
            "correlation_id": self.correlation_id,
        }
        return {key: value for key, value in known.items() if value is not None}


class HookExecutionResult(Struct, frozen=True, kw_only=True):
    """What one hook did.

    ``success`` is the health of the run, never the policy outcome (HOOK-070).
    """

    hook_name: str
    hook_type: str
    source: str
    event_name: HookEventName
    success: bool
    output: HookOutput | None = None
    raw_output: dict[str, Any] | None = None
    """The output as the hook gave it, invalid fields included."""
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    duration: float = 0.0
    """Its own wall time in milliseconds."""
    error: str | None = None
    cause: FailureCause | None = None
    warnings: tuple[str, ...] = ()
    timed_out: bool = False
    truncated: bool = False
    would_block: bool = False
    """In observe mode: it would have blocked."""
    observed: bool = False
    """Ran in observe mode: recorded, and counted for nothing."""
    reran: bool = False
    closed: bool = False
    """Failed, and its output is what the failure policy made of that."""

    @property
    def failed(self) -> bool:
        """Whether the run was broken; exit 2 is a block and no failure."""
        return self.cause is not None

    def to_wire(self) -> dict[str, Any]:
        """Spell it as the ``hooks`` entries of ``hookline fire --json``."""
        return {
            "name": self.hook_name,
            "source": self.source,
            "success": self.success,
            "exit_code": self.exit_code,
            "timed_out": self.timed_out,
            "truncated": self.truncated,
            "would_block": self.would_block,
            "reran": self.reran,
            "duration_ms": round(self.duration, 3),
            "output": self.raw_output,
            "stdout": self.stdout,
            "stderr": self.stderr,
            "error": self.error,
        }


class AggregatedHookResult(Struct, frozen=True, kw_only=True):
    """What all hooks of one event did and said."""

    success: bool = True
    final_output: HookOutput | None = None
    all_outputs: list[HookOutput] = []
    errors: list[HookError] = []
    hook_results: list[HookExecutionResult] = []
    total_duration: float = 0.0
    """The wall time of the batch in milliseconds."""


class ProcessedHookResult(Struct, frozen=True, kw_only=True):
    """The answer to one event: every ``fire_*_event`` returns this."""

    aggregated: AggregatedHookResult
    should_stop: bool = False
    stop_reason: str | None = None
    system_message: str | None = None
    suppress_output: bool = False
    blocked: bool = False
    reason: str | None = None
    ask: bool = False

    @property
    def final_output(self) -> HookOutput | None:
        """The merged output, or None where no hook said anything."""
        return self.aggregated.final_output


class FailureMeta(Struct, frozen=True, kw_only=True):
    """What is known about the request that failed."""

    event_name: HookEventName | None = None
    correlation_id: str | None = None


def make_empty_success_result() -> AggregatedHookResult:
    """Make a fresh result for an event that no hook matched (DELTA-HFAIL-004)."""
    return AggregatedHookResult()


def build_failure_envelope(
    error: BaseException | str, stage: Stage, meta: FailureMeta | None = None
) -> AggregatedHookResult:
    """Say truthfully that a stage failed (DELTA-HFAIL-001, rule F1)."""
    meta = meta or FailureMeta()
    normalized = HookError(
        stage=stage,
        message=str(error) or type(error).__name__,
        details=None if isinstance(error, str) else type(error).__name__,
        event_name=meta.event_name,
        correlation_id=meta.correlation_id,
    )
    return AggregatedHookResult(success=False, errors=[normalized])


def process_common_hook_output_fields(
    aggregated: AggregatedHookResult, event: HookEventName
) -> ProcessedHookResult:
    """Interpret stop, block, message and suppression, once and for all callers."""
    final = aggregated.final_output
    if final is None:
        return ProcessedHookResult(aggregated=aggregated)
    traits = TRAITS[event]
    stop_reason, reasons = None, []
    for output in aggregated.all_outputs or [final]:
        if traits.can_stop and stop_reason is None and output.stops:
            stop_reason = output.effective_stop_reason
        if traits.can_block and output.is_blocking:
            reasons.append(output.effective_reason)
    return ProcessedHookResult(
        aggregated=aggregated,
        should_stop=stop_reason is not None,
        stop_reason=stop_reason,
        system_message=final.system_message,
        suppress_output=final.suppress_output is True,
        blocked=bool(reasons),
        reason="\n".join(reasons) if reasons else None,
        ask=traits.can_block and not reasons and final.asks,
    )
