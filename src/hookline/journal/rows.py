"""What is stored of an event: a snapshot of it, its verdict, and the rows of both."""

from __future__ import annotations

import marshal
import time
from typing import Any

import msgspec
from msgspec import Struct, structs

from hookline.errors import EncodingError
from hookline.plan import HookCall, HookPlan
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.outputs import changed_tool_input
from hookline.protocol.results import HookExecutionResult, ProcessedHookResult
from hookline.protocol.values import decode, encode
from hookline.protocol.verdict import Verdict, event_verdict, hook_verdict
from hookline.translators import stable_fields

from .redact import (
    Masker,
    is_suspicious,
    truncate_json,
    truncate_text,
    truncate_values,
    truncate_with_digest,
)

_UNREADABLE = b'{"unreadable":"the input could not be written as JSON"}'

Row = dict[str, Any]
"""Values by the names of the columns."""


class Limits(Struct, frozen=True, kw_only=True):
    """How much is kept, of one event and in all."""

    input_bytes: int = 256 * 1024
    output_bytes: int = 64 * 1024
    """For each of stdout, stderr and the output read from them."""
    days: float = 30
    total_bytes: int = 256 * 1024 * 1024
    pending_bytes: int = 256 * 1024 * 1024
    """What may wait in memory to be written."""


class Serialized(Struct, frozen=True, gc=False):
    """A copy of a value as bytes: JSON, or ``marshal`` where that is faster."""

    data: bytes
    is_json: bool

    def to_json(self) -> bytes:
        """The value as JSON."""
        return self.data if self.is_json else encode(self.load())

    def load(self) -> Any:
        """A new value that is equal to the old one, as far as JSON goes."""
        if self.is_json:
            return decode(self.data)
        return marshal.loads(self.data)  # noqa: S302 - written by serialize() below


class EventSnapshot(Struct, frozen=True, kw_only=True, gc=False):
    """One event as it was when it was recorded."""

    at: float
    """When it was fired, in seconds since 1970."""
    event: HookEventName
    cwd: str
    session_id: str
    input: Serialized
    plan: HookPlan | None
    result: ProcessedHookResult
    outputs: Serialized | None
    """The raw outputs and the merged specific output; None if there are none."""
    origin: HookCall | None
    """To find it again, where a hook is not waited for."""
    translator: str | None
    """What translates the input for hooks; None if that is done or not needed."""

    def input_json(self) -> bytes:
        """The input as hooks see it."""
        if self.translator is None:
            return self.input.to_json()
        return encode(_translated(self.event, self.input.load(), self.translator))

    def restored(self) -> tuple[ProcessedHookResult, list[Any]]:
        """The result as it was, and the raw output of each hook."""
        result, final = self.result, self.result.final_output
        if self.outputs is None:
            return result, [None] * len(result.aggregated.hook_results)
        raw_outputs, specific = self.outputs.load()
        if final is None:
            return result, raw_outputs
        final = structs.replace(final, hook_specific_output=specific)
        if final.modified_tool_input is not None:
            # The tool may have changed the one that it was given.
            whole = changed_tool_input(self.input.load().get("tool_input"), final)
            final = structs.replace(final, modified_tool_input=whole)
        aggregated = structs.replace(result.aggregated, final_output=final)
        return structs.replace(result, aggregated=aggregated), raw_outputs


def snapshot_event(
    call: HookCall,
    plan: HookPlan | None,
    result: ProcessedHookResult,
    translator: str = "auto",
) -> EventSnapshot:
    """Copy what the host and the tools may change later."""
    event_input, translator_left = _serialized_input(call, translator)
    return EventSnapshot(
        at=time.time() - result.aggregated.total_duration / 1000,
        event=call.event,
        cwd=call.cwd,
        session_id=call.session_id,
        input=event_input,
        plan=plan,
        result=result,
        outputs=_serialized_outputs(result),
        origin=call.origin if _is_awaited(result) else None,
        translator=translator_left,
    )


