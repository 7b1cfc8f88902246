"""What ``hookline replay`` found, as text, as JSON, and as lines while it runs."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from hookline.journal.query import Entry, EventKind
from hookline.protocol.verdict import Verdict

from . import journal
from .common import Options
from .terminal import one_line, paint, plural, print_json, short_json, shorten

INEXACT = {
    "cut": "input truncated",
    "masked": "input masked",
    "hook in code": "a hook in code took part",
}
"""Why an event cannot be replayed exactly, by the values of ``--json``."""
_MAX_TEXT = 100
_INTERVAL_S = 0.1


class Change(Struct, frozen=True):
    """One difference between two verdicts."""

    what: str
    before: Any
    after: Any


class Replayed(Struct, frozen=True, kw_only=True):
    """One event that was fired again."""

    entry: Entry
    before: Verdict
    after: Verdict
    changes: list[Change]
    reason: str | None
    """Why it is blocked, stopped or asked about now."""
    hooks: list[str]
    """The hooks that decide now."""
    failures: list[str]
    """The errors of hooks in this run."""

    @property
    def step(self) -> str:
        """From which verdict to which."""
        return f"{self.before.word} → {self.after.word}"

    @property
    def line(self) -> str:
        """The event and its verdicts."""
        target = f" {one_line(self.entry.target)}" if self.entry.target else ""
        return f"{self.entry.event}{target}: {self.step}"

    @property
    def inexact(self) -> str | None:
        """A key of ``INEXACT``; None if the replay is exact."""
        return inexact(self.entry)


def inexact(event: Entry | EventKind) -> str | None:
    """Why an event cannot be replayed exactly, a key of ``INEXACT``."""
    if event.input_cut:
        return "cut"
    if event.input_masked:
        return "masked"
    return "hook in code" if event.in_code else None


class Selection:
    """The events to replay: only their ids are kept, for journals of any size."""

    def __init__(
        self, events: Iterable[tuple[int, str]] = (), kinds: Iterable[EventKind] = ()
    ) -> None:
        """Take the ids and sessions of events, in the order of the journal."""
        self.sessions: dict[str, array[int]] = {}
        for event_id, session in events:
            self.sessions.setdefault(session, array("q")).append(event_id)
        self.events = sum(map(len, self.sessions.values()))
        self.inexact_events = sum(one.count for one in kinds if inexact(one))


class Found:
    """What a replay found; not kept where it is printed while it runs."""

    def __init__(self, options: Options) -> None:
        self._keeps = options.progress is None
        self._kept: list[Replayed] = []
        self.counts = {"changed": 0, "apart": 0, "failures": 0}

    def add(self, one: Replayed | None) -> None:
        """Take one event; None if it was deleted from the journal meanwhile."""
        if one is None or not (one.changes or one.failures):
            return
        self.counts["changed"] += bool(one.changes) and one.inexact is None
        self.counts["apart"] += bool(one.changes) and one.inexact is not None
        self.counts["failures"] += bool(one.failures)
        if self._keeps:
            self._kept.append(one)

    def kept(self) -> list[Replayed]:
        """All of them, in the order of the journal."""
        return sorted(self._kept, key=lambda one: one.entry.id)


class ProgressLines:
    """``--progress json``: one JSON object per line, for the parent process."""

    def __init__(self, options: Options, total: int) -> None:
        self._wanted = options.progress is not None
        self._total = total
        self._done = 0
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._problem: OSError | None = None
        if self._wanted:
            self._print_progress()

    def step(self, replayed: Replayed | None) -> None:
        """Count one event; None if it was deleted from the journal meanwhile."""
        self._done += 1
        if not self._wanted:
            return
        if self._problem is not None:
            raise self._problem
        if replayed is not None:
            _print_found(replayed)
        if self._done == self._total or time.monotonic() >= self._due:
            self._print_progress()
        elif self._timer is None:
            # The next event may take its time.
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_INTERVAL_S, self._print_in_time)

    def _print_in_time(self) -> None:
        try:
            self._print_progress()
        except OSError as error:
            self._problem = error  # nobody would see it here

    def _print_progress(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due = time.monotonic() + _INTERVAL_S
        print_json({"type": "progress", "done": self._done, "total": self._total})


def _print_found(one: Replayed) -> None:
    if one.changes:
        print_json({"type": "change", **_as_json(one)})
    if one.failures:
        print_json({"type": "failure", **_failure(one)})


def print_report_json(options: Options, report: dict[str, Any]) -> None:
    """Print the object of ``--json``, marked as the last one of ``--progress``."""
    print_json({"type": "report", **report} if options.progress else report)


def print_report(
    options: Options, selection: Selection, found: Found, elsewhere: int
) -> int:
    """Print what changed and return the exit status."""
    if options.json:
        report = {
            "events": selection.events,
            **(_lists(found) if options.progress is None else found.counts),
            "apart_events": selection.inexact_events,
            "elsewhere": elsewhere,
        }
        print_report_json(options, report)
    else:
        _print_text(options, selection, found.kept(), elsewhere)
    return 1 if found.counts["changed"] else 0


def _lists(found: Found) -> dict[str, Any]:
    kept = found.kept()
    changed = [one for one in kept if one.changes]
    return {
        "changed": [_as_json(one) for one in changed if one.inexact is None],
        "apart": [_as_json(one) for one in changed if one.inexact is not None],
        "failures": [_failure(one) for one in kept if one.failures],
    }


def _print_text(
    options: Options, selection: Selection, found: list[Replayed], elsewhere: int
) -> None:
    changed = [one for one in found if one.changes]
    exact = [one for one in changed if one.inexact is None]
    for one in exact:
        _print_change(one)
    _print_inexact([one for one in changed if one.inexact is not None])
    _print_failures([one for one in found if one.failures])
    number = selection.inexact_events
    note = f" ({number:,} not exactly)" if number else ""
    print(f"{plural(selection.events, 'event')} replayed{note}: {_summary(exact)}")
    journal.print_elsewhere(elsewhere, options)


def _as_json(one: Replayed) -> dict[str, Any]:
    return {
        "id": one.entry.id,
        "at": journal.format_utc(one.entry.at),
        "event": one.entry.event,
        "target": one.entry.target,
        "before": one.before.word,
        "after": one.after.word,
        "changes": msgspec.to_builtins(one.changes),
        "reason": one.reason,
        "hooks": one.hooks,
        "blockers": one.entry.blockers,
        "apart": one.inexact,
    }


def _failure(one: Replayed) -> dict[str, Any]:
    return {"id": one.entry.id, "errors": one.failures}


def _print_change(one: Replayed) -> None:
    print(f"event {one.entry.id}, {journal.format_time(one.entry.at)}: {one.line}")
    for change in one.changes:
        print(f"  {paint(f'- {_value(change, change.before)}', 'red')}")
        print(f"  {paint(f'+ {_value(change, change.after)}', 'green')}")
    if one.reason:
        print(f"  now: {shorten(one_line(one.reason), _MAX_TEXT)}")


def _print_inexact(changed: list[Replayed]) -> None:
    if changed:
        print("not counted, because these events could not be replayed exactly:")
    for one in changed:
        reason = INEXACT[one.inexact or ""]
        print(f"  event {one.entry.id}: {one.line} ({reason})")


def _print_failures(failed: list[Replayed]) -> None:
    if failed:
        first = f"event {failed[0].entry.id}: {one_line(failed[0].failures[0])}"
        mark = paint("hooks failed", "yellow")
        print(f"{mark} on {plural(len(failed), 'event')}; the first, {first}")


def _value(change: Change, value: Any) -> str:
    if isinstance(value, bool):
        return change.what if value else f"not {change.what}"
    if value is None:
        return f"no {change.what}"
    return f"{change.what}: {short_json(value, _MAX_TEXT)}"


def _summary(changed: list[Replayed]) -> str:
    if not changed:
        return "no verdict changes"
    counts = Counter(one.step for one in changed).most_common()
    listed = ", ".join(f"{count:,} {step}" for step, count in counts)
    return f"{plural(len(changed), 'verdict')} changed: {listed}"
