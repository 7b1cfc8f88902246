"""One event that happened, in a form that nobody can change any more.

Taken on the firing side, so it has to be quick: what the host or its tools may change
after the event is written out at once, everything else is a reference. ``marshal``
writes plain values several times faster than JSON can be checked and written; what it
writes is read again in this process only.
"""

from __future__ import annotations

import marshal
import time
from typing import Any

from msgspec import Struct, structs

from hookline.errors import EncodingError
from hookline.events import TRAITS, HookEventName
from hookline.executors.contract import HookCall
from hookline.handler import translated_fields
from hookline.jsontext import decode, encode
from hookline.planner import HookPlan
from hookline.results import ProcessedHookResult

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
        return translated_fields(event, event_input, translator)
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
    if call.is_encoded:
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
    said = [hook.said for hook in result.aggregated.hook_results]
    if final is None and not any(said):
        return None
    return freeze([said, {} if final is None else final.hook_specific_output])
