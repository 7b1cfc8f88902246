"""Read the journal: events, and figures about the runs of hooks."""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from math import ceil
from sqlite3 import Connection, Cursor, Row
from typing import Annotated, Any, TypedDict

import msgspec
from msgspec import Meta, Struct

from hookline.errors import JournalError
from hookline.protocol.values import decode
from hookline.protocol.verdict import Verdict
from hookline.settings.places import is_within, project_around

from .store import damaged, open_for_reading

_read_verdict = msgspec.json.Decoder(Verdict).decode
_Object = dict[str, Any]
_Moment = Annotated[float, Meta(ge=0, le=253_370_000_000)]
"""Seconds since 1970 that are a date, in any time zone."""
_Duration = Annotated[float, Meta(ge=0, le=1e15)]
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
            "target GLOB ?": glob_of(self.tool),
            "session GLOB ?": glob_of(self.session),
            "at >= ?": self.since,
            "at <= ?": self.until,
            "id > ?": self.after_id,
            _HOOK_RAN: glob_of(self.hook),
            "blocked = ?": self.blocked or None,
            "failed = ?": self.failed or None,
            _WOULD_BLOCK: self.would_block or None,
            "works_in(cwd, ?)": self.folder,
        }
        used = {text: value for text, value in wanted.items() if value is not None}
        return " AND ".join(used) or "1", list(used.values())


def glob_of(name: str | None) -> str | None:
    """A pattern for ``GLOB`` in which only ``*`` and ``?`` are special."""
    return name and name.replace("[", "[[]")


_TICK_STEPS = 100_000
"""Instructions of SQLite's virtual machine, a few milliseconds."""
_HOOK_RAN = "EXISTS (SELECT 1 FROM hooks WHERE event_id = id AND name GLOB ?)"
_WOULD_BLOCK = "EXISTS (SELECT 1 FROM hooks WHERE event_id = id AND would_block = ?)"
_REMEMBERED = 4096
"""Working directories; an agent may have one for each task."""


class Entry(Struct, frozen=True, kw_only=True):
    """One recorded event."""

    id: int
    at: _Moment
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
    duration_ms: _Duration
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


class _PlannedHook(TypedDict):
    name: str
    source: str


class _Plan(TypedDict):
    hooks: list[_PlannedHook]
    sequential: bool


class _Error(TypedDict):
    stage: str
    message: str


class _Run(TypedDict):
    name: str
    source: str
    type: str
    duration_ms: _Duration
    exit_code: int | None
    error: str | None
    stdout: str | None
    stderr: str | None
    warnings: list[str]


class EventKind(Struct, frozen=True, kw_only=True):
    """Events that have the same name and target, and are recorded as exactly."""

    event: str
    target: str | None
    input_cut: bool
    input_masked: bool
    in_code: bool
    count: int


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
_BITS = {name: 1 << bit for bit, name in enumerate((*_COUNTED, "observed"))}
_RUN = ", ".join(
    (
        # Without a call for each of millions of texts.
        *(f"CAST({name} AS BLOB)" for name in ("cwd", "name", "source")),
        " + ".join(f"(hooks.{name} <> 0) * {bit}" for name, bit in _BITS.items()),
        "CAST(hooks.duration_ms AS REAL)",
    )
)
_Key = tuple[bytes, bytes, bytes, int]
"""Working directory, name and source of a hook, and the bits of its flags."""


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

    def sessions(self, wanted: EventFilter) -> Iterator[tuple[int, str]]:
        """The id and session of all events, in the order in which they happened."""
        yield from map(tuple, self._select("id, session", wanted, "ORDER BY id"))

    def kinds(self, wanted: EventFilter) -> list[EventKind]:
        """How many events of each kind there are, the oldest kind first."""
        names = EventKind.__struct_fields__[:-1]
        columns, rest = (
            ", ".join(names),
            f"GROUP BY {', '.join(names)} ORDER BY min(id)",
        )
        rows = self._select(f"{columns}, count(*) AS count", wanted, rest)
        return [msgspec.convert(dict(row), EventKind, strict=False) for row in rows]

    def inputs(
        self, wanted: EventFilter
    ) -> Iterator[tuple[str | None, dict[str, Any]]]:
        """The target and input of all events; raises ``JournalError`` as ``find``."""
        for event_id, target, text in self._select("id, target, input", wanted):
            with self._reading(event_id):
                given = _parsed(text, _Object)
            yield target, given

    def find(self, event_id: int) -> FullEntry | None:
        """Everything about one event; raises ``JournalError`` if it is damaged."""
        with self._reading(event_id):
            return self._find(event_id)

    @contextmanager
    def _reading(self, event_id: int) -> Iterator[None]:
        try:
            yield
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
            input=_parsed(row["input"], _Object),
            decided=_read_verdict(row["effects"]),
            final_output=_parsed(row["final"], Any),
            plan=_parsed(row["plan"], _Plan | None),
            errors=_parsed(row["errors"], list[_Error]),
            hooks=[_hook(dict(hook)) for hook in hooks],
        )

    def figures(self, wanted: EventFilter) -> list[HookFigures]:
        """Count the runs of each hook in each project, the most frequent first."""
        where, values = wanted.where()
        events = f"(SELECT id, cwd FROM events WHERE {where})"  # noqa: S608 - our names
        query = f"SELECT {_RUN} FROM {events} JOIN hooks ON event_id = id"  # noqa: S608 - our names
        if wanted.hook is not None:
            query += " WHERE name GLOB ?"
            values.append(glob_of(wanted.hook))
        runs = self.connection.cursor()
        runs.row_factory = None  # faster: a journal may hold millions of runs
        found: defaultdict[_Key, array[float]] = defaultdict(lambda: array("d"))
        for cwd, name, source, flags, took in runs.execute(
            f"{query} ORDER BY id DESC", values
        ):
            found[cwd, name, source, flags].append(took)
        return _figures(found, self.project_of)

    def span(self, wanted: EventFilter) -> tuple[int, float, float] | None:
        """How many events there are, and when the first and the last happened."""
        columns = "count(*), min(at), max(at)"
        found = tuple(self._select(columns, wanted).fetchone())
        kind = tuple[int, _Moment, _Moment]
        return msgspec.convert(found, kind) if found[0] else None

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
    except (ValueError, TypeError):  # a null byte, or no text
        return False


