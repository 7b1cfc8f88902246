"""``hookline replay``: fire recorded events again and show which verdicts change.

Events of one session are fired in order, sessions in parallel. Hooks get
``HOOKLINE_REPLAY=1`` and nothing is recorded. The verdict on an event that cannot be
replayed exactly is reported separately and does not count.
"""

from __future__ import annotations

import asyncio
import logging
import os
from array import array
from collections import Counter
from contextlib import nullcontext
from typing import Any

from msgspec import structs

from hookline._internal.log import logger
from hookline.config import Config
from hookline.engine.planner import HookPlanner
from hookline.engine.registry import HookRegistry
from hookline.engine.replay import INEXACT, Change, Replayed, inexact, replay
from hookline.journal.query import EventKind, JournalReader
from hookline.journal.store import REPLAY_VARIABLE
from hookline.protocol.events import TRAITS, HookEventName, Matching

from . import journal
from .messages import log_to_stderr
from .options import Options, Parser, at_least, load_config
from .terminal import (
    Progress,
    one_line,
    paint,
    plural,
    print_json,
    short_json,
    shorten,
)

_MAX_TEXT = 100

SUMMARY = "fire recorded events again and show which verdicts change"
DESCRIPTION = """\
Fire recorded events again, with the current settings or others, and show the
verdicts that change: blocked, ask, stop, a changed input, request or response,
restricted tools, a withheld result. It answers "what would this new rule have
blocked last week?".

  hookline replay --since 7d --settings new.json
  hookline replay --event BeforeTool --tool 'write_*'
  hookline replay --since today --dry-run        count events, run no hooks
  hookline replay --json                         one JSON object

Without --settings the events of this project are replayed; with --settings
those of all projects. --here and --everywhere override that. Hooks really run,
in --cwd, with HOOKLINE_REPLAY=1. Untrusted hooks do not run; those of
--settings need no approval. Nothing is recorded.

An event cannot be replayed exactly if its input was masked or truncated, or if
a hook in the host's code took part. Such events are listed separately.

exit status: 0 no verdict changes, 1 a verdict changes (exact replays only)"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    journal.add_filter_arguments(parser)
    journal.add_scope_arguments(parser)
    parser.add_flag("--dry-run", "count the events and run no hooks")
    text = "sessions to replay at the same time (default: the number of processors)"
    parser.add_option("--jobs N", text, type=at_least(1), default=os.cpu_count() or 1)
    parser.add_flag("--json", "print one JSON object")
    journal.add_journal_arguments(parser)


def run(options: Options) -> int:
    """Replay the events and report the changes."""
    log_to_stderr()
    _log_messages_once()
    config = load_config(options)
    this_project = options.settings is None
    with journal.open_selection(options, this_project=this_project) as selection:
        reader = selection.reader
        if reader is None:
            return _print_report(options, [], [], selection)
        kinds = reader.kinds(selection.event_filter)
        if options.dry_run:
            return _print_dry_run(options, config, reader, selection, kinds)
        differing = _replay(reader, config, selection, options)
    return _print_report(options, kinds, differing, selection)


def _log_messages_once() -> None:
    """Drop repeated messages: thousands of events would repeat them."""
    messages: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        count = len(messages)
        messages.add(record.getMessage())
        return len(messages) > count

    for handler in logger.handlers:
        handler.addFilter(is_new)
    # The report sums up the failures of hooks.
    logging.getLogger("hookline.hooks").setLevel(logging.CRITICAL)


def _replay(
    reader: JournalReader,
    config: Config,
    selection: journal.Selection,
    options: Options,
) -> list[Replayed]:
    """Fire the events again; returns those with changes or failures."""
    os.environ[REPLAY_VARIABLE] = "1"  # tells hooks, and closes every journal
    try:
        return asyncio.run(_replay_sessions(reader, config, selection, options.jobs))
    except ExceptionGroup as group:
        # Output that nobody reads, or a damaged journal: the caller handles both.
        raise group.exceptions[0] from group
    finally:
        del os.environ[REPLAY_VARIABLE]


async def _replay_sessions(
    reader: JournalReader, config: Config, selection: journal.Selection, jobs: int
) -> list[Replayed]:
    # Only ids are kept, for journals of any size.
    ids: dict[str, array[int]] = {}
    for event_id, session in reader.sessions(selection.event_filter):
        ids.setdefault(session, array("q")).append(event_id)
    sessions = iter(ids.values())
    differing: list[Replayed] = []

    async def replay_sessions() -> None:
        for session in sessions:
            for event_id in session:
                recorded = reader.find(event_id)
                if recorded is not None:  # else it was deleted meanwhile
                    handler = None if system is None else system.event_handler
                    replayed = await replay(recorded, handler)
                    if replayed.changes or replayed.failures:
                        differing.append(replayed)
                progress.step()

    system = config.get_hook_system()  # None: hooks are disabled
    with Progress("replaying", sum(map(len, ids.values()))) as progress:
        async with system or nullcontext(), asyncio.TaskGroup() as group:
            for _ in range(min(jobs, len(ids))):
                group.create_task(replay_sessions())
    return sorted(differing, key=lambda replayed: replayed.entry.id)


def _print_report(
    options: Options,
    kinds: list[EventKind],
    differing: list[Replayed],
    selection: journal.Selection,
) -> int:
    """Print what changed and return the exit status."""
    changed = [replayed for replayed in differing if replayed.changes]
    exact = [replayed for replayed in changed if replayed.inexact is None]
    apart = [replayed for replayed in changed if replayed.inexact is not None]
    failed = [replayed for replayed in differing if replayed.failures]
    events = sum(kind.count for kind in kinds)
    apart_events = sum(kind.count for kind in kinds if inexact(kind))
    if options.json:
        report = {
            "events": events,
            "changed": [replayed.to_json() for replayed in exact],
            "apart": [replayed.to_json() for replayed in apart],
            "failures": [
                {"id": replayed.entry.id, "errors": replayed.failures}
                for replayed in failed
            ],
            "apart_events": apart_events,
            "elsewhere": selection.elsewhere,
        }
        print_json(report)
        return 1 if exact else 0
    for replayed in exact:
        at = journal.format_time(replayed.entry.at)
        print(f"event {replayed.entry.id}, {at}: {_line(replayed)}")
        for change in replayed.changes:
            print(f"  {paint(f'- {_value(change, change.before)}', 'red')}")
            print(f"  {paint(f'+ {_value(change, change.after)}', 'green')}")
        if replayed.reason:
            print(f"  now: {shorten(one_line(replayed.reason), _MAX_TEXT)}")
    if apart:
        print("not counted, because these events could not be replayed exactly:")
    for replayed in apart:
        reason = INEXACT[replayed.inexact or ""]
        print(f"  event {replayed.entry.id}: {_line(replayed)} ({reason})")
    if failed:
        first = f"event {failed[0].entry.id}: {one_line(failed[0].failures[0])}"
        mark = paint("hooks failed", "yellow")
        print(f"{mark} on {plural(len(failed), 'event')}; the first, {first}")
    note = f" ({apart_events:,} not exactly)" if apart_events else ""
    summary = "no verdict changes"
    if exact:
        steps = Counter(map(_step, exact)).most_common()
        listed = ", ".join(f"{count:,} {step}" for step, count in steps)
        summary = f"{plural(len(exact), 'verdict')} changed: {listed}"
    print(f"{plural(events, 'event')} replayed{note}: {summary}")
    selection.note_elsewhere()
    return 1 if exact else 0


def _step(replayed: Replayed) -> str:
    """From which verdict to which."""
    return f"{replayed.before.word} → {replayed.after.word}"


def _line(replayed: Replayed) -> str:
    """The event and its verdicts."""
    entry = replayed.entry
    target = f" {one_line(entry.target)}" if entry.target else ""
    return f"{entry.event}{target}: {_step(replayed)}"


def _value(change: Change, value: Any) -> str:
    if isinstance(value, bool):
        return change.what if value else f"not {change.what}"
    if value is None:
        return f"no {change.what}"
    return f"{change.what}: {short_json(value, _MAX_TEXT)}"


def _print_dry_run(
    options: Options,
    config: Config,
    reader: JournalReader,
    selection: journal.Selection,
    kinds: list[EventKind],
) -> int:
    reasons, events = Counter[str](), Counter[str]()
    for kind in kinds:
        events[kind.event] += kind.count
        if reason := inexact(kind):
            reasons[reason] += kind.count
    runs = _count_runs(HookRegistry(config.settings), reader, selection, kinds)
    if options.json:
        report = {
            "events": events.total(),
            "by_event": dict(events),
            "hook_runs": runs,
            "apart": dict(reasons),
            "elsewhere": selection.elsewhere,
        }
        print_json(report)
        return 0
    hook_runs = plural(runs, "hook run")
    print(f"{plural(events.total(), 'event')} would be replayed, with {hook_runs}")
    for event, count in events.most_common():
        print(f"  {count:>7,}  {event}")
    for reason, count in reasons.items():
        print(f"{count:,} of them not exactly: {INEXACT[reason]}")
    selection.note_elsewhere()
    return 0


def _count_runs(
    registry: HookRegistry,
    reader: JournalReader,
    selection: journal.Selection,
    kinds: list[EventKind],
) -> int:
    """How many hooks the plans of all events have."""
    planner, runs = HookPlanner(registry), 0
    for event in map(HookEventName.of, dict.fromkeys(kind.event for kind in kinds)):
        hooks = registry.for_event(event)
        is_tool = TRAITS[event].matching is Matching.REGEX
        if any(hook.config.is_foreign or (is_tool and hook.matcher) for hook in hooks):
            # Only these are matched by more than the target.
            matched = structs.replace(selection.event_filter, event=event.value)
            for target, fields in reader.inputs(matched):
                runs += _planned_runs(planner, event, target, fields)
            continue
        for kind in kinds:
            if kind.event == event:
                runs += kind.count * _planned_runs(planner, event, kind.target, {})
    return runs


def _planned_runs(
    planner: HookPlanner,
    event: HookEventName,
    target: str | None,
    fields: dict[str, Any],
) -> int:
    matched = {TRAITS[event].matched_field: target}
    plan = planner.plan_for(event, {**fields, **matched})
    return 0 if plan is None else len(plan.hooks)
