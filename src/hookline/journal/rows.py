"""The rows of the journal: what is stored of an event, its hooks and verdicts."""

from __future__ import annotations

import marshal
import time
from typing import Any

import msgspec
from msgspec import Struct, structs

from hookline.errors import EncodingError
from hookline.executors.contract import HookCall, HookPlan
from hookline.protocol.events import TRAITS, Chain, HookEventName, Merge
from hookline.protocol.jsontext import decode, encode
from hookline.protocol.outputs import HookOutput
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult
from hookline.translators import stable_fields

from .redact import Masker, cut_json, cut_text, is_suspicious, seal, shorten

UNREADABLE = b'{"unreadable":"the input could not be written as JSON"}'


class Frozen(Struct, frozen=True, gc=False):
    """A value as bytes."""

    text: bytes
    is_json: bool

    def to_json(self) -> bytes:
        """The value as JSON."""
        return self.text if self.is_json else encode(self.thaw())

    def thaw(self) -> Any:
        """A new value that is equal to the old one, as far as JSON goes."""
        if self.is_json:
            return decode(self.text)
        return marshal.loads(self.text)  # noqa: S302 - written by freeze() below


class Occurrence(Struct, frozen=True, kw_only=True, gc=False):
    """All that is known of one event."""

    at: float
    """When it was fired, in seconds since 1970."""
    event: HookEventName
    cwd: str
    session_id: str
    input: Frozen
    plan: HookPlan | None
    result: ProcessedHookResult
    outputs: Frozen | None
    """What hooks said and what was made of it; None where nobody said anything."""
    translator: str | None = None
    """Which one is to bring the input into the shape that hooks see; None: it is."""

    def input_json(self) -> bytes:
        """The input as hooks see it."""
        if self.translator is None:
            return self.input.to_json()
        return encode(as_hooks_see(self.event, self.input.thaw(), self.translator))


def occurrence_of(
    call: HookCall,
    plan: HookPlan | None,
    result: ProcessedHookResult,
    translator: str = "auto",
) -> Occurrence:
    """Take an event as it is now."""
    aggregated = result.aggregated
    taken, later = _input(call, translator)
    return Occurrence(
        at=time.time() - aggregated.total_duration / 1000,
        event=call.event,
        cwd=call.cwd,
        session_id=call.session_id,
        input=taken,
        plan=plan,
        result=result,
        outputs=_outputs(result) if aggregated.hook_results else None,
        translator=later,
    )


def freeze(value: Any) -> Frozen:
    """Write a value out, whatever it holds."""
    try:
        return Frozen(marshal.dumps(value), False)
    except ValueError:
        pass  # an object that is no plain value: JSON knows how to describe it
    try:
        return Frozen(encode(value), True)
    except EncodingError:
        return Frozen(UNREADABLE, True)


def as_hooks_see(
    event: HookEventName, event_input: dict[str, Any], translator: str
) -> dict[str, Any]:
    """Bring model payloads into the stable shape, where they can be read."""
    try:
        return stable_fields(event, event_input, translator)
    # Nobody asked for more than to record a foreign object: it stays as it is.
    except Exception:  # noqa: BLE001
        return event_input


def thawed_result(occurrence: Occurrence) -> tuple[ProcessedHookResult, list[Any]]:
    """The result as it was, and what each hook said."""
    result = occurrence.result
    if occurrence.outputs is None:
        return result, [None] * len(result.aggregated.hook_results)
    said, specific = occurrence.outputs.thaw()
    final = result.aggregated.final_output
    if final is None:
        return result, said
    final = structs.replace(final, hook_specific_output=specific)
    if final.modified_tool_input is not None:
        # The tool may have changed the one that it was given.
        whole = _changed(occurrence.input.thaw().get("tool_input"), final.tool_input)
        final = structs.replace(final, modified_tool_input=whole)
    aggregated = structs.replace(result.aggregated, final_output=final)
    return structs.replace(result, aggregated=aggregated), said


def _input(call: HookCall, translator: str) -> tuple[Frozen, str | None]:
    """The input, and who is to translate it later."""
    if call.payload:
        return Frozen(call.payload, True), None
    if not TRAITS[call.event].model_fields:
        return freeze(call.input), None
    try:
        return Frozen(marshal.dumps(call.input), False), translator
    except ValueError:  # an SDK's own objects, which the host may go on changing
        return freeze(as_hooks_see(call.event, call.input, translator)), None


def _changed(tool_input: Any, changes: dict[str, Any] | None) -> dict[str, Any]:
    base = tool_input if isinstance(tool_input, dict) else {}
    return {**base, **(changes or {})}


