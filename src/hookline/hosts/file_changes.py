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

_READ_ONLY = "is read-only for you: run chmod u+w on it, or do this as its owner"


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

    @property
    def restores(self) -> bool:
        """Whether ``original`` is what was there: None means no file."""
        return self.created or self.original is not None


class Change(Struct, frozen=True, kw_only=True):
    """What to do with one file."""

    path: str
    before: bytes | None
    """None if the file does not exist."""
    after: bytes | None
    """None to remove the file."""
    record: Record | None = None
    """What to remember about it."""
    executable: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether it changes anything."""
        return self.before != self.after


def digest(content: bytes) -> str:
    """What tells two contents apart."""
    return hashlib.sha256(content).hexdigest()


def _record_path(path: str) -> str | None:
    folder = state_dir()
    return None if folder is None else f"{folder}/installed/{file_name(path)}.json"


def load_record(path: str) -> Record | None:
    """What is known about a file; None where nothing is, or it cannot be used."""
    place = _record_path(path)
    try:
        content = None if place is None else read_private(place)
        record = None if content is None else msgspec.json.decode(content, type=Record)
    except (HooklineError, msgspec.MsgspecError):
        return None
    return record if record is not None and record.path == path else None


def recorded_files() -> Iterator[str]:
    """The files that install wrote for this user, in all projects, and that exist."""
    folder = state_dir()
    try:
        names = sorted(os.listdir(f"{folder}/installed")) if folder else []  # noqa: PTH208
    except OSError:
        return
    for name in names:
        with suppress(HooklineError, msgspec.MsgspecError):
            content = read_private(f"{folder}/installed/{name}")
            path = msgspec.json.decode(content or b"", type=Record).path
            if os.path.lexists(path):
                yield path


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
        target = os.path.realpath(change.path)
        require_unchanged(change)
        if change.after is None:
            _delete(change, target)
            unused.update(change.record.folders if change.record else ())
        else:
            _put(change, target)
    _remove_folders(sorted(unused, key=len, reverse=True))


def _put(change: Change, target: str) -> None:
    folders = _make_folders(os.path.dirname(target))  # noqa: PTH120
    try:
        _write(target, change)
    except SettingsError:
        _remove_folders(folders)
        raise
    except OSError as error:
        _remove_folders(folders)
        problem = f"cannot be written: {error.strerror}"
        raise SettingsError(problem, change.path) from error
    _remember(change, folders)


def _write(target: str, change: Change) -> None:
    mode = 0o755 if change.executable else 0o644
    folder, name = os.path.split(target)
    owner = os.stat(folder)  # noqa: PTH116
    with suppress(FileNotFoundError):
        owner = os.stat(target)  # noqa: PTH116
        mode = owner.st_mode & 0o7777
    temporary = f"{folder}/.{name[:100]}.{os.getpid()}.{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    try:
        with open(os.open(temporary, flags, 0o600), "wb") as file:  # noqa: PTH123
            file.write(change.after or b"")
            file.flush()
            os.fsync(file.fileno())
        _give_to(temporary, owner)
        os.chmod(temporary, mode)  # noqa: PTH101
        require_unchanged(change)  # others may have written meanwhile
        os.replace(temporary, target)  # noqa: PTH105
    except (OSError, SettingsError):
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise


def _give_to(path: str, owner: os.stat_result) -> None:
    """With ``sudo`` a user's file stays the user's."""
    if os.geteuid() == 0:
        os.chown(path, owner.st_uid, owner.st_gid)


def require_unchanged(change: Change) -> None:
    """Raise if another program wrote the file since we read it, or we may not."""
    target = os.path.realpath(change.path)
    try:
        if change.before is not None:
            open(target, "r+b").close()  # noqa: PTH123
    except PermissionError as error:
        # Replacing it would get around the mode that somebody has set.
        raise SettingsError(_READ_ONLY, change.path) from error
    except FileNotFoundError:
        pass
    content = read_bytes(target) if os.path.lexists(target) else None
    if content != change.before:
        raise ChangedMeanwhileError("changed in the meantime: try again", change.path)


def _delete(change: Change, target: str) -> None:
    try:
        os.unlink(target)  # noqa: PTH108
    except OSError as error:
        problem = f"cannot be removed: {error.strerror}"
        raise SettingsError(problem, change.path) from error
    _forget(change.path)


def _remember(change: Change, new_folders: tuple[str, ...]) -> None:
    place = _record_path(change.path)
    if change.record is None or place is None:
        return
    if change.record.digest != digest(change.after or b""):
        _forget(change.path)  # after uninstalling
        return
    folders = new_folders or change.record.folders
    record = msgspec.structs.replace(change.record, folders=folders)
    folder = os.path.dirname(place)  # noqa: PTH120
    _make_folders(folder, 0o700)
    write_private(place, msgspec.json.encode(record))
    _give_to(place, os.stat(folder))  # noqa: PTH116


def _forget(path: str) -> None:
    place = _record_path(path)
    if place is not None:
        remove(place)


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
