"""The journal's SQLite file: its path, its tables, and opening it."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from sqlite3 import Connection
from urllib.parse import quote

from hookline._internal.state_files import file_name, make_folder, state_dir
from hookline.errors import JournalError, StateFileError
from hookline.settings.places import PROJECT_FOLDER, outermost_project

_APPLICATION_ID = 0x486F6F6B
"""``Hook``, in the header of every journal."""
_VERSION = 4

_MAGIC = b"SQLite format 3\x00"
_APPLICATION_ID_BYTES = slice(68, 72)
_HEADER_BYTES = 100

_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""Of the names of a journal's files."""

_TABLES = """
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL, event TEXT NOT NULL, target TEXT,
  session TEXT NOT NULL, cwd TEXT NOT NULL,
  verdict TEXT NOT NULL, blocked INTEGER NOT NULL, failed INTEGER NOT NULL,
  in_code INTEGER NOT NULL, reason TEXT,
  duration_ms REAL NOT NULL, hook_count INTEGER NOT NULL,
  input TEXT NOT NULL, input_bytes INTEGER NOT NULL,
  input_masked INTEGER NOT NULL, input_cut INTEGER NOT NULL,
  output_masked INTEGER NOT NULL, output_cut INTEGER NOT NULL,
  effects TEXT NOT NULL, final TEXT, plan TEXT, errors TEXT NOT NULL
);
CREATE INDEX events_at ON events (at);
CREATE INDEX events_session ON events (session);
CREATE TABLE hooks (
  event_id INTEGER NOT NULL REFERENCES events (id), position INTEGER NOT NULL,
  name TEXT NOT NULL, source TEXT NOT NULL, type TEXT NOT NULL,
  success INTEGER NOT NULL, failed INTEGER NOT NULL,
  blocked INTEGER NOT NULL, would_block INTEGER NOT NULL,
  exit_code INTEGER, timed_out INTEGER NOT NULL,
  truncated INTEGER NOT NULL, reran INTEGER NOT NULL, duration_ms REAL NOT NULL,
  output TEXT, stdout TEXT, stderr TEXT, error TEXT,
  recheck INTEGER NOT NULL DEFAULT 0, is_async INTEGER NOT NULL DEFAULT 0,
  standby_hit INTEGER NOT NULL DEFAULT 0, standby_miss INTEGER NOT NULL DEFAULT 0,
  observed INTEGER NOT NULL DEFAULT 0, warnings TEXT,
  PRIMARY KEY (event_id, position)
) WITHOUT ROWID;
CREATE INDEX hooks_name ON hooks (name);
"""

_PRIVATE = 0o600
_BUSY_TIMEOUT_S = 10.0
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_ADVICE = "move it and its -wal and -shm files elsewhere to start a new one"
FILE_NAME = "journal.sqlite"
REPLAY_VARIABLE = "HOOKLINE_REPLAY"
"""Set for the hooks of a replay; nothing is recorded while it is set."""


def journal_path(option: bool | str, working_dir: str) -> str:
    """The file of ``hooksConfig.journal``; a relative path is the project's.

    One in ``.hookline`` is kept in the state folder instead: everything in there is
    pinned by trust, and a journal changes with every event (decision 0097).
    """
    if not isinstance(option, str) or not option.strip():
        return os.path.join(_state_folder(), FILE_NAME)  # noqa: PTH118
    path = os.path.join(working_dir, os.path.expanduser(option))  # noqa: PTH111, PTH118
    parts = os.path.normpath(path).partition(f"/{PROJECT_FOLDER}/")
    if not parts[1]:
        return path
    name = file_name(f"{os.path.realpath(parts[0])}{parts[1]}{parts[2]}")
    return f"{_state_folder()}/journals/{name}"


def journal_files(path: str) -> list[str]:
    """The files of a journal: itself, and SQLite's beside it."""
    beside = [path + suffix for suffix in _SUFFIXES[1:]]
    return [path, *filter(os.path.lexists, beside)]


def _state_folder() -> str:
    folder = state_dir()
    if folder is None:
        raise JournalError(FILE_NAME, "there is no home directory for it: set a path")
    return folder


def recording_path(option: bool | str, working_dir: str) -> str | None:
    """Where events are recorded; None for nowhere, as in a replay."""
    if not option or os.environ.get(REPLAY_VARIABLE):
        return None
    return journal_path(option, working_dir)


def open_for_writing(path: str) -> Connection:
    """Open a journal, or create one; raises ``JournalError``."""
    path = _safe_path(path)
    if not check_file(path):
        _create(path)
    connection = _connect(path)
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(f"PRAGMA journal_size_limit={4 * 1024 * 1024}")
    return connection


