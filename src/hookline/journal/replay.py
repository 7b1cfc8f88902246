"""Fire recorded events again and tell which verdicts change.

Events of one session are fired in their order, sessions side by side. Hooks see
``HOOKLINE_REPLAY=1`` and nothing is recorded. An event that cannot be fired as it
was is told apart: its verdict proves nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from msgspec import Struct

from hookline.events import HookEventName
from hookline.results import ProcessedHookResult

from .entries import Entry, FullEntry
from .place import REPLAY_VARIABLE
from .verdicts import WORDS, Verdict, verdict_of

Fire = Callable[[HookEventName, Mapping[str, Any]], Awaitable[ProcessedHookResult]]
Load = Callable[[int], FullEntry | None]


class Apart(StrEnum):
    """Why an event's verdict does not decide."""

    MASKED = "masked"
    CUT = "cut"
    IN_CODE = "hook in code"


class Change(Struct, frozen=True):
    """One thing about a verdict that is different now."""

    what: str
    before: Any
    after: Any


class Replayed(Struct, frozen=True, kw_only=True):
    """One event that was fired again."""

    entry: Entry
    changes: list[Change]
    before: Verdict
    after: Verdict
    reason: str | None
    """Why it is blocked, stopped or asked about now."""
    failures: list[str]
    """What went wrong in this run."""
    apart: Apart | None


def apart(entry: Entry) -> Apart | None:
    """Why an event cannot be fired as it was; None where it can."""
    if entry.input_cut:
        return Apart.CUT
    if entry.input_masked:
        return Apart.MASKED
    return Apart.IN_CODE if entry.in_code else None


def changes_between(before: Verdict, after: Verdict) -> list[Change]:
    """What is different, strongest first."""
    found = [
        Change(word, getattr(before, field), getattr(after, field))
        for field, word in (("blocked", "blocked"), ("ask", "ask"), ("stop", "stop"))
        if getattr(before, field) != getattr(after, field)
    ]
    old, new = before.effects, after.effects
    found += [
        Change(word, old.get(field), new.get(field))
        for field, word in WORDS.items()
        if old.get(field) != new.get(field)
    ]
    return found


async def replay(
    entries: Iterable[Entry],
    load: Load,
    fire: Fire,
    take: Callable[[Replayed], None],
    jobs: int = 1,
) -> None:
    """Fire events again and hand over what comes of each, as it comes."""
    slots = asyncio.Semaphore(jobs)

    async def run_session(session: list[Entry]) -> None:
        for entry in session:
            async with slots:
                replayed = await _fire_again(entry, load, fire)
            if replayed is not None:
                take(replayed)

    sessions: dict[str, list[Entry]] = {}
    for entry in entries:
        sessions.setdefault(entry.session, []).append(entry)
    async with asyncio.TaskGroup() as group:
        for session in sessions.values():
            group.create_task(run_session(session))


@contextmanager
def replaying() -> Iterator[None]:
    """Let hooks know, and keep every journal shut, for as long as it lasts."""
    before = os.environ.get(REPLAY_VARIABLE)
    os.environ[REPLAY_VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[REPLAY_VARIABLE]
        else:
            os.environ[REPLAY_VARIABLE] = before


async def _fire_again(entry: Entry, load: Load, fire: Fire) -> Replayed | None:
    full = load(entry.id)
    if full is None:
        return None  # forgotten in the meantime
    event = HookEventName.of(entry.event)
    result = await fire(event, full.input)
    after = verdict_of(event, result, full.input.get("tool_input"))
    return Replayed(
        entry=entry,
        changes=changes_between(full.decided, after),
        before=full.decided,
        after=after,
        reason=result.stop_reason or result.reason,
        failures=[error.message for error in result.aggregated.errors],
        apart=apart(entry),
    )