def _is_awaited(result: ProcessedHookResult) -> bool:
    """Whether the result of a hook may still come."""
    return any(hook.is_async for hook in result.aggregated.hook_results)


class LateSnapshot(Struct, frozen=True):
    """What a hook said after nobody waited for it."""

    origin: HookCall
    result: HookExecutionResult
    output: Serialized | None

    def row(self, limits: Limits) -> Row:
        """The columns that its row has now; its place stays as it was."""
        redact = _OutputRedactor(limits.output_bytes)
        output = None if self.output is None else self.output.load()
        row = _hook_row(0, self.result, output, redact)
        del row["position"]
        # It counts for nothing, whatever it said.
        return _storable(row | {"blocked": False, "is_async": ENDED})


ENDED = 2
"""In the column ``is_async``: the hook has ended; 1 where that is not known."""


def snapshot_late(call: HookCall, result: HookExecutionResult) -> LateSnapshot:
    """Copy what the host may change later."""
    raw = result.raw_output
    return LateSnapshot(call.origin, result, None if raw is None else serialize(raw))


def serialize(value: Any) -> Serialized:
    """Copy a value, whatever it holds."""
    try:
        return Serialized(marshal.dumps(value), False)
    except ValueError:
        pass  # it holds objects, which only our JSON encoder can describe
    try:
        return Serialized(encode(value), True)
    except EncodingError:
        return Serialized(_UNREADABLE, True)


def _serialized_input(call: HookCall, translator: str) -> tuple[Serialized, str | None]:
    """The input, and the translator if it is still to be translated."""
    if call.payload:
        return Serialized(call.payload, True), None
    if not TRAITS[call.event].model_fields:
        return serialize(call.input), None
    try:
        return Serialized(marshal.dumps(call.input), False), translator
    except ValueError:  # objects of an SDK, which the host may change later
        return serialize(_translated(call.event, call.input, translator)), None


def _serialized_outputs(result: ProcessedHookResult) -> Serialized | None:
    """All raw outputs, also those without effect, as in observe mode."""
    final = result.aggregated.final_output
    outputs = [hook.raw_output for hook in result.aggregated.hook_results]
    if final is None and not any(outputs):
        return None
    return serialize([outputs, {} if final is None else final.hook_specific_output])


def _translated(
    event: HookEventName, event_input: dict[str, Any], translator: str
) -> dict[str, Any]:
    try:
        return stable_fields(event, event_input, translator)
    # A foreign object that no translator can read is recorded as it is.
    except Exception:  # noqa: BLE001
        return event_input


_EFFECT_BYTES = 16 * 1024


def masked_verdict(event: HookEventName, result: ProcessedHookResult) -> Verdict:
    """The verdict of a result as it is recorded: effects are JSON text, masked."""
    verdict = event_verdict(event, result)
    effects = {
        name: _effect(value)
        for name, value in verdict.effects.items()
        if name != "withheld"
    }
    return structs.replace(verdict, **effects)


def _effect(value: Any) -> str:
    masked = Masker(texts=True).mask(decode(encode(value)))
    text = msgspec.json.encode(masked, order="sorted").decode()
    return truncate_with_digest(text, _EFFECT_BYTES)


def rows_of(snapshot: EventSnapshot, limits: Limits) -> tuple[Row, list[Row]]:
    """The row of an event, and those of its hooks without the event's id."""
    result, raw_outputs = snapshot.restored()
    text = snapshot.input_json()
    fields = decode(text)
    verdict = masked_verdict(snapshot.event, result)
    redact = _OutputRedactor(limits.output_bytes)
    outputs = zip(result.aggregated.hook_results, raw_outputs, strict=True)
    hooks = [
        _hook_row(position, hook, raw_output, redact)
        for position, (hook, raw_output) in enumerate(outputs, 1)
    ]
    event = {
        **_event_columns(snapshot, fields),
        **_verdict_columns(result, verdict, redact),
        **_input_columns(text, fields, limits.input_bytes),
        # Last: known when everything is redacted.
        "output_masked": redact.masker.masked,
        "output_cut": redact.truncated,
    }
    return _storable(event), [_storable(row) for row in hooks]


