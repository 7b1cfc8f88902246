"""Where settings and state are kept, and how private files are read and written.

Private files lie outside every project. Each is written whole or not at all, is
readable by its owner alone, and is ignored where somebody else could have written it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath

from msgspec import Struct

from hookline.errors import SettingsError, StateFileError

from .model import HookSource

PROJECT_FOLDER = ".hookline"
SYSTEM_DIR = "/etc/hookline"
FILE_NAMES = ("settings.json", "settings.toml")


class SettingsPlaces(Struct, frozen=True, kw_only=True):
    """The directories that may hold a settings file."""

    project_dir: str | PathLike[str] | None = None
    """The project itself; its settings are in ``.hookline`` there."""
    user_dir: str | PathLike[str] | None = None
    """None is the platform's own, see ``default_user_dir``."""
    system_dir: str | PathLike[str] = SYSTEM_DIR

    def folders(self) -> dict[HookSource, str]:
        """Name the folder of each source, in priority order."""
        folders: dict[HookSource, str] = {}
        if self.project_dir is not None:
            project_dir = os.path.abspath(self.project_dir)  # noqa: PTH100 - a string
            folders[HookSource.PROJECT] = _inside(project_dir, PROJECT_FOLDER)
        if user_dir := self.user_dir or default_user_dir():
            folders[HookSource.USER] = fspath(user_dir)
        folders[HookSource.SYSTEM] = fspath(self.system_dir)
        return folders


def default_user_dir() -> str | None:
    """Find the user's configuration folder, if there is a home at all."""
    if sys.platform == "linux":
        folder = _linux_user_dir()
    else:
        import platformdirs

        folder = platformdirs.user_config_dir("hookline", appauthor=False)
    # A relative one would lie in whatever project the agent works on, and be trusted.
    return folder if os.path.isabs(folder) else None  # noqa: PTH117 - a string


def _linux_user_dir() -> str:
    # The same answer as platformdirs, which takes longer to import than a hook to run.
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    base = configured if configured.startswith("/") else "~/.config"
    return os.path.expanduser(_inside(base, "hookline"))  # noqa: PTH111 - a string


def _inside(folder: str | PathLike[str], name: str) -> str:
    return os.path.join(folder, name)  # noqa: PTH118 - a string


def find_settings_file(folder: str | PathLike[str]) -> str | None:
    """Find the settings file of one place; two of them are an error naming both."""
    files = [_inside(folder, name) for name in FILE_NAMES]
    found = [file for file in files if _is_there(file)]
    if len(found) > 1:
        both = " and ".join(found)
        raise SettingsError(f"there are both {both}: keep one of them", found[0])
    return found[0] if found else None


def _is_there(file: str) -> bool:
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        # Not to be allowed to look is not the same as nothing being there.
        problem = getattr(error, "strerror", None) or str(error)
        raise SettingsError(f"cannot be looked up: {problem}", file) from error
    return True


_LONGEST_NAME = 180
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def state_dir() -> str | None:
    """The user's folder for what programs remember, if there is a home at all."""
    if sys.platform == "linux":
        # The same answer as platformdirs, which takes longer to import than we to run.
        configured = os.environ.get("XDG_STATE_HOME", "")
        base = configured if configured.startswith("/") else "~/.local/state"
        folder = os.path.expanduser(f"{base}/hookline")  # noqa: PTH111
    else:
        import platformdirs

        folder = platformdirs.user_state_dir("hookline", appauthor=False)
    # A relative one would lie in whatever project the agent works on.
    return folder if os.path.isabs(folder) else None  # noqa: PTH117


def file_name(path: str) -> str:
    """A name for the file that is about a path; different paths, different names."""
    raw = os.fsencode(path)
    name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw)
    if len(name) <= _LONGEST_NAME:
        return name
    import hashlib

    return f"{name[-100:].lstrip('%')}-{hashlib.sha256(raw).hexdigest()}"


def read_private(path: str) -> bytes | None:
    """What a file holds, or None where there is none; raises ``StateFileError``."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - no pathlib at start-up
            _refuse_foreign(path, os.fstat(file.fileno()))
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateFileError(f"{path}: cannot be read: {error.strerror}") from error


def write_private(path: str, content: bytes, *, durable: bool = True) -> None:
    """Write a file whole or not at all, for its owner alone.

    ``durable``: wait for the disk, so that it survives a loss of power as well.
    """
    folder, name = os.path.split(path)
    make_folder(folder)
    unfinished = f"{folder}/.{name[:100]}.{os.getpid()}.{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    try:
        with open(os.open(unfinished, flags, 0o600), "wb") as file:  # noqa: PTH123
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(unfinished, path)  # noqa: PTH105
    except OSError as error:
        _forget(unfinished)
        raise StateFileError(f"{path}: cannot be written: {error.strerror}") from error


def remove(path: str) -> None:
    """Take a file away, where it is there."""
    try:
        os.unlink(path)  # noqa: PTH108
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StateFileError(f"{path}: cannot be removed: {error.strerror}") from error


def make_folder(folder: str) -> None:
    """Make a folder for its owner alone."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    except OSError as error:
        raise StateFileError(f"{folder}: cannot be made: {error.strerror}") from error


@contextmanager
def locked(folder: str, *, wait: bool = True) -> Iterator[None]:
    """Keep other processes of this user from changing what is in a folder.

    Without ``wait`` the lock is only tried for: an event loop must not be held up.
    """
    make_folder(folder)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    fd = os.open(f"{folder}/.lock", flags, 0o600)
    try:
        _lock(fd, wait)
        yield
    finally:
        os.close(fd)  # gives the lock back too


def _lock(fd: int, wait: bool) -> None:
    try:
        import fcntl
    except ImportError:
        return  # no such locks there: the last writer wins, with a whole file
    try:
        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass  # somebody is slow: the last writer wins, with a whole file


def _refuse_foreign(path: str, found: os.stat_result) -> None:
    if os.name == "nt":
        return  # owners and mode bits say nothing there
    if found.st_uid not in {os.geteuid(), 0}:
        raise StateFileError(f"{path}: belongs to another user, so it is not used")
    if found.st_mode & 0o022:
        raise StateFileError(
            f"{path}: others may write it, so it is not used: run chmod 600 on it"
        )


def _forget(path: str) -> None:
    try:
        os.unlink(path)  # noqa: PTH108
    except OSError:
        pass  # it was never made
