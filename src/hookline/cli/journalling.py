"""What the commands on the journal share: which file, which events."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hookline.errors import HooklineError
from hookline.events import HookEventName
from hookline.journal.entries import EventFilter, JournalReader, read_journal
from hookline.journal.place import journal_path

from .common import add_settings_arguments, load_config
from .progress import Progress
from .times import parse_since


def add_journal_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where the journal is."""
    parser.add_argument(
        "--journal",
        metavar="FILE",
        help="read this journal (default: the one that the settings name, "
        "or the one in the state directory)",
    )
    add_settings_arguments(parser)


def add_filter_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which events are wanted."""
    parser.add_argument("--event", metavar="EVENT", help=", ".join(HookEventName))
    parser.add_argument(
        "--tool", metavar="NAME", help="events of this tool; '*' and '?' stand for more"
    )
    parser.add_argument(
        "--hook", metavar="NAME", help="events that this hook ran on; '*' as above"
    )
    parser.add_argument("--session", metavar="ID", help="events of this session")
    parser.add_argument(
        "--since",
        metavar="WHEN",
        help="events since then: 90s, 30m, 2h, 3d, 1w ago, today, or 2026-11-01",
    )


def filter_of(options: argparse.Namespace) -> EventFilter:
    """The events that the options name."""
    return EventFilter(
        event=None if options.event is None else HookEventName.of(options.event).value,
        tool=options.tool,
        hook=options.hook,
        session=options.session,
        since=None if options.since is None else parse_since(options.since),
        blocked=getattr(options, "blocked", False),
        failed=getattr(options, "failed", False),
    )


def journal_file(options: argparse.Namespace) -> str:
    """The journal that the options or the settings name."""
    if options.journal is not None:
        if not options.journal.strip():
            raise HooklineError("--journal needs the name of a file")
        return os.path.abspath(str(options.journal))  # noqa: PTH100
    config = load_config(options)
    option = config.settings.global_options.journal
    return journal_path(option, config.working_dir)


@contextmanager
def reading(options: argparse.Namespace) -> Iterator[JournalReader | None]:
    """Open the journal; None, with a word on stderr, where none was begun yet.

    Print after it is closed: a line of progress may be on the terminal until then.
    """
    path = journal_file(options)
    if options.journal is None and not os.path.lexists(path):
        print(
            f"hookline: nothing has been recorded yet ({path}): set "
            "hooksConfig.journal to true, or use 'hookline fire --record'",
            file=sys.stderr,
        )
        yield None
        return
    with (
        Progress("reading the journal") as progress,
        read_journal(path, progress.show) as reader,
    ):
        yield reader
