"""The tables of a journal, and the marks by which its file is known."""

from __future__ import annotations

APPLICATION_ID = 0x486F6F6B
"""``Hook``: stands in the header of every journal."""
VERSION = 1

MAGIC = b"SQLite format 3\x00"
APPLICATION_ID_AT = 68
HEADER_BYTES = 100

SIDE_FILES = ("", "-wal", "-shm", "-journal")
"""What the names of a journal's files end in."""

TABLES = """
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  event TEXT NOT NULL,
  target TEXT,
  session TEXT NOT NULL,
  cwd TEXT NOT NULL,
  verdict TEXT NOT NULL,
  blocked INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  in_code INTEGER NOT NULL,
  reason TEXT,
  duration_ms REAL NOT NULL,
  hook_count INTEGER NOT NULL,
  input TEXT NOT NULL,
  input_bytes INTEGER NOT NULL,
  input_masked INTEGER NOT NULL,
  input_cut INTEGER NOT NULL,
  output_masked INTEGER NOT NULL,
  output_cut INTEGER NOT NULL,
  effects TEXT NOT NULL,
  final TEXT,
  plan TEXT,
  errors TEXT NOT NULL
);
CREATE INDEX events_at ON events (at);
CREATE TABLE hooks (
  event_id INTEGER NOT NULL REFERENCES events (id),
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  source TEXT NOT NULL,
  type TEXT NOT NULL,
  success INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  blocked INTEGER NOT NULL,
  would_block INTEGER NOT NULL,
  exit_code INTEGER,
  timed_out INTEGER NOT NULL,
  truncated INTEGER NOT NULL,
  reran INTEGER NOT NULL,
  duration_ms REAL NOT NULL,
  output TEXT,
  stdout TEXT,
  stderr TEXT,
  error TEXT,
  PRIMARY KEY (event_id, position)
) WITHOUT ROWID;
CREATE INDEX hooks_name ON hooks (name);
"""
