"""One event: plan, translate, run, merge, interpret, log.

``fire_*_event`` never raises, except for cancellation: whatever goes wrong inside comes
back as a failure envelope that says at which stage (DELTA-HFAIL-001). ``fire`` raises
for a name that no event has.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from logging import DEBUG, INFO, WARNING
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field, structs

from hookline._internal.log import (
    Courier,
    DebugLogger,
    Guard,
    LoggingDebugLogger,
    logger,
)
from hookline.config import Config
from hookline.errors import EncodingError
from hookline.plan import HookCall, HookPlan, current_depth
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.inputs import EventFirer, Fields, base_fields, event_fields
from hookline.protocol.outputs import read_output
from hookline.protocol.results import (
    AggregatedHookResult,
    FailureMeta,
    HookExecutionResult,
    ProcessedHookResult,
    Stage,
    build_failure_envelope,
    fail_closed_output,
    make_empty_success_result,
    process_common_hook_output_fields,
)
from hookline.settings.load import Settings
from hookline.settings.model import ToolSelection

from .merge import aggregate
from .on_error import BrokenSystem, apply_policy_to_envelope
from .planner import HookPlanner
from .registry import HookRegistry
from .remote_side import RemoteSide, or_remote
from .runner import HookRunner

if TYPE_CHECKING:
    from hookline._internal.trace_context import TraceContext
    from hookline.bus.contracts import HookBus, HookExecutionResponse
    from hookline.bus.server import RequestServer
    from hookline.bus.subscription import Subscription
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
    remote: EventFirer | None = None
    """Hooks elsewhere that judge the event too, as the first ones of the plan."""


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


class ObservedEvent(Struct):
    """What observers are told of one event."""

    event: HookEventName | None
    """None for a name that no event has."""
    fields: Fields | None
    """None where they could not be read."""
    origin: EventOrigin
    result: ProcessedHookResult | None = None
    """None while it goes on, and if it is cancelled."""
    telemetry: EventTelemetry | None = None
    call: HookCall | None = None
    plan: HookPlan | None = None


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
    guard: Guard = field(default_factory=partial(Guard, "the journal"))

    async def fire(
        self, event: HookEventName, fields: Fields, origin: EventOrigin = _OWN_SESSION
    ) -> ProcessedHookResult:
        """The whole way of an event; observers stand around it and cannot change it."""
        # In one coroutine: another one costs events without hooks a quarter more.
        observed = ObservedEvent(event, fields, origin)
        if self.telemetry is not None:
            self._start_telemetry(self.telemetry, observed)
        stage, results, remote = _PLANNING, [], None
        if origin.remote is not None:
            session = origin.session_id, origin.transcript_path
            remote = RemoteSide(origin.remote, event, fields, *session)
        try:
            if self.broken is not None:
                meta = _meta(event, origin)
                result = self.failed(self.broken.error, Stage.INTERNAL, meta)
                observed.result = result = await or_remote(result, remote)
                return result
            plan = self.planner.plan_for(event, fields)
            if plan is None:
                result = ProcessedHookResult(aggregated=make_empty_success_result())
                if remote is not None:
                    result = await or_remote(result, remote)
                observed.result = result
                return result
            if remote is not None:
                plan = structs.replace(plan, hooks=(remote.hook, *plan.hooks))
            stage = _TRANSLATION
            if TRAITS[event].model_fields and not origin.translated:
                fields = self.translated(event, fields)
            stage = _EXECUTION
            call = self._call(event, fields, origin)
            call.telemetry, call.on_late = observed.telemetry, self.tell_late
            call.encode()
            started = time.perf_counter()
            results = await self.runner.run(plan, call)
            duration = (time.perf_counter() - started) * 1000
            stage = _AGGREGATION
            observed.call, observed.plan = call, plan
            merged = (
                aggregate(results, event, call.input, duration, self.tool_selection)
                if results  # else no condition was true
                else make_empty_success_result()
            )
            if remote is not None:
                merged = remote.with_its_hooks(merged)
            observed.result = result = process_common_hook_output_fields(merged, event)
            return result
        # The edge of the pipeline: the caller gets the failure as data.
        except Exception as error:  # noqa: BLE001
            outputs = [one.output for one in results if not one.observed]
            blocked = any(output and output.is_blocking for output in outputs)
            result = self.failed(error, stage, _meta(event, origin), blocked)
            observed.result = result = await or_remote(result, remote)
            return result
        finally:
            self.tell(observed)

    def _start_telemetry(self, telemetry: Telemetry, observed: ObservedEvent) -> None:
        origin, fields = observed.origin, observed.fields or {}
        session, start = self._session_of(origin), telemetry.start_event
        observed.telemetry = start(observed.event, fields, session, origin.trace)

    def tell(self, observed: ObservedEvent) -> None:
        """Tell all observers how an event ended."""
        if self.telemetry is not None and observed.telemetry is None:
            self._start_telemetry(self.telemetry, observed)  # it came to no hooks
        if observed.result is not None:
            self.reporter.report(observed.event, observed.fields, observed.result)
            if self.recorder is not None:
                self.guard(self.record, observed)
        if observed.telemetry is not None:
            observed.telemetry.end(observed.result)

    def tell_late(self, call: HookCall, result: HookExecutionResult) -> None:
        """Log and record what a hook said after nobody waited for it."""
        self.reporter.report_late(result)
        if self.recorder is not None:
            self.guard(self.recorder.record_late, call, result)

    def record(self, observed: ObservedEvent) -> None:
        """Put an event into the journal, if there is one."""
        event, fields, result = observed.event, observed.fields, observed.result
        if self.recorder is None or not (event and result and fields is not None):
            return
        # Without a call no hook saw the event; the recorder translates it.
        call = observed.call or self._call(event, fields, observed.origin)
        self.recorder.record(call, observed.plan, result)

    def translated(self, event: HookEventName, fields: Fields) -> Fields:
        """The fields with model payloads in the stable shape."""
        # Tool events, the most frequent ones, need no translators.
        from hookline.translators import stable_fields

        return stable_fields(event, fields, self.config.translator)

    def failed(
        self,
        error: Exception,
        stage: Stage,
        meta: FailureMeta,
        was_blocked: bool = False,
    ) -> ProcessedHookResult:
        """What a failure outside the hooks means for its event.

        ``was_blocked``: a hook blocks it, and what failed came after that.
        """
        envelope, event = build_failure_envelope(error, stage, meta), meta.event_name
        if event is None:  # an unknown event: no hook can have a policy for it
            return ProcessedHookResult(aggregated=envelope)
        closed = self.broken is not None and event in self.broken.closed
        unseen = was_blocked or isinstance(error, EncodingError)
        envelope = apply_policy_to_envelope(
            envelope,
            event,
            self.registry.for_event(event),
            always=closed or (unseen and TRAITS[event].can_block),
        )
        return process_common_hook_output_fields(envelope, event)

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


class HookEventHandler(EventFirer):
    """Answers the events of one hook system, which has it as ``event_handler``."""

    def __init__(self, pipeline: EventPipeline) -> None:
        """Answer with this ``pipeline`` until another one takes its place."""
        self.pipeline = pipeline
        """Of the settings as they were loaded last."""
        self.refresh: Callable[[], Awaitable[None]] | None = None
        """Called before each event: loads settings that have changed."""
        self.remote: EventFirer | None = None
        """Hooks elsewhere that judge the events of this process too."""
        self._server: RequestServer | None = None
        self._subscription: Subscription | None = None

    def has_hooks_for(self, event: HookEventName) -> bool:
        """Whether any hook would run for an event, whatever matchers say."""
        now = self.pipeline
        return now.broken is not None or now.planner.plan_for(event, {}) is not None

    async def fire(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire an event by its name, with its fields as ``event_input``.

        Raises ``UnknownEventError``.
        """
        event = HookEventName.of(event_name)
        pipeline = await self.current()
        try:
            fields = event_fields(event, event_input)
            given = event_input.get
            session, transcript = given("session_id"), given("transcript_path")
            origin = EventOrigin(session, transcript, remote=self.remote)
        # The mapping is the caller's own and may raise anything.
        except Exception as error:  # noqa: BLE001
            return self.judge_unreadable(event, None, error)
        return await pipeline.fire(event, fields, origin)

    async def fire_fields(
        self,
        event: HookEventName,
        fields: Fields,
        session_id: str | None = None,
        transcript_path: str | None = None,
    ) -> ProcessedHookResult:
        """Fire an event whose fields are normalized, for another session if given."""
        pipeline = self.pipeline if self.refresh is None else await self.current()
        if session_id is None and transcript_path is None and self.remote is None:
            return await pipeline.fire(event, fields)
        origin = EventOrigin(session_id, transcript_path, remote=self.remote)
        return await pipeline.fire(event, fields, origin)

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
        """Fire an event from a bus: translated, then planned (protocol.md#bus)."""
        pipeline = await self.current()
        session, transcript = session_id, transcript_path
        origin = EventOrigin(session, transcript, correlation_id, True, trace or {})
        try:
            translated = event_fields(event, fields)
            if TRAITS[event].model_fields:
                translated = pipeline.translated(event, translated)
        # Translators read foreign objects; what they raise is a boundary failure.
        except Exception as error:  # noqa: BLE001
            result = pipeline.failed(error, Stage.TRANSLATION, _meta(event, origin))
            pipeline.tell(ObservedEvent(event, dict(fields), origin, result))
            return result
        return await pipeline.fire(event, translated, origin)

    async def current(self) -> EventPipeline:
        """What answers an event now, after a look whether the settings have changed."""
        if self.refresh is not None:
            try:
                await self.refresh()
            # Whatever keeps us from looking, the settings in use still hold.
            except Exception as error:  # noqa: BLE001
                logger.warning("cannot tell whether settings have changed: %r", error)
        return self.pipeline

    def tell_invalid(
        self, event: HookEventName | None, problem: str, trace: TraceContext
    ) -> None:
        """Tell telemetry of a request from a bus that was refused."""
        if self.pipeline.telemetry is not None:
            envelope = build_failure_envelope(problem, Stage.VALIDATION)
            telemetry = self.pipeline.telemetry.start_event(event, {}, "", trace)
            telemetry.end(ProcessedHookResult(aggregated=envelope))

    def judge_unreadable(
        self, event: HookEventName, fields: Fields | None, error: Exception
    ) -> ProcessedHookResult:
        """Decide by policy about an event that could not be read; record it."""
        pipeline, meta = self.pipeline, FailureMeta(event_name=event)
        result = pipeline.failed(error, Stage.VALIDATION, meta)
        pipeline.tell(ObservedEvent(event, fields, _OWN_SESSION, result))
        return result

    def refuse(
        self, event: HookEventName, fields: Fields, reason: str, session_id: str
    ) -> ProcessedHookResult:
        """Block an event that no hook is asked about; record it."""
        output, _ = read_output(fail_closed_output(event, reason), event)
        refusal = AggregatedHookResult(final_output=output, all_outputs=[output])
        result = process_common_hook_output_fields(refusal, event)
        origin = EventOrigin(session_id)
        self.pipeline.tell(ObservedEvent(event, fields, origin, result))
        return result

    def note(
        self, session_id: str, message: str, details: Fields, *, blocked: bool = False
    ) -> None:
        """Record something about an event that no hook is asked about."""
        fields = {"notification_type": "Hookline", "message": message}
        empty = make_empty_success_result()
        result = ProcessedHookResult(aggregated=empty, reason=message, blocked=blocked)
        event, origin = HookEventName.Notification, EventOrigin(session_id)
        pipeline, about = self.pipeline, {**fields, "details": details}
        pipeline.guard(pipeline.record, ObservedEvent(event, about, origin, result))

    def listen(self, bus: HookBus) -> None:
        """Answer the requests of a bus, until ``dispose()`` (DELTA-HEVT-001)."""
        from hookline.bus.subscription import Subscription

        self._server = self._make_server(bus)
        self._subscription = Subscription(self._server)
        Guard("")(self._server.subscribe)  # ``subscribed`` tells why, and asks again

    async def subscribed(self) -> None:
        """Wait for a moment for the bus, which is asked again if it has refused."""
        if self._subscription is not None:
            await self._subscription.ask()

    async def handle_request(self, payload: Any) -> HookExecutionResponse:
        """Answer one bus request; never raises (protocol.md#bus)."""
        if self._server is None:
            self._server = self._make_server(None)
        return await self._server.handle_request(payload)

    async def dispose(self) -> None:
        """Accept nothing new from the bus; calls in flight finish (DELTA-HEVT-004)."""
        if self._subscription is not None:
            await self._subscription.end()
        if self._server is not None:
            await self._server.finished()

    def _make_server(self, bus: HookBus | None) -> RequestServer:
        # Most hosts have no bus and need not load this module.
        from hookline.bus.server import RequestServer

        return RequestServer(self, bus)


