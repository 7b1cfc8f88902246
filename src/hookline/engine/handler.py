"""One event: plan, translate, run, merge, interpret, log.

``fire_*_event`` never raises, except for cancellation: whatever goes wrong inside comes
back as a failure envelope that says at which stage (DELTA-HFAIL-001).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from logging import DEBUG, INFO, WARNING
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from hookline.config import Config
from hookline.errors import EncodingError
from hookline.executors.contract import HookCall, HookPlan, current_depth
from hookline.log import DebugLogger
from hookline.protocol.events import TRAITS, HookEventName, known_event
from hookline.protocol.inputs import EventFirer, Fields, base_fields, event_fields
from hookline.protocol.results import (
    AggregatedHookResult,
    FailureMeta,
    HookError,
    HookExecutionResult,
    ProcessedHookResult,
    Stage,
    build_failure_envelope,
    make_empty_success_result,
    process_common_hook_output_fields,
)
from hookline.settings.load import Settings
from hookline.settings.model import ToolSelection

from .merge import aggregate
from .on_error import BrokenSystem, apply_policy_to_envelope
from .planner import HookPlanner
from .registry import HookRegistry
from .runner import HookRunner

if TYPE_CHECKING:
    from hookline.bus.contracts import HookBus, HookExecutionResponse
    from hookline.bus.server import RequestServer
    from hookline.bus.trace import TraceContext
    from hookline.telemetry.contract import EventTelemetry, Telemetry


# On Python 3.11 finding a member in its enum costs more than a call.
_PLANNING, _TRANSLATION = Stage.PLANNING, Stage.TRANSLATION
_EXECUTION, _AGGREGATION = Stage.EXECUTION, Stage.AGGREGATION


class EventOrigin(Struct, frozen=True):
    """Where an event came from, as far as it is not the config's own session."""

    session_id: str | None = None
    transcript_path: str | None = None
    correlation_id: str | None = None
    translated: bool = False
    """Whether model payloads are in the stable shape already."""
    trace: TraceContext | None = None
    """Of a request from a bus; None for an event of this process."""


_OWN_SESSION = EventOrigin()


class Recorder(Protocol):
    """Records events; must neither block nor raise."""

    problem: str
    """Why recording stopped; empty while it goes on."""

    def record(
        self,
        call: HookCall,
        plan: HookPlan | None,
        result: ProcessedHookResult,
    ) -> None:
        """Record one event, whether or not a hook matched it.

        Without a plan its model payloads may be in an SDK's own shape.
        """
        ...

    def record_late(self, call: HookCall, result: HookExecutionResult) -> None:
        """Record what a hook of an event said after nobody waited for it."""
        ...


