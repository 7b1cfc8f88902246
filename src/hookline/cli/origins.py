"""Where each field of a merged output comes from, and who lost.

Pure. It is read off the outputs and the merge, not worked out a second time: a hook
gave a field if what it said is what came out, or is part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from hookline.outputs import HookOutput
from hookline.results import HookExecutionResult, ProcessedHookResult

_MAPPINGS = frozenset(
    {
        "hookSpecificOutput",
        "hookSpecificOutput.tool_input",
        "hookSpecificOutput.llm_request",
        "hookSpecificOutput.llm_request.config",
        "hookSpecificOutput.llm_response",
        "hookSpecificOutput.toolConfig",
    }
)
"""Merged key by key."""
_FIRST = frozenset({"decision", "hookSpecificOutput.permissionDecision"})
"""Where several hooks agree, the first one gave it; elsewhere the last one did."""
_JOINED = frozenset(
    {"reason", "stopReason", "systemMessage", "hookSpecificOutput.additionalContext"}
)
_BLOCKS = ("block", "deny")


class Part(StrEnum):
    """What became of what a hook said."""

    GAVE = "gave"
    AGREED = "agreed"
    LOST = "lost"


class Said(Struct, frozen=True):
    """What one hook said of a field."""

    hook: str
    value: Any
    part: Part


class Origin(Struct, frozen=True):
    """A field of the merged output; ``value`` is None where nothing came out."""

    field: str
    value: Any
    said: list[Said]


def origins_of(result: ProcessedHookResult) -> list[Origin]:
    """Every field that a hook said something of, in the order of their saying."""
    merged = dict(_flat(result.final_output))
    said: dict[str, list[tuple[str, Any]]] = {}
    for hook in result.aggregated.hook_results:
        for field, value in _flat(_counted(hook)):
            said.setdefault(field, []).append((hook.hook_name, value))
    return [
        Origin(field, merged.get(field), _parts(field, merged.get(field), values))
        for field, values in said.items()
    ]


def _counted(hook: HookExecutionResult) -> HookOutput | None:
    return None if hook.observed else hook.output


def _flat(output: HookOutput | None) -> Iterator[tuple[str, Any]]:
    if output is not None:
        yield from _flat_items("", output.to_wire())


def _flat_items(prefix: str, items: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in items.items():
        field = f"{prefix}{key}"
        if field in _MAPPINGS and isinstance(value, dict):
            yield from _flat_items(f"{field}.", value)
        elif value is not None:
            yield field, value


def _parts(field: str, merged: Any, values: Sequence[tuple[str, Any]]) -> list[Said]:
    kept = [
        place
        for place, (_, value) in enumerate(values)
        if _survives(field, value, merged)
    ]
    shared = field in _JOINED or isinstance(merged, list)
    givers = kept if shared else kept[:1] if field in _FIRST else kept[-1:]
    return [
        Said(hook, value, _part(place, givers, kept))
        for place, (hook, value) in enumerate(values)
    ]


def _part(place: int, givers: list[int], kept: list[int]) -> Part:
    if place in givers:
        return Part.GAVE
    return Part.AGREED if place in kept else Part.LOST


def _survives(field: str, value: Any, merged: Any) -> bool:
    if field in _JOINED and isinstance(merged, str):
        return f"\n{value}\n" in f"\n{merged}\n"
    if field in _FIRST and merged in _BLOCKS:
        return value in _BLOCKS
    if isinstance(merged, list) and isinstance(value, list):
        return merged == value or any(item in merged for item in value)
    return bool(value == merged)
