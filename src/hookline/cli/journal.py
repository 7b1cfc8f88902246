"""Shared by the commands that read the journal: options, filters, times."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import msgspec
from msgspec import Struct, structs

from hookline.config import Config
from hookline.errors import HooklineError
from hookline.journal.query import EventFilter, JournalReader, read_journal
from hookline.journal.store import journal_path
from hookline.plan import timestamp
from hookline.protocol.events import HookEventName
from hookline.settings.places import default_user_dir, project_around

from .messages import note
from .options import Options, Parser, load_config
from .terminal import Progress, one_line, plural

_SPAN = re.compile(r"([0-9]{1,9})\s*(s|m|h|d|w)")
_SECONDS_SINCE_1970 = re.compile(r"@[0-9]{1,12}(\.[0-9]{1,9})?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def add_journal_arguments(parser: Parser) -> None:
    """Add the options that say where the journal is."""
    text = "journal to read (default: the one in the settings or the state directory)"
    parser.add_journal(text)
    parser.add_settings()


def add_filter_arguments(parser: Parser) -> None:
    """Add the options that select events."""
    parser.add_option("--event EVENT", ", ".join(HookEventName))
    parser.add_option("--tool NAME", "events of this tool; may contain '*' and '?'")
    text = "events on which this hook ran; may contain '*' and '?'"
    parser.add_option("--hook NAME", text)
    parser.add_option("--session ID", "events of this session")
    text = "events since this time: 90s, 30m, 2h, 3d or 1w ago, today, or 2026-11-01"
    parser.add_option("--since WHEN", text, type=partial(_parse_time, "--since"))
    text = "events until this time, given like --since"
    parser.add_option("--until WHEN", text, type=partial(_parse_time, "--until"))


def add_scope_arguments(parser: Parser) -> None:
    """Add ``--here`` and ``--everywhere``."""
    parser.add_exclusive_flags(
        here="events of this project", everywhere="events of all projects"
    )


class Selection(Struct, frozen=True):
    """The events of a journal that the options select."""

    reader: JournalReader | None
    """None if nothing is recorded yet."""
    event_filter: EventFilter
    elsewhere: int = 0
    """How many events of other projects are left out."""

    def note_nothing(self, noun: str, options: Options) -> None:
        """Say that nothing is found, where it was looked for, and what records it."""
        if self.reader is None:
            return  # which has been said
        folder = self.event_filter.project
        where = "" if folder is None else f" in {one_line(folder)}"
        if self.event_filter == EventFilter(project=folder):
            hint = _how_to_record(load_config(options))
            note(f"hookline: no {noun} is recorded{where} yet: {hint}")
        else:
            note(f"hookline: no matching {noun} is recorded{where}")

    def note_elsewhere(self) -> None:
        """Say how many events of other projects are left out."""
        if self.elsewhere:
            sys.stdout.flush()
            left_out = f"{plural(self.elsewhere, 'event')} of other projects left out"
            note(f"{left_out}: --everywhere includes them")


@contextmanager
def open_selection(options: Options, *, this_project: bool) -> Iterator[Selection]:
    """Open the journal; ``this_project``: leave out others also without ``--here``.

    Print results after it is closed: until then the terminal may show progress.
    """
    all_projects = event_filter(options)
    with open_journal(options) as reader:
        if reader is None:
            yield Selection(None, all_projects)
            return
        selected = in_projects(all_projects, options, this_project=this_project)
        elsewhere = 0
        if selected.project is not None:
            elsewhere = reader.count(all_projects) - reader.count(selected)
        yield Selection(reader, selected, elsewhere)


def in_projects(
    all_projects: EventFilter, options: Options, *, this_project: bool
) -> EventFilter:
    """Add the folder of this project; ``this_project``: also without ``--here``."""
    if options.everywhere or not (options.here or this_project):
        return all_projects
    return structs.replace(all_projects, project=project_around(options.cwd))


def is_shared(options: Options) -> bool:
    """Whether the journal is the usual one, shared by all projects of the user."""
    return options.journal is None and options.settings is None


def event_filter(options: Options) -> EventFilter:
    """The filter that the options describe."""
    selected = msgspec.convert(vars(options), EventFilter)
    event = selected.event and HookEventName.of(selected.event).value
    return structs.replace(selected, event=event)


def journal_file(options: Options) -> str:
    """The journal that the options or the settings name."""
    path: str | None = options.journal
    if path is not None:
        return path if os.path.lexists(path) else journal_path(path, "")
    config = load_config(options)
    folder = config.settings.project_dir or config.working_dir
    return journal_path(config.settings.global_options.journal, folder)


def _how_to_record(config: Config) -> str:
    journal_option = config.loaded.global_options.journal
    if journal_option and not config.settings.global_options.journal:
        if any(layer.groups for layer in config.loaded.layers if layer.is_project):
            return "the project's hooksConfig counts once you run 'hookline trust'"
        file = f"{default_user_dir()}/settings.json"
        return f"a project without hooks cannot set hooksConfig.journal: use {file}"
    return "set hooksConfig.journal to true, or use 'hookline fire --record'"


@contextmanager
def open_journal(options: Options) -> Iterator[JournalReader | None]:
    """Open the journal; None, with a message on stderr, if there is none yet."""
    path = journal_file(options)
    if options.journal is None:
        try:
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            hint = _how_to_record(load_config(options))
            note(f"hookline: nothing is recorded yet ({path}): {hint}")
            yield None
            return
        except OSError:
            pass  # a folder that is closed to us may have it: the reader says so
    with (
        Progress("reading the journal") as progress,
        read_journal(path, progress.show) as reader,
    ):
        yield reader


def _parse_time(option: str, text: str) -> float:
    """A span before now, a date, a date and time, or ``@`` and seconds since 1970."""
    word = text.strip().lower()
    span = _SPAN.fullmatch(word)
    if span:
        return time.time() - int(span[1]) * _SECONDS[span[2]]
    try:
        if _SECONDS_SINCE_1970.fullmatch(word):
            return float(word[1:])
        if word in {"today", "yesterday"}:
            day = datetime.now().astimezone() - timedelta(days=word == "yesterday")
            return day.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        # Without an offset it is the user's local time.
        return datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except (ValueError, OverflowError):
        raise HooklineError(
            f"{option} {text!r} is not a time: use a span such as 90s, 30m, 2h, 3d or "
            "1w, 'today', or a date such as 2026-11-01 or 2026-11-01T09:30"
        ) from None


def format_time(at: float) -> str:
    """Local date and time, to the second."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def format_utc(at: float) -> str:
    """The time as hooks get it: ISO 8601, UTC, milliseconds."""
    return timestamp(round(at * 1_000_000) // 1000)
