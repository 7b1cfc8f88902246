"""Which hook gave which field of a merged output.

Derived from the outputs and the merged one: a hook contributed to a field if its value
is the merged one, or part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from hookline.protocol.results import ProcessedHookResult

Wire = Mapping[str, Any]
"""An output as JSON has it."""

_PARTS = (
    *("tool_input", "llm_request", "llm_request.config", "llm_response", "toolConfig"),
)
_MERGED_BY_KEY = {"hookSpecificOutput", *(f"hookSpecificOutput.{x}" for x in _PARTS)}
_FIRST_WINS = {"decision", "hookSpecificOutput.permissionDecision"}
"""If several hooks agree, the first one set it; for other fields the last one did."""
_CONCATENATED = {
    *("reason", "stopReason", "systemMessage", "hookSpecificOutput.additionalContext"),
}
_BLOCKS = ("block", "deny")


class Outcome(StrEnum):
    """Outcome of one value in the merge; the values are those of ``--json``."""

    USED = "gave"
    AGREED = "agreed"
    OVERRIDDEN = "lost"


class Contribution(Struct, frozen=True, rename={"outcome": "part"}):
    """The value of one hook for a field."""

    hook: str
    value: Any
    outcome: Outcome


class FieldProvenance(Struct, frozen=True, rename={"contributions": "said"}):
    """The hooks behind one field; ``value`` is None if the merge dropped it."""

    field: str
    value: Any
    contributions: list[Contribution]


def trace_result(result: ProcessedHookResult) -> list[FieldProvenance]:
    """Trace every field of a result back to the hooks."""
    final = result.final_output
    said = (
        (hook.hook_name, hook.output.to_wire())
        for hook in result.aggregated.hook_results
        if hook.output is not None and not hook.observed
    )
    return trace_fields({} if final is None else final.to_wire(), said)


def trace_fields(
    final: Wire, outputs: Iterable[tuple[str, Wire]]
) -> list[FieldProvenance]:
    """Trace every field of a merged output back to hooks, given by their names."""
    merged = dict(_flatten_items("", final))
    values: dict[str, list[tuple[str, Any]]] = {}
    for hook, output in outputs:
        for field, value in _flatten_items("", output):
            values.setdefault(field, []).append((hook, value))
    return [
        FieldProvenance(field, merged.get(field), _trace(field, merged.get(field), by))
        for field, by in values.items()
    ]


def _flatten_items(prefix: str, items: Wire) -> Iterator[tuple[str, Any]]:
    for key, value in items.items():
        field = f"{prefix}{key}"
        if field in _MERGED_BY_KEY and isinstance(value, dict):
            yield from _flatten_items(f"{field}.", value)
        elif value is not None:
            yield field, value


def _trace(
    field: str, merged: Any, values: Sequence[tuple[str, Any]]
) -> list[Contribution]:
    kept = [n for n, (_, value) in enumerate(values) if _is_kept(field, value, merged)]
    shared = field in _CONCATENATED or isinstance(merged, list)
    setters = kept if shared else kept[:1] if field in _FIRST_WINS else kept[-1:]
    outcomes = dict.fromkeys(kept, Outcome.AGREED)
    outcomes |= dict.fromkeys(setters, Outcome.USED)
    return [
        Contribution(hook, value, outcomes.get(n, Outcome.OVERRIDDEN))
        for n, (hook, value) in enumerate(values)
    ]


def _is_kept(field: str, value: Any, merged: Any) -> bool:
    if field in _CONCATENATED and isinstance(merged, str):
        return f"\n{value}\n" in f"\n{merged}\n"
    if field in _FIRST_WINS and merged in _BLOCKS:
        return value in _BLOCKS
    if isinstance(merged, list) and isinstance(value, list):
        return merged == value or any(item in merged for item in value)
    return bool(value == merged)
