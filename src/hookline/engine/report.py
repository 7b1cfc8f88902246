"""Log records of events and hooks (docs/reference/logs.md), written in a thread.

No event waits for its records, and none is built where nobody listens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from inspect import iscoroutinefunction
from logging import DEBUG, INFO, WARNING
from typing import Any

from hookline._internal.log import (
    AnyLogger,
    Courier,
    DebugLogger,
    Guard,
    Record,
    log_courier,
)
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.inputs import Fields
from hookline.protocol.results import (
    AggregatedHookResult,
    HookExecutionResult,
    ProcessedHookResult,
)
from hookline.protocol.verdict import event_verdict

_MOST_SHOWN = {"message": 1000, "error": 1000}
"""What says what to do is shown whole, within reason."""
_MOST_LINES = 200


def checked_debug_logger(candidate: Any) -> DebugLogger:
    """A debug logger as it is, or one that writes to a ``logging.Logger``.

    Raises ``TypeError`` for anything else.
    """
    if candidate is None or isinstance(
        candidate, logging.Logger | logging.LoggerAdapter
    ):
        return StandardLogger(candidate or logging.getLogger("hookline.hooks"))
    methods = [getattr(candidate, name, None) for name in ("enabled", "log", "flush")]
    if (
        isinstance(candidate, type)
        or not all(map(callable, methods))
        or any(map(iscoroutinefunction, methods))
    ):
        raise TypeError(
            f"debug_logger: expected a logging.Logger, or an object with the plain "
            f"methods enabled(level), log(level, name, record) and flush(), "
            f"got {candidate!r:.80}"
        )
    debug_logger: DebugLogger = candidate
    return debug_logger


class StandardLogger:
    """Writes records to a logger of the standard library, one line each."""

    def __init__(self, target: AnyLogger) -> None:
        self._target = target
        self.enabled = target.isEnabledFor
        if type(target) is not logging.Logger:  # it may be code of the host
            self.enabled = partial(Guard("the debug logger"), target.isEnabledFor)

    def log(self, level: int, name: str, record: Record) -> None:
        """Write one record; long values are shortened, ``record.hook`` has them."""
        traceback = ""
        if name == "hook:failure" and record.get("type") == "python":
            # Indented and printable: no line of it passes for a record.
            for line in str(record.get("stderr", "")).splitlines()[:_MOST_LINES]:
                shown = (c if c.isprintable() else repr(c)[1:-1] for c in line)
                traceback += f"\n    {''.join(shown)}"
        values = []
        for key, value in record.items():
            text, most = str(value), _MOST_SHOWN.get(key, 120)
            if not (traceback and key == "stderr"):
                short = text if len(text) <= most else text[: most - 3] + "..."
                values.append(f"{key}={short!r}")
        line = " ".join(values) + traceback
        self._target.log(level, "%s %s", name, line, extra={"hook": record})

    def flush(self) -> None:
        """Nothing is kept."""


class Reporter:
    """Has the records of one hook system written."""

    def __init__(self, debug_logger: DebugLogger | AnyLogger | None) -> None:
        """Raises ``TypeError`` for what cannot take records."""
        self._log = checked_debug_logger(debug_logger)
        # One of the host's own may hang, and holds up no record of another system.
        self._is_standard = isinstance(self._log, StandardLogger)
        self._courier = (
            log_courier if self._is_standard else Courier("the debug logger")
        )
        self._has_records = False
        enabled = partial(self._log.enabled, DEBUG)
        self.listens: Callable[[], bool] = enabled if self._is_standard else _always
        """Whether there is a record of every event."""

    def report(
        self,
        event: HookEventName,
        fields: Fields | None,
        result: ProcessedHookResult,
    ) -> None:
        """Have the hooks of one event logged, and a summary; or that it failed."""
        self._put(partial(self._write, event, fields, result))

    def report_late(self, result: HookExecutionResult) -> None:
        """Have a hook logged that nobody waited for."""
        self._put(partial(self._write_hook, result))

    async def flush(self) -> None:
        """Wait until all records are written, without blocking the event loop."""
        # A thread costs 2 ms in a new process, and most systems have nothing to write.
        if self._has_records:
            self._has_records = False
            self._courier.put(self._log.flush)
            await asyncio.to_thread(self._courier.flush)
        if not self._is_standard:
            self._courier.close()

    def _put(self, write: partial[None]) -> None:
        self._has_records = True
        self._courier.put(write)

    def _write(
        self,
        event: HookEventName,
        fields: Fields | None,
        result: ProcessedHookResult,
    ) -> None:
        log, aggregated = self._log, result.aggregated
        if aggregated.errors and not aggregated.hook_results:
            if log.enabled(WARNING):
                log.log(WARNING, "hook:failure", aggregated.errors[0].to_wire())
            return
        debug, warn = log.enabled(DEBUG), log.enabled(WARNING)
        if not (debug or warn):
            return
        for hook in aggregated.hook_results:
            if not hook.is_async:
                self._write_hook(hook)
        for word in _ignored(event, aggregated) if warn else ():
            record = {"event": event.value, "message": f"cannot {word}: ignored"}
            log.log(WARNING, "hook:warning", record)
        if debug:
            log.log(DEBUG, "hook:batch_summary", _summary(event, aggregated))
            log.log(DEBUG, _human_line(event, fields or {}, result), {})

    def _write_hook(self, result: HookExecutionResult) -> None:
        log = self._log
        about = {"hook": result.hook_name, "event": result.event_name.value}
        if log.enabled(DEBUG):
            log.log(DEBUG, "hook:result", _hook_record(result))
        if result.user_message and log.enabled(INFO):
            log.log(INFO, "hook:message", about | {"message": result.user_message})
        if (result.failed or result.warnings) and log.enabled(WARNING):
            if result.failed:
                log.log(WARNING, "hook:failure", _hook_record(result))
            for warning in result.warnings:
                log.log(WARNING, "hook:warning", about | {"message": warning})


def _always() -> bool:
    # A logger of the host's own is asked in its thread what it would write.
    return True


def _ignored(event: HookEventName, aggregated: AggregatedHookResult) -> list[str]:
    """What hooks decided that this event cannot do."""
    traits, outputs = TRAITS[event], aggregated.all_outputs
    words = []
    if not traits.can_block and any(output.is_blocking for output in outputs):
        words.append("block")
    if not traits.can_stop and any(output.stops for output in outputs):
        words.append("stop")
    return words


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


def _summary(event: HookEventName, result: AggregatedHookResult) -> dict[str, Any]:
    failed = sum(hook.failed for hook in result.hook_results)
    return {
        "event": event.value,
        "total": len(result.hook_results),
        "succeeded": len(result.hook_results) - failed,
        "failed": failed,
        "duration_ms": round(result.total_duration, 3),
    }


def _human_line(
    event: HookEventName, fields: Fields, result: ProcessedHookResult
) -> str:
    """One line for people: the event, how many hooks, and the verdict."""
    tool = fields.get("tool_name")
    line = f"{event.value} fired" + ("" if tool in (None, "") else f" for {tool!r}")
    results = result.aggregated.hook_results
    if not results:
        return f"{line}: 0 hooks matched, skipped"
    verdict = event_verdict(event, result)
    if verdict.ends:
        outcome = f"{verdict.word} ({verdict.reason})"
    else:
        outcome = "success" if result.aggregated.success else "failure"
        for key in ("llm_response", "llm_request", "tool_input"):
            if key in verdict.effects:
                outcome += f" (modified {key.partition('_')[2]})"
                break
    hooks = f"{len(results)} hook{'' if len(results) == 1 else 's'}"
    return f"{line}: {hooks}, {result.aggregated.total_duration:.0f}ms, {outcome}"
