"""What a replay found, for people and for programs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hookline.journal.entries import Entry
from hookline.journal.replay import Change, Replayed, apart
from hookline.jsontext import decode

from .entrytext import one_line, shortened
from .style import paint
from .times import clock, iso

_LONGEST = 100


def print_outcome(entries: list[Entry], found: list[Replayed]) -> None:
    """Print the verdicts that change, then what proves nothing, then a sum."""
    changed = [one for one in found if one.changes]
    deciding = [one for one in changed if one.apart is None]
    for one in deciding:
        _print_change(one)
    _print_apart([one for one in changed if one.apart is not None])
    failing = [one for one in found if one.failures]
    if failing:
        first = failing[0]
        print(
            f"{paint('hooks failed', 'yellow')} on {_events(len(failing))}; the first, "
            f"event {first.entry.id}: {one_line(first.failures[0])}"
        )
    aside = sum(apart(entry) is not None for entry in entries)
    note = f" ({aside:,} of them apart)" if aside else ""
    print(f"{_events(len(entries))} fired again{note}: {_sum(deciding)}")


def replayed_json(
    entries: list[Entry], found: list[Replayed], elsewhere: int
) -> dict[str, Any]:
    """The same as one object."""
    changed = [one for one in found if one.changes]
    return {
        "events": len(entries),
        "changed": [_as_json(one) for one in changed if one.apart is None],
        "apart": [_as_json(one) for one in changed if one.apart is not None],
        "apart_events": sum(apart(entry) is not None for entry in entries),
        "failures": [
            {"id": one.entry.id, "errors": one.failures}
            for one in found
            if one.failures
        ],
        "elsewhere": elsewhere,
    }


def _print_change(one: Replayed) -> None:
    entry = one.entry
    target = f" {one_line(entry.target)}" if entry.target else ""
    verdicts = f"{one.before.word} → {one.after.word}"
    print(f"event {entry.id}, {clock(entry.at)}: {entry.event}{target}: {verdicts}")
    for change in one.changes:
        for sign, style, value in (
            ("-", "red", change.before),
            ("+", "green", change.after),
        ):
            print(f"  {paint(f'{sign} {_worded(change, value)}', style)}")
    if one.reason:
        print(f"  now: {shortened(one_line(one.reason), _LONGEST)}")


def _print_apart(aside: list[Replayed]) -> None:
    if aside:
        print("apart, since they could not be fired as they were:")
    for one in aside:
        target = f" {one_line(one.entry.target)}" if one.entry.target else ""
        print(
            f"  event {one.entry.id}: {one.entry.event}{target}: "
            f"{one.before.word} → {one.after.word} ({one.apart})"
        )


def _worded(change: Change, value: Any) -> str:
    if isinstance(value, bool):
        return change.what if value else f"not {change.what}"
    if value is None:
        return f"no {change.what}"
    return f"{change.what}: {shortened(one_line(str(value)), _LONGEST)}"


def _sum(deciding: list[Replayed]) -> str:
    if not deciding:
        return "no verdict changes"
    kinds = Counter(f"{one.before.word} → {one.after.word}" for one in deciding)
    listed = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    return (
        f"{len(deciding):,} verdict{'s' if len(deciding) > 1 else ''} changed: {listed}"
    )


def _value(value: Any) -> Any:
    """An effect as the value that it is; one that was cut stays a text."""
    if not isinstance(value, str):
        return value
    try:
        return decode(value)
    except ValueError:
        return value


def _events(number: int) -> str:
    return f"{number:,} event{'' if number == 1 else 's'}"


def _as_json(one: Replayed) -> dict[str, Any]:
    entry = one.entry
    return {
        "id": entry.id,
        "at": iso(entry.at),
        "event": entry.event,
        "target": entry.target,
        "before": one.before.word,
        "after": one.after.word,
        "changes": [
            {
                "what": change.what,
                "before": _value(change.before),
                "after": _value(change.after),
            }
            for change in one.changes
        ],
        "reason": one.reason,
        "apart": one.apart and one.apart.value,
    }
