"""``hookline replay``: fire recorded events again, show which verdicts change."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from hookline.config import Config
from hookline.errors import HooklineError
from hookline.events import TRAITS, HookEventName
from hookline.journal.entries import Entry, EventFilter, JournalReader
from hookline.journal.replay import Replayed, apart, replay, replaying
from hookline.log import logger
from hookline.planner import make_plan, target_of
from hookline.registry import HookRegistry
from hookline.results import ProcessedHookResult, make_empty_success_result

from .common import load_config, log_to_stderr, print_json
from .journalling import (
    add_filter_arguments,
    add_journal_arguments,
    filter_of,
    reading,
)
from .progress import Progress
from .replaytext import print_outcome, replayed_json

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