def _outputs(result: ProcessedHookResult) -> Frozen | None:
    """What hooks said, also what counted for nothing, as in observe mode."""
    final = result.aggregated.final_output
    said = [hook.raw_output for hook in result.aggregated.hook_results]
    if final is None and not any(said):
        return None
    return freeze([said, {} if final is None else final.hook_specific_output])


_sorted = msgspec.json.Encoder(order="sorted").encode

EFFECT_LIMIT = 16 * 1024

_GOING_ON = frozenset({"tool_input", "llm_request", "tools"})

WORDS = {
    "tool_input": "changed input",
    "llm_request": "changed request",
    "llm_response": "changed response",
    "tools": "restricted tools",
    "withheld": "withheld result",
}


class Verdict(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an event's hooks decided; effects are JSON texts, masked and sealed."""

    blocked: bool = False
    ask: bool = False
    stop: bool = False
    withheld: bool = False
    tool_input: str | None = None
    llm_request: str | None = None
    llm_response: str | None = None
    tools: str | None = None

    @property
    def word(self) -> str:
        """The one word for it, the strongest first."""
        if self.stop:
            return "stopped"
        if self.blocked:
            return "blocked"
        if self.ask:
            return "ask"
        return "changed" if self.effects else "allowed"

    @property
    def effects(self) -> dict[str, str]:
        """What it changes, by the name of the field."""
        named = {
            "tool_input": self.tool_input,
            "llm_request": self.llm_request,
            "llm_response": self.llm_response,
            "tools": self.tools,
            "withheld": "true" if self.withheld else None,
        }
        return {name: text for name, text in named.items() if text is not None}


def verdict_of(
    event: HookEventName, result: ProcessedHookResult, tool_input: Any
) -> Verdict:
    """Read the verdict off a result; ``tool_input`` is what the tool was to get."""
    effects = _effects(event, result.final_output, tool_input)
    if result.blocked or result.should_stop:
        # Nothing goes on that could have been changed.
        effects = {k: v for k, v in effects.items() if k not in _GOING_ON}
    return Verdict(
        blocked=result.blocked, ask=result.ask, stop=result.should_stop, **effects
    )


def _effects(
    event: HookEventName, final: HookOutput | None, tool_input: Any
) -> dict[str, Any]:
    if final is None:
        return {}
    traits = TRAITS[event]
    effects: dict[str, Any] = {}
    if final.modified_tool_input is not None and traits.chain is Chain.TOOL_INPUT:
        changed, before = _plain(final.modified_tool_input), _plain(tool_input)
        effects["tool_input"] = None if changed == before else _sealed(changed)
    if final.llm_request is not None and traits.chain is Chain.LLM_REQUEST:
        effects["llm_request"] = _sealed(final.llm_request)
    if final.llm_response is not None and traits.merge is Merge.FIELDS:
        effects["llm_response"] = _sealed(final.llm_response)
    if final.tool_config is not None and traits.merge is Merge.TOOL_SELECTION:
        effects["tools"] = _sealed(final.tool_config)
    if final.withholds_result and event is HookEventName.AfterTool:
        effects["withheld"] = True
    return effects


def _plain(value: Any) -> Any:
    return decode(encode(value))


def _sealed(value: Any) -> str:
    masked = Masker(texts=True).mask(_plain(value))
    return seal(_sorted(masked).decode(), EFFECT_LIMIT)


_encode_verdict = msgspec.json.Encoder().encode

EVENT_COLUMNS = (
    *("at", "event", "target", "session", "cwd", "verdict", "blocked", "failed"),
    *("in_code", "reason", "duration_ms", "hook_count", "input", "input_bytes"),
    *("input_masked", "input_cut", "output_masked", "output_cut", "effects"),
    *("final", "plan", "errors"),
)
HOOK_COLUMNS = (
    *("event_id", "position", "name", "source", "type", "success", "failed"),
    *("blocked", "would_block", "exit_code", "timed_out", "truncated", "reran"),
    *("duration_ms", "output", "stdout", "stderr", "error"),
)


class Limits(Struct, frozen=True, kw_only=True):
    """How much is kept, of one event and in all."""

    input_bytes: int = 256 * 1024
    output_bytes: int = 64 * 1024
    """Of each of stdout, stderr and what was read from them."""
    days: float = 30
    total_bytes: int = 256 * 1024 * 1024
    pending_bytes: int = 256 * 1024 * 1024
    """What may wait in memory to be written."""


class EventRows(Struct, frozen=True):
    """The row of an event, and those of its hooks without the event's id."""

    event: tuple[Any, ...]
    hooks: list[tuple[Any, ...]]


def rows_of(occurrence: Occurrence, limits: Limits) -> EventRows:
    """Make the rows of one event."""
    result, said = thawed_result(occurrence)
    given = _Input(occurrence, limits.input_bytes)
    verdict = verdict_of(occurrence.event, result, given.tool_input)
    keep = _Keeper(limits.output_bytes)
    hooks = result.aggregated.hook_results
    hook_rows = [
        _hook_row(place, hook, output, keep)
        for place, (hook, output) in enumerate(zip(hooks, said, strict=True), 1)
    ]
    decided = _decided(occurrence.plan, result, verdict, keep)
    came_out = _came_out(occurrence.plan, result, verdict, keep)
    marks = (keep.masked, keep.cut)  # known once everything is kept
    event = (*given.place, *decided, *given.columns, *marks, *came_out)
    return EventRows(_storable(event), [_storable(row) for row in hook_rows])


def _decided(
    plan: HookPlan | None, result: ProcessedHookResult, verdict: Verdict, keep: _Keeper
) -> tuple[Any, ...]:
    asked = _asked(verdict.ask, result.final_output)
    return (
        verdict.word,
        verdict.blocked or verdict.stop,
        bool(result.aggregated.errors),
        _took_part_in_code(plan),
        keep.text(result.stop_reason or result.reason or asked),
        result.aggregated.total_duration,
        len(result.aggregated.hook_results),
    )


def _came_out(
    plan: HookPlan | None, result: ProcessedHookResult, verdict: Verdict, keep: _Keeper
) -> tuple[Any, ...]:
    final = result.final_output
    return (
        _encode_verdict(verdict).decode(),
        keep.json(final.to_wire() if final else None),
        encode(_plan(plan)).decode(),
        keep.json([error.to_wire() for error in result.aggregated.errors]),
    )


class _Input:
    """An event's input as it is stored."""

    def __init__(self, occurrence: Occurrence, limit: int) -> None:
        text = occurrence.input_json()
        fields = decode(text)
        self.tool_input = fields.get("tool_input")
        self.place = _place(occurrence, fields)
        size, cut = len(text), text == UNREADABLE or len(text) > limit
        masker = Masker()
        fields = masker.mask(fields)
        if size > limit:
            text = cut_json(fields, limit)
        elif masker.masked:
            text = encode(fields)
        self.columns = (text.decode(), size, masker.masked, cut)


def _place(occurrence: Occurrence, fields: dict[str, Any]) -> tuple[Any, ...]:
    """When it was, what it was about, and where."""
    field = TRAITS[occurrence.event].matched_field
    target = fields.get(field) if field else None
    return (
        occurrence.at,
        occurrence.event.value,
        target if isinstance(target, str) else None,
        str(occurrence.session_id),
        str(occurrence.cwd),
    )


class _Keeper:
    """Masks and cuts what hooks said, and remembers whether it had to."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._masker = Masker(texts=True)
        self.cut = False

    @property
    def masked(self) -> bool:
        return self._masker.masked

    def text(self, text: str | None) -> str | None:
        if text is None:
            return None
        # What is JSON is masked whole, since half of it is none; any other text is cut
        # first, for megabytes would be looked through for nothing.
        within = self._masker.mask_json_within(text)
        kept, was_cut = cut_text(text if within is None else within, self._limit)
        self.cut |= was_cut
        return self._masker.mask_text(kept) if within is None else kept

    def json(self, value: Any) -> str | None:
        if value is None:
            return None
        text = encode(value)
        if len(text) > self._limit:
            self.cut = True
            text = cut_json(shorten(decode(text), self._limit), self._limit)
        if is_suspicious(text):
            text = encode(self._masker.mask(decode(text)))
        return text.decode()


def _hook_row(
    place: int, hook: HookExecutionResult, said: Any, keep: _Keeper
) -> tuple[Any, ...]:
    output = hook.output
    return (
        place,
        hook.hook_name,
        str(hook.source),
        str(hook.hook_type),
        hook.success,
        hook.failed,
        output is not None and output.is_blocking and not hook.observed,
        hook.would_block,
        hook.exit_code,
        hook.timed_out,
        hook.truncated,
        hook.reran,
        hook.duration,
        keep.json(said),
        keep.text(hook.stdout),
        keep.text(hook.stderr),
        keep.text(hook.error),
    )


def _asked(asks: bool, final: Any) -> str | None:
    return final.own_reason if asks and final is not None else None


def _plan(plan: HookPlan | None) -> dict[str, Any] | None:
    if plan is None:
        return None
    hooks = [{"name": h.name, "source": h.source.value} for h in plan.hooks]
    return {"sequential": plan.sequential, "hooks": hooks}


def _took_part_in_code(plan: HookPlan | None) -> bool:
    return plan is not None and any(hook.function is not None for hook in plan.hooks)


def _storable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same row without lone surrogates, which SQLite does not take."""
    return tuple(
        value.encode("utf-8", "replace").decode()
        if isinstance(value, str) and not value.isascii()
        else value
        for value in row
    )
