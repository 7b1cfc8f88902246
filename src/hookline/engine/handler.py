"""One event: plan, run, merge, interpret; observers stand around it.

``fire_*_event`` never raises, except for cancellation: whatever goes wrong inside comes
back as a failure envelope that says at which stage (DELTA-HFAIL-001). ``fire`` raises
for a name that no event has.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from hookline._internal.log import logger
from hookline.plan import HookCall, HookPlan, depth_inside, start_by
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.inputs import EventFirer, Fields, event_fields
from hookline.protocol.results import (
    AggregatedHookResult,
    ProcessedHookResult,
    Stage,
    build_failure_envelope,
    make_empty_success_result,
    process_common_hook_output_fields,
)
from hookline.settings.load import Settings
from hookline.settings.model import ToolSelection

from .merge import aggregate
from .observers import ObservedEvent, Observers
from .planner import HookPlanner
from .registry import HookRegistry
from .remote_side import RemoteSide
from .run_hook import closed_events, closed_output, failed_event
from .runner import HookRunner

if TYPE_CHECKING:
    from hookline._internal.trace_context import TraceContext
    from hookline.bus.contracts import HookBus, HookExecutionResponse
    from hookline.bus.server import RequestServer

# On Python 3.11 finding a member in its enum costs more than a call.
_PLANNING, _TRANSLATION = Stage.PLANNING, Stage.TRANSLATION
_EXECUTION, _AGGREGATION = Stage.EXECUTION, Stage.AGGREGATION


class EventPipeline(Struct, frozen=True, kw_only=True):
    """All that answers an event, of one load of the settings, and who is told of it.

    An event takes the pipeline of its handler once and goes its whole way with it: a
    reload puts another one in its place, so no event sees half of each.
    """

    settings: Settings
    registry: HookRegistry
    planner: HookPlanner
    runner: HookRunner
    observers: Observers
    tool_selection: ToolSelection
    broken: Exception | None = None
    """Why hooks could not be registered: every event fails, by policy."""

    def is_unobserved(self) -> bool:
        """Whether nobody is told of an event that has no hooks; so it is mostly."""
        observers = self.observers
        return (
            observers.telemetry is None
            and observers.recorder is None
            and not observers.reporter.listens()
            and self.broken is None
        )

    async def answer(
        self, observed: ObservedEvent, plan: HookPlan | None, remote: RemoteSide | None
    ) -> ProcessedHookResult | None:
        """The verdict of the hooks on an event; None if it has none.

        ``plan``, if it is known already. Raises what breaks around the hooks;
        ``observed.stage`` says where.
        """
        event, fields = observed.event, observed.fields or {}
        if observed.trace is not None:
            # Of a bus: without a valid input it does not reach the planner.
            observed.stage = _TRANSLATION
            observed.fields = fields = self._stable(event, event_fields(event, fields))
        if self.broken is not None:
            observed.stage = Stage.INTERNAL
            raise self.broken.with_traceback(None)  # of an earlier event
        observed.stage = _PLANNING
        if plan is None:
            plan = self.planner.plan_for(event, fields)
        if plan is None:
            return None
        if remote is not None:
            plan = structs.replace(plan, hooks=(remote.hook, *plan.hooks))
        if observed.trace is None:
            observed.stage = _TRANSLATION
            fields = self._stable(event, fields)
        observed.stage = _EXECUTION
        observers = self.observers
        cwd = observers.config.working_dir
        depth = max(observers.depth, depth_inside.get())
        call = HookCall.of(event, fields, cwd, *observed.session, depth)
        call.telemetry, call.on_late = observed.telemetry, observers.on_late
        if observed.trace is not None:
            call.start_by = start_by.get()
        call.encode(needs_json=plan.needs_json or remote is not None)
        started = time.perf_counter()
        observed.hook_results = results = await self.runner.run(plan, call)
        took_ms = (time.perf_counter() - started) * 1000
        observed.stage, observed.call, observed.plan = _AGGREGATION, call, plan
        merged = aggregate(results, event, call.input, took_ms, self.tool_selection)
        if remote is not None:
            merged = remote.with_its_hooks(merged)
        return process_common_hook_output_fields(merged, event)

    def _stable(self, event: HookEventName, fields: Fields) -> Fields:
        """The fields with model payloads in the stable shape."""
        if not TRAITS[event].model_fields:
            return fields
        # Tool events, the most frequent ones, need no translators.
        from hookline.translators import stable_fields

        return stable_fields(event, fields, self.observers.config.translator)

    def failed(
        self,
        error: Exception,
        observed: ObservedEvent,
        correlation_id: str | None = None,
    ) -> ProcessedHookResult:
        """What a failure outside the hooks means for its event.

        A block of a hook holds, whatever fails after it.
        """
        event = observed.event
        outputs = (r.output for r in observed.hook_results if not r.observed)
        is_blocked = any(output and output.is_blocking for output in outputs)
        return failed_event(
            error,
            observed.stage,
            event,
            self.registry.for_event(event),
            correlation_id=correlation_id,
            always=(is_blocked and TRAITS[event].can_block)
            or (self.broken is not None and event in closed_events(self.settings)),
        )


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

    async def fire_fields(
        self,
        event: HookEventName,
        fields: Fields,
        session_id: str | None = None,
        transcript_path: str | None = None,
        correlation_id: str | None = None,
        trace: TraceContext | None = None,
    ) -> ProcessedHookResult:
        """The whole way of an event, whoever fires it.

        ``trace``: of a request from a bus, whose fields are not normalized yet; None
        for an event of this process. Without a session it is the config's own.
        """
        pipeline = self.pipeline if self.refresh is None else await self.current()
        plan = None
        if trace is None and self.remote is None and pipeline.is_unobserved():
            try:
                plan = pipeline.planner.plan_for(event, fields)
                if plan is None:
                    return ProcessedHookResult(aggregated=AggregatedHookResult())
            # It is raised again where it is a failure of the event.
            except Exception:  # noqa: BLE001, S110
                pass
        session = session_id, transcript_path
        with pipeline.observers.event(event, fields, *session, trace) as observed:
            remote = None
            if self.remote is not None:
                remote = RemoteSide(self.remote, event, fields, session)
            try:
                observed.result = await pipeline.answer(observed, plan, remote)
                if observed.result is not None:
                    return observed.result
                result = ProcessedHookResult(aggregated=AggregatedHookResult())
            # The edge of the pipeline: the caller gets the failure as data.
            except Exception as error:  # noqa: BLE001
                result = pipeline.failed(error, observed, correlation_id)
            if remote is not None:
                result = await remote.judge_beside(result)
            observed.result = result
            return result

    def answer_if_idle(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult | None:
        """The result of an event that concerns nobody, without an event loop.

        None if it may concern somebody. Raises ``UnknownEventError``.
        """
        event = HookEventName.of(event_name)
        if self.refresh is None and self.remote is None:
            with suppress(Exception):  # it is raised again where the event is fired
                fields, pipeline = event_fields(event, event_input), self.pipeline
                plan = pipeline.planner.plan_for(event, fields)
                if plan is None and pipeline.is_unobserved():
                    return ProcessedHookResult(aggregated=AggregatedHookResult())
        return None

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
        with self.pipeline.observers.event(event, fields) as observed:
            observed.stage = Stage.VALIDATION
            observed.result = result = self.pipeline.failed(error, observed)
        return result

    def refuse(
        self, event: HookEventName, fields: Fields, reason: str, session_id: str
    ) -> None:
        """Block an event that no hook is asked about; record it."""
        output = closed_output(event, reason)
        refusal = AggregatedHookResult(final_output=output, all_outputs=[output])
        with self.pipeline.observers.event(event, fields, session_id) as observed:
            observed.result = process_common_hook_output_fields(refusal, event)

    def note(
        self, session_id: str, message: str, details: Fields, *, blocked: bool = False
    ) -> None:
        """Record something about an event that no hook is asked about."""
        about = {"notification_type": "Hookline", "message": message}
        fields, event = {**about, "details": details}, HookEventName.Notification
        note = self.pipeline.observers.event(event, fields, session_id)
        note.result = ProcessedHookResult(
            aggregated=make_empty_success_result(), reason=message, blocked=blocked
        )
        note.record()

    def tell_invalid(
        self, event: HookEventName | None, problem: str, trace: TraceContext
    ) -> None:
        """Tell telemetry of a request from a bus that was refused."""
        telemetry = self.pipeline.observers.telemetry
        if telemetry is not None:
            envelope = build_failure_envelope(problem, Stage.VALIDATION)
            refused = telemetry.start_event(event, {}, "", trace)
            refused.end(ProcessedHookResult(aggregated=envelope))

    def listen(self, bus: HookBus) -> None:
        """Answer the requests of a bus, until ``dispose()`` (DELTA-HEVT-001)."""
        from hookline.bus.server import RequestServer  # most hosts have no bus

        self._server = RequestServer(self, bus)
        self._server.join()

    async def subscribed(self) -> None:
        """Wait for a moment for the bus, which is asked again if it refuses."""
        if self._server is not None:
            await self._server.joined()

    async def handle_request(self, payload: Any) -> HookExecutionResponse:
        """Answer one bus request; never raises (protocol.md#bus)."""
        if self._server is None:
            from hookline.bus.server import RequestServer  # as above

            self._server = RequestServer(self)
        return await self._server.handle_request(payload)

    async def dispose(self) -> None:
        """Accept nothing new from the bus; calls in flight finish (DELTA-HEVT-004)."""
        if self._server is not None:
            self._server.dispose()
            await self._server.finished()
