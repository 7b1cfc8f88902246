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
from hookline.events import HookEventName
from hookline.executors.contract import HookCall
from hookline.jsontext import decode, encode
from hookline.outputs import HookOutput
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


def occurrence_of(
    call: HookCall, plan: HookPlan | None, result: ProcessedHookResult
) -> Occurrence:
    """Take an event as it is now."""
    aggregated = result.aggregated
    return Occurrence(
        at=time.time() - aggregated.total_duration / 1000,
        event=call.event,
        cwd=call.cwd,
        session_id=call.session_id,
        input=Frozen(call.payload, True) if call.is_encoded else freeze(call.input),
        plan=plan,
        result=result,
        outputs=_outputs(result) if aggregated.final_output else _said(result),
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


def thawed_result(occurrence: Occurrence) -> tuple[ProcessedHookResult, list[Any]]:
    """The result as it was, and what each hook said."""
    result = occurrence.result
    if occurrence.outputs is None:
        return result, [None] * len(result.aggregated.hook_results)
    said, specific, changed = occurrence.outputs.thaw()
    final = result.aggregated.final_output
    if final is None:
        return result, said
    final = structs.replace(
        final, hook_specific_output=specific, modified_tool_input=changed
    )
    aggregated = structs.replace(result.aggregated, final_output=final)
    return structs.replace(result, aggregated=aggregated), said


def _outputs(result: ProcessedHookResult) -> Frozen:
    final: HookOutput | None = result.aggregated.final_output
    assert final is not None  # asked for where there is one
    said = [hook.said for hook in result.aggregated.hook_results]
    return freeze([said, final.hook_specific_output, final.modified_tool_input])


def _said(result: ProcessedHookResult) -> Frozen | None:
    """What hooks said that counted for nothing, as in observe mode."""
    said = [hook.said for hook in result.aggregated.hook_results]
    return freeze([said, {}, None]) if any(said) else None
