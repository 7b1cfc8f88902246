"""``hookline replay``: fire recorded events again and show which verdicts change.

Events of one session are fired in order, sessions in parallel. Hooks get
``HOOKLINE_REPLAY=1`` and nothing is recorded. The verdict on an event that cannot be
replayed exactly is reported separately and does not count.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections import Counter
from contextlib import nullcontext
from typing import Any

import msgspec
from msgspec import Struct, structs

from hookline.config import Config
from hookline.engine.planner import make_plan, target_of
from hookline.engine.registry import HookRegistry
from hookline.engine.system import HookSystem
from hookline.journal.query import Entry, EventFilter, FullEntry, JournalReader
from hookline.journal.rows import EFFECT_LABELS, Verdict, verdict_of
from hookline.journal.store import REPLAY_VARIABLE
from hookline.log import logger
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.jsontext import decode
from hookline.protocol.results import ProcessedHookResult, make_empty_success_result

from . import journal
from .common import Options, Parser, at_least, load_config, log_to_stderr
from .terminal import Progress, one_line, paint, plural, print_json, short_json, shorten

SUMMARY = "fire recorded events again and show which verdicts change"
DESCRIPTION = """\
Fire recorded events again, with the current settings or others, and show the verdicts
that change: blocked, ask, stop, a changed input, request or response, restricted tools,
a withheld result. It answers "what would this new rule have blocked last week?".

  hookline replay --since 7d --settings new.json
  hookline replay --event BeforeTool --tool 'write_*'
  hookline replay --since today --dry-run        count events, run no hooks
  hookline replay --json                         one JSON object

Without --settings the events of this project are replayed; with --settings those of all
projects. --here and --everywhere override that. Hooks really run, in --cwd, with
HOOKLINE_REPLAY=1. Untrusted hooks do not run, and nothing is recorded.

An event cannot be replayed exactly if its input was masked or truncated, or if a hook
in the host's code took part. Such events are listed separately.

