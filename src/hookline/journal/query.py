"""Read the journal: events, and figures about the runs of hooks."""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from math import ceil
from sqlite3 import Connection, Cursor, Row
from typing import Any

import msgspec
from msgspec import Struct

from hookline.errors import JournalError
from hookline.protocol.jsontext import decode
from hookline.settings.locations import is_within, project_around

from .rows import Verdict
from .store import damaged, open_for_reading

_read_verdict = msgspec.json.Decoder(Verdict).decode
_Object = dict[str, Any]
_text = partial(str, encoding="utf-8", errors="replace")


class EventFilter(Struct, frozen=True, kw_only=True):
    """Which events are wanted; names may contain ``*`` and ``?``."""

    event: str | None = None
    tool: str | None = None
    hook: str | None = None
    session: str | None = None
    blocked: bool = False
    failed: bool = False
    would_block: bool = False
    """Whether a hook in observe mode would have blocked it."""
    since: float | None = None
    until: float | None = None
    folder: str | None = None
    """Where its working directory is; a resolved path."""
    after_id: int | None = None

    def where(self) -> tuple[str, list[Any]]:
        """The condition in SQL and its values."""
        wanted: dict[str, Any] = {
            "event = ?": self.event,
            "target GLOB ?": self.tool,
            "session GLOB ?": self.session,
            "at >= ?": self.since,
            "at <= ?": self.until,
            "id > ?": self.after_id,
            _HOOK_RAN: self.hook,
            "blocked = ?": self.blocked or None,
            "failed = ?": self.failed or None,
            _WOULD_BLOCK: self.would_block or None,
            "works_in(cwd, ?)": self.folder,
        }
        used = {text: value for text, value in wanted.items() if value is not None}
        return " AND ".join(used) or "1", list(used.values())


_TICK_STEPS = 100_000
"""Instructions of SQLite's virtual machine, a few milliseconds."""
_HOOK_RAN = "EXISTS (SELECT 1 FROM hooks WHERE event_id = id AND name GLOB ?)"
_WOULD_BLOCK = "EXISTS (SELECT 1 FROM hooks WHERE event_id = id AND would_block = ?)"
_REMEMBERED = 4096
"""Working directories; an agent may have one for each task."""


class Entry(Struct, frozen=True, kw_only=True):
    """One recorded event."""

    id: int
    at: float
    event: str
    target: str | None
    session: str
    cwd: str
    verdict: str
    """One word: allowed, changed, ask, blocked, stopped."""
    failed: bool
    in_code: bool
    """Whether a hook that is registered in the host's code ran."""
    reason: str | None
    duration_ms: float
    hook_count: int
    input_bytes: int
    input_masked: bool
    input_cut: bool
    output_masked: bool
    output_cut: bool
    blockers: str | None
    """The hooks that blocked, if any."""
    failing: str | None
    """The hooks that failed, if any."""
    observers: str | None
    """The hooks in observe mode that would have blocked, if any."""
    rechecked: str | None
    """The hooks that were asked again about the final input, if any."""


class FullEntry(Struct, frozen=True, kw_only=True):
    """Everything recorded of one event."""

    entry: Entry
    input: dict[str, Any]
    decided: Verdict
    final_output: dict[str, Any] | None
    plan: dict[str, Any] | None
    errors: list[dict[str, Any]]
    hooks: list[dict[str, Any]]


_FLAGS = {
    "blockers": "blocked",
    "failing": "failed",
    "observers": "would_block",
    "rechecked": "recheck",
}
_OF_EVENT = "SELECT DISTINCT name FROM hooks WHERE event_id = id AND hooks."
HOOKS_OF_EVENT = {
    name: f"(SELECT group_concat(name, ', ') FROM ({_OF_EVENT}{flag})) AS {name}"  # noqa: S608 - our names
    for name, flag in _FLAGS.items()
}
"""Columns of events that list hooks."""
_COLUMNS = ", ".join(HOOKS_OF_EVENT.get(name, name) for name in Entry.__struct_fields__)
_STANDBY = ("standby_hit", "standby_miss")
_COUNTED = ("blocked", "would_block", "failed", "timed_out", "recheck", *_STANDBY)
_HOOK_FLAGS = frozenset({"success", "truncated", "reran", "observed", *_COUNTED})


