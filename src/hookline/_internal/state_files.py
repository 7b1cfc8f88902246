"""Private files in the state folder of the account: trust records, timeouts, notes.

Each is written atomically, is readable by its owner only, and is not used where another
user could have written it.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hookline.errors import StateFileError

_MAX_NAME = 180
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def state_dir() -> str | None:
    """The user's folder for what programs remember; None where no home is known."""
    return account_folder("state", "XDG_STATE_HOME", "~/.local/state")


def account_folder(kind: str, variable: str, default: str) -> str | None:
    """Our folder of one kind in the user's account; None where no home is known."""
    if sys.platform == "linux":
        # Importing platformdirs takes a tenth of 'hookline fire' (decision 0007).
        base = os.environ.get(variable, "")
        base = base if base.startswith("/") else default
        folder = os.path.expanduser(f"{base}/hookline")  # noqa: PTH111 - as above
    else:
        import platformdirs

        folder = getattr(platformdirs, f"user_{kind}_dir")("hookline", appauthor=False)
    # A relative one would be inside whatever project the agent works on, and trusted.
    return folder if os.path.isabs(folder) else None  # noqa: PTH117


def file_name(path: str) -> str:
    """A file name for data about a path; different paths have different names."""
    raw = os.fsencode(path)
    name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw)
    if len(name) <= _MAX_NAME:
        return name
    import hashlib

    return f"{name[-100:].lstrip('%')}-{hashlib.sha256(raw).hexdigest()}"


def read_private(path: str) -> bytes | None:
    """Read a file, None where it is missing; raises ``StateFileError``."""
    folder = os.path.dirname(path)  # noqa: PTH120
    try:
        # Whoever can write there can take the file away.
        for place in {folder, state_dir() or folder}:
            _require_private(place, os.stat(place))  # noqa: PTH116
        with open(path, "rb") as file:  # noqa: PTH123 - no pathlib at start-up
            _require_private(path, os.fstat(file.fileno()))
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateFileError(f"{path}: cannot be read: {error.strerror}") from error


def _require_private(path: str, status: os.stat_result) -> None:
    if status.st_uid not in {os.geteuid(), 0}:
        raise StateFileError(f"{path}: belongs to another user, so it is not used")
    if status.st_mode & 0o022:
        problem = "other users can write it, so it is not used"
        mode = "700" if stat.S_ISDIR(status.st_mode) else "600"
        raise StateFileError(f"{path}: {problem}: run chmod {mode} on {path}")


def write_private(path: str, content: bytes, *, durable: bool = True) -> None:
    """Write a file atomically, readable by its owner only.

    ``durable``: wait for the disk, so that it also survives a power failure.
    """
    folder, name = os.path.split(path)
    make_folder(folder)
    temporary = f"{folder}/.{name[:100]}.{os.getpid()}.{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with open(os.open(temporary, flags, 0o600), "wb") as file:  # noqa: PTH123
            os.chmod(temporary, 0o600)  # noqa: PTH101 - the umask may have taken more
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(temporary, path)  # noqa: PTH105
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise StateFileError(f"{path}: cannot be written: {error.strerror}") from error


def remove(path: str) -> None:
    """Remove a file, if it exists."""
    try:
        with suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108
    except OSError as error:
        raise StateFileError(f"{path}: cannot be removed: {error.strerror}") from error


def make_folder(folder: str) -> None:
    """Make a folder that only its owner can access, and those that it is in.

    What is there already in the state folder is narrowed: neither follows the umask.
    """
    state = state_dir()
    is_private = state is not None and f"{folder}/".startswith(f"{state}/")
    if not is_private and os.path.isdir(folder or os.curdir):  # noqa: PTH112
        return
    make_folder(os.path.dirname(folder))  # noqa: PTH120
    try:
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)  # noqa: PTH102
        if stat.S_IMODE(os.stat(folder).st_mode) != 0o700:  # noqa: PTH116
            os.chmod(folder, 0o700)  # noqa: PTH101
    except OSError as error:
        raise StateFileError(f"{folder}: cannot be made: {error.strerror}") from error


@contextmanager
def locked(folder: str, *, wait: bool = True) -> Iterator[bool]:
    """Lock a folder against other processes of this user; False if it is not locked.

    Without ``wait`` the lock is only tried, so that an event loop is never blocked.
    """
    import fcntl  # few events need a lock

    make_folder(folder)
    fd = os.open(f"{folder}/.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.chmod(f"{folder}/.lock", 0o600)  # noqa: PTH101
        try:
            fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Without the lock the last writer wins, with a complete file.
            yield False
        else:
            yield True
    finally:
        os.close(fd)  # releases the lock too
