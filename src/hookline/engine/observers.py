"""Who is told of events and hooks: telemetry, the journal, and the debug logger.

They stand around an event and are told at its beginning and at its end. One that raises
or hangs costs its own record: a guard or a thread of its own is around each of them.
What the debug logger gets is in docs/reference/logs.md.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from inspect import iscoroutinefunction
from logging import DEBUG, INFO, WARNING
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import UNSET, Struct, UnsetType

from hookline._internal.log import (
    AnyLogger,
    Courier,
    DebugLogger,
    Guard,
    Record,
    log_courier,
    logger,
)
from hookline.config import Config
from hookline.errors import JournalError
from hookline.plan import HookCall, HookPlan, depth_outside
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.inputs import Fields
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult, Stage
from hookline.protocol.verdict import event_verdict
from hookline.settings.load import Settings

if TYPE_CHECKING:
    from hookline._internal.trace_context import TraceContext
    from hookline.journal.record import JournalRecorder
    from hookline.settings.model import TelemetryOptions
    from hookline.telemetry.choice import TelemetryChoice
    from hookline.telemetry.contract import EventTelemetry, Telemetry
    from hookline.telemetry.together import Together

_LAST_WRITES_S = 2.0
"""How long a host that ends soon waits for a journal in which nothing is written."""
_MOST_LINES = 200
_PLANNING = Stage.PLANNING  # finding a member in its enum is slow on Python 3.11
_Records = Iterator[tuple[int, str, Record]]
"""Level, name and content of each."""


class Recorder(Protocol):
    """Records events; must neither block nor raise."""

    problem: str
    """Why recording stopped; empty while it goes on."""

    def record(
        self, call: HookCall, plan: HookPlan | None, result: ProcessedHookResult
    ) -> None:
        """Record one event, whether or not a hook matched it.

        Without a plan its model payloads may be in an SDK's own shape.
        """
        ...

    def record_late(self, call: HookCall, result: HookExecutionResult) -> None:
        """Record what a hook of an event said after nobody waited for it."""
        ...


class Observers:
    """The observers of one hook system; telemetry and journal follow its settings."""

    def __init__(
        self,
        config: Config,
        debug_logger: DebugLogger | AnyLogger | None,
        choice: TelemetryChoice,
    ) -> None:
        """Raises ``TypeError`` and ``HooklineError`` for what cannot observe."""
        self.config = config
        self.depth = depth_outside()  # looking it up takes a microsecond
        self.reporter = Reporter(debug_logger)
        self.recorder: Recorder | None = None
        self.on_late = partial(self._tell_late, None)
        """Takes what a hook says after nobody waited for it."""
        self.guard = Guard("the journal")
        self.recording: bool | str = False
        """Whether, or to which file, events are recorded whatever the settings say."""
        self._journals: dict[str, JournalRecorder] = {}
        """By path; those of settings before a reload take what their hooks say late."""
        self._choice = choice
        self._together: Together | None = None
        self._options: TelemetryOptions | UnsetType | None = UNSET
        self.telemetry = self._choose_telemetry(config.settings)

    def follow(self, settings: Settings, *, recorded: bool = True) -> None:
        """Tell those of later events whom settings name."""
        self.telemetry = self._choose_telemetry(settings)
        self.guard = Guard("the journal")
        journal = self.guard(self._open_journal, settings)
        self.recorder = journal if recorded else None
        self.on_late = partial(self._tell_late, self.recorder)

    def event(
        self,
        event: HookEventName,
        fields: Fields | None,
        session_id: Any = None,
        transcript_path: Any = None,
        trace: TraceContext | None = None,
    ) -> ObservedEvent:
        """An event that they are told of, as a context manager.

        ``fields`` is None where they could not be read; ``trace`` is that of a request
        from a bus, None for an event of this process. Without a session it is the
        config's own.
        """
        session_id = self.config.session_id if session_id is None else session_id
        if transcript_path is None:
            transcript_path = self.config.transcript_path
        session = session_id, transcript_path
        return ObservedEvent(self, event, fields, session, trace, self.recorder)

    def _tell_late(
        self, recorder: Recorder | None, call: HookCall, result: HookExecutionResult
    ) -> None:
        self.reporter.report_late(result)
        if recorder is not None:
            self.guard(recorder.record_late, call, result)

    async def close(self, *, soon: bool = False) -> None:
        """Have everything written; ``soon``: give up a journal that takes nothing."""
        limit = (_LAST_WRITES_S,) if soon else ()
        for journal in tuple(self._journals.values()):
            # Waits for the disk, which must not hold up the event loop.
            await asyncio.to_thread(journal.close, *limit)
        self._journals = {}
        if self._together is not None:
            self._together.close()
        await self.reporter.flush()

    def _choose_telemetry(self, settings: Settings) -> Telemetry | None:
        options = settings.global_options.telemetry
        # A command of ours has no exporter but one that was set up in its process.
        is_deaf = self.config.one_shot and "opentelemetry.trace" not in sys.modules
        if self._choice is None and (options is None or is_deaf):
            return None
        if self._options != options:
            # Most hosts have no telemetry and need not load its modules.
            from hookline.telemetry.choice import choose_telemetry

            self._options = options
            self._together = choose_telemetry(self._choice, options)
        return self._together

    def _open_journal(self, settings: Settings) -> JournalRecorder | None:
        option = settings.global_options.journal or self.recording
        if isinstance(self.recording, str):
            option = self.recording
        if not option:
            return None
        from hookline.journal.record import JournalRecorder
        from hookline.journal.store import recording_path

        try:
            folder = settings.project_dir or self.config.working_dir
            path = recording_path(option, folder)
        except JournalError as error:
            logger.warning("%s", error)
            return None
        if path is None:
            return None
        if path not in self._journals:
            translator = self.config.translator
            self._journals[path] = JournalRecorder(path, translator=translator)
        self._journals[path].start()
        return self._journals[path]


class ObservedEvent(Struct):
    """One event on its way, and what is known of it when that ends."""

    observers: Observers
    event: HookEventName
    fields: Fields | None
    session: tuple[Any, Any]
    """Its id and its transcript."""
    trace: TraceContext | None
    recorder: Recorder | None
    stage: Stage = _PLANNING
    """Where it is, for the error if that fails."""
    call: HookCall | None = None
    """What the hooks saw; None where no hook saw the event."""
    plan: HookPlan | None = None
    hook_results: Sequence[HookExecutionResult] = ()
    result: ProcessedHookResult | None = None
    """None while it goes on, and if it is cancelled."""
    telemetry: EventTelemetry | None = None

    def __enter__(self) -> ObservedEvent:
        telemetry = self.observers.telemetry
        if telemetry is not None:
            self.telemetry = telemetry.start_event(
                self.event, self.fields or {}, self.session[0], self.trace
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self.result is not None:
            self.observers.reporter.report(self.event, self.fields, self.result)
            self.record()
        if self.telemetry is not None:
            self.telemetry.end(self.result)

    def record(self) -> None:
        """Put the event into the journal, if there is one."""
        if self.recorder is not None and self.fields is not None:
            self.observers.guard(self._record, self.recorder, self.fields)

    def _record(self, recorder: Recorder, fields: Fields) -> None:
        if self.result is not None:
            # Without a plan the recorder translates model payloads.
            cwd = self.observers.config.working_dir
            call = self.call or HookCall.of(self.event, fields, cwd, *self.session)
            recorder.record(call, self.plan, self.result)


class Reporter:
    """Has log records written; none is built where nobody listens."""

    def __init__(self, debug_logger: DebugLogger | AnyLogger | None) -> None:
        """Raises ``TypeError`` for what cannot take records."""
        self._has_records = False
        if isinstance(debug_logger, logging.Logger | logging.LoggerAdapter | None):
            target = debug_logger or logging.getLogger("hookline.hooks")
            self._log: DebugLogger = StandardLogger(target)
            self._courier = log_courier
            self.listens: Callable[[], bool] = partial(self._log.enabled, DEBUG)
            """Whether there is a record of every event."""
            return
        names = ("enabled", "log", "flush")
        methods = [getattr(debug_logger, name, None) for name in names]
        if (
            isinstance(debug_logger, type)
            or not all(map(callable, methods))
            or any(map(iscoroutinefunction, methods))
        ):
            raise TypeError(
                f"debug_logger: expected a logging.Logger, or an object with the plain "
                f"methods enabled(level), log(level, name, record) and flush(), "
                f"got {debug_logger!r:.80}"
            )
        # One of the host's own is asked in its thread what it would write: it may hang,
        # and holds up no record of another system.
        self._log, self._courier = debug_logger, Courier("the debug logger")
        self.listens = lambda: True

    def report(
        self, event: HookEventName, fields: Fields | None, result: ProcessedHookResult
    ) -> None:
        """Have the hooks of one event logged, and a summary; or that it failed."""
        traits, aggregated = TRAITS[event], result.aggregated
        is_notable = bool(self.listens() or aggregated.errors)
        if not (traits.can_block and traits.can_stop):  # they may have tried
            is_notable |= bool(aggregated.all_outputs)
        for hook in aggregated.hook_results:
            if hook.cause or hook.warnings or hook.user_message:
                is_notable = True
        if is_notable:
            self._put(self._event_records(event, fields or {}, result))

    def report_late(self, result: HookExecutionResult) -> None:
        """Have a hook logged that nobody waited for."""
        self._put(_hook_records(result))

    async def flush(self) -> None:
        """Wait until all records are written, without blocking the event loop."""
        # A thread costs 2 ms in a new process, and most systems have nothing to write.
        if self._has_records:
            self._has_records = False
            self._courier.put(self._log.flush)
            await asyncio.to_thread(self._courier.flush)
        if self._courier is not log_courier:
            self._courier.close()

    def _put(self, records: _Records) -> None:
        self._has_records = True

        def write() -> None:
            for level, name, record in records:
                if self._log.enabled(level):
                    self._log.log(level, name, record)

        self._courier.put(write)

    def _event_records(
        self, event: HookEventName, fields: Fields, result: ProcessedHookResult
    ) -> _Records:
        aggregated, hooks = result.aggregated, result.aggregated.hook_results
        if aggregated.errors and not hooks:
            yield WARNING, "hook:failure", aggregated.errors[0].to_wire()
            return
        for hook in hooks:
            if not hook.is_async:
                yield from _hook_records(hook)
        traits, outputs = TRAITS[event], aggregated.all_outputs
        blocks = not traits.can_block and any(it.is_blocking for it in outputs)
        stops = not traits.can_stop and any(it.stops for it in outputs)
        for verb, is_ignored in (("block", blocks), ("stop", stops)):
            if is_ignored:
                message = f"cannot {verb}: ignored"
                about = {"event": event.value, "message": message}
                yield WARNING, "hook:warning", about
        if not self._log.enabled(DEBUG):
            return
        failed = sum(hook.failed for hook in hooks)
        summary = {
            "event": event.value,
            "total": len(hooks),
            "succeeded": len(hooks) - failed,
            "failed": failed,
            "duration_ms": round(aggregated.total_duration, 3),
        }
        yield DEBUG, "hook:batch_summary", summary
        yield DEBUG, _human_line(event, fields, result), {}


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
                printable = (c if c.isprintable() else repr(c)[1:-1] for c in line)
                traceback += f"\n    {''.join(printable)}"
        values = []
        for key, value in record.items():
            # What says what to do is shown whole, within reason.
            limit = 1000 if key in ("message", "error") else 120
            text = str(value)
            if not (traceback and key == "stderr"):
                short = text if len(text) <= limit else text[: limit - 3] + "..."
                values.append(f"{key}={short!r}")
        line = " ".join(values) + traceback
        self._target.log(level, "%s %s", name, line, extra={"hook": record})

    def flush(self) -> None:
        """Nothing is kept."""


def _hook_records(result: HookExecutionResult) -> _Records:
    record = {
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
    about = {"hook": result.hook_name, "event": result.event_name.value}
    yield DEBUG, "hook:result", record
    if result.user_message:
        yield INFO, "hook:message", about | {"message": result.user_message}
    if result.failed:
        yield WARNING, "hook:failure", record
    for warning in result.warnings:
        yield WARNING, "hook:warning", about | {"message": warning}


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
        changes = ("llm_response", "llm_request", "tool_input")
        if change := next((key for key in changes if key in verdict.effects), ""):
            outcome += f" (modified {change.partition('_')[2]})"
    hooks = f"{len(results)} hook{'' if len(results) == 1 else 's'}"
    return f"{line}: {hooks}, {result.aggregated.total_duration:.0f}ms, {outcome}"
