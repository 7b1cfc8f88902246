"""OpenTelemetry: a span for each event and each hook, and their figures.

Names are those of the conventions for generative AI where one means the same, else they
start with ``hookline.`` (decision 0134). What a tool, a model or a hook was told or
says is left out unless content is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Token
from functools import lru_cache, partial
from importlib.metadata import version
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from hookline._internal.log import Courier
from hookline.errors import MissingExtraError
from hookline.plan import HookCall, RegisteredHook
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult
from hookline.protocol.verdict import Word, event_verdict
from hookline.settings.model import HookType

from .content import content_json, content_text, short_text, shown_name
from .contract import Carrier

try:
    from opentelemetry import metrics, trace
    from opentelemetry.context import Context, attach, detach, get_current
    from opentelemetry.trace import Span, SpanKind, StatusCode, set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import (
        TraceContextTextMapPropagator,
    )
except ImportError as error:
    raise MissingExtraError("otel", "opentelemetry-api") from error

from .instruments import SCOPE, Instruments, Labels, Value, instruments_of

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

Attributes = dict[str, Value]

_GEN_AI_NAMES = {
    "tool_name": "gen_ai.tool.name",
    "tool_use_id": "gen_ai.tool.call.id",
    "agent_id": "gen_ai.agent.id",
}
_CONTENT_NAMES = {
    "tool_input": "gen_ai.tool.call.arguments",
    "tool_response": "gen_ai.tool.call.result",
}
_MODEL = "gen_ai.request.model"
_MAX_KNOWN = 16 * 1024
_HAS_EXIT_CODE = (HookType.COMMAND, HookType.WORKER)
_EVENTS = {event: (f"hookline {event.value}", event.value) for event in HookEventName}
_propagator = TraceContextTextMapPropagator()


class OtelTelemetry:
    """Spans and figures for the providers that the host has set up."""

    def __init__(
        self,
        *,
        content: bool = False,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        """Use the global providers, also those that are set later, or these."""
        self.content = content
        self.tracer = trace.get_tracer(SCOPE, version("hookline"), tracer_provider)
        self._meter_provider = meter_provider
        self._instruments: Instruments | None = None
        self._known: dict[RegisteredHook, _HookFacts] = {}
        self.courier = Courier("telemetry")
        """Ends the spans: that may call an exporter, which may take long."""

    @property
    def instruments(self) -> Instruments | None:
        """The figures; None while the host has not set up any provider of meters."""
        if self._instruments is None:
            provider = self._meter_provider or metrics.get_meter_provider()
            self._instruments = instruments_of(provider)
        return self._instruments

    def facts_of(self, hook: RegisteredHook) -> _HookFacts:
        """What is the same for all runs of a hook."""
        facts = self._known.get(hook)
        if facts is None:
            if len(self._known) >= _MAX_KNOWN:  # a host that shares it between systems
                self._known.clear()
            facts = self._known[hook] = _HookFacts.of(hook)
        return facts

    def start_event(
        self,
        event: HookEventName | None,
        fields: Mapping[str, Any],
        session_id: str,
        carrier: Carrier | None,
    ) -> _Event:
        """Start the span of an event, as a child of the current or the remote one."""
        return _Event(self, event, fields, session_id, carrier)


class _Event:
    """The span of one event."""

    __slots__ = (
        *("_context", "_event", "_fields", "_owner", "_span", "_started", "_target"),
    )

    def __init__(
        self,
        owner: OtelTelemetry,
        event: HookEventName | None,
        fields: Mapping[str, Any],
        session_id: str,
        carrier: Carrier | None,
    ) -> None:
        self._owner = owner
        self._event = event
        self._fields = fields
        self._target: Attributes = {}
        attributes: Attributes = {}
        name = "hookline event"
        if event is not None:
            name, attributes["hookline.event"] = _EVENTS[event]
        if session := short_text(session_id):
            attributes["gen_ai.conversation.id"] = session
        for field, attribute in _GEN_AI_NAMES.items():
            if field in fields and (text := short_text(fields[field])):
                attributes[attribute] = text
        if "gen_ai.tool.name" in attributes:
            self._target["gen_ai.tool.name"] = attributes["gen_ai.tool.name"]
        context, kind = get_current(), SpanKind.INTERNAL
        if carrier is not None:
            # The task that reads from a bus may have been started inside any span.
            context = _propagator.extract(carrier, Context())
            kind = SpanKind.SERVER
        self._started = perf_counter()
        self._span = owner.tracer.start_span(name, context, kind, attributes)
        self._context = set_span_in_context(self._span, context)

    def start_hook(self, hook: RegisteredHook, call: HookCall) -> _Hook:
        """Start the span of a hook, and make it the current one."""
        if not self._target and TRAITS[hook.event].model_fields:
            self._name_model(call)
        facts = self._owner.facts_of(hook)
        attributes = facts.attributes | self._target
        if call.recheck:
            attributes["hookline.hook.recheck"] = True
        start = self._owner.tracer.start_span
        span = start(facts.name, self._context, facts.kind, attributes)
        return _Hook(self._owner, facts, span, set_span_in_context(span, self._context))

    def end(self, result: ProcessedHookResult | None) -> None:
        """End the span with the verdict, and count it."""
        took_s, span = perf_counter() - self._started, self._span
        try:
            labels = self._labels(result)
            if span.is_recording():
                self._describe(span, result, labels)
        finally:
            self._owner.courier.tell(partial(span.end, end_time=time_ns()))
        if (figures := self._owner.instruments) is not None:
            figures.add_event(labels, took_s, self._context)

    def carrier(self) -> Carrier:
        """The trace context of the current span, which is that of a hook."""
        headers: dict[str, str] = {}
        _propagator.inject(headers)
        return headers

    def _name_model(self, call: HookCall) -> None:
        request = call.input.get("llm_request")
        model = request.get("model") if isinstance(request, dict) else None
        if text := short_text(model):
            self._target[_MODEL] = text
            self._span.set_attribute(_MODEL, text)

    def _labels(self, result: ProcessedHookResult | None) -> Labels:
        word = Word.CANCELLED
        if result is not None:
            word = event_verdict(self._event, result).word
        return _event_labels(self._event, word.value, _failed_stage(result))

    def _describe(
        self, span: Span, result: ProcessedHookResult | None, labels: Labels
    ) -> None:
        for name, value in labels:
            if name != "hookline.event":
                span.set_attribute(name, value)
            if name == "error.type":
                span.set_status(StatusCode.ERROR, f"failed: {value}")
        if result is None:
            return
        results = result.aggregated.hook_results
        if failed := [hook for hook in results if hook.cause is not None]:
            span.set_attribute("hookline.hooks.failed", len(failed))
        if [hook for hook in results if hook.would_block]:
            span.set_attribute("hookline.would_block", True)
        if self._owner.content:
            span.set_attributes(_event_content(self._fields, result))


class _HookFacts(Struct, frozen=True):
    """What is the same for all runs of a hook."""

    name: str
    kind: SpanKind
    attributes: Attributes
    labels: Labels
    has_exit_code: bool

    @classmethod
    def of(cls, hook: RegisteredHook) -> Self:
        config = hook.config
        labels: Attributes = {
            "hookline.event": hook.event.value,
            "hookline.hook.name": (name := shown_name(config.name)),
            "hookline.hook.type": config.type.value,
        }
        attributes = labels | {
            "hookline.hook.source": hook.source.value,
            "hookline.hook.mode": config.mode.value,
        }
        if config.is_async:
            attributes["hookline.hook.async"] = True
        is_request = config.type is HookType.HTTP
        return cls(
            name=f"hookline hook {name}",
            kind=SpanKind.CLIENT if is_request else SpanKind.INTERNAL,
            attributes=attributes,
            labels=tuple(labels.items()),
            has_exit_code=config.type in _HAS_EXIT_CODE,
        )


class _Hook:
    """The span of one run of a hook; the current one until its end."""

    __slots__ = ("_context", "_facts", "_owner", "_span", "_token")

    def __init__(
        self, owner: OtelTelemetry, facts: _HookFacts, span: Span, context: Context
    ) -> None:
        self._owner = owner
        self._facts = facts
        self._span = span
        self._context = context
        self._token: Token[Context] = attach(context)

    def end(self, result: HookExecutionResult | None) -> None:
        """End the span with what the hook said, and count it."""
        detach(self._token)
        span = self._span
        try:
            if span.is_recording():
                self._describe(span, result)
        finally:
            # The event waits for the spans of its hooks, but not of async ones.
            is_async = "hookline.hook.async" in self._facts.attributes
            end = self._owner.courier.tell if is_async else self._owner.courier.put
            end(partial(span.end, end_time=time_ns()))
        if (figures := self._owner.instruments) is not None and result is not None:
            labels = self._facts.labels
            if result.cause is not None:
                cause = ("error.type", result.cause.value)
                figures.failures.add((*labels, cause))
            figures.add_hook(labels, result.duration / 1000, self._context)

    def _describe(self, span: Span, result: HookExecutionResult | None) -> None:
        if result is None:
            span.set_attribute("hookline.hook.cancelled", True)
            return
        attributes: Attributes = {}
        output = result.output
        if output is not None and output.decision is not None:
            attributes["hookline.hook.decision"] = output.decision.value
        if result.exit_code is not None and self._facts.has_exit_code:
            attributes["process.exit.code"] = result.exit_code
        for name in ("would_block", "truncated", "reran", "standby"):
            if getattr(result, name):
                attributes[f"hookline.hook.{name}"] = True
        if result.cause is not None:
            attributes["error.type"] = result.cause.value
        if self._owner.content:
            attributes |= _hook_content(result)
        if attributes:
            span.set_attributes(attributes)
        if result.cause is not None:
            error = attributes.get("hookline.hook.error", result.cause.value)
            span.set_status(StatusCode.ERROR, str(error))


@lru_cache(maxsize=1024)
def _event_labels(event: HookEventName | None, word: str, stage: str | None) -> Labels:
    labels = {
        "hookline.event": None if event is None else event.value,
        "hookline.verdict": word,
        "error.type": stage,
    }
    return tuple((name, value) for name, value in labels.items() if value is not None)


def _failed_stage(result: ProcessedHookResult | None) -> str | None:
    """The stage at which an event failed outside its hooks."""
    if result is None or result.aggregated.hook_results:
        return None
    errors = result.aggregated.errors
    return errors[0].stage.value if errors else None


def _event_content(
    fields: Mapping[str, Any], result: ProcessedHookResult
) -> Attributes:
    attributes: Attributes = {}
    for field, name in _CONTENT_NAMES.items():
        if field in fields:
            attributes[name] = content_json(fields[field])
    own_names = _GEN_AI_NAMES.keys() | _CONTENT_NAMES.keys()
    if input_fields := {name: fields[name] for name in fields if name not in own_names}:
        attributes["hookline.input"] = content_json(input_fields)
    for name in ("reason", "stop_reason", "system_message"):
        if text := getattr(result, name):
            attributes[f"hookline.{name}"] = content_text(text)
    if result.final_output is not None:
        attributes["hookline.output"] = content_json(result.final_output.to_wire())
    return attributes


def _hook_content(result: HookExecutionResult) -> Attributes:
    attributes: Attributes = {}
    if result.raw_output is not None:
        attributes["hookline.hook.output"] = content_json(result.raw_output)
    for name in ("stderr", "error"):
        if text := getattr(result, name):
            attributes[f"hookline.hook.{name}"] = content_text(text)
    return attributes