class JournalReader(Struct):
    """Looks things up in one journal."""

    path: str
    connection: Connection
    project_of: Callable[[str], str]
    """The project of a recorded working directory, a full path."""

    def count(self, wanted: EventFilter) -> int:
        """How many events there are."""
        return int(self._select("count(*)", wanted).fetchone()[0])

    def newest(self, wanted: EventFilter, limit: int | None) -> list[Entry]:
        """The last events, in the order in which they happened."""
        most = -1 if limit is None else limit
        rows = self._select(_COLUMNS, wanted, "ORDER BY id DESC LIMIT ?", most)
        return [_entry(row) for row in rows][::-1]

    def last_id(self) -> int:
        """The id of the newest event; 0 if there is none."""
        return int(self._select("max(id)", EventFilter()).fetchone()[0] or 0)

    def oldest(self, wanted: EventFilter) -> Iterator[Entry]:
        """All events, in the order in which they happened."""
        yield from map(_entry, self._select(_COLUMNS, wanted, "ORDER BY id"))

    def find(self, event_id: int) -> FullEntry | None:
        """Everything about one event; raises ``JournalError`` if it is damaged."""
        try:
            return self._find(event_id)
        except (ValueError, RecursionError) as error:
            problem = f"event {event_id} is damaged: {error}"
            raise JournalError(self.path, problem) from error

    def _find(self, event_id: int) -> FullEntry | None:
        columns = f"{_COLUMNS}, input, effects, final, plan, errors"
        row = self._select(columns, EventFilter(), "AND id = ?", event_id).fetchone()
        if row is None:
            return None
        query = "SELECT * FROM hooks WHERE event_id = ? ORDER BY position"
        hooks = self.connection.execute(query, [event_id])
        return FullEntry(
            entry=_entry(row),
            input=msgspec.convert(decode(row["input"]), _Object),
            decided=_read_verdict(row["effects"]),
            final_output=_decoded(row["final"]),
            plan=msgspec.convert(_decoded(row["plan"]), _Object | None),
            errors=msgspec.convert(decode(row["errors"]), list[_Object]),
            hooks=[_hook(dict(hook)) for hook in hooks],
        )

    def runs(self, wanted: EventFilter) -> Iterator[Row]:
        """Every run of a hook, in the order of the events.

        Its name, source, duration, outcome and mode, and the event's working directory.
        """
        where, values = wanted.where()
        columns = ("name", "source", "duration_ms", "observed", *_COUNTED)
        listed = ", ".join(("cwd", *(f"hooks.{name}" for name in columns)))
        events = f"(SELECT id, cwd FROM events WHERE {where})"  # noqa: S608 - our names
        query = f"SELECT {listed} FROM {events} JOIN hooks ON event_id = id"  # noqa: S608 - our names
        if wanted.hook is not None:
            query += " WHERE name GLOB ?"
            values.append(wanted.hook)
        yield from self.connection.execute(f"{query} ORDER BY id", values)

    def span(self, wanted: EventFilter) -> tuple[int, float, float] | None:
        """How many events there are, and when the first and the last happened."""
        columns = "count(*), min(at), max(at)"
        count, first, last = self._select(columns, wanted).fetchone()
        return (count, first, last) if count else None

    def _select(
        self, columns: str, wanted: EventFilter, rest: str = "", *more: int
    ) -> Cursor:
        where, values = wanted.where()
        query = f"SELECT {columns} FROM events WHERE {where} {rest}"  # noqa: S608 - our names
        return self.connection.execute(query, [*values, *more])


