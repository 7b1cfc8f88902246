"""``hookline log``: what happened, from the journal."""

from __future__ import annotations

import argparse
import sys
import time

from msgspec import structs

from hookline.errors import HooklineError
from hookline.journal.query import Entry, EventFilter, JournalReader, read_journal
from hookline.journal.store import identity, move_aside

from .common import log_to_stderr, print_json
from .journal import (
    add_filter_arguments,
    add_journal_arguments,
    entry_json,
    entry_line,
    filter_of,
    journal_file,
    print_entry,
    reading,
)

SUMMARY = "show what happened, from the journal"
DESCRIPTION = """\
Show recorded events, one line each, the newest last; or everything about one.

  hookline log                            the last 50 events
  hookline log --blocked --since 2h       what was blocked in the last two hours
  hookline log --tool 'write_*' --hook secrets
  hookline log 17                         everything about event 17
  hookline log --follow                   go on until Ctrl-C
  hookline log --json -n 0                all events as one JSON list
  hookline log --move-aside               put a damaged journal out of the way

Events are recorded where settings say "hooksConfig": {"journal": true}, and by
'hookline fire --record'. Values under keys that look like credentials are masked.
With --follow, --json prints one object per line."""

_POLL_S = 0.25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "id", metavar="ID", nargs="?", type=int, help="show everything about this event"
    )
    add_filter_arguments(parser)
    parser.add_argument(
        "--blocked", action="store_true", help="events that were blocked or stopped"
    )
    parser.add_argument(
        "--failed", action="store_true", help="events on which a hook failed"
    )
    parser.add_argument(
        "-n",
        "--limit",
        type=int,
        default=50,
        metavar="N",
        help="how many of the newest events (default: 50; 0: all)",
    )
    parser.add_argument(
        "-f", "--follow", action="store_true", help="go on with what is recorded next"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--move-aside",
        action="store_true",
        help="rename the journal, so that a new one is begun; nothing is deleted",
    )
    add_journal_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print what is asked for."""
    log_to_stderr()
    if options.limit < 0:
        raise HooklineError(f"-n {options.limit}: give a number from 0 on")
    if options.move_aside:
        print(f"moved to {move_aside(journal_file(options))}")
        return 0
    wanted = filter_of(options)
    if options.id is not None:
        return _print_one(options)
    if options.follow:
        return _follow(options, wanted)
    return _print_list(options, wanted)


def _print_one(options: argparse.Namespace) -> int:
    with reading(options) as reader:
        full = None if reader is None else reader.find(options.id)
    if full is None:
        raise HooklineError(f"no event {options.id} is recorded: see 'hookline log'")
    if options.json:
        print_json(entry_json(full))
    else:
        print_entry(full)
    return 0


def _print_list(options: argparse.Namespace, wanted: EventFilter) -> int:
    entries: list[Entry] = []
    shown: list[object] = []
    total = 0
    with reading(options) as reader:
        if reader is not None:
            entries = reader.newest(wanted, options.limit or None)
            shown = _full(reader, entries) if options.json else []
            total = reader.count(wanted)
    if options.json:
        print_json(shown)
        return 0
    for entry in entries:
        print(entry_line(entry))
    sys.stdout.flush()
    if reader is not None and not entries:
        print("hookline: no such event is recorded", file=sys.stderr)
    elif len(entries) < total:
        print(
            f"the newest {len(entries)} of {total:,}: -n 0 shows all", file=sys.stderr
        )
    return 0


def _full(reader: JournalReader, entries: list[Entry]) -> list[object]:
    found = (reader.find(entry.id) for entry in entries)
    # None is one that was forgotten this very moment.
    return [entry_json(full) for full in found if full is not None]


def _follow(options: argparse.Namespace, wanted: EventFilter) -> int:
    """Print what there is and what comes, until Ctrl-C."""
    path = journal_file(options)
    try:
        _wait_for(path)
        while True:
            with read_journal(path) as reader:
                _follow_file(reader, wanted, options)
            _wait_for(path)
    except KeyboardInterrupt:
        return 0


def _wait_for(path: str) -> None:
    if identity(path) is None:
        print(f"hookline: waiting for {path}", file=sys.stderr)
    while identity(path) is None:
        time.sleep(_POLL_S)


def _follow_file(
    reader: JournalReader, wanted: EventFilter, options: argparse.Namespace
) -> None:
    """Go on until the file is moved away."""
    own = identity(reader.path)
    entries = reader.newest(wanted, options.limit or None)
    last = reader.last_id()
    while True:
        for entry in entries:
            _print_at_once(reader, entry, options)
        if identity(reader.path) != own:
            return
        time.sleep(_POLL_S)
        entries = reader.newest(structs.replace(wanted, after_id=last), None)
        last = max([last, *(entry.id for entry in entries)])


def _print_at_once(
    reader: JournalReader, entry: Entry, options: argparse.Namespace
) -> None:
    if not options.json:
        print(entry_line(entry), flush=True)
        return
    for shown in _full(reader, [entry]):
        print_json(shown)
