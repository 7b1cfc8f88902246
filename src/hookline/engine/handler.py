"""One event: plan, run, merge, interpret; observers stand around it.

``fire_*_event`` never raises, except for cancellation: whatever goes wrong inside comes
back as a failure envelope that says at which stage (DELTA-HFAIL-001). ``fire`` raises
for a name that no event has.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field, structs

from hookline._internal.log import Guard, logger
from hookline.config import Config
from hookline.plan import HookCall, HookPlan, current_depth
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.inputs import EventFirer, Fields, base_fields, event_fields
from hookline.protocol.results import (
    AggregatedHookResult,
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
from .planner import HookPlanner
from .registry import HookRegistry
from .remote_side import RemoteSide
from .report import Reporter
from .run_hook import closed_events, closed_output, failed_event
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
_NO_RESULTS: list[HookExecutionResult] = []
_Session = tuple[Any, Any]
"""Its id and its transcript; None for those of the config's own session."""


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
    """All that answers an event, of one load of the settings, and who is told of it.

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
    telemetry: Telemetry | None = None
    broken: Exception | None = None
    """Why hooks could not be registered: every event fails, by policy."""
    tool_selection: ToolSelection = ToolSelection.UNION
    guard: Guard = field(default_factory=partial(Guard, "the journal"))

    def is_idle(self, event: HookEventName, fields: Fields) -> bool:
        """Whether an event has no hooks and nobody is told of it, as most have."""
        try:
            return (
                self.telemetry is None
                and self.recorder is None
                and not self.reporter.listens()
                and self.broken is None
                and self.planner.plan_for(event, fields) is None
            )
        # It is raised again where it is a failure of the event.
        except Exception:  # noqa: BLE001
            return False

    def call(self, event: HookEventName, fields: Fields, session: _Session) -> HookCall:
        """An event with the fields that every hook gets."""
        config, (session_id, transcript) = self.config, session
        base = base_fields(
            event,
            config.session_id if session_id is None else session_id,
            config.working_dir,
            config.transcript_path if transcript is None else transcript,
        )
        return HookCall(event, base | fields, current_depth())

    def stable(self, event: HookEventName, fields: Fields) -> Fields:
        """The fields with model payloads in the stable shape."""
        if not TRAITS[event].model_fields:
            return fields
        # Tool events, the most frequent ones, need no translators.
        from hookline.translators import stable_fields

        return stable_fields(event, fields, self.config.translator)

    def failed(
        self,
        error: Exception,
        stage: Stage,
        event: HookEventName,
        *,
        correlation_id: str | None = None,
        was_blocked: bool = False,
    ) -> ProcessedHookResult:
        """What a failure outside the hooks means for its event.

        ``was_blocked``: a hook blocks it, and what failed came after that.
        """
        return failed_event(
            error,
            stage,
            event,
            self.registry.for_event(event),
            correlation_id=correlation_id,
            always=(was_blocked and TRAITS[event].can_block)
            or (self.broken is not None and event in closed_events(self.settings)),
        )

    def tell_late(self, call: HookCall, result: HookExecutionResult) -> None:
        """Log and record what a hook said after nobody waited for it."""
        self.reporter.report_late(result)
        if self.recorder is not None:
            self.guard(self.recorder.record_late, call, result)


class ObservedEvent(Struct):
    """One event as its observers see it; they are told at its beginning and its end."""

    pipeline: EventPipeline
    event: HookEventName
    fields: Fields | None
    """None where they could not be read."""
    session: _Session = (None, None)
    trace: TraceContext | None = None
    result: ProcessedHookResult | None = None
    """None while it goes on, and if it is cancelled."""
    telemetry: EventTelemetry | None = None
    call: HookCall | None = None
    """None where no hook saw the event."""
    plan: HookPlan | None = None

    def __enter__(self) -> ObservedEvent:
        pipeline = self.pipeline
        if pipeline.telemetry is not None:
            session_id, fields = self.session[0], self.fields or {}
            if session_id is None:
                session_id = pipeline.config.session_id
            start = pipeline.telemetry.start_event
            self.telemetry = start(self.event, fields, session_id, self.trace)
        return self

    def __exit__(self, *_: object) -> None:
        pipeline, result = self.pipeline, self.result
        if result is not None:
            if pipeline.reporter.listens() or _is_notable(self.event, result):
                pipeline.reporter.report(self.event, self.fields, result)
            if pipeline.recorder is not None:
                pipeline.guard(self.record)
        if self.telemetry is not None:
            self.telemetry.end(result)

    def record(self) -> None:
        """Put the event into the journal, if there is one."""
        recorder, result = self.pipeline.recorder, self.result
        if recorder is not None and result is not None and self.fields is not None:
            # Without a plan the recorder translates model payloads.
            call = self.call or self.pipeline.call(
                self.event, self.fields, self.session
            )
            recorder.record(call, self.plan, result)


def _is_notable(event: HookEventName, result: ProcessedHookResult) -> bool:
    """Whether there may be anything to log above the level for debugging."""
    aggregated, traits = result.aggregated, TRAITS[event]
    for hook in aggregated.hook_results:
        if hook.cause is not None or hook.warnings or hook.user_message:
            return True
    is_limited = not (traits.can_block and traits.can_stop)
    return bool(aggregated.errors or (is_limited and aggregated.all_outputs))


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

    async def fire(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire an event by its name, with its fields as ``event_input``.

        Raises ``UnknownEventError``.
        """
        event = HookEventName.of(event_name)
        try:
            fields = event_fields(event, event_input)
            session = event_input.get("session_id")
            transcript = event_input.get("transcript_path")
        # The mapping is the caller's own and may raise anything.
        except Exception as error:  # noqa: BLE001
            await self.current()
            return self.judge_unreadable(event, None, error)
        return await self.fire_fields(event, fields, session, transcript)

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
        session, about = (session_id, transcript_path), (correlation_id, trace or {})
        return await self.fire_fields(event, dict(fields), *session, *about)

    async def fire_fields(
        self,
        event: HookEventName,
        fields: Fields,
        session_id: str | None = None,
        transcript_path: str | None = None,
        correlation_id: str | None = None,
        trace: TraceContext | None = None,
    ) -> ProcessedHookResult:
        """The whole way of an event, whoever fires it, on normalized fields.

        ``trace``: of a request from a bus, whose fields are not normalized yet; None
        for an event of this process. Without a session it is the config's own.
        """
        pipeline = self.pipeline if self.refresh is None else await self.current()
        if trace is None and self.remote is None and pipeline.is_idle(event, fields):
            return ProcessedHookResult(aggregated=AggregatedHookResult())
        session = session_id, transcript_path
        with ObservedEvent(pipeline, event, fields, session, trace) as observed:
            stage, results, remote = _PLANNING, _NO_RESULTS, None
            if self.remote is not None:
                remote = RemoteSide(self.remote, event, fields, *session)
            try:
                if trace is not None:
                    stage = _TRANSLATION
                    fields = pipeline.stable(event, event_fields(event, fields))
                    observed.fields, stage = fields, _PLANNING
                if pipeline.broken is not None:
                    plan = None
                else:
                    plan = pipeline.planner.plan_for(event, fields)
                if plan is not None:
                    if remote is not None:
                        plan = structs.replace(plan, hooks=(remote.hook, *plan.hooks))
                    stage = _TRANSLATION
                    if trace is None:
                        fields = pipeline.stable(event, fields)
                    stage = _EXECUTION
                    call = pipeline.call(event, fields, session)
                    call.telemetry, call.on_late = (
                        observed.telemetry,
                        pipeline.tell_late,
                    )
                    call.encode()
                    started = time.perf_counter()
                    results = await pipeline.runner.run(plan, call)
                    took_ms = (time.perf_counter() - started) * 1000
                    stage = _AGGREGATION
                    observed.call, observed.plan = call, plan
                    selection = pipeline.tool_selection
                    merged = aggregate(results, event, call.input, took_ms, selection)
                    if remote is not None:
                        merged = remote.with_its_hooks(merged)
                    result = process_common_hook_output_fields(merged, event)
                    observed.result = result
                    return result
                result = ProcessedHookResult(aggregated=AggregatedHookResult())
                if pipeline.broken is not None:
                    broken = pipeline.broken, Stage.INTERNAL, event
                    result = pipeline.failed(*broken, correlation_id=correlation_id)
            # The edge of the pipeline: the caller gets the failure as data.
            except Exception as error:  # noqa: BLE001
                outputs = [hook.output for hook in results if not hook.observed]
                result = pipeline.failed(
                    error,
                    stage,
                    event,
                    correlation_id=correlation_id,
                    was_blocked=any(
                        output and output.is_blocking for output in outputs
                    ),
                )
            if remote is not None:
                result = await remote.judge_beside(result)
            observed.result = result
            return result

    async def current(self) -> EventPipeline:
        """What answers an event now, after a look whether the settings have changed."""
        if self.refresh is not None:
            try:
                await self.refresh()
            # Whatever keeps us from looking, the settings in use still hold.
            except Exception as error:  # noqa: BLE001
                logger.warning("cannot tell whether settings have changed: %r", error)
        return self.pipeline

    def has_hooks_for(self, event: HookEventName) -> bool:
        """Whether any hook would run for an event, whatever matchers say."""
        pipeline = self.pipeline
        is_planned = pipeline.planner.plan_for(event, {}) is not None
        return is_planned or pipeline.broken is not None

    def judge_unreadable(
        self, event: HookEventName, fields: Fields | None, error: Exception
    ) -> ProcessedHookResult:
        """Decide by policy about an event that could not be read; record it."""
        with ObservedEvent(self.pipeline, event, fields) as observed:
            result = self.pipeline.failed(error, Stage.VALIDATION, event)
            observed.result = result
        return result

    def refuse(
        self, event: HookEventName, fields: Fields, reason: str, session_id: str
    ) -> None:
        """Block an event that no hook is asked about; record it."""
        output = closed_output(event, reason)
        refusal = AggregatedHookResult(final_output=output, all_outputs=[output])
        session = session_id, None
        with ObservedEvent(self.pipeline, event, fields, session) as observed:
            observed.result = process_common_hook_output_fields(refusal, event)

    def note(
        self, session_id: str, message: str, details: Fields, *, blocked: bool = False
    ) -> None:
        """Record something about an event that no hook is asked about."""
        fields = {"notification_type": "Hookline", "message": message}
        empty = make_empty_success_result()
        note = ObservedEvent(
            self.pipeline,
            HookEventName.Notification,
            {**fields, "details": details},
            (session_id, None),
            result=ProcessedHookResult(
                aggregated=empty, reason=message, blocked=blocked
            ),
        )
        self.pipeline.guard(note.record)

    def tell_invalid(
        self, event: HookEventName | None, problem: str, trace: TraceContext
    ) -> None:
        """Tell telemetry of a request from a bus that was refused."""
        if self.pipeline.telemetry is not None:
            envelope = build_failure_envelope(problem, Stage.VALIDATION)
            telemetry = self.pipeline.telemetry.start_event(event, {}, "", trace)
            telemetry.end(ProcessedHookResult(aggregated=envelope))

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
