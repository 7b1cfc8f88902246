"""Read the journal: events, and figures about the runs of hooks.

A journal can have millions of events, and a filter may match none of them: ``search``
looks at slices of them, the newest first, until it has enough or its time is over, and
says how far it came.
"""

from __future__ import annotations

import os
import sqlite3
import time
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from math import ceil
from sqlite3 import Connection, Cursor, Row
from typing import Annotated, Any, TypedDict

import msgspec
from msgspec import Meta, Struct

from hookline.errors import JournalError
from hookline.protocol.values import decode, encode
from hookline.protocol.verdict import Verdict
from hookline.settings.places import is_within, project_around

from .store import damaged, open_for_reading

VERDICTS = ("allowed", "changed", "ask", "blocked", "stopped", "failed", "would-block")
"""What a filter can ask for; the last two are about hooks."""
MAX_RUNS = 50_000
"""Of hooks, for a page that somebody waits for."""
EDGES_MS = tuple(digit * 10.0**power for power in range(-1, 5) for digit in (1, 2, 5))
"""The upper ends of the histogram's buckets; one more holds what is longer."""

_SLICE = 2_000
_LATE_EVENTS = 1_000
"""Processes record at once: so far apart the order of ids and of times may be."""
_TURN_IDS = 2_000
"""How far back the start of a turn is searched."""
_MAX_INPUT = 1_000_000
"""Larger ones are not read for the id of a tool call."""
_MAX_FACETS, _MAX_FACET = 100, 300
_TICK_STEPS = 100_000
"""Instructions of SQLite's virtual machine, a few milliseconds."""
_REMEMBERED = 4096
"""Working directories; an agent may have one for each task."""

_read_verdict = msgspec.json.Decoder(Verdict).decode
_Object = dict[str, Any]
_Moment = Annotated[float, Meta(ge=0, le=253_370_000_000)]
"""Seconds since 1970 that are a date, in any time zone."""
_Duration = Annotated[float, Meta(ge=0, le=1e15)]
_text = partial(str, encoding="utf-8", errors="replace")

_SINCE = "SELECT at FROM events WHERE id >= ? ORDER BY id LIMIT 1"
_OF_EVENT = "SELECT 1 FROM hooks WHERE event_id = id AND"
_VERDICT_CONDITIONS = {
    "failed": "failed",
    "would-block": f"EXISTS ({_OF_EVENT} would_block)",
}
_CONDITIONS = {
    "event": "event = :event",
    "tool": "target GLOB :tool",
    "hook": f"EXISTS ({_OF_EVENT} +name GLOB :hook)",
    "session": "session GLOB :session",
    # As bytes: SQLite gives a function no text that is not UTF-8.
    "project": "works_in(CAST(cwd AS BLOB), :project)",
    "since": "at >= :since",
    "until": "at <= :until",
    "after_id": "id > :after_id",
}
_TEXTS = ("target", "reason", "session", "cwd", "input", "final", "errors")
_TEXTS_OF_HOOKS = ("name", "stderr", "error", "stdout", "output")