def _meta(event: HookEventName, origin: EventOrigin) -> FailureMeta:
    return FailureMeta(event_name=event, correlation_id=origin.correlation_id)


class Reporter:
    """Writes the log records of one hook system."""

    def __init__(self, debug_logger: DebugLogger) -> None:
        self._log = debug_logger
        self._courier: Courier | None = None
        if type(debug_logger) is not LoggingDebugLogger:  # ours has a thread
            self._courier = Courier("the debug logger", wait_s=0.05)

    def report(
        self,
        event: HookEventName | None,
        fields: Fields | None,
        result: ProcessedHookResult,
    ) -> None:
        """Log the hooks of one event and a summary, or that it failed."""
        ran = result.aggregated.hook_results or result.aggregated.errors
        if ran or self._courier is not None or self._log.enabled(DEBUG):
            self._tell(self._report, event, fields, result)

    def report_late(self, result: HookExecutionResult) -> None:
        """Log what a hook did that nobody waited for."""
        self._tell(self._report_hook, result)

    async def flush(self) -> None:
        """Wait until all records are written, without blocking the event loop."""
        if self._courier is not None:
            self._courier.put(self._log.flush)
            await asyncio.to_thread(self._courier.flush)
            self._courier.close()
        # A thread costs 2 ms in a new process, and most systems have nothing to write.
        elif getattr(self._log, "has_pending", False):
            await asyncio.to_thread(self._log.flush)

    def _tell(self, report: Callable[..., None], *args: Any) -> None:
        if self._courier is not None:
            self._courier.tell(report, *args)
            return
        try:
            report(*args)
        except KeyboardInterrupt:
            raise
        # A record may name objects of the host, whose text may raise anything.
        except BaseException as error:  # noqa: BLE001
            logger.warning("the records of an event are lost: %r", error)

    def _report(
        self,
        event: HookEventName | None,
        fields: Fields | None,
        result: ProcessedHookResult,
    ) -> None:
        aggregated = result.aggregated
        if aggregated.errors and not aggregated.hook_results:
            if self._log.enabled(WARNING):
                error = aggregated.errors[0]
                self._log.log(WARNING, "hook:failure", error.to_wire())
            return
        debug = self._log.enabled(DEBUG)
        warn = self._log.enabled(WARNING)
        if event is None or not (debug or warn):
            return
        for hook_result in aggregated.hook_results:
            if not hook_result.is_async:
                self._report_hook(hook_result)
        if warn and aggregated.all_outputs:
            self._warn_of_ignored(event, result)
        if debug:
            self._log.log(DEBUG, "hook:batch_summary", _summary(event, aggregated))
            self._log.log(DEBUG, _human_line(event, fields or {}, result), {})

    def _report_hook(self, result: HookExecutionResult) -> None:
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
    whom = "" if target in (None, "") else f" for {target!r}"
    results = result.aggregated.hook_results
    if not results:
        return f"{event.value} fired{whom}: 0 hooks matched, skipped"
    hooks = f"{len(results)} hook{'' if len(results) == 1 else 's'}"
    took = f"{result.aggregated.total_duration:.0f}ms"
    return f"{event.value} fired{whom}: {hooks}, {took}, {_verdict(result)}"


def _verdict(result: ProcessedHookResult) -> str:
    if result.blocked:
        return f"blocked ({result.reason})"
    if result.should_stop:
        return f"stopped ({result.stop_reason})"
    word = "success" if result.aggregated.success else "failure"
    final = result.final_output
    keys = ("tool_input", "llm_request", "llm_response")
    changed = [key for key in keys if final and key in final.hook_specific_output]
    return f"{word} (modified {changed[-1].partition('_')[2]})" if changed else word
