"""Change files of other programs, and remember what is needed to undo it.

A file is complete at every moment, and keeps its mode and the link that leads to it.
What cannot be seen in a file later (that we made it, how an empty object in it was
written) is kept in the user's state folder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hookline._internal.state_files import (
    file_name,
    read_private,
    remove,
    state_dir,
    write_private,
)
from hookline.errors import HooklineError, SettingsError
from hookline.settings.places import is_within
from hookline.settings.read import read_bytes


class ChangedMeanwhileError(SettingsError):
    """Another program wrote a file since it was read."""


class Record(Struct, frozen=True, kw_only=True):
    """What the state folder holds about a file that install wrote."""

    path: str
    digest: str
    """Of the file as it was written."""
    created: bool = False
    folders: tuple[str, ...] = ()
    """The folders that were made for it, innermost first."""
    original: bytes | None = None
    """The content before, where taking our hooks out would not give it back."""


class Change(Struct, frozen=True, kw_only=True):
    """What to do with one file."""

    path: str
    before: bytes | None
    """None if the file does not exist."""
    after: bytes | None
    """None to remove the file."""
    record: Record | None = None
    """What to remember about it; None: nothing any more."""
    executable: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether it changes anything."""
        return self.before != self.after


def digest(content: bytes) -> str:
    """What tells two contents apart."""
    return hashlib.sha256(content).hexdigest()


def _record_file(path: str) -> str | None:
    folder = state_dir()
    return None if folder is None else f"{folder}/installed/{file_name(path)}.json"


def load_record(path: str) -> Record | None:
    """What is known about a file; None where nothing is, or it cannot be used."""
    record = _read_record(_record_file(path))
    return record if record is not None and record.path == path else None


def recorded_files() -> Iterator[str]:
    """The files that install wrote for this user, in all projects, and that exist."""
    folder = f"{state_dir() or os.devnull}/installed"
    with suppress(OSError):
        for name in sorted(os.listdir(folder)):  # noqa: PTH208
            record = _read_record(f"{folder}/{name}")
            if record is not None and os.path.lexists(record.path):
                yield record.path


def _read_record(file: str | None) -> Record | None:
    with suppress(HooklineError, msgspec.MsgspecError):
        content = None if file is None else read_private(file)
        return msgspec.json.decode(content or b"", type=Record)
    return None


def read_inside(path: str, root: str | None) -> bytes | None:
    """Read a file, None where it is missing; refuse one that leads out of ``root``."""
    target = os.path.realpath(path)
    if root is not None and not is_within(target, root):
        problem = f"links to {target}, which is outside of the project"
        raise SettingsError(f"{problem}: replace the link by a file", path)
    return read_bytes(path) if os.path.lexists(target) else None


def apply(changes: Iterable[Change]) -> None:
    """Make changes; each file is complete at every moment."""
    unused: set[str] = set()
    for change in changes:
        require_unchanged(change)
        record = change.record
        if change.after is None:
            installed = load_record(change.path)
            unused.update(installed.folders if installed else ())
            try:
                os.unlink(os.path.realpath(change.path))  # noqa: PTH108
            except OSError as error:
                problem = f"cannot be removed: {error.strerror}"
                raise SettingsError(problem, change.path) from error
        else:
            folders = _write(change)
            if record is not None and folders:
                record = replace(record, folders=folders)
        record_file = _record_file(change.path)
        if record_file is not None and record is not None:
            folder = os.path.dirname(record_file)  # noqa: PTH120
            _make_folders(folder, 0o700)
            write_private(record_file, msgspec.json.encode(record))
            _give_to(record_file, os.stat(folder))  # noqa: PTH116
        elif record_file is not None and os.path.lexists(record_file):
            remove(record_file)
    _remove_folders(sorted(unused, key=len, reverse=True))


def require_unchanged(change: Change) -> None:
    """Raise if another program wrote the file since we read it, or we may not."""
    target = os.path.realpath(change.path)
    try:
        if change.before is not None:
            open(target, "r+b").close()  # noqa: PTH123
    except PermissionError as error:
        # Replacing it would get around the mode that somebody has set.
        problem = "is read-only for you: run chmod u+w on it, or do this as its owner"
        raise SettingsError(problem, change.path) from error
    except FileNotFoundError:
        pass
    content = read_bytes(target) if os.path.lexists(target) else None
    if content != change.before:
        raise ChangedMeanwhileError("changed in the meantime: try again", change.path)


def _write(change: Change) -> tuple[str, ...]:
    """Write a file and give it to its owner; the folders that were made for it."""
    target = os.path.realpath(change.path)
    folder, name = os.path.split(target)
    temporary = f"{folder}/.{name[:100]}.{os.getpid()}.{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    folders = _make_folders(folder)
    try:
        owner = os.stat(folder)  # noqa: PTH116
        mode = 0o755 if change.executable else 0o644
        with suppress(FileNotFoundError):
            owner = os.stat(target)  # noqa: PTH116
            mode = owner.st_mode & 0o7777
        with open(os.open(temporary, flags, 0o600), "wb") as file:  # noqa: PTH123
            file.write(change.after or b"")
            file.flush()
            os.fsync(file.fileno())
        _give_to(temporary, owner)
        os.chmod(temporary, mode)  # noqa: PTH101
        require_unchanged(change)  # others may have written meanwhile
        os.replace(temporary, target)  # noqa: PTH105
    except (OSError, SettingsError) as error:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        _remove_folders(folders)
        if isinstance(error, SettingsError):
            raise
        problem = f"cannot be written: {error.strerror}"
        raise SettingsError(problem, change.path) from error
    return folders


def _give_to(path: str, owner: os.stat_result) -> None:
    """With ``sudo`` a user's file stays the user's."""
    if os.geteuid() == 0:
        os.chown(path, owner.st_uid, owner.st_gid)


def _make_folders(folder: str, mode: int = 0o777) -> tuple[str, ...]:
    """Make a folder; which ones were missing, innermost first."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)  # noqa: PTH120
    for path in reversed(missing):
        try:
            os.mkdir(path, mode)  # noqa: PTH102
            _give_to(path, os.stat(os.path.dirname(path)))  # noqa: PTH116, PTH120
        except OSError as error:
            raise SettingsError(f"cannot be made: {error.strerror}", path) from error
    return tuple(missing)


def _remove_folders(folders: Iterable[str]) -> None:
    for folder in folders:
        with suppress(OSError):  # others use it
            os.rmdir(folder)  # noqa: PTH106
