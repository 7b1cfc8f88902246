"""Search the journal within a time budget, the newest events first.

A journal can have millions of events, and a filter may match none of them. So a search
walks over ranges of ids, each in a short transaction of its own, until it has enough,
reaches the oldest event or has used up its time. Then it says how far it came, and the
next search goes on from there.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from bisect import bisect_right
from math import isfinite
from sqlite3 import Connection, Row
from typing import Any

import msgspec
from msgspec import Struct

from hookline.protocol.values import encode

from .query import HOOKS_OF_EVENT, JournalReader, glob_of

VERDICTS = ("allowed", "changed", "ask", "blocked", "stopped", "failed", "would-block")
"""Values of a search's verdict; the last two are about hooks."""

_FIRST_RANGE = 256
_TARGET_S = 0.04
_LONGEST_S = 0.15
"""A range that takes longer is given up for a smaller one."""
_ROWS_S = 0.25
_TURNS_S = 0.3
_TICK_STEPS = 200
_LONGEST_NAME = 1000
_CUT = {
    **dict.fromkeys(("event", "target", "session", "cwd", "verdict"), _LONGEST_NAME),
    "reason": 300,
}
_LAST_TIME = 8.64e12
"""Browsers know no later one, and no larger whole number than the next."""
_LAST_ID = 2**53 - 1
_LARGEST_INPUT = 1_000_000
"""Larger ones are not read for the id of a tool call."""
_MOST_AFTER = 2000
_TURN_IDS = 2000
"""How far back the start of a turn is searched."""


class EventSearch(Struct, frozen=True, kw_only=True):
    """Which events are wanted; tool, hook and session may contain ``*`` and ``?``."""

    event: str | None = None
    tool: str | None = None
    hook: str | None = None
    session: str | None = None
    project: str | None = None
    verdict: str | None = None
    """One of ``VERDICTS``."""
    text: str | None = None
    """Part of a name, a reason, an input or what a hook said; ASCII in any case."""
    since: float | None = None
    until: float | None = None

    def where(self) -> tuple[str, dict[str, Any]]:
        """The condition in SQL for a range of ids, and its values."""
        conditions = ["id BETWEEN :low AND :high"]
        conditions += [
            _CONDITIONS[name] for name in _CONDITIONS if getattr(self, name) is not None
        ]
        if self.session is not None:
            plain = not set("*?[") & set(self.session)  # has an index
            conditions.append(f"session {'=' if plain else 'GLOB'} :session")
        conditions += filter(None, [_VERDICT_CONDITIONS.get(self.verdict or "")])
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        values |= {name: glob_of(values[name]) for name in ("tool", "hook", "session")}
        if self.text is not None:
            inside = encode(self.text).decode()[1:-1]
            values |= {"plain": _like(self.text), "inside": _like(inside)}
            # A text may be looked for as it reads, and as JSON has it.
            conditions.append(_TEXT if inside == self.text else _TEXT_OR_JSON)
        return " AND ".join(conditions), values


_OF_HOOKS = (
    "id IN (SELECT event_id FROM hooks WHERE event_id BETWEEN :low AND :high AND {})"
)
_PLAIN = "{} LIKE :plain ESCAPE '!'"
_INSIDE = "{} LIKE :inside ESCAPE '!'"


def _text_condition(*in_json: str) -> str:
    hooks = [_PLAIN.format(name) for name in ("name", "stderr", "error", "stdout")]
    hooks += [one.format("output") for one in in_json]
    names = ("target", "reason", "session", "cwd")
    events = [_PLAIN.format(name) for name in names] + [
        one.format(name) for name in ("input", "final", "errors") for one in in_json
    ]
    either = " OR ".join(hooks)
    return f"({' OR '.join(events)} OR {_OF_HOOKS.format(f'({either})')})"


