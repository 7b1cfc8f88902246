"""Count what is in the journal: its events, and the values they have."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Struct

from .query import EventFilter, JournalReader
from .search import fetch_within, is_time, newest_id

_FACET_S = 0.3
_LONGEST_VALUE = 300
_MOST_VALUES = 100
_MOST_COUNTED = 2_000_000
"""SQLite counts about 60 events in a microsecond."""


def count_events(reader: JournalReader) -> dict[str, Any]:
    """How many events there are, and when the oldest and the newest happened.

    ``about`` says that the number is an estimate: to count them would take too long.
    """
    edge = "SELECT id, at FROM events ORDER BY id"
    oldest = reader.connection.execute(f"{edge} LIMIT 1").fetchone()
    newest = reader.connection.execute(f"{edge} DESC LIMIT 1").fetchone()
    if oldest is None:
        return {"events": 0, "about": False, "oldest": None, "newest": None}
    count = newest["id"] - oldest["id"] + 1
    about = count > _MOST_COUNTED
    return {
        "events": count if about else reader.count(EventFilter()),
        "about": about,
        "oldest": oldest["at"] if is_time(oldest["at"]) else None,
        "newest": newest["at"] if is_time(newest["at"]) else None,
    }


Counts = list[tuple[str, int]]


class FacetCounts(Struct, frozen=True, kw_only=True):
    """The values that the newest events have, the most frequent first."""

    of: int = 0
    """How many events were looked at."""
    projects: Counts = []
    sessions: Counts = []
    events: Counts = []
    tools: Counts = []
    hooks: Counts = []
    verdicts: Counts = []


def count_values(reader: JournalReader, newest: int) -> FacetCounts:
    """Count the values of the newest events.

    Very long ones are left out, and kinds of values that take too long to count.
    """
    first, connection = newest_id(reader) - newest + 1, reader.connection

    def count(query: str) -> Counts:
        rows = fetch_within(_FACET_S, connection, query, (first,))
        return [(row[0], row[1]) for row in rows or () if row[1]]

    projects: Counter[str] = Counter()
    for cwd, times in count(_COUNT_VALUES.format("cwd")):
        projects[reader.project_of(cwd)] += times
    return FacetCounts(
        of=sum(times for _, times in count(_COUNT_ALL)),
        projects=projects.most_common(),
        sessions=count(_COUNT_VALUES.format("session")),
        events=count(_COUNT_VALUES.format("event")),
        tools=count(_COUNT_VALUES.format("target")),
        hooks=count(_COUNT_HOOKS),
        verdicts=[
            *count(_COUNT_VALUES.format("verdict")),
            *count(_COUNT_FAILED),
            *count(_COUNT_WOULD_BLOCK),
        ],
    )


# With the cast, which damaged values need, SQLite does not use the index of a name:
# that holds all events.
_MOST_FREQUENT = f"GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {_MOST_VALUES}"
_COUNT_VALUES = (
    "SELECT CAST({0} AS TEXT), count(*) FROM events WHERE id >= ? "  # noqa: S608 - ours
    f"AND length({{0}}) <= {_LONGEST_VALUE} {_MOST_FREQUENT}"
)
_COUNT_HOOKS = (
    "SELECT CAST(name AS TEXT), count(*) FROM hooks WHERE event_id >= ? "  # noqa: S608 - ours
    f"AND length(name) <= {_LONGEST_VALUE} {_MOST_FREQUENT}"
)
_COUNT_ALL = "SELECT 'all', count(*) FROM events WHERE id >= ?"
_COUNT_FAILED = "SELECT 'failed', count(*) FROM events WHERE id >= ? AND failed"
_COUNT_WOULD_BLOCK = (
    "SELECT 'would-block', count(DISTINCT event_id) FROM hooks "
    "WHERE event_id >= ? AND would_block"
)
