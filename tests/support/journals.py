"""Journals of many events, made by SQL: a million within a few seconds."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

from hookline.journal.store import open_for_writing

EVENTS = ("BeforeTool", "AfterTool", "BeforeModel", "AfterModel", "BeforeAgent")
TOOLS = ("write_file", "run_shell_command", "read_file", "web_fetch")
EVENTS_PER_SESSION = 500
NEWEST = 1_790_000_000.0
"""When the newest event happened; each is a second after the one before it."""

_EFFECTS = json.dumps({"blocked": False, "stop": False, "ask": False, "changes": {}})
_PICK = "CASE i % {n} {cases} END"

_EVENTS = """
WITH RECURSIVE numbers(i) AS (
  SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < :count
)
INSERT INTO events
SELECT i, :newest - :count + i, {event}, {tool}, 's-' || (i / {per_session}),
  '/shop/project-' || (i / 5000 % 7), {verdict}, i % 97 = 0, i % 211 = 0, 0,
  CASE WHEN i % 97 = 0 THEN 'the guard says no to number ' || i END,
  12.5 + i % 40, :hooks, {input}, 400, 0, 0, 0, 0, :effects, NULL, NULL, '[]'
FROM numbers
"""
_HOOKS = """
INSERT INTO hooks (event_id, position, name, source, type, success, failed, blocked,
  would_block, exit_code, timed_out, truncated, reran, duration_ms, output, stderr)
SELECT id, :position, 'hook-' || (id % 5), 'user', 'command', 1, failed, blocked,
  id % 301 = 0, 0, 0, 0, 0, 10 + id % 40,
  CASE WHEN blocked THEN json_object('decision', 'block') END, NULL
FROM events
"""


def make_journal(
    path: Path, events: int, *, hooks: int = 1, input_bytes: int = 400
) -> Path:
    """Write a journal of so many events, the newest at ``NEWEST``."""
    fields = {
        "event": _pick(EVENTS),
        "tool": f"CASE WHEN i % 5 < 2 THEN {_pick(TOOLS)} END",
        "verdict": "CASE WHEN i % 97 = 0 THEN 'blocked' ELSE 'allowed' END",
        "input": _input(input_bytes),
        "per_session": EVENTS_PER_SESSION,
    }
    given = {"count": events, "newest": NEWEST, "hooks": hooks, "effects": _EFFECTS}
    with closing(open_for_writing(str(path))) as connection:
        connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF")
        connection.execute(_EVENTS.format(**fields), given)
        for position in range(hooks):
            connection.execute(_HOOKS, {"position": position})
        connection.execute("PRAGMA journal_mode=WAL")
    return path


def change(path: Path, statement: str, *values: object) -> None:
    """Change the rows of a journal, such as those of one event."""
    with closing(open_for_writing(str(path))) as connection:
        _change(connection, statement, values)


def _change(connection: Connection, statement: str, values: tuple[object, ...]) -> None:
    connection.execute(statement, values)


def _pick(names: tuple[str, ...]) -> str:
    cases = " ".join(f"WHEN {n} THEN '{name}'" for n, name in enumerate(names))
    return _PICK.format(n=len(names), cases=cases)


def _input(size: int) -> str:
    """An input as hooks get it, with a text that makes it so large."""
    return (
        '\'{"session_id":"s-\' || (i / 500) || \'","tool_name":"write_file",'
        '"tool_input":{"path":"notes-\' || i || \'.md","text":"\' || '
        f"substr(hex(zeroblob({size // 2})), 1, {max(size - 100, 0)}) || '\"}}}}'"
    )
