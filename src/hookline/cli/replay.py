"""Fire recorded events again and tell which verdicts change.

Events of one session are fired in their order, sessions side by side. Hooks see
``HOOKLINE_REPLAY=1`` and nothing is recorded. An event that cannot be fired as it
was is told apart: its verdict proves nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from msgspec import Struct, structs

from hookline.config import Config
from hookline.engine.planner import make_plan, target_of
from hookline.engine.registry import HookRegistry
from hookline.errors import HooklineError
from hookline.journal.query import Entry, EventFilter, FullEntry, JournalReader
from hookline.journal.rows import WORDS, Verdict, verdict_of
from hookline.journal.store import REPLAY_VARIABLE
from hookline.log import logger
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.jsontext import decode
from hookline.protocol.results import ProcessedHookResult, make_empty_success_result

from .common import Progress, load_config, log_to_stderr, paint, print_json
from .journal import (
    add_filter_arguments,
    add_journal_arguments,
    clock,
    filter_of,
    iso,
    one_line,
    reading,
    shortened,
)

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


SUMMARY = "fire recorded events again and show which verdicts change"
DESCRIPTION = """\
Fire recorded events again, on the present settings or on others, and show the verdicts
that change: blocked, ask, stop, a changed input, request or response, restricted tools,
a withheld result. Answers "what would this new rule have blocked last week?".

  hookline replay --since 7d --settings new.json
  hookline replay --event BeforeTool --tool 'write_*'
  hookline replay --since today --dry-run        count, run nothing
  hookline replay --json                         one JSON object

Without --settings, the events of this project are fired; with it, those of all
projects (--here and --everywhere say it outright). Hooks run for real, in --cwd, and
see HOOKLINE_REPLAY=1; untrusted ones do not run; nothing is recorded.

Events whose input is masked or cut, or that a hook in the host's code took part in,
cannot be fired as they were. They are listed apart.

exit status: 0 no verdict changes, 1 at least one does (events apart do not count)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_filter_arguments(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--here", action="store_true", help="only events of this project"
    )
    where.add_argument(
        "--everywhere", action="store_true", help="events of all projects"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="count the events, run nothing"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="how many sessions at a time (default: the number of processors)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_journal_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Fire again and return 1 where a verdict changes."""
    log_to_stderr()
    _say_once()
    if options.jobs < 1:
        raise HooklineError(f"--jobs {options.jobs}: give a number from 1 on")
    wanted = filter_of(options)
    config = load_config(options)
    with reading(options) as reader:
        if reader is None:
            return _report(options, [], [], 0)
        chosen, elsewhere = _chosen(reader, wanted, options, config)
        if options.dry_run:
            return _count(options, config, chosen, elsewhere)
        with Progress("replaying", len(chosen)) as progress, replaying():
            found = asyncio.run(_replay(reader, config, chosen, progress, options.jobs))
    return _report(options, chosen, found, elsewhere)


class _Once(logging.Filter):
    """Lets every message through once: a thousand events make it a thousand times."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        is_new = message not in self._seen
        self._seen.add(message)
        return is_new


def _say_once() -> None:
    for handler in logger.handlers:
        handler.addFilter(_Once())
    # What hooks do is summed up in the end.
    logging.getLogger("hookline.hooks").setLevel(logging.CRITICAL)


def _chosen(
    reader: JournalReader,
    wanted: EventFilter,
    options: argparse.Namespace,
    config: Config,
) -> tuple[list[Entry], int]:
    """The events to fire, and how many are left out for being another project's."""
    if options.everywhere or (options.settings is not None and not options.here):
        return list(reader.oldest(wanted)), 0
    own = config.working_dir
    here = structs.replace(wanted, folders=(own, os.path.realpath(own)))
    chosen = list(reader.oldest(here))
    return chosen, reader.count(wanted) - len(chosen)


async def _replay(
    reader: JournalReader,
    config: Config,
    entries: list[Entry],
    progress: Progress,
    jobs: int,
) -> list[Replayed]:
    found: list[Replayed] = []

    def take(replayed: Replayed) -> None:
        progress.step()
        if replayed.changes or replayed.failures:
            found.append(replayed)

    system = config.get_hook_system()
    if system is None:
        await replay(entries, reader.find, _nothing, take)
    else:
        async with system:
            await replay(entries, reader.find, system.event_handler.fire, take, jobs)
    return sorted(found, key=lambda replayed: replayed.entry.id)


async def _nothing(_: HookEventName, __: Mapping[str, Any]) -> ProcessedHookResult:
    """What comes of an event where hooks are switched off."""
    return ProcessedHookResult(aggregated=make_empty_success_result())


def _report(
    options: argparse.Namespace,
    entries: list[Entry],
    found: list[Replayed],
    elsewhere: int,
) -> int:
    deciding = [one for one in found if one.changes and one.apart is None]
    if options.json:
        print_json(replayed_json(entries, found, elsewhere))
    else:
        print_outcome(entries, found)
        _mention(elsewhere)
    return 1 if deciding else 0


def _count(
    options: argparse.Namespace, config: Config, entries: list[Entry], elsewhere: int
) -> int:
    """Say what would be fired, without running anything."""
    registry = HookRegistry(config.settings)
    runs = sum(_planned(registry, entry) for entry in entries)
    reasons = Counter(why.value for entry in entries if (why := apart(entry)))
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
    print(f"{len(entries):,} events would be fired, with {runs:,} runs of hooks")
    for event, count in events.most_common():
        print(f"  {count:>7,}  {event}")
    for reason, count in reasons.items():
        print(f"{count:,} of them would be listed apart: {reason}")
    _mention(elsewhere)
    return 0


def _planned(registry: HookRegistry, entry: Entry) -> int:
    event = HookEventName.of(entry.event)
    target = target_of(entry.target) if TRAITS[event].matched_field else None
    plan = make_plan(event, registry.for_event(event), target)
    return 0 if plan is None else len(plan.hooks)


def _mention(elsewhere: int) -> None:
    if elsewhere:
        sys.stdout.flush()
        print(
            f"{elsewhere:,} events of other projects are left out: "
            "--everywhere takes them in",
            file=sys.stderr,
        )
