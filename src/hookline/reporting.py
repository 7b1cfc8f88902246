"""What is logged about an event (DELTA-HTEL-001..003, rules O1 to O3)."""

from __future__ import annotations

from collections.abc import Iterable
from logging import DEBUG, WARNING
from typing import Any

from .events import TRAITS, HookEventName
from .log import DebugLogger, logger
from .results import (
    HookError,
    HookExecutionResult,
    ProcessedHookResult,
)


class Reporter:
    """Writes the records of one hook system."""

    def __init__(self, debug_logger: DebugLogger) -> None:
        self._log = debug_logger

    def report(
        self, event: HookEventName, fields: dict[str, Any], result: ProcessedHookResult
    ) -> None:
        """Log the hooks of one event and their sum."""
        debug = self._log.enabled(DEBUG)
        warn = self._log.enabled(WARNING)
        if not debug and not warn:
            return
        for hook_result in result.aggregated.hook_results:
            if debug:
                self._log.log(DEBUG, "hook:result", _hook_record(hook_result))
            if warn and (hook_result.cause is not None or hook_result.warnings):
                self._warn_about(hook_result)
        if warn and result.aggregated.all_outputs:
            self._warn_of_unheeded(event, result)
        if debug:
            self._log.log(DEBUG, "hook:batch_summary", _summary(event, result))
            self._log.log(DEBUG, _human_line(event, fields, result), {})

    def report_nothing(self, event: HookEventName) -> None:
        """Log that no hook matched (domain model 5.1)."""
        if self._log.enabled(DEBUG):
            summary = _summary_record(event, total=0, failed=0, duration=0.0)
            self._log.log(DEBUG, "hook:batch_summary", summary)
            self._log.log(DEBUG, f"{event.value} fired: 0 hooks matched, skipped", {})

    def report_failure(self, error: HookError) -> None:
        """Log that Hookline itself failed on an event."""
        if self._log.enabled(WARNING):
            self._log.log(WARNING, "hook:failure", error.to_wire())

    def warn(self, messages: Iterable[str]) -> None:
        """Log what is odd about an event."""
        for message in messages:
            logger.warning("%s", message)

    def _warn_about(self, result: HookExecutionResult) -> None:
        if result.failed:
            self._log.log(WARNING, "hook:failure", _hook_record(result))
        for warning in result.warnings:
            record = {"hook": result.hook_name, "event": result.event_name.value}
            self._log.log(WARNING, "hook:warning", record | {"message": warning})

    def _warn_of_unheeded(
        self, event: HookEventName, result: ProcessedHookResult
    ) -> None:
        traits = TRAITS[event]
        outputs = result.aggregated.all_outputs
        unheeded = []
        if not traits.can_block and any(output.is_blocking for output in outputs):
            unheeded.append("block")
        if not traits.can_stop and any(output.stops for output in outputs):
            unheeded.append("stop")
        for word in unheeded:
            record = {"event": event.value, "message": f"cannot {word}: not heeded"}
            self._log.log(WARNING, "hook:warning", record)


def _hook_record(result: HookExecutionResult) -> dict[str, Any]:
    return {
        "event": result.event_name.value,
        "hook": result.hook_name,
        "type": str(result.hook_type),
        "source": str(result.source),
        "duration_ms": round(result.duration, 3),
        "success": result.success,
        "exit_code": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "error": result.error,
    }


def _summary(event: HookEventName, result: ProcessedHookResult) -> dict[str, Any]:
    results = result.aggregated.hook_results
    return _summary_record(
        event,
        total=len(results),
        failed=sum(hook_result.failed for hook_result in results),
        duration=result.aggregated.total_duration,
    )


def _summary_record(
    event: HookEventName, *, total: int, failed: int, duration: float
) -> dict[str, Any]:
    return {
        "event": event.value,
        "total": total,
        "succeeded": total - failed,
        "failed": failed,
        "duration_ms": round(duration, 3),
    }


def _human_line(
    event: HookEventName, fields: dict[str, Any], result: ProcessedHookResult
) -> str:
    target = fields.get("tool_name")
    whom = f" for {target!r}" if target else ""
    results = result.aggregated.hook_results
    hooks = f"{len(results)} hook{'' if len(results) == 1 else 's'}"
    took = f"{result.aggregated.total_duration:.0f}ms"
    return f"{event.value} fired{whom}: {hooks}, {took}, {_verdict(result)}"


def _verdict(result: ProcessedHookResult) -> str:
    if result.blocked:
        return f"blocked ({result.reason})"
    if result.should_stop:
        return f"stopped ({result.stop_reason})"
    final = result.final_output
    if final is not None and (final.tool_input or final.llm_request):
        return "modified"
    return "success" if result.aggregated.success else "failure"
