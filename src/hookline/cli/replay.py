"""``hookline replay``: fire recorded events again and show which verdicts change.

Events of one session are fired in order, sessions in parallel. Hooks get
``HOOKLINE_REPLAY=1`` and nothing is recorded. The verdict on an event that cannot be
replayed exactly is reported separately and does not count.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from contextlib import nullcontext
from typing import Any

from hookline.config import Config
from hookline.engine.planner import make_plan, target_of
from hookline.engine.registry import HookRegistry
from hookline.engine.system import HookSystem
from hookline.journal.query import Entry, FullEntry, JournalReader
from hookline.journal.rows import EFFECT_LABELS, Verdict, verdict_of
from hookline.journal.store import REPLAY_VARIABLE
from hookline.log import logger
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.jsontext import decode
from hookline.protocol.results import ProcessedHookResult, make_empty_success_result

from . import journal
from .common import Options, Parser, at_least, load_config, log_to_stderr
from .replay_report import (
    INEXACT,
    Change,
    ProgressLines,
    Replayed,
    inexact,
    print_report,
    print_report_json,
)
from .terminal import Progress, plural

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
  hookline replay --progress json                progress as JSON lines too

Without --settings the events of this project are replayed; with --settings
those of all projects. --here and --everywhere override that. Hooks really run,
in --cwd, with HOOKLINE_REPLAY=1. Untrusted hooks do not run, and nothing is
recorded.

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
    text = "print JSON lines while it runs, for a program that shows them"
    parser.add_option("--progress FORMAT", f"'json': {text}", choices=["json"])
    parser.add_log_format()
    journal.add_journal_arguments(parser)


def run(options: Options) -> int:
    """Replay the events and report the changes."""
    log_to_stderr(options=options)
    _log_messages_once()
    options.json |= options.progress is not None
    wanted = journal.event_filter(options)
    config = load_config(options)
    with journal.open_journal(options) as reader:
        if reader is None:
            return print_report(options, [], [], 0)
        here = options.settings is None
        scope = journal.find_scope(reader, wanted, options, here=here)
        entries = list(reader.oldest(scope.wanted))
        if options.dry_run:
            return _report_dry_run(options, config, reader, entries, scope.elsewhere)
        found = _replay(reader, config, entries, options)
    return print_report(options, entries, found, scope.elsewhere)


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


def _replay(
    reader: JournalReader, config: Config, entries: list[Entry], options: Options
) -> list[Replayed]:
    """Fire the events again; returns those with changes or failures."""
    os.environ[REPLAY_VARIABLE] = "1"  # tells hooks, and closes every journal
    try:
        return asyncio.run(_replay_sessions(reader, config, entries, options))
    except ExceptionGroup as group:
        # Output that nobody reads, or a damaged journal: the caller handles both.
        raise group.exceptions[0] from group
    finally:
        del os.environ[REPLAY_VARIABLE]


async def _replay_sessions(
    reader: JournalReader, config: Config, entries: list[Entry], options: Options
) -> list[Replayed]:
    sessions: dict[str, list[Entry]] = {}
    for entry in entries:
        sessions.setdefault(entry.session, []).append(entry)
    slots = asyncio.Semaphore(options.jobs)
    lines = ProgressLines(options, len(entries))
    found: list[Replayed] = []

    async def replay_session(session: list[Entry]) -> None:
        for entry in session:
            async with slots:
                full = reader.find(entry.id)
                # None: deleted from the journal since it was listed.
                replayed = None if full is None else await _replay_event(full, system)
            progress.step()
            lines.step(replayed)
            if replayed is not None and (replayed.changes or replayed.failures):
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


def _report_dry_run(
    options: Options,
    config: Config,
    reader: JournalReader,
    entries: list[Entry],
    elsewhere: int,
) -> int:
    registry = HookRegistry(config.settings)
    runs = sum(_planned_hooks(registry, reader, entry) for entry in entries)
    reasons = Counter(why for entry in entries if (why := inexact(entry)))
    events = Counter(entry.event for entry in entries)
    if options.json:
        print_report_json(
            options,
            {
                "events": len(entries),
                "by_event": dict(events),
                "hook_runs": runs,
                "apart": dict(reasons),
                "elsewhere": elsewhere,
            },
        )
        return 0
    hook_runs = plural(runs, "hook run")
    print(f"{plural(len(entries), 'event')} would be replayed, with {hook_runs}")
    for event, count in events.most_common():
        print(f"  {count:>7,}  {event}")
    for reason, count in reasons.items():
        print(f"{count:,} of them not exactly: {INEXACT[reason]}")
    journal.print_elsewhere(elsewhere, options)
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
