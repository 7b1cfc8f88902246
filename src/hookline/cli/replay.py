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
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from msgspec import structs

from hookline._internal.log import logger
from hookline.config import Config
from hookline.engine.planner import HookPlanner
from hookline.engine.registry import HookRegistry
from hookline.engine.system import HookSystem
from hookline.journal.query import EventKind, FullEntry, JournalReader
from hookline.journal.rows import masked_verdict
from hookline.journal.store import REPLAY_VARIABLE
from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.protocol.results import ProcessedHookResult, make_empty_success_result
from hookline.protocol.values import decode, same_json
from hookline.protocol.verdict import EFFECT_LABELS, Verdict, hook_verdict

from . import journal
from .common import Options, Parser, at_least, load_config, log_to_stderr
from .replay_report import (
    INEXACT,
    Change,
    Found,
    ProgressLines,
    Replayed,
    Selection,
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
    text = "print JSON lines while it runs, for a program that shows them"
    parser.add_option("--progress FORMAT", f"'json': {text}", choices=["json"])
    journal.add_journal_arguments(parser)


def run(options: Options) -> int:
    """Replay the events and report the changes."""
    log_to_stderr()
    _log_messages_once()
    options.json |= options.progress is not None
    wanted = journal.event_filter(options)
    config = load_config(options)
    with journal.open_journal(options) as reader:
        if reader is None:
            return print_report(options, Selection(), Found(options), 0)
        here = options.settings is None
        scope = journal.find_scope(reader, wanted, options, here=here)
        if options.dry_run:
            return _report_dry_run(options, config, reader, scope)
        selection = Selection(reader.sessions(scope.wanted), reader.kinds(scope.wanted))
        found = _replay(reader, config, selection, options)
    return print_report(options, selection, found, scope.elsewhere)


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
    reader: JournalReader, config: Config, selection: Selection, options: Options
) -> Found:
    """Fire the events again; returns those with changes or failures."""
    os.environ[REPLAY_VARIABLE] = "1"  # tells hooks, and closes every journal
    try:
        return asyncio.run(_replay_sessions(reader, config, selection, options))
    except ExceptionGroup as group:
        # Output that nobody reads, or a damaged journal: the caller handles both.
        raise group.exceptions[0] from group
    finally:
        del os.environ[REPLAY_VARIABLE]


async def _replay_sessions(
    reader: JournalReader, config: Config, selection: Selection, options: Options
) -> Found:
    lines = ProgressLines(options, selection.events)
    found = Found(options)
    sessions = iter(selection.sessions.values())

    async def replay_sessions() -> None:
        for session in sessions:
            for event_id in session:
                full = reader.find(event_id)
                # None: deleted from the journal since it was listed.
                replayed = None if full is None else await _replay_event(full, system)
                progress.step()
                lines.step(replayed)
                found.add(replayed)

    system = config.get_hook_system()
    with Progress("replaying", selection.events) as progress:
        async with system or nullcontext(), asyncio.TaskGroup() as group:
            for _ in range(min(options.jobs, len(selection.sessions))):
                group.create_task(replay_sessions())
    return found


async def _replay_event(full: FullEntry, system: HookSystem | None) -> Replayed:
    event = HookEventName.of(full.entry.event)
    result = ProcessedHookResult(aggregated=make_empty_success_result())
    if system is not None:  # else hooks are disabled
        result = await system.event_handler.fire(event, full.input)
    after = masked_verdict(event, result)
    return Replayed(
        entry=full.entry,
        before=full.decided,
        after=after,
        changes=_compare(full.decided, after),
        reason=result.stop_reason or result.reason,
        hooks=list(_deciding(result)),
        failures=[error.message for error in result.aggregated.errors],
    )


def _deciding(result: ProcessedHookResult) -> Iterator[str]:
    """The hooks that block, ask, stop or change something, each once."""
    names = (
        hook.hook_name
        for hook in result.aggregated.hook_results
        if hook_verdict(hook).decides
    )
    return iter(dict.fromkeys(names))


def _compare(before: Verdict, after: Verdict) -> list[Change]:
    """The differences, most important first."""
    flags = ("blocked", "ask", "stop")
    values = [(flag, getattr(before, flag), getattr(after, flag)) for flag in flags]
    old, new = before.effects, after.effects
    values += [
        (what, old.get(field), new.get(field)) for field, what in EFFECT_LABELS.items()
    ]
    decoded = [(what, _decoded(was), _decoded(now)) for what, was, now in values]
    return [
        Change(what, was, now) for what, was, now in decoded if not same_json(was, now)
    ]


def _decoded(value: Any) -> Any:
    """The value of an effect that is JSON text; a truncated one stays text."""
    try:
        return decode(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _report_dry_run(
    options: Options, config: Config, reader: JournalReader, scope: journal.Scope
) -> int:
    reasons, events = Counter[str](), Counter[str]()
    kinds = reader.kinds(scope.wanted)
    for kind in kinds:
        events[kind.event] += kind.count
        if reason := inexact(kind):
            reasons[reason] += kind.count
    runs = _count_runs(HookRegistry(config.settings), reader, scope, kinds)
    if options.json:
        print_report_json(
            options,
            {
                "events": events.total(),
                "by_event": dict(events),
                "hook_runs": runs,
                "apart": dict(reasons),
                "elsewhere": scope.elsewhere,
            },
        )
        return 0
    hook_runs = plural(runs, "hook run")
    print(f"{plural(events.total(), 'event')} would be replayed, with {hook_runs}")
    for event, count in events.most_common():
        print(f"  {count:>7,}  {event}")
    for reason, count in reasons.items():
        print(f"{count:,} of them not exactly: {INEXACT[reason]}")
    journal.print_elsewhere(scope.elsewhere, options)
    return 0


def _count_runs(
    registry: HookRegistry,
    reader: JournalReader,
    scope: journal.Scope,
    kinds: list[EventKind],
) -> int:
    """How many hooks the plans of all events have."""
    planner, runs = HookPlanner(registry), 0
    for event in map(HookEventName.of, dict.fromkeys(kind.event for kind in kinds)):
        hooks = registry.for_event(event)
        is_tool = TRAITS[event].matching is Matching.REGEX
        if any(one.config.is_foreign or (is_tool and one.matcher) for one in hooks):
            # Only these are matched by more than the target.
            wanted = structs.replace(scope.wanted, event=event.value)
            for target, fields in reader.inputs(wanted):
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
