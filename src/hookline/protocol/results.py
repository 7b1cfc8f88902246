"""Results: of one hook, of all hooks of an event, and what they mean together.

``process_common_hook_output_fields`` is the only place where stop, block, message
and suppression are interpreted (DELTA-HRUN-001..004, DELTA-HAPP-001).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct, structs, to_builtins

from .events import TRAITS, HookEventName
from .outputs import HookOutput


class Stage(StrEnum):
    """The stage of the pipeline at which an event failed."""

    VALIDATION = "validation"
    TRANSLATION = "translation"
    PLANNING = "planning"
    EXECUTION = "execution"
    AGGREGATION = "aggregation"
    INTERNAL = "internal"


class FailureCause(StrEnum):
    """Why a hook failed; the failure policy depends on it."""

    SPAWN = "spawn"
    CRASH = "crash"
    TIMEOUT = "timeout"
    OUTPUT = "output"
    CHANGED = "changed"


class HookError(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One error, for people and for the wire."""

    stage: Stage
    message: str
    details: str | None = None
    hook_name: str | None = None
    event_name: HookEventName | None = None
    correlation_id: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """Convert it to wire spelling, without absent fields."""
        wire: dict[str, Any] = to_builtins(self)
        return wire


_RESULT_NAMES = {
    "hook_name": "name",
    "hook_type": "type",
    "event_name": "event",
    "duration": "duration_ms",
    "raw_output": "output",
    "output": "parsed_output",
    "is_async": "async",
}


class HookExecutionResult(Struct, frozen=True, kw_only=True, rename=_RESULT_NAMES):
    """What one hook did.

    ``success`` says whether the run was healthy, not what the hook decided (HOOK-070).
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
    """Ran in observe mode: recorded, without effect."""
    reran: bool = False
    recheck: bool = False
    """Asked again, on the input after all changes."""
    is_async: bool = False
    """Was not waited for, so that its result is not known."""
    standby: bool | None = None
    """Whether a process that was started ahead answered; None without standby."""
    closed: bool = False
    """Its output closes the event: merged last, so that no other hook reopens it."""
    user_message: str | None = None
    """For the person and not for the model, from a hook of another host."""
    host_answer: dict[str, Any] | None = None
    """What it says in its dialect and only its own host obeys."""

    @property
    def failed(self) -> bool:
        """Whether the run failed; exit 2 is a block, not a failure."""
        return self.cause is not None

    def to_wire(self) -> dict[str, Any]:
        """Convert it to an entry of ``hooks`` in ``hookline fire --json``."""
        wire = {
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
            "type": self.hook_type,
            "mode": "observe" if self.observed else "enforce",
            "recheck": self.recheck,
            "async": self.is_async,
        }
        if self.warnings:
            wire["warnings"] = list(self.warnings)
        if self.user_message is not None:
            wire["user_message"] = self.user_message
        # Nobody waited for it, so that nothing is known of its end.
        return wire | dict.fromkeys(_END) if self.is_async else wire


_END = (
    *("success", "exit_code", "timed_out", "truncated", "would_block", "reran"),
    *("duration_ms", "output", "stdout", "stderr", "error"),
)


class AggregatedHookResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The results and outputs of all hooks of one event."""

    success: bool = True
    """Whether every stage and hook was healthy, not what was decided (HOOK-070).

    A block in JSON is a success, one by exit 2 is none.
    """
    final_output: HookOutput | None = None
    """The merged output; None if no hook returned any."""
    all_outputs: list[HookOutput] = []
    errors: list[HookError] = []
    """What failed, at which stage."""
    hook_results: list[HookExecutionResult] = []
    total_duration: float = 0.0
    """The wall time of the batch in milliseconds."""


class ProcessedHookResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The verdict on one event: every ``fire_*_event`` returns this."""

    aggregated: AggregatedHookResult
    """What each hook did."""
    should_stop: bool = False
    """Whether a hook stops the agent."""
    stop_reason: str | None = None
    system_message: str | None = None
    """For the model, beside what it gets anyway."""
    suppress_output: bool = False
    """Whether hooks want nothing shown to the person."""
    blocked: bool = False
    """Whether the step must not happen."""
    reason: str | None = None
    """Why it is blocked, for the model."""
    ask: bool = False
    """Whether a person must agree first."""

    @property
    def final_output(self) -> HookOutput | None:
        """The merged output, or None if no hook returned any."""
        return self.aggregated.final_output

    @property
    def user_message(self) -> str | None:
        """What hooks say to the person and not to the model."""
        results = self.aggregated.hook_results
        messages = [hook.user_message for hook in results if not hook.observed]
        return "\n".join(filter(None, messages)) or None


class FailureMeta(Struct, frozen=True, kw_only=True):
    """What is known about the event that failed."""

    event_name: HookEventName | None = None
    correlation_id: str | None = None


def make_empty_success_result() -> AggregatedHookResult:
    """Make a fresh result for an event that no hook matched (DELTA-HFAIL-004)."""
    return AggregatedHookResult()


def build_failure_envelope(
    error: BaseException | str, stage: Stage, meta: FailureMeta | None = None
) -> AggregatedHookResult:
    """Build the result of an event that failed at a stage (DELTA-HFAIL-001, F1)."""
    meta = meta or FailureMeta()
    try:
        message, details = str(error), None
        if not isinstance(error, str):
            cause = error.__cause__ or error.__context__
            details = repr(error) + ("" if cause is None else f", caused by {cause!r}")
    # Objects of the host raise it, and it may be one of theirs.
    except Exception:  # noqa: BLE001
        message, details = "", type(error).__name__
    normalized = HookError(
        stage=stage,
        message=message or type(error).__name__,
        details=details,
        **structs.asdict(meta),
    )
    return AggregatedHookResult(success=False, errors=[normalized])


def fail_closed_output(event: HookEventName, reason: str) -> dict[str, Any]:
    """The strictest output that an event can have."""
    if TRAITS[event].can_block:
        return {"decision": "deny", "reason": reason}
    content = {"role": "model", "parts": [reason]}
    answer = {"content": content, "finishReason": "STOP"}
    no_tools = {"mode": "NONE", "allowedFunctionNames": []}
    strictest: dict[HookEventName, dict[str, Any]] = {
        HookEventName.AfterTool: {"withholdResult": True, "additionalContext": reason},
        HookEventName.AfterModel: {
            "llm_response": {"text": reason, "candidates": [answer]}
        },
        HookEventName.BeforeToolSelection: {"toolConfig": no_tools},
    }
    if event not in strictest:
        return {}
    return {"reason": reason, "hookSpecificOutput": strictest[event]}


def blocking_reasons(aggregated: AggregatedHookResult) -> list[str]:
    """Why hooks block, each reason once, also where an event cannot be blocked."""
    final = aggregated.final_output
    blocking = [output for output in aggregated.all_outputs if output.is_blocking]
    if not blocking and final is not None and final.is_blocking:
        blocking = [final]  # nobody's own: a failure policy may have written it
    return list(dict.fromkeys(output.effective_reason for output in blocking))


def process_common_hook_output_fields(
    aggregated: AggregatedHookResult, event: HookEventName
) -> ProcessedHookResult:
    """Interpret stop, block, message and suppression, for all callers."""
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
        reason="\n".join(dict.fromkeys(reasons)) if reasons else None,
        ask=traits.can_block and not reasons and final.asks,
    )