def open_for_reading(path: str) -> Connection:
    """Open a journal that exists; raises ``JournalError``."""
    path = _safe_path(path)
    if not check_file(path):
        raise JournalError(path, "does not exist: nothing has been recorded yet")
    connection = _connect(path)
    connection.execute("PRAGMA query_only=ON")
    return connection


def _safe_path(path: str) -> str:
    """Resolve a journal's path; raises ``JournalError`` if it follows a link.

    A project could make it lead anywhere. Above a project, and where nobody else
    writes, folders may be links.
    """
    path = os.path.abspath(path)  # noqa: PTH100
    folder, name = os.path.split(path)
    links = [f"{path}{suffix}" for suffix in _SUFFIXES]
    zone = outermost_project(folder)
    while zone is not None and folder != zone:
        links.append(folder)
        folder = os.path.dirname(folder)  # noqa: PTH120
    for link in filter(os.path.islink, links):
        problem = f"{link} is a symbolic link, which a journal never follows"
        raise JournalError(path, f"{problem}: name the file itself")
    for side in filter(_has_other_names, links[1 : len(_SUFFIXES)]):
        raise JournalError(path, f"{side} is also another file: remove it")
    return os.path.join(os.path.realpath(os.path.dirname(path)), name)  # noqa: PTH118, PTH120


def _has_other_names(path: str) -> bool:
    try:
        return os.stat(path).st_nlink > 1  # noqa: PTH116
    except OSError:
        return False  # SQLite removes its files whenever the last connection closes


def check_file(path: str) -> bool:
    """Whether a journal exists; raises ``JournalError`` if it is something else."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
            raise JournalError(path, "is not a regular file: choose another path")
        with open(path, "rb") as file:  # noqa: PTH123
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise JournalError(path, f"cannot be read: {_problem(error)}") from error
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        raise JournalError(path, f"is not a journal; {_ADVICE}")
    if header[_APPLICATION_ID_BYTES] != _APPLICATION_ID.to_bytes(4, "big"):
        raise JournalError(path, f"is a database of another program; {_ADVICE}")
    return True


def identity(path: str) -> tuple[int, int] | None:
    """Identifies a file; None if it does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def _connect(path: str) -> Connection:
    try:
        connection = sqlite3.connect(
            f"file:{quote(path)}?mode=rw",
            uri=True,
            timeout=_BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            _check_version(path, connection)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise damaged(path, error) from error
    return connection


def _check_version(path: str, connection: Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != _VERSION:
        problem = f"was written by another version of hookline (format {version})"
        raise JournalError(path, f"{problem}; {_ADVICE}")
    connection.execute("SELECT 1 FROM events, hooks LIMIT 1").fetchone()
    if stat.S_IMODE(os.stat(path).st_mode) != _PRIVATE:  # noqa: PTH116
        os.chmod(path, _PRIVATE)  # noqa: PTH101


def damaged(path: str, error: Exception) -> JournalError:
    """The error for what SQLite, or a reader of its rows, found wrong."""
    text = str(error)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    is_unreadable = not isinstance(error, sqlite3.Error)
    if is_unreadable or code in _DAMAGE or text.startswith("no such"):
        return JournalError(path, f"is damaged ({text}); {_ADVICE}")
    return JournalError(path, f"cannot be used: {text}")


def _create(path: str) -> None:
    """Create an empty journal under another name, then rename it."""
    folder, name = os.path.split(path)
    # A unique name: two processes may do this at the same time.
    new_path = f"{folder}/.{name[:100]}.{os.getpid()}.{os.urandom(6).hex()}"
    try:
        make_folder(folder)
        os.close(os.open(new_path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _PRIVATE))
        try:
            _fill(new_path)
            _give_name(new_path, path)
        finally:
            if os.path.lexists(new_path):
                os.unlink(new_path)  # noqa: PTH108
    except (OSError, StateFileError, ValueError) as error:
        raise JournalError(path, f"cannot be created: {_problem(error)}") from error


def _give_name(new_path: str, path: str) -> None:
    try:
        os.link(new_path, path)
    except FileExistsError:
        pass  # another process was first; use its journal
    except OSError:
        # The file system has no hard links: of two processes, one may lose its file.
        if not os.path.lexists(path):
            os.rename(new_path, path)  # noqa: PTH104


def _fill(path: str) -> None:
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={_VERSION}")
            connection.executescript(_TABLES)
            connection.execute("PRAGMA journal_mode=WAL")
    except sqlite3.Error as error:
        raise OSError(0, str(error)) from error


def _problem(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