class EventPipeline(Struct, frozen=True, kw_only=True):
    """All that answers an event, of one load of the settings.

    An event takes the pipeline of its handler once and goes its whole way with it: a
    reload puts another one in its place, so no event sees half of each.
    """

    config: Config
    settings: Settings
    registry: HookRegistry
    planner: HookPlanner
    runner: HookRunner
    reporter: Reporter
    recorder: Recorder | None = None
    broken: BrokenSystem | None = None
    tool_selection: ToolSelection = ToolSelection.UNION
    telemetry: Telemetry | None = None

    async def fire(
        self,
        event: HookEventName,
        fields: Fields,
        origin: EventOrigin = _OWN_SESSION,
        told: EventTelemetry | None = None,
    ) -> ProcessedHookResult:
        """The whole way of an event."""
        if self.telemetry is not None and told is None:
            return await self._fire_and_tell(self.telemetry, event, fields, origin)
        if self.broken is not None:
            meta = _meta(event, origin)
            return self.failed(self.broken.error, Stage.INTERNAL, meta)
        stage = _PLANNING
        try:
            plan = self.planner.plan_for(event, fields)
            if plan is None:
                result = self._nothing_matched(event)
                return self.record_unseen(event, fields, origin, result)
            stage = _TRANSLATION
            if TRAITS[event].model_fields and not origin.translated:
                fields = self.translated(event, fields)
            stage = _EXECUTION
            call = self._call(event, fields, origin)
            call.telemetry = told
            call.encode(plan.in_process)
            started = time.perf_counter()
            results = await self.runner.run(plan, call)
            duration = (time.perf_counter() - started) * 1000
            stage = _AGGREGATION
            if not results:  # no condition was true
                result = self._nothing_matched(event)
                return self._record_seen(call, plan, result)
            result = self._merge(plan, results, call, duration)
        # The edge of the pipeline: the caller gets the failure as data.
        except Exception as error:  # noqa: BLE001
            result = self.failed(error, stage, _meta(event, origin))
            return self.record_unseen(event, fields, origin, result)
        self.reporter.report(event, fields, result)
        return self._record_seen(call, plan, result)

    async def _fire_and_tell(
        self,
        telemetry: Telemetry,
        event: HookEventName,
        fields: Fields,
        origin: EventOrigin,
    ) -> ProcessedHookResult:
        session = self._session_of(origin)
        told = telemetry.start_event(event, fields, session, origin.trace)
        result = None
        try:
            result = await self.fire(event, fields, origin, told)
        finally:
            told.end(result)
        return result

    def tell(
        self,
        event: HookEventName | None,
        origin: EventOrigin,
        result: ProcessedHookResult,
    ) -> ProcessedHookResult:
        """Tell telemetry of an event that failed before it could be planned."""
        if self.telemetry is not None:
            session = self._session_of(origin)
            self.telemetry.start_event(event, {}, session, origin.trace).end(result)
        return result

    def translated(self, event: HookEventName, fields: Fields) -> Fields:
        """The fields with model payloads in the stable shape."""
        # Tool events, the most frequent ones, need no translators.
        from hookline.translators import stable_fields

        return stable_fields(event, fields, self.config.translator)

    def failed(
        self, error: Exception, stage: Stage, meta: FailureMeta
    ) -> ProcessedHookResult:
        """What a failure outside the hooks means for its event."""
        envelope = build_failure_envelope(error, stage, meta)
        self.reporter.report_failure(envelope.errors[0])
        event = meta.event_name
        if event is None:  # an unknown event: no hook can have a policy for it
            return ProcessedHookResult(aggregated=envelope)
        closed = self.broken is not None and event in self.broken.closed
        envelope = apply_policy_to_envelope(
            envelope,
            event,
            self.registry.for_event(event),
            always=closed
            or (isinstance(error, EncodingError) and TRAITS[event].can_block),
        )
        return process_common_hook_output_fields(envelope, event)

    def record_unseen(
        self,
        event: HookEventName,
        fields: Fields,
        origin: EventOrigin,
        result: ProcessedHookResult,
    ) -> ProcessedHookResult:
        """Record an event that no hook saw; the recorder translates it."""
        if self.recorder is not None:
            self.recorder.record(self._call(event, fields, origin), None, result)
        return result

    def _call(
        self, event: HookEventName, fields: Fields, origin: EventOrigin
    ) -> HookCall:
        config, transcript = self.config, origin.transcript_path
        base = base_fields(
            event,
            self._session_of(origin),
            config.working_dir,
            config.transcript_path if transcript is None else transcript,
        )
        return HookCall(event, base | fields, current_depth())

    def _session_of(self, origin: EventOrigin) -> str:
        session = origin.session_id
        return self.config.session_id if session is None else session

    def _merge(
        self,
        plan: HookPlan,
        results: list[HookExecutionResult],
        call: HookCall,
        duration: float,
    ) -> ProcessedHookResult:
        aggregated = aggregate(
            results, plan.event, call.input, duration, self.tool_selection
        )
        return process_common_hook_output_fields(aggregated, plan.event)

    def _nothing_matched(self, event: HookEventName) -> ProcessedHookResult:
        result = ProcessedHookResult(aggregated=make_empty_success_result())
        self.reporter.report_nothing(event)
        return result

    def _record_seen(
        self, call: HookCall, plan: HookPlan, result: ProcessedHookResult
    ) -> ProcessedHookResult:
        if self.recorder is not None:
            self.recorder.record(call, plan, result)
        return result