@contextmanager
def read_journal(
    path: str, tick: Callable[[], None] | None = None
) -> Iterator[JournalReader]:
    """Open a journal for reading; ``tick`` is called while SQLite works."""
    connection = open_for_reading(path)
    connection.row_factory = Row
    # One damaged text must not hide all other events.
    connection.text_factory = _text
    connection.set_progress_handler(tick, _TICK_STEPS)
    # Folders and links change: each reader looks for itself.
    works_in = lru_cache(_REMEMBERED)(_works_in)
    connection.create_function("works_in", 2, works_in, deterministic=True)
    try:
        yield JournalReader(path, connection, lru_cache(_REMEMBERED)(_project_of))
    except (sqlite3.Error, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise damaged(path, error) from error
    finally:
        connection.close()


def _works_in(cwd: str, folder: str) -> bool:
    """Whether a recorded working directory, maybe through links, is in a folder."""
    try:
        # A relative one is unknown; here it would mean our own.
        return os.path.isabs(cwd) and is_within(os.path.realpath(cwd), folder)  # noqa: PTH117
    except ValueError:  # a null byte
        return False


def _project_of(cwd: str) -> str:
    try:
        return project_around(cwd) if os.path.isabs(cwd) else cwd  # noqa: PTH117
    except ValueError:
        return cwd


def _entry(row: Row) -> Entry:
    return msgspec.convert(dict(row), Entry, strict=False)  # a flag is 0 or 1


def _hook(row: dict[str, Any]) -> dict[str, Any]:
    flagged = {k: bool(v) if k in _HOOK_FLAGS else v for k, v in row.items()}
    for key in ("event_id", "position", "is_async", *_STANDBY):
        del flagged[key]
    late = {"async": bool(row["is_async"]), "ended": row["is_async"] != 1}
    hit, miss = (bool(row[name]) for name in _STANDBY)
    ahead = {"standby": hit if hit or miss else None}
    warnings = _decoded(row["warnings"]) or []
    output = _decoded(row["output"])
    read = {"output": output, "warnings": warnings, "mode": _mode(row)}
    return flagged | late | ahead | read


def _mode(run: Row | Mapping[str, Any]) -> str:
    # Journals before version 4 have no "observed".
    return "observe" if run["observed"] or run["would_block"] else "enforce"


def _decoded(text: str | None) -> Any:
    return None if text is None else decode(text)


class HookFigures(Struct, frozen=True, kw_only=True):
    """The runs of one hook, in numbers."""

    name: str
    source: str
    runs: int
    blocks: int
    would_block: int
    failures: int
    timeouts: int
    standby_hits: int
    """Events that a process on standby answered."""
    standby_misses: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    rechecks: int
    """The runs in which it was asked again about the final input."""
    mode: str
    """Of the newest run: observe or enforce."""
    project: str | None
    """None if the projects are counted together."""


def figures_of(
    runs: Iterable[Row | Mapping[str, Any]],
    project_of: Callable[[str], str] | None = None,
) -> list[HookFigures]:
    """Count the runs of each hook, the most frequent first; or per hook and project."""
    found: dict[tuple[str, str, str | None], RunTally] = {}
    for run in runs:
        project = None if project_of is None else project_of(run["cwd"])
        key = run["name"], run["source"], project
        found.setdefault(key, RunTally()).add(run)
    figures = [_hook_figures(*key, of) for key, of in found.items()]
    return sorted(figures, key=lambda f: (-f.runs, f.name, f.source, f.project or ""))


class RunTally:
    """The runs of one hook: how long they took, and how often each flag is set."""

    def __init__(self) -> None:
        self.durations = array("d")
        self.counts: Counter[str] = Counter()
        self.last: Row | Mapping[str, Any] | None = None

    def add(
        self, run: Row | Mapping[str, Any], flags: Iterable[str] = _COUNTED
    ) -> None:
        """Count one run."""
        self.durations.append(run["duration_ms"])
        for name in flags:
            if run[name]:  # most flags of most runs are not set
                self.counts[name] += 1
        self.last = run

    def figures(self) -> dict[str, Any]:
        """What is told of the runs of a hook, wherever that is."""
        ordered, counts = sorted(self.durations), self.counts
        return {
            "runs": len(ordered),
            "blocks": counts["blocked"],
            "would_block": counts["would_block"],
            "failures": counts["failed"],
            "timeouts": counts["timed_out"],
            "rechecks": counts["recheck"],
            "p50_ms": percentile(ordered, 50),
            "p95_ms": percentile(ordered, 95),
            "p99_ms": percentile(ordered, 99),
            "max_ms": ordered[-1],
        }


def percentile(ordered: list[float], percent: float) -> float:
    """A percentile of values in ascending order."""
    return ordered[max(ceil(len(ordered) * percent / 100), 1) - 1]


def _hook_figures(
    name: str, source: str, project: str | None, runs: RunTally
) -> HookFigures:
    assert runs.last is not None
    return HookFigures(
        name=name,
        source=source,
        standby_hits=runs.counts["standby_hit"],
        standby_misses=runs.counts["standby_miss"],
        mode=_mode(runs.last),
        project=project,
        **runs.figures(),
    )