def _event_columns(snapshot: EventSnapshot, fields: dict[str, Any]) -> Row:
    field = TRAITS[snapshot.event].matched_field
    target = fields.get(field) if field else None
    plan = snapshot.plan
    return {
        "at": snapshot.at,
        "event": snapshot.event.value,
        "target": target if isinstance(target, str) else None,
        "session": str(snapshot.session_id),
        "cwd": str(snapshot.cwd),
        "in_code": plan is not None and any(h.function is not None for h in plan.hooks),
        "plan": None if plan is None else _plan_text(plan),
    }


def _plan_text(plan: HookPlan) -> str:
    hooks = [{"name": h.name, "source": h.source.value} for h in plan.hooks]
    return encode({"sequential": plan.sequential, "hooks": hooks}).decode()


def _input_columns(text: bytes, fields: dict[str, Any], limit: int) -> Row:
    masker = Masker()
    masked = masker.mask(fields)
    size = len(text)
    if size > limit:
        text = truncate_json(masked, limit)
    elif masker.masked:
        text = encode(masked)
    return {
        "input": text.decode(),
        "input_bytes": size,
        "input_masked": masker.masked,
        "input_cut": size > limit or text == _UNREADABLE,
    }


class _OutputRedactor:
    """Masks and truncates outputs, and remembers whether it had to."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.masker = Masker(texts=True)
        self.truncated = False

    def text(self, text: str | None) -> str | None:
        if text is None:
            return None
        # JSON is masked whole, since half of it is not JSON; any other text is
        # truncated first, to save searching megabytes that are not kept.
        masked = self.masker.mask_json_text(text)
        short_text, truncated = truncate_text(masked or text, self._limit)
        self.truncated |= truncated
        return short_text if masked is not None else self.masker.mask_text(short_text)

    def json(self, value: Any) -> str | None:
        if value is None:
            return None
        text = encode(value)
        if len(text) > self._limit:
            self.truncated = True
            short = truncate_values(decode(text), self._limit)
            text = truncate_json(short, self._limit)
        if is_suspicious(text):
            text = encode(self.masker.mask(decode(text)))
        return text.decode()


def _verdict_columns(
    result: ProcessedHookResult, verdict: Verdict, redact: _OutputRedactor
) -> Row:
    final = result.final_output
    errors = result.aggregated.errors
    return {
        "verdict": verdict.word.value,
        "blocked": verdict.ends,
        "failed": bool(errors),
        "reason": redact.text(verdict.reason),
        "duration_ms": result.aggregated.total_duration,
        "hook_count": len(result.aggregated.hook_results),
        "effects": msgspec.json.encode(structs.replace(verdict, reason=None)).decode(),
        "final": redact.json(final.to_wire() if final else None),
        "errors": redact.json([error.to_wire() for error in errors]),
    }


_SAME_NAME = (
    *("success", "failed", "would_block", "observed"),
    *("exit_code", "timed_out", "truncated", "reran", "recheck", "is_async"),
)
_TEXTS = ("stdout", "stderr", "error")


def _hook_row(
    position: int, hook: HookExecutionResult, raw_output: Any, redact: _OutputRedactor
) -> Row:
    return {
        **{name: getattr(hook, name) for name in _SAME_NAME},
        **{name: redact.text(getattr(hook, name)) for name in _TEXTS},
        "position": position,
        "name": hook.hook_name,
        "source": str(hook.source),
        "type": str(hook.hook_type),
        "blocked": hook_verdict(hook).blocked,
        "standby_hit": hook.standby is True,
        "standby_miss": hook.standby is False,
        "duration_ms": hook.duration,
        "output": redact.json(raw_output),
        "warnings": redact.json(list(hook.warnings)) if hook.warnings else None,
    }


def _storable(row: Row) -> Row:
    """The row without lone surrogates, which SQLite rejects."""
    return {
        name: value.encode("utf-8", "replace").decode()
        if isinstance(value, str) and not value.isascii()
        else value
        for name, value in row.items()
    }
