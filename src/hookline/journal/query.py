"""Read the journal: entries, and figures about hooks."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import ceil
from sqlite3 import Connection, Row
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from hookline.errors import JournalError
from hookline.protocol.jsontext import decode

from .rows import Verdict
from .store import damaged, open_for_reading

_read_verdict = msgspec.json.Decoder(Verdict).decode


class EventFilter(Struct, frozen=True, kw_only=True):
    """Which events are wanted; names may hold ``*`` and ``?``."""

    event: str | None = None
    tool: str | None = None
    hook: str | None = None
    session: str | None = None
    blocked: bool = False
    failed: bool = False
    since: float | None = None
    folders: tuple[str, ...] = ()
    after_id: int | None = None

    def where(self) -> tuple[str, list[Any]]:
        """The condition in SQL and its values."""
        wanted: list[tuple[str, list[Any]]] = [
            ("event = ?", _given(self.event)),
            ("target GLOB ?", _given(self.tool)),
            ("session GLOB ?", _given(self.session)),
            ("at >= ?", _given(self.since)),
            ("id > ?", _given(self.after_id)),
            (_HOOK_RAN, _given(self.hook)),
            ("blocked = ?", [1] if self.blocked else []),
            ("failed = ?", [1] if self.failed else []),
            (f"cwd IN ({', '.join('?' * len(self.folders))})", list(self.folders)),
        ]
        used = [(text, values) for text, values in wanted if values]
        text = " AND ".join(text for text, _ in used) or "1"
        return text, [value for _, values in used for value in values]


_TICK_STEPS = 100_000
"""Of SQLite's machine; some milliseconds."""
_HOOK_RAN = "EXISTS (SELECT 1 FROM hooks WHERE event_id = id AND name GLOB ?)"


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
    """Whether a hook took part that is registered in the host's code."""
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


class FullEntry(Struct, frozen=True, kw_only=True):
    """All that is recorded of one event."""

    entry: Entry
    input: dict[str, Any]
    decided: Verdict
    final_output: dict[str, Any] | None
    plan: dict[str, Any] | None
    errors: list[dict[str, Any]]
    hooks: list[dict[str, Any]]


_NAMES = "(SELECT group_concat(name, ', ') FROM hooks WHERE event_id = id AND hooks."
_COLUMNS = ", ".join(
    {
        **{name: name for name in Entry.__struct_fields__},
        "blockers": f"{_NAMES}blocked) AS blockers",
        "failing": f"{_NAMES}failed) AS failing",
    }.values()
)
_FLAGS = frozenset(
    name for name, kind in Entry.__annotations__.items() if kind == "bool"
)
_HOOK_FLAGS = frozenset(
    {"success", "failed", "blocked", "would_block", "timed_out", "truncated", "reran"}
)


class JournalReader:
    """Looks things up in one journal."""

    def __init__(self, path: str, connection: Connection) -> None:
        self.path = path
        self._connection = connection

    def count(self, wanted: EventFilter) -> int:
        """How many events there are."""
        where, values = wanted.where()
        query = f"SELECT count(*) FROM events WHERE {where}"  # noqa: S608 - our words
        return int(self._connection.execute(query, values).fetchone()[0])

    def newest(self, wanted: EventFilter, limit: int | None) -> list[Entry]:
        """The last events, in the order in which they happened."""
        where, values = wanted.where()
        query = (
            f"SELECT {_COLUMNS} FROM events WHERE {where} "  # noqa: S608 - our words
            "ORDER BY id DESC LIMIT ?"
        )
        most = -1 if limit is None else limit
        rows = self._connection.execute(query, [*values, most])
        return [_entry(row) for row in rows][::-1]

    def last_id(self) -> int:
        """The id of the newest event, whichever it is; 0 where there is none."""
        found = self._connection.execute("SELECT max(id) FROM events").fetchone()[0]
        return int(found or 0)

    def oldest(self, wanted: EventFilter) -> Iterator[Entry]:
        """All events, in the order in which they happened."""
        where, values = wanted.where()
        query = (
            f"SELECT {_COLUMNS} FROM events WHERE {where} "  # noqa: S608 - our words
            "ORDER BY id"
        )
        for row in self._connection.execute(query, values):
            yield _entry(row)

    def find(self, event_id: int) -> FullEntry | None:
        """Everything about one event."""
        query = (
            f"SELECT {_COLUMNS}, input, effects, final, plan, errors "  # noqa: S608
            "FROM events WHERE id = ?"
        )
        row = self._connection.execute(query, [event_id]).fetchone()
        if row is None:
            return None
        return FullEntry(
            entry=_entry(row),
            input=decode(row["input"]),
            decided=_read_verdict(row["effects"]),
            final_output=_decoded(row["final"]),
            plan=_decoded(row["plan"]),
            errors=decode(row["errors"]),
            hooks=self._hooks(event_id),
        )

    def runs(self, wanted: EventFilter) -> Iterator[Row]:
        """Every run of a hook, with its name, source and figures."""
        where, values = wanted.where()
        query = (
            "SELECT hooks.name, hooks.source, hooks.duration_ms, hooks.failed, "  # noqa: S608
            "hooks.blocked, hooks.would_block, hooks.timed_out FROM hooks "
            f"WHERE event_id IN (SELECT id FROM events WHERE {where})"
        )
        if wanted.hook is not None:
            query += " AND name GLOB ?"
            values.append(wanted.hook)
        yield from self._connection.execute(query, values)

    def span(self, wanted: EventFilter) -> tuple[int, float, float] | None:
        """How many events there are, and when the first and the last happened."""
        where, values = wanted.where()
        query = (
            "SELECT count(*), min(at), max(at) FROM events "  # noqa: S608 - our words
            f"WHERE {where}"
        )
        count, first, last = self._connection.execute(query, values).fetchone()
        return (count, first, last) if count else None

    def _hooks(self, event_id: int) -> list[dict[str, Any]]:
        query = "SELECT * FROM hooks WHERE event_id = ? ORDER BY position"
        rows = self._connection.execute(query, [event_id])
        return [_hook(dict(row)) for row in rows]


