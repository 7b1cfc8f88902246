"""Make rows of an event: masked, cut and marked. Runs on the writer's thread."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from hookline.events import TRAITS
from hookline.jsontext import decode, encode
from hookline.planner import HookPlan
from hookline.results import HookExecutionResult, ProcessedHookResult

from .cutting import cut_json, cut_text, shorten
from .masking import Masker, is_suspicious
from .occurrence import UNREADABLE, Occurrence, thawed_result
from .verdicts import Verdict, verdict_of

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
