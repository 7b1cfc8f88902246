"""Shared by the commands that read the journal: options, filters, times."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct, structs

from hookline.config import Config
from hookline.errors import HooklineError
from hookline.journal.query import EventFilter, JournalReader, read_journal
from hookline.journal.store import journal_path
from hookline.plan import timestamp
from hookline.protocol.events import HookEventName
from hookline.settings.places import default_user_dir, project_around

from .common import Options, Parser, load_config, note
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
    parser.add_option("--since WHEN", text, type=parse_since)
    parser.add_option(
        "--until WHEN", "events until this time, given like --since", type=parse_until
    )


def add_scope_arguments(parser: Parser) -> None:
    """Add ``--here`` and ``--everywhere``."""
    parser.add_exclusive_flags(
        here="events of this project", everywhere="events of all projects"
    )


class Scope(Struct, frozen=True):
    """The events of the wanted projects."""

    wanted: EventFilter
    elsewhere: int = 0
    """How many events of other projects are left out."""


def find_scope(
    reader: JournalReader, wanted: EventFilter, options: Options, *, here: bool
) -> Scope:
    """Leave out other projects; ``here``: unless ``--everywhere`` is given."""
    own = only_wanted_projects(wanted, options, here=here)
    if own.project is None:
        return Scope(own)
    return Scope(own, reader.count(wanted) - reader.count(own))


def only_wanted_projects(
    wanted: EventFilter, options: Options, *, here: bool
) -> EventFilter:
    """Add the folder of this project; ``here``: unless ``--everywhere`` is given."""
    if options.everywhere or not (options.here or here):
        return wanted
    return structs.replace(wanted, project=project_around(options.cwd))


def names_no_file(options: Options) -> bool:
    """Whether the journal is the usual one, shared by all projects of the user."""
    return options.journal is None and options.settings is None


def print_nothing(what: str, scope: Scope, options: Options) -> None:
    """Say that nothing is found, where it was looked for, and what records events."""
    folder = scope.wanted.project
    where = "" if folder is None else f" in {one_line(folder)}"
    if scope.wanted == EventFilter(project=folder):
        hint = _how_to_record(load_config(options))
        note(f"hookline: no {what} is recorded{where} yet: {hint}", options)
    else:
        note(f"hookline: no matching {what} is recorded{where}", options)


def print_elsewhere(elsewhere: int, options: Options) -> None:
    """Say how many events of other projects are left out."""
    if elsewhere:
        sys.stdout.flush()
        left_out = f"{plural(elsewhere, 'event')} of other projects left out"
        note(f"{left_out}: --everywhere includes them", options)


def event_filter(options: Options) -> EventFilter:
    """The filter that the options describe."""
    wanted = msgspec.convert(vars(options), EventFilter)
    event = wanted.event and HookEventName.of(wanted.event).value
    return structs.replace(wanted, event=event)


def journal_file(options: Options) -> str:
    """The journal that the options or the settings name."""
    if options.journal is not None:
        given = str(options.journal)
        if os.path.lexists(given):
            return given
        return journal_path(os.path.abspath(given), "")  # noqa: PTH100
    config = load_config(options)
    folder = config.settings.project_dir or config.working_dir
    return journal_path(config.settings.global_options.journal, folder)


def _how_to_record(config: Config) -> str:
    wanted = config.loaded.global_options.journal
    if wanted and not config.settings.global_options.journal:
        if any(layer.groups for layer in config.loaded.layers if layer.is_project):
            return "the project's hooksConfig counts once you run 'hookline trust'"
        file = f"{default_user_dir()}/settings.json"
        return f"a project without hooks cannot set hooksConfig.journal: use {file}"
    return "set hooksConfig.journal to true, or use 'hookline fire --record'"


@contextmanager
def open_journal(options: Options) -> Iterator[JournalReader | None]:
    """Open the journal; None, with a message on stderr, if there is none yet.

    Print results after it is closed: until then the terminal may show progress.
    """
    path = journal_file(options)
    if options.journal is None and _is_missing(path):
        hint = _how_to_record(load_config(options))
        note(f"hookline: nothing is recorded yet ({path}): {hint}", options)
        yield None
        return
    with (
        Progress("reading the journal") as progress,
        read_journal(path, progress.show) as reader,
    ):
        yield reader


def _is_missing(path: str) -> bool:
    """Whether there is no such file; a folder that is closed to us may have it."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def parse_since(text: str) -> float:
    """Parse the time of ``--since``."""
    return _parse_time("--since", text)


def parse_until(text: str) -> float:
    """Parse the time of ``--until``."""
    return _parse_time("--until", text)


def _parse_time(option: str, text: str) -> float:
    """A span before now, a date, a date and time, or ``@`` and seconds since 1970."""
    given = text.strip().lower()
    span = _SPAN.fullmatch(given)
    if span:
        return time.time() - int(span[1]) * _SECONDS[span[2]]
    try:
        if _SECONDS_SINCE_1970.fullmatch(given):
            return float(given[1:])
        if given in {"today", "yesterday"}:
            day = datetime.now().astimezone() - timedelta(days=given == "yesterday")
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