class HookEventHandler(EventFirer):
    """Answers the events of one hook system, which has it as ``event_handler``."""

    def __init__(self, pipeline: EventPipeline) -> None:
        self.pipeline = pipeline
        """Of the settings as they were loaded last."""
        self.refresh: Callable[[], Awaitable[None]] | None = None
        """Called before each event: loads settings that have changed."""
        self._server: RequestServer | None = None

    def has_hooks_for(self, event: HookEventName) -> bool:
        """Whether any hook would run for an event, whatever matchers say."""
        now = self.pipeline
        return now.broken is not None or now.planner.plan(event, None) is not None

    async def fire(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire an event by its name; the input is a mapping of its fields."""
        if self.refresh is not None:
            await self.refresh()
        try:
            event = HookEventName.of(event_name)
            fields = event_fields(event, event_input)
            given = event_input.get
            origin = EventOrigin(given("session_id"), given("transcript_path"))
        # The mapping is the caller's own and may raise anything.
        except Exception as error:  # noqa: BLE001
            known, now = known_event(event_name), self.pipeline
            meta = FailureMeta(event_name=known)
            result = now.failed(error, Stage.VALIDATION, meta)
            return now.tell(known, _OWN_SESSION, result)
        return await self.pipeline.fire(event, fields, origin)

    async def fire_fields(
        self,
        event: HookEventName,
        fields: Fields,
        session_id: str | None = None,
        transcript_path: str | None = None,
    ) -> ProcessedHookResult:
        """Fire an event whose fields are normalized, for another session if given."""
        if self.refresh is not None:
            await self.refresh()
        if session_id is None and transcript_path is None:
            return await self.pipeline.fire(event, fields)
        origin = EventOrigin(session_id, transcript_path)
        return await self.pipeline.fire(event, fields, origin)

    async def fire_validated(
        self,
        event: HookEventName,
        fields: Mapping[str, Any],
        *,
        session_id: str | None = None,
        transcript_path: str | None = None,
        correlation_id: str | None = None,
        trace: TraceContext | None = None,
    ) -> ProcessedHookResult:
        """Fire an event from a bus: translated first, then planned (section 8)."""
        if self.refresh is not None:
            await self.refresh()
        session, transcript = session_id, transcript_path
        origin = EventOrigin(session, transcript, correlation_id, True, trace or {})
        now = self.pipeline
        try:
            translated = event_fields(event, fields)
            if TRAITS[event].model_fields:
                translated = now.translated(event, translated)
        # Translators read foreign objects; what they raise is a boundary failure.
        except Exception as error:  # noqa: BLE001
            result = now.failed(error, Stage.TRANSLATION, _meta(event, origin))
            now.tell(event, origin, result)
            return now.record_unseen(event, dict(fields), origin, result)
        return await now.fire(event, translated, origin)

    def tell_invalid(
        self, event: HookEventName | None, problem: str, trace: TraceContext
    ) -> None:
        """Tell telemetry of a request from a bus that was refused."""
        envelope = build_failure_envelope(problem, Stage.VALIDATION)
        result = ProcessedHookResult(aggregated=envelope)
        self.pipeline.tell(event, EventOrigin(session_id="", trace=trace), result)

    def judge_unreadable(
        self, event: HookEventName, fields: Fields, error: Exception
    ) -> ProcessedHookResult:
        """Decide by policy about an event that could not be read; record it."""
        now, meta = self.pipeline, FailureMeta(event_name=event)
        result = now.failed(error, Stage.VALIDATION, meta)
        now.tell(event, _OWN_SESSION, result)
        return now.record_unseen(event, fields, _OWN_SESSION, result)

    def note(self, session_id: str, message: str, details: Fields) -> None:
        """Record something about an event that no hook is asked about."""
        fields = {"notification_type": "Hookline", "message": message}
        empty = make_empty_success_result()
        result = ProcessedHookResult(aggregated=empty, reason=message)
        event, origin = HookEventName.Notification, EventOrigin(session_id)
        about = {**fields, "details": details}
        self.pipeline.record_unseen(event, about, origin, result)

    def listen(self, bus: HookBus) -> None:
        """Answer the requests of a bus, until ``dispose()`` (DELTA-HEVT-001)."""
        self._server = self._make_server(bus)
        self._server.subscribe()

    async def handle_request(self, payload: Any) -> HookExecutionResponse:
        """Answer one bus request; never raises (section 8)."""
        if self._server is None:
            self._server = self._make_server(None)
        return await self._server.handle_request(payload)

    async def dispose(self) -> None:
        """Accept nothing new from the bus; calls in flight finish (DELTA-HEVT-004)."""
        if self._server is not None:
            self._server.dispose()
            await self._server.finished()

    def _make_server(self, bus: HookBus | None) -> RequestServer:
        # Most hosts have no bus and need not load this module.
        from hookline.bus.server import RequestServer

        return RequestServer(self, bus)


def _meta(event: HookEventName, origin: EventOrigin) -> FailureMeta:
    return FailureMeta(event_name=event, correlation_id=origin.correlation_id)


class LateReporter:
    """Logs and records hooks that nobody waited for."""

    def __init__(self, reporter: Reporter, recorder: Recorder | None) -> None:
        self._reporter = reporter
        self._recorder = recorder

    def late(self, call: HookCall, result: HookExecutionResult) -> None:
        """Log and record the result of one hook."""
        self._reporter.report_hook(result)
        if self._recorder is not None:
            self._recorder.record_late(call, result)


class Reporter:
    """Writes the log records of one hook system."""

    def __init__(self, debug_logger: DebugLogger) -> None:
        self._log = debug_logger

    def report(
        self, event: HookEventName, fields: dict[str, Any], result: ProcessedHookResult
    ) -> None:
        """Log the hooks of one event and a summary."""
        debug = self._log.enabled(DEBUG)
        warn = self._log.enabled(WARNING)
        if not debug and not warn:
            return
        for hook_result in result.aggregated.hook_results:
            if not hook_result.is_async:
                self.report_hook(hook_result)
        if warn and result.aggregated.all_outputs:
            self._warn_of_ignored(event, result)
        if debug:
            summary = _summary(event, result.aggregated)
            self._log.log(DEBUG, "hook:batch_summary", summary)
            self._log.log(DEBUG, _human_line(event, fields, result), {})

    def report_hook(self, result: HookExecutionResult) -> None:
        """Log what one hook did."""
        if self._log.enabled(DEBUG):
            self._log.log(DEBUG, "hook:result", _hook_record(result))
        if result.user_message and self._log.enabled(INFO):
            record = {"hook": result.hook_name, "event": result.event_name.value}
            self._log.log(
                INFO, "hook:message", record | {"message": result.user_message}
            )
        worth_it = result.cause is not None or result.warnings
        if worth_it and self._log.enabled(WARNING):
            self._warn_about(result)

    def report_nothing(self, event: HookEventName) -> None:
        """Log that no hook matched (domain model 5.1)."""
        if self._log.enabled(DEBUG):
            summary = _summary(event, AggregatedHookResult())
            self._log.log(DEBUG, "hook:batch_summary", summary)
            self._log.log(DEBUG, f"{event.value} fired: 0 hooks matched, skipped", {})

    def report_failure(self, error: HookError) -> None:
        """Log that an event failed outside its hooks."""
        if self._log.enabled(WARNING):
            self._log.log(WARNING, "hook:failure", error.to_wire())

    def _warn_about(self, result: HookExecutionResult) -> None:
        if result.failed:
            self._log.log(WARNING, "hook:failure", _hook_record(result))
        for warning in result.warnings:
            record = {"hook": result.hook_name, "event": result.event_name.value}
            self._log.log(WARNING, "hook:warning", record | {"message": warning})

    def _warn_of_ignored(
        self, event: HookEventName, result: ProcessedHookResult
    ) -> None:
        traits = TRAITS[event]
        if traits.can_block and traits.can_stop:
            return
        outputs = result.aggregated.all_outputs
        ignored = []
        if not traits.can_block and any(output.is_blocking for output in outputs):
            ignored.append("block")
        if not traits.can_stop and any(output.stops for output in outputs):
            ignored.append("stop")
        for word in ignored:
            record = {"event": event.value, "message": f"cannot {word}: ignored"}
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