class EventFilter(Struct, frozen=True, kw_only=True):
    """Which events are wanted; names may contain ``*`` and ``?``."""

    event: str | None = None
    tool: str | None = None
    hook: str | None = None
    session: str | None = None
    project: str | None = None
    """Where its working directory is; a resolved path."""
    verdict: str | None = None
    """One of ``VERDICTS``."""
    blocked: bool = False
    """Blocked or stopped."""
    failed: bool = False
    would_block: bool = False
    text: str | None = None
    """Part of a name, a reason, an input or what a hook said; ASCII in any case."""
    since: float | None = None
    until: float | None = None
    after_id: int | None = None

    def where(self) -> tuple[str, dict[str, Any]]:
        """The condition in SQL and its values."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        conditions = [
            text for name, text in _CONDITIONS.items() if values[name] is not None
        ]
        for name in ("tool", "hook", "session"):
            # Only "*" and "?" are special.
            values[name] = values[name] and values[name].replace("[", "[[]")
        if self.verdict is not None:
            condition = _VERDICT_CONDITIONS.get(self.verdict, "verdict = :verdict")
            conditions.append(condition)
        if self.blocked:
            conditions.append("blocked")
        if self.failed:
            conditions.append(_VERDICT_CONDITIONS["failed"])
        if self.would_block:
            conditions.append(_VERDICT_CONDITIONS["would-block"])
        if self.text is not None:
            # A text may be looked for as it reads, and as JSON has it.
            texts = dict.fromkeys((self.text, encode(self.text).decode()[1:-1]))
            in_events, in_hooks = (
                " OR ".join(
                    f"{column} LIKE :text_{number} ESCAPE '!'"
                    for column in columns
                    for number in range(len(texts))
                )
                for columns in (_TEXTS, _TEXTS_OF_HOOKS)
            )
            conditions.append(f"({in_events} OR EXISTS ({_OF_EVENT} ({in_hooks})))")
            for number, text in enumerate(texts):
                escaped = "".join(f"!{c}" if c in "!%_" else c for c in text)
                values[f"text_{number}"] = f"%{escaped}%"
        return " AND ".join(conditions) or "1", values


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


_FLAGS = {
    "blockers": "blocked",
    "failing": "failed",
    "observers": "would_block",
    "rechecked": "recheck",
}
_NAMES = "SELECT DISTINCT name FROM hooks WHERE event_id = id AND hooks."
_COLUMNS = ", ".join(
    f"(SELECT group_concat(name, ', ') FROM ({_NAMES}{_FLAGS[name]})) AS {name}"  # noqa: S608 - our names
    if name in _FLAGS
    else name
    for name in Entry.__struct_fields__
)


class ListedEntry(Struct, frozen=True, kw_only=True):
    """One event in a list, with what it is grouped by."""

    entry: Entry
    tool_use_id: str | None = None
    turn: int | None = None
    """The event that started its turn, if that is near."""


class Found(Struct, frozen=True, kw_only=True):
    """What a search found, and how far it came."""

    events: list[ListedEntry]
    next: int | None
    """Events before this id are not searched yet; None if there are none."""
    searched_to: float | None
    """When the oldest event happened that was looked at."""
    complete: bool
    """False if the time was used up."""


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


_STANDBY = ("standby_hit", "standby_miss")
_COUNTED = ("blocked", "would_block", "failed", "timed_out", "recheck", *_STANDBY)
_HOOK_FLAGS = frozenset({"success", "truncated", "reran", "observed", *_COUNTED})
_BITS = {name: 1 << bit for bit, name in enumerate((*_COUNTED, "observed"))}
_RUN = ", ".join(
    (
        *("hooks.event_id", "CAST(at AS REAL)", "CAST(hooks.duration_ms AS REAL)"),
        " + ".join(f"(hooks.{name} <> 0) * {bit}" for name, bit in _BITS.items()),
        # Without a call for each of millions of texts.
        *(f"CAST({name} AS BLOB)" for name in ("event", "name", "source", "type")),
        "CAST(cwd AS BLOB)",
    )
)


class RunKey(Struct, frozen=True):
    """Which hook ran, as far as the journal knows, and where."""

    event: str
    name: str
    source: str
    type: str
    cwd: str


class Runs(Struct):
    """Runs of hooks: how long they took, and how often each flag is set."""

    last_event: int
    last_at: float
    last_flags: int
    """Of the newest run."""
    durations: array[float]
    flags: Counter[int]

    def add(self, runs: Runs) -> None:
        """Add the runs of another key."""
        if runs.last_event > self.last_event:
            self.last_event, self.last_at = runs.last_event, runs.last_at
            self.last_flags = runs.last_flags
        self.durations += runs.durations
        self.flags += runs.flags

    @property
    def mode(self) -> str:
        """Of the newest run: observe or enforce."""
        observed = self.last_flags & (_BITS["observed"] | _BITS["would_block"])
        return "observe" if observed else "enforce"

    def count(self, flag: str) -> int:
        """How many of them have a flag."""
        bit = _BITS[flag]
        return sum(count for flags, count in self.flags.items() if flags & bit)

    def figures(self) -> dict[str, Any]:
        """What is told of the runs of a hook, wherever that is."""
        ordered = sorted(self.durations)
        msgspec.convert([ordered[0], ordered[-1]], list[_Duration])
        ends = [bisect_right(ordered, edge) for edge in EDGES_MS]
        buckets = zip([0, *ends], [*ends, len(ordered)], strict=True)
        return {
            "runs": len(ordered),
            "blocks": self.count("blocked"),
            "would_block": self.count("would_block"),
            "failures": self.count("failed"),
            "timeouts": self.count("timed_out"),
            "standby_hits": self.count("standby_hit"),
            "standby_misses": self.count("standby_miss"),
            "p50_ms": percentile(ordered, 50),
            "p95_ms": percentile(ordered, 95),
            "p99_ms": percentile(ordered, 99),
            "max_ms": ordered[-1],
            "rechecks": self.count("recheck"),
            "histogram": [end - start for start, end in buckets],
        }


class JournalReader(Struct):
    """Looks things up in one journal."""

    path: str
    connection: Connection
    project_of: Callable[[str], str]
    """The project of a recorded working directory, a full path."""

    def count(self, event_filter: EventFilter) -> int:
        """How many events there are."""
        return int(self._select("count(*)", event_filter).fetchone()[0])

    def newest(self, event_filter: EventFilter, limit: int | None) -> list[Entry]:
        """The last events, in the order in which they happened."""
        most = -1 if limit is None else limit
        rows = self._select(
            _COLUMNS, event_filter, "ORDER BY id DESC LIMIT :most", most=most
        )
        return [_entry(row) for row in rows][::-1]

    def last_id(self) -> int:
        """The id of the newest event; 0 if there is none."""
        return int(self._select("max(id)", EventFilter()).fetchone()[0] or 0)

    def search(
        self, event_filter: EventFilter, before: int | None, limit: int, budget_s: float
    ) -> Found:
        """The newest events that match, of those before an id."""
        deadline = time.monotonic() + budget_s
        events: list[ListedEntry] = []
        high, low = self.last_id() + 1 if before is None else before, 0
        if event_filter.until is not None:
            edge = self._nearest("at <= ? ORDER BY at DESC", event_filter.until)
            high = min(high, edge + _LATE_EVENTS) if edge else 0
        if event_filter.since is not None:
            edge = self._nearest("at >= ? ORDER BY at", event_filter.since)
            low = edge - _LATE_EVENTS if edge else high
        low = max(low, 0)
        while True:
            start = max(low + 1, high - _SLICE)
            within = "AND id < :high AND id >= :start ORDER BY id DESC LIMIT :most"
            most = limit - len(events)
            events += self._list(
                event_filter, within, high=high, start=start, most=most
            )
            is_full = len(events) >= limit
            high = events[-1].entry.id if is_full else start
            is_rest = self._nearest("id < ? ORDER BY id DESC", high) > low
            if is_full or not is_rest or time.monotonic() >= deadline:
                break
        row = self.connection.execute(_SINCE, (high,)).fetchone() if is_rest else None
        return Found(
            events=self._with_turns(events),
            next=high if is_rest else None,
            searched_to=None if row is None else row["at"],
            complete=is_full or not is_rest,
        )

    def search_after(
        self, event_filter: EventFilter, after: int, limit: int
    ) -> tuple[list[ListedEntry], int]:
        """The next events after an id, oldest first, and the last id looked at."""
        last = self.last_id()
        within = "AND id > :start AND id <= :last ORDER BY id LIMIT :most"
        events = self._list(event_filter, within, start=after, last=last, most=limit)
        is_full = len(events) == limit
        return self._with_turns(events), events[-1].entry.id if is_full else last

    def _list(
        self, event_filter: EventFilter, clauses: str, **more: int
    ) -> list[ListedEntry]:
        columns = (
            f"{_COLUMNS}, CASE WHEN target IS NOT NULL AND input_bytes <= {_MAX_INPUT} "
            "THEN input END AS input"
        )
        listed = []
        for row in self._select(columns, event_filter, clauses, **more):
            try:
                entry = _entry(row)
            except ValueError as error:
                entry = _damaged(row["id"], error)
            tool_use_id = row["input"] and _tool_use_id(row["input"])
            listed.append(ListedEntry(entry=entry, tool_use_id=tool_use_id))
        return listed

    def _with_turns(self, events: list[ListedEntry]) -> list[ListedEntry]:
        """Add the starts of turns, as far as they are near."""
        ids = [event.entry.id for event in events]
        if not ids or max(ids) - min(ids) > _TURN_IDS:
            return events
        query = (
            "SELECT id, session FROM events WHERE id BETWEEN ? AND ? "
            "AND event = 'BeforeAgent' ORDER BY id"
        )
        starts: dict[str, list[int]] = {}
        span = min(ids) - _TURN_IDS, max(ids)
        for event_id, session in self.connection.execute(query, span):
            starts.setdefault(session, []).append(event_id)
        turns = []
        for event in events:
            of_session = starts.get(event.entry.session, [])
            place = bisect_right(of_session, event.entry.id)
            turns.append(of_session[place - 1] if place else None)
        pairs = zip(events, turns, strict=True)
        return [msgspec.structs.replace(event, turn=turn) for event, turn in pairs]

    def _nearest(self, condition: str, value: float) -> int:
        query = f"SELECT id FROM events WHERE {condition} LIMIT 1"  # noqa: S608 - ours
        row = self.connection.execute(query, (value,)).fetchone()
        return 0 if row is None else int(row[0])

    def sessions(self, event_filter: EventFilter) -> Iterator[tuple[int, str]]:
        """The id and session of all events, in the order in which they happened."""
        yield from map(tuple, self._select("id, session", event_filter, "ORDER BY id"))

    def kinds(self, event_filter: EventFilter) -> list[EventKind]:
        """How many events of each kind there are, the oldest kind first."""
        names = ", ".join(EventKind.__struct_fields__[:-1])
        clauses = f"GROUP BY {names} ORDER BY min(id)"
        rows = self._select(f"{names}, count(*) AS count", event_filter, clauses)
        return [msgspec.convert(dict(row), EventKind, strict=False) for row in rows]

    def inputs(
        self, event_filter: EventFilter
    ) -> Iterator[tuple[str | None, dict[str, Any]]]:
        """The target and input of all events; raises ``JournalError`` as ``find``."""
        for event_id, target, text in self._select("id, target, input", event_filter):
            with self._reading(event_id):
                event_input = _parsed(text, _Object)
            yield target, event_input

    def find(self, event_id: int) -> FullEntry | None:
        """Everything about one event; raises ``JournalError`` if it is damaged."""
        columns = f"{_COLUMNS}, input, effects, final, plan, errors"
        with self._reading(event_id):
            rows = self._select(columns, EventFilter(), "AND id = :id", id=event_id)
            row = rows.fetchone()
            if row is None:
                return None
            query = "SELECT * FROM hooks WHERE event_id = ? ORDER BY position"
            return FullEntry(
                entry=_entry(row),
                input=_parsed(row["input"], _Object),
                decided=_read_verdict(row["effects"]),
                final_output=_parsed(row["final"], Any),
                plan=_parsed(row["plan"], _Plan | None),
                errors=_parsed(row["errors"], list[_Error]),
                hooks=[
                    _hook(run) for run in self.connection.execute(query, [event_id])
                ],
            )

    @contextmanager
    def _reading(self, event_id: int) -> Iterator[None]:
        try:
            yield
        except (ValueError, RecursionError) as error:
            problem = f"event {event_id} is damaged: {error}"
            raise JournalError(self.path, problem) from error

    def runs(
        self, event_filter: EventFilter, limit: int | None = None
    ) -> dict[RunKey, Runs]:
        """The runs of hooks, or the newest of them, by hook and place."""
        where, values = event_filter.where()
        events = f"(SELECT id, at, event, cwd FROM events WHERE {where})"  # noqa: S608 - our names
        query = f"SELECT {_RUN} FROM {events} CROSS JOIN hooks ON event_id = id"  # noqa: S608 - our names
        if event_filter.hook is not None:
            query += " WHERE name GLOB :hook"
        query += " ORDER BY id DESC, position DESC LIMIT :most"
        values["most"] = -1 if limit is None else limit
        rows = self.connection.cursor()
        rows.row_factory = None  # faster: a journal may hold millions of runs
        groups: dict[tuple[Any, ...], Runs] = {}
        for row in rows.execute(query, values):
            key = row[3:]
            if key not in groups:
                groups[key] = Runs(row[0], row[1], key[0], array("d"), Counter())
            groups[key].durations.append(row[2])
        by_key: dict[RunKey, Runs] = {}
        for (flags, *texts), runs in groups.items():
            runs.flags[flags] = len(runs.durations)
            run_key = RunKey(*map(_text, texts))
            if run_key in by_key:
                by_key[run_key].add(runs)
            else:
                by_key[run_key] = runs
        return by_key

    def failures(self, name: str) -> Iterator[dict[str, Any]]:
        """The failed runs of the hooks of a name, the newest first."""
        query = (
            "SELECT hooks.*, events.at, events.event, events.target, events.session, "
            "events.cwd, events.output_masked, events.output_cut "
            "FROM hooks JOIN events ON events.id = event_id "
            "WHERE name = ? AND hooks.failed ORDER BY event_id DESC, position DESC"
        )
        yield from map(dict, self.connection.execute(query, [name]))

    def folders(self, events: int = 5_000) -> list[str]:
        """Where the newest events happened, the last one first."""
        query = (
            "SELECT cwd FROM (SELECT id, cwd FROM events ORDER BY id DESC LIMIT ?) "
            "GROUP BY cwd ORDER BY max(id) DESC"
        )
        return [row["cwd"] for row in self.connection.execute(query, [events])]

    def facets(self, newest: int) -> dict[str, Any]:
        """The values that the newest events have, the most frequent first."""
        first = self.last_id() - newest + 1

        def count(values: str, table: str = "events", key: str = "id") -> list[Any]:
            query = (
                f"SELECT CAST({values} AS TEXT) AS value, count(DISTINCT {key}) "  # noqa: S608 - our names
                f"FROM {table} WHERE {key} >= ? AND length({values}) <= {_MAX_FACET} "
                f"GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {_MAX_FACETS}"
            )
            return [tuple(row) for row in self.connection.execute(query, [first])]

        projects: Counter[str] = Counter()
        for cwd, number in count("cwd"):
            projects[self.project_of(cwd)] += number
        of_hooks = "SELECT count(DISTINCT event_id) FROM hooks WHERE event_id >= ? AND "
        return {
            "of": self.count(EventFilter(after_id=first - 1)),
            "projects": projects.most_common(),
            "sessions": count("session"),
            "events": count("event"),
            "tools": count("target"),
            "hooks": count("name", "hooks", "event_id"),
            "verdicts": [
                *count("verdict"),
                *(
                    (word, number)
                    for word, flag in (
                        ("failed", "failed"),
                        ("would-block", "would_block"),
                    )
                    if (
                        number := self.connection.execute(
                            of_hooks + flag, [first]
                        ).fetchone()[0]
                    )
                ),
            ],
        }

    def span(self, event_filter: EventFilter) -> tuple[int, float, float] | None:
        """How many events there are, and when the first and the last happened."""
        row = tuple(self._select("count(*), min(at), max(at)", event_filter).fetchone())
        kind = tuple[int, _Moment, _Moment]
        return msgspec.convert(row, kind) if row[0] else None

    def _select(
        self, columns: str, event_filter: EventFilter, clauses: str = "", **more: int
    ) -> Cursor:
        where, values = event_filter.where()
        query = f"SELECT {columns} FROM events WHERE {where} {clauses}"  # noqa: S608 - our names
        return self.connection.execute(query, {**values, **more})


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


def percentile(ordered: list[float], percent: float) -> float:
    """A percentile of values in ascending order."""
    return ordered[max(ceil(len(ordered) * percent / 100), 1) - 1]


def _works_in(cwd: bytes, folder: str) -> bool:
    """Whether a recorded working directory, maybe through links, is in a folder."""
    try:
        path = _text(cwd)
        # A relative one is unknown; here it would mean our own.
        return os.path.isabs(path) and is_within(os.path.realpath(path), folder)  # noqa: PTH117
    except (ValueError, TypeError):  # a null byte, or no text
        return False


def _project_of(cwd: str) -> str:
    try:
        return project_around(cwd) if os.path.isabs(cwd) else cwd  # noqa: PTH117
    except (ValueError, TypeError):
        return cwd


def _entry(row: Row) -> Entry:
    return msgspec.convert(dict(row), Entry, strict=False)  # a flag is 0 or 1


def _damaged(event_id: int, error: Exception) -> Entry:
    """What a list says of an event whose record cannot be read."""
    return Entry(
        id=event_id,
        at=0,
        event="?",
        target=None,
        session="",
        cwd="",
        verdict="damaged",
        failed=True,
        in_code=False,
        reason=f"event {event_id} is damaged: {error}",
        duration_ms=0,
        hook_count=0,
        input_bytes=0,
        input_masked=False,
        input_cut=False,
        output_masked=False,
        output_cut=False,
        blockers=None,
        failing=None,
        observers=None,
        rechecked=None,
    )


class _Input(Struct):
    tool_use_id: str | None = None


_read_input = msgspec.json.Decoder(_Input).decode


def _tool_use_id(text: str) -> str | None:
    try:
        return _read_input(text).tool_use_id
    except (ValueError, RecursionError):
        return None  # a truncated input, or a host with another idea of it


def _hook(row: Row) -> dict[str, Any]:
    hook = {k: bool(row[k]) if k in _HOOK_FLAGS else row[k] for k in row.keys()}  # noqa: SIM118 - a row gives its values
    for key in ("event_id", "position", "is_async", *_STANDBY):
        del hook[key]
    hook |= {"async": bool(row["is_async"]), "ended": row["is_async"] != 1}
    if not hook["ended"]:
        hook["success"] = None  # its host ended before anybody knew
    hit, miss = (bool(row[name]) for name in _STANDBY)
    hook |= {
        "standby": hit if hit or miss else None,
        "output": _parsed(row["output"], Any),
        "warnings": _parsed(row["warnings"], list | None) or [],
        "mode": "observe" if row["observed"] or row["would_block"] else "enforce",
    }
    msgspec.convert(hook, _Run)
    return hook


def _parsed(text: str | None, kind: Any) -> Any:
    """The JSON in a column; raises ``ValueError`` if it is not of this kind."""
    value = None if text is None else decode(text)
    msgspec.convert(value, kind)
    return value