@contextmanager
def read_journal(
    path: str, tick: Callable[[], None] | None = None
) -> Iterator[JournalReader]:
    """Open a journal for reading; what is wrong with it is a ``JournalError``.

    ``tick`` is called every now and then while SQLite is at work.
    """
    connection = open_for_reading(path)
    connection.row_factory = Row
    connection.set_progress_handler(tick, _TICK_STEPS)
    try:
        yield JournalReader(path, connection)
    except sqlite3.Error as error:
        raise damaged(path, error) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise JournalError(path, f"holds what no journal does ({error})") from error
    finally:
        connection.close()


def _given(value: Any) -> list[Any]:
    return [] if value is None else [value]


def _entry(row: Row) -> Entry:
    values: dict[str, Any] = {
        name: bool(row[name]) if name in _FLAGS else row[name]
        for name in Entry.__struct_fields__
    }
    return Entry(**values)


def _hook(row: dict[str, Any]) -> dict[str, Any]:
    flagged = {k: bool(v) if k in _HOOK_FLAGS else v for k, v in row.items()}
    for key in ("event_id", "position"):
        del flagged[key]
    return flagged | {"output": _decoded(row["output"])}


def _decoded(text: str | None) -> Any:
    return None if text is None else decode(text)


class Run(Protocol):
    """One run of a hook, by the names of the journal's columns."""

    def __getitem__(self, column: str, /) -> Any:
        """The value of a column."""
        ...


class HookFigures(Struct, frozen=True, kw_only=True):
    """The runs of one hook, in numbers."""

    name: str
    source: str
    runs: int
    blocks: int
    would_block: int
    failures: int
    timeouts: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


class _Tally:
    """Counts while runs go by."""

    def __init__(self) -> None:
        self.durations = array("d")
        self.blocks = self.would_block = self.failures = self.timeouts = 0

    def add(self, run: Run) -> None:
        self.durations.append(run["duration_ms"])
        self.blocks += run["blocked"]
        self.would_block += run["would_block"]
        self.failures += run["failed"]
        self.timeouts += run["timed_out"]


def figures_of(runs: Iterable[Run]) -> list[HookFigures]:
    """Count the runs hook by hook, the most frequent first."""
    tallies: dict[tuple[str, str], _Tally] = {}
    for run in runs:
        tallies.setdefault((run["name"], run["source"]), _Tally()).add(run)
    found = [_figures(*key, tally) for key, tally in tallies.items()]
    return sorted(found, key=lambda f: (-f.runs, f.name, f.source))


def percentile(ordered: list[float], percent: float) -> float:
    """Read a percentile off values in ascending order."""
    return ordered[max(ceil(len(ordered) * percent / 100), 1) - 1]


def _figures(name: str, source: str, tally: _Tally) -> HookFigures:
    ordered = sorted(tally.durations)
    return HookFigures(
        name=name,
        source=source,
        runs=len(ordered),
        blocks=tally.blocks,
        would_block=tally.would_block,
        failures=tally.failures,
        timeouts=tally.timeouts,
        p50_ms=percentile(ordered, 50),
        p95_ms=percentile(ordered, 95),
        p99_ms=percentile(ordered, 99),
        max_ms=ordered[-1],
    )