def _project_of(cwd: str) -> str:
    try:
        return project_around(cwd) if os.path.isabs(cwd) else cwd  # noqa: PTH117
    except (ValueError, TypeError):
        return cwd


def _entry(row: Row) -> Entry:
    return msgspec.convert(dict(row), Entry, strict=False)  # a flag is 0 or 1


def _hook(row: dict[str, Any]) -> dict[str, Any]:
    flagged = {k: bool(v) if k in _HOOK_FLAGS else v for k, v in row.items()}
    for key in ("event_id", "position", "is_async", *_STANDBY):
        del flagged[key]
    late = {"async": bool(row["is_async"]), "ended": row["is_async"] != 1}
    if not late["ended"]:
        late["success"] = None  # its host ended before anybody knew
    hit, miss = (bool(row[name]) for name in _STANDBY)
    ahead = {"standby": hit if hit or miss else None}
    warnings = _parsed(row["warnings"], list | None) or []
    output = _parsed(row["output"], Any)
    mode = _mode(row["observed"] or row["would_block"])
    found = flagged | late | ahead
    found |= {"output": output, "warnings": warnings, "mode": mode}
    msgspec.convert(found, _Run)
    return found


def _mode(observed: object) -> str:
    # Journals before version 4 have no "observed", only "would_block".
    return "observe" if observed else "enforce"


def _parsed(text: str | None, kind: Any) -> Any:
    """The JSON in a column; raises ``ValueError`` if it is not of this kind."""
    value = None if text is None else decode(text)
    msgspec.convert(value, kind)
    return value


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
    p50_ms: _Duration
    p95_ms: _Duration
    p99_ms: _Duration
    max_ms: _Duration
    rechecks: int
    """The runs in which it was asked again about the final input."""
    mode: str
    """Of the newest run: observe or enforce."""
    project: str


class RunTally:
    """The runs of one hook: how long they took, and how often each flag is set."""

    def __init__(self) -> None:
        self.durations = array("d")
        self.counts: Counter[str] = Counter()

    def add(self, run: Row, flags: Iterable[str]) -> None:
        """Count one run."""
        self.durations.append(run["duration_ms"])
        for name in flags:
            if run[name]:  # most flags of most runs are not set
                self.counts[name] += 1

    def add_all(self, durations: array[float], flags: list[str]) -> None:
        """Count runs that have the same flags."""
        self.durations += durations
        for name in flags:
            self.counts[name] += len(durations)

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


def _figures(
    found: dict[_Key, array[float]], project_of: Callable[[str], str]
) -> list[HookFigures]:
    """The newest run of each hook is in the first of its keys."""
    hooks: dict[tuple[str, str, str], tuple[str, RunTally]] = {}
    for (cwd, name, source, flags), durations in found.items():
        key = _text(name), _text(source), project_of(_text(cwd))
        mode = _mode(flags & (_BITS["observed"] | _BITS["would_block"]))
        _, runs = hooks.setdefault(key, (mode, RunTally()))
        runs.add_all(durations, [name for name, bit in _BITS.items() if flags & bit])
    figures = [_hook_figures(*key, *of) for key, of in hooks.items()]
    return sorted(figures, key=lambda f: (-f.runs, f.name, f.source, f.project))


def _hook_figures(
    name: str, source: str, project: str, mode: str, runs: RunTally
) -> HookFigures:
    counts = runs.counts
    figures = {
        "name": name,
        "source": source,
        "standby_hits": counts["standby_hit"],
        "standby_misses": counts["standby_miss"],
        "mode": mode,
        "project": project,
    }
    return msgspec.convert(figures | runs.figures(), HookFigures)