_TEXT = _text_condition(_PLAIN)
_TEXT_OR_JSON = _text_condition(_PLAIN, _INSIDE)
_CONDITIONS = {
    "event": "event = :event",
    "since": "at >= :since",
    "until": "at <= :until",
    "tool": "target GLOB :tool",
    "hook": _OF_HOOKS.format("+name GLOB :hook"),
    # As bytes: SQLite gives a function no text that is not UTF-8.
    "project": "project_of(CAST(cwd AS BLOB)) = :project",
}
_VERDICT_CONDITIONS = {
    **dict.fromkeys(VERDICTS, "verdict = :verdict"),
    "failed": "failed",
    "would-block": _OF_HOOKS.format("would_block"),
}


def _like(text: str) -> str:
    """A pattern for ``LIKE`` that finds a text."""
    escaped = "".join(f"!{one}" if one in "!%_" else one for one in text)
    return f"%{escaped}%"


class EventRow(Struct, frozen=True, kw_only=True):
    """One event in a list; long names and reasons are cut."""

    id: int
    at: float
    event: str
    target: str | None
    session: str
    cwd: str
    project: str
    verdict: str
    failed: bool
    would_block: bool
    recheck: bool
    reason: str | None
    duration_ms: float
    hook_count: int
    blockers: str | None
    failing: str | None
    tool_use_id: str | None = None
    turn: int | None = None
    """The event that started its turn, if that is near."""


class Found(Struct, frozen=True, kw_only=True):
    """What a search found, and how far it came."""

    events: list[EventRow]
    next: int | None
    """Events before this id are not searched yet; None if there are none."""
    searched_to: dict[str, float] | None
    """The id and the time of the oldest event that was looked at."""
    complete: bool
    """False if the time was used up."""


def search_back(
    reader: JournalReader,
    wanted: EventSearch,
    *,
    before: int | None,
    limit: int,
    budget_s: float,
) -> Found:
    """The newest events that match, of those before an id."""
    walk = _Walk(reader, wanted, time.monotonic() + budget_s)
    low, high = walk.bounds(before)
    ids: list[int] = []
    is_full = is_late = False
    while high >= low and not (is_full or is_late):
        start, found = walk.range_down(low, high, limit - len(ids))
        ids += found
        is_full, is_late = len(ids) >= limit, walk.is_late
        high = (ids[-1] if is_full else start) - 1
    rows = _rows(reader, ids)
    if rows and len(rows) < len(ids):
        high, is_full = rows[-1].id - 1, False
    rest = high >= low
    return Found(
        events=rows,
        next=high + 1 if rest else None,
        searched_to=_place(reader.connection, high + 1) if rest else None,
        complete=is_full or not rest,
    )


def search_after(
    reader: JournalReader, wanted: EventSearch, after: int, limit: int
) -> tuple[list[EventRow], int]:
    """The next events that match after an id, oldest first, and the last id looked at.

    Meant for the few that were recorded since the last look: it looks at a bounded
    number.
    """
    last = min(newest_id(reader), after + _MOST_AFTER)
    where, values = wanted.where()
    query = f"SELECT id FROM events WHERE {where} ORDER BY id LIMIT :limit"  # noqa: S608 - our names
    _add_functions(reader)
    values |= {"low": after + 1, "high": last, "limit": limit}
    ids = [row[0] for row in reader.connection.execute(query, values)]
    rows = _rows(reader, ids)
    if rows and len(rows) < len(ids):
        return rows, rows[-1].id
    return rows, ids[-1] if len(ids) == limit else last


def newest_id(reader: JournalReader) -> int:
    """The id of the newest event that a page can name; 0 if there is none."""
    return int(reader.connection.execute(_EDGES).fetchone()[1] or 0)


_EDGES = f"""
SELECT (SELECT min(id) FROM events WHERE id > 0),
       (SELECT max(id) FROM events WHERE id BETWEEN 1 AND {_LAST_ID})
"""  # noqa: S608 - ours