exit status: 0 no verdict changes, 1 a verdict changes (exact replays only)"""

_MAX_TEXT = 100
_INEXACT = {
    "cut": "input truncated",
    "masked": "input masked",
    "hook in code": "a hook in code took part",
}
"""Why an event cannot be replayed exactly, by the values of ``--json``."""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    journal.add_filter_arguments(parser)
    parser.add_exclusive_flags(
        here="events of this project", everywhere="events of all projects"
    )
    parser.add_flag("--dry-run", "count the events and run no hooks")
    text = "sessions to replay at the same time (default: the number of processors)"
    parser.add_option("--jobs N", text, type=at_least(1), default=os.cpu_count() or 1)
    parser.add_flag("--json", "print one JSON object")
    journal.add_journal_arguments(parser)


def run(options: Options) -> int:
    """Replay the events and report the changes."""
    log_to_stderr()
    _log_messages_once()
    wanted = journal.event_filter(options)
    config = load_config(options)
    with journal.open_journal(options) as reader:
        if reader is None:
            return _report(options, [], [], 0)
        entries, elsewhere = _select(reader, wanted, options, config)
        if options.dry_run:
            return _report_dry_run(options, config, reader, entries, elsewhere)
        os.environ[REPLAY_VARIABLE] = "1"  # tells hooks, and closes every journal
        try:
            found = asyncio.run(_replay(reader, config, entries, options.jobs))
        finally:
            del os.environ[REPLAY_VARIABLE]
    return _report(options, entries, found, elsewhere)


def _log_messages_once() -> None:
    """Drop repeated messages: thousands of events would repeat them."""
    seen: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        known = len(seen)
        seen.add(record.getMessage())
        return len(seen) > known

    for handler in logger.handlers:
        handler.addFilter(is_new)
    # The report sums up the failures of hooks.
    logging.getLogger("hookline.hooks").setLevel(logging.CRITICAL)


def _select(
    reader: JournalReader, wanted: EventFilter, options: Options, config: Config
) -> tuple[list[Entry], int]:
    """The events to replay, and how many of other projects are left out."""
    if options.everywhere or (options.settings is not None and not options.here):
        return list(reader.oldest(wanted)), 0
    own = config.settings.project_dir or config.working_dir
    here = structs.replace(wanted, folders=(own, os.path.realpath(own)))
    entries = list(reader.oldest(here))
    return entries, reader.count(wanted) - len(entries)


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


async def _replay(
    reader: JournalReader, config: Config, entries: list[Entry], jobs: int
) -> list[Replayed]:
    """Fire the events again; returns those with changes or failures."""
    sessions: dict[str, list[Entry]] = {}
    for entry in entries:
        sessions.setdefault(entry.session, []).append(entry)
    slots = asyncio.Semaphore(jobs)
    found: list[Replayed] = []

    async def replay_session(session: list[Entry]) -> None:
        for entry in session:
            async with slots:
                full = reader.find(entry.id)
                if full is None:
                    continue  # deleted from the journal since it was listed
                replayed = await _replay_event(full, system)
            progress.step()
            if replayed.changes or replayed.failures:
                found.append(replayed)

    system = config.get_hook_system()
    with Progress("replaying", len(entries)) as progress:
        async with system or nullcontext(), asyncio.TaskGroup() as group:
            for session in sessions.values():
                group.create_task(replay_session(session))
    return sorted(found, key=lambda replayed: replayed.entry.id)


async def _replay_event(full: FullEntry, system: HookSystem | None) -> Replayed:
    event = HookEventName.of(full.entry.event)
    result = ProcessedHookResult(aggregated=make_empty_success_result())
    if system is not None:  # else hooks are disabled
        result = await system.event_handler.fire(event, full.input)
    after = verdict_of(event, result, full.input.get("tool_input"))
    return Replayed(
        entry=full.entry,
        before=full.decided,
        after=after,
        changes=_compare(full.decided, after),
        reason=result.stop_reason or result.reason,
        failures=[error.message for error in result.aggregated.errors],
    )


def _compare(before: Verdict, after: Verdict) -> list[Change]:
    """The differences, most important first."""
    flags = ("blocked", "ask", "stop")
    values = [(flag, getattr(before, flag), getattr(after, flag)) for flag in flags]
    old, new = before.effects, after.effects
    values += [
        (what, old.get(field), new.get(field)) for field, what in EFFECT_LABELS.items()
    ]
    return [
        Change(what, _decoded(was), _decoded(now))
        for what, was, now in values
        if was != now
    ]


def _decoded(value: Any) -> Any:
    """The value of an effect that is JSON text; a truncated one stays text."""
    try:
        return decode(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _inexact(entry: Entry) -> str | None:
    """A key of ``_INEXACT``; None if the replay is exact."""
    if entry.input_cut:
        return "cut"
    if entry.input_masked:
        return "masked"
    return "hook in code" if entry.in_code else None


def _report(
    options: Options, entries: list[Entry], found: list[Replayed], elsewhere: int
) -> int:
    changed = [one for one in found if one.changes]
    exact = [one for one in changed if _inexact(one.entry) is None]
    inexact = [one for one in changed if _inexact(one.entry) is not None]
    failed = [one for one in found if one.failures]
    separate = sum(_inexact(entry) is not None for entry in entries)
    if options.json:
        print_json(
            {
                "events": len(entries),
                "changed": [_as_json(one) for one in exact],
                "apart": [_as_json(one) for one in inexact],
                "apart_events": separate,
                "failures": [
                    {"id": one.entry.id, "errors": one.failures} for one in failed
                ],
                "elsewhere": elsewhere,
            }
        )
        return 1 if exact else 0
    for one in exact:
        _print_change(one)
    _print_inexact(inexact)
    _print_failures(failed)
    note = f" ({separate:,} not exactly)" if separate else ""
    print(f"{plural(len(entries), 'event')} replayed{note}: {_summary(exact)}")
    _print_elsewhere(elsewhere)
    return 1 if exact else 0


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
        "apart": _inexact(one.entry),
    }


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
        reason = _INEXACT[_inexact(one.entry) or ""]
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


def _print_elsewhere(elsewhere: int) -> None:
    if elsewhere:
        sys.stdout.flush()
        left_out = f"{plural(elsewhere, 'event')} of other projects left out"
        print(f"{left_out}: --everywhere includes them", file=sys.stderr)


def _report_dry_run(
    options: Options,
    config: Config,
    reader: JournalReader,
    entries: list[Entry],
    elsewhere: int,
) -> int:
    registry = HookRegistry(config.settings)
    runs = sum(_planned_hooks(registry, reader, entry) for entry in entries)
    reasons = Counter(why for entry in entries if (why := _inexact(entry)))
    events = Counter(entry.event for entry in entries)
    if options.json:
        print_json(
            {
                "events": len(entries),
                "by_event": dict(events),
                "hook_runs": runs,
                "apart": dict(reasons),
                "elsewhere": elsewhere,
            }
        )
        return 0
    hook_runs = plural(runs, "hook run")
    print(f"{plural(len(entries), 'event')} would be replayed, with {hook_runs}")
    for event, count in events.most_common():
        print(f"  {count:>7,}  {event}")
    for reason, count in reasons.items():
        print(f"{count:,} of them not exactly: {_INEXACT[reason]}")
    _print_elsewhere(elsewhere)
    return 0


def _planned_hooks(registry: HookRegistry, reader: JournalReader, entry: Entry) -> int:
    event = HookEventName.of(entry.event)
    target = target_of(entry.target) if TRAITS[event].matched_field else None
    hooks, fields = registry.for_event(event), dict[str, Any]()
    if any(hook.config.is_foreign for hook in hooks):
        # Only these are matched by more than the target.
        full = reader.find(entry.id)
        fields = {} if full is None else full.input
    plan = make_plan(event, hooks, target, fields)
    return 0 if plan is None else len(plan.hooks)