class _Walk:
    """One search: ranges of ids, as large as can be read in a short time."""

    def __init__(
        self, reader: JournalReader, wanted: EventSearch, deadline: float
    ) -> None:
        self._connection = reader.connection
        self._wanted = wanted
        self._deadline = deadline
        self._size = _FIRST_RANGE
        where, self._values = wanted.where()
        order = "ORDER BY id DESC LIMIT :limit"
        self._query = f"SELECT id FROM events WHERE {where} {order}"  # noqa: S608 - our names
        _add_functions(reader)

    @property
    def is_late(self) -> bool:
        """Whether the time is used up."""
        return time.monotonic() >= self._deadline

    def bounds(self, before: int | None) -> tuple[int, int]:
        """The first and the last id to look at; there are none if first > last."""
        first, last = self._connection.execute(_EDGES).fetchone()
        if first is None or last is None:
            return 1, 0
        wanted, tops = self._wanted, [last]
        if before is not None:
            tops.append(before - 1)
        if wanted.since is not None:
            first = self._edge("min", "at >= ?", wanted.since, first)
        if wanted.until is not None:
            tops.append(self._edge("max", "at <= ?", wanted.until, last))
        return first, min(tops)

    def range_down(self, low: int, high: int, limit: int) -> tuple[int, list[int]]:
        """The ids that match in a range that ends at ``high``, and where it starts."""
        while True:
            start = max(low, high - self._size + 1)
            found = self._timed(start, high, limit)
            if found is not None:
                return start, found
            self._size = max(self._size // 16, 1)

    def _timed(self, low: int, high: int, limit: int) -> list[int] | None:
        """The ids that match, newest first; None if it took too long."""
        started = time.monotonic()
        values = {**self._values, "low": low, "high": high, "limit": limit}
        longest = _LONGEST_S if self._size > 1 else None
        rows = fetch_within(longest, self._connection, self._query, values)
        took = time.monotonic() - started
        if took < _TARGET_S / 2:
            self._size *= 4
        elif took > _TARGET_S * 2:
            self._size = max(self._size // 2, 1)
        return None if rows is None else [row[0] for row in rows]

    def _edge(self, which: str, condition: str, at: float, otherwise: int) -> int:
        """The first or last id of a time; the given one if that is not soon found."""
        # The plus makes SQLite use the index of times, not the order of ids.
        query = f"SELECT {which}(+id) FROM events WHERE {condition}"  # noqa: S608 - ours
        rows = fetch_within(_TARGET_S, self._connection, query, (at,))
        if rows is None:
            return otherwise
        nothing = sys.maxsize if which == "min" else -1
        return nothing if rows[0][0] is None else int(rows[0][0])


def fetch_within(
    seconds: float | None,
    connection: Connection,
    query: str,
    values: dict[str, Any] | tuple[Any, ...],
) -> list[Row] | None:
    """All rows of a query; None if it took longer."""
    if seconds is not None:
        end = time.monotonic() + seconds
        connection.set_progress_handler(lambda: time.monotonic() > end, _TICK_STEPS)
    try:
        return connection.execute(query, values).fetchall()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return None
    finally:
        connection.set_progress_handler(None, 0)


_INPUT_OF_TOOL = (
    f"CASE WHEN target IS NOT NULL AND input_bytes <= {_LARGEST_INPUT} "
    "THEN input END AS input"
)
_ROW = ", ".join(
    [
        *("id", "at", "failed", "duration_ms", "hook_count"),
        *(f"substr({name}, 1, {size}) AS {name}" for name, size in _CUT.items()),
        *HOOKS_OF_EVENT.values(),
        _INPUT_OF_TOOL,
    ]
)


_SELECT_ROW = f"SELECT {_ROW} FROM events WHERE id = ?"  # noqa: S608 - our names


def _rows(reader: JournalReader, ids: list[int]) -> list[EventRow]:
    """The rows of events, the first ones that there is time for: one can be huge."""
    deadline = time.monotonic() + _ROWS_S
    found: list[EventRow] = []
    for event_id in ids:
        row = reader.connection.execute(_SELECT_ROW, (event_id,)).fetchone()
        if row is not None:  # old events may be deleted meanwhile
            found.append(_row(row, reader))
        if found and time.monotonic() > deadline:
            break
    return _with_turns(reader.connection, found)


def _row(row: Row, reader: JournalReader) -> EventRow:
    try:
        return _sound_row(row, reader)
    except ValueError as error:
        return _damaged_row(row["id"], error)


def _sound_row(row: Row, reader: JournalReader) -> EventRow:
    values = dict(row)
    text = values.pop("input")
    for name in HOOKS_OF_EVENT:
        values[name] = values[name] and values[name][:_LONGEST_NAME]
    values["would_block"] = values.pop("observers") is not None
    values["recheck"] = values.pop("rechecked") is not None
    values["tool_use_id"] = None if text is None else _tool_use_id(text)
    values["project"] = ""
    found = msgspec.convert(values, EventRow, strict=False)  # a flag is 0 or 1
    if not is_time(found.at) or not isfinite(found.duration_ms):
        raise ValueError("its time is not valid")
    return msgspec.structs.replace(found, project=reader.project_of(found.cwd))


def _damaged_row(event_id: int, error: Exception) -> EventRow:
    """What a list says of an event whose record cannot be read."""
    return EventRow(
        id=event_id,
        at=0,
        event="?",
        target=None,
        session="",
        cwd="",
        project="",
        verdict="damaged",
        failed=True,
        would_block=False,
        recheck=False,
        reason=f"event {event_id} is damaged: {error}"[: _CUT["reason"]],
        duration_ms=0,
        hook_count=0,
        blockers=None,
        failing=None,
    )


def is_time(value: object) -> bool:
    """Whether it is a number of seconds that dates can be made of."""
    return isinstance(value, float | int) and abs(value) <= _LAST_TIME


class _Input(Struct):
    tool_use_id: str | None = None


_read_input = msgspec.json.Decoder(_Input).decode


def _tool_use_id(text: str) -> str | None:
    try:
        found = _read_input(text).tool_use_id
    except (ValueError, RecursionError):
        return None  # a truncated input, or a host with another idea of it
    return found and found[:_LONGEST_NAME]


def _with_turns(connection: Connection, rows: list[EventRow]) -> list[EventRow]:
    """Add the starts of turns, as far as they are near."""
    ids = [row.id for row in rows]
    if not ids or max(ids) - min(ids) > _TURN_IDS:
        return rows
    span = min(ids) - _TURN_IDS, max(ids)
    starts: dict[str, list[int]] = {}
    for event_id, session in fetch_within(_TURNS_S, connection, _TURNS, span) or ():
        starts.setdefault(session, []).append(event_id)
    return [
        msgspec.structs.replace(row, turn=_last_before(starts.get(row.session), row.id))
        for row in rows
    ]


_TURNS = (
    f"SELECT id, substr(session, 1, {_LONGEST_NAME}) FROM events "  # noqa: S608 - ours
    "WHERE id BETWEEN ? AND ? AND event = 'BeforeAgent' ORDER BY id"
)


def _last_before(ids: list[int] | None, event_id: int) -> int | None:
    found = bisect_right(ids or (), event_id)
    return ids[found - 1] if ids and found else None


def _place(connection: Connection, event_id: int) -> dict[str, float] | None:
    query = "SELECT id, at FROM events WHERE id >= ? ORDER BY id LIMIT 1"
    row = connection.execute(query, (event_id,)).fetchone()
    if row is None or not is_time(row[1]):
        return None
    return {"id": row[0], "at": row[1]}


def _add_functions(reader: JournalReader) -> None:
    def project_of(cwd: bytes) -> str:
        return reader.project_of(cwd.decode("utf-8", "replace"))

    reader.connection.create_function("project_of", 1, project_of, deterministic=True)
