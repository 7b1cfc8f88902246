"""Where settings and state are kept, and how private files are read and written.

Private files are outside every project. Each is written atomically, is readable by its
owner only, and is ignored where another user could have written it.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike, fspath

from msgspec import Struct

from hookline.errors import SettingsError, StateFileError

from .model import HookSource

PROJECT_FOLDER = ".hookline"
SYSTEM_DIR = "/etc/hookline"
FILE_STEM, LOCAL_STEM = "settings", "settings.local"

_ACCOUNT_FOLDERS = (
    *(".config/hookline", ".local/state/hookline"),
    "Library/Application Support/hookline",
)
_MAX_NAME = 180
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)


class Workspace(Struct, frozen=True):
    """Where a session works, and the projects that apply there; paths are resolved."""

    folder: str
    """The working directory."""
    root: str
    """The repository around it; without one the working directory itself."""
    projects: tuple[str, ...]
    """Outermost first."""

    @property
    def project_dir(self) -> str | None:
        """The innermost project."""
        return self.projects[-1] if self.projects else None

    @property
    def zones(self) -> tuple[str, ...]:
        """The folders whose content other people may have written."""
        return (self.folder, self.root, *self.projects)


def find_workspace(
    working_dir: str | PathLike[str], also: Iterable[str] = ()
) -> Workspace:
    """Find the projects that apply in a folder (protocol.md#settings).

    Up to the root of the repository every folder with a ``.hookline`` is one. One with
    a trust record is one anywhere above: neither a new repository, nor a deleted
    ``.hookline``, nor a link in place of a folder leaves its guards behind.
    ``also``: further folders whose projects apply as well, outside of the others.
    """
    named = absolute(working_dir)
    folder = os.path.realpath(named)
    above = folders_above(folder)
    root = _repository_root(above) or folder
    inside = [one for one in above if is_within(one, root) and _is_project(one)]
    candidates = dict.fromkeys((*above, *folders_above(named)))
    recorded = [one for one in candidates if one not in inside and _has_record(one)]
    projects = sorted((*inside, *recorded), key=len)  # each contains the next
    others = [one for place in also for one in find_workspace(place).projects]
    outer = [one for one in dict.fromkeys(others) if one not in projects]
    return Workspace(folder, root, (*outer, *projects))


def project_around(folder: str | PathLike[str]) -> str:
    """The project of a folder: with hooks, else its repository, else itself."""
    found = find_workspace(folder)
    return found.project_dir or found.root


def absolute(path: str | PathLike[str]) -> str:
    """A path from the root on, also where the working directory was deleted."""
    try:
        return os.path.abspath(path)  # noqa: PTH100 - a string
    except FileNotFoundError:
        # As a shell does: it was deleted with a session in it.
        known = os.path.join("/", os.environ.get("PWD", ""), path)  # noqa: PTH118
        return os.path.normpath(known)


def resolved(path: str, folder: str) -> str:
    """The full path of a file that settings name; ``~`` is the user's home."""
    joined = os.path.join(folder, os.path.expanduser(path))  # noqa: PTH111, PTH118
    return os.path.normpath(joined)


def folders_above(folder: str) -> list[str]:
    """A folder and those that it is in, up to the root."""
    found = [folder]
    while (parent := os.path.dirname(found[-1])) != found[-1]:  # noqa: PTH120
        found.append(parent)
    return found


def _repository_root(above: list[str]) -> str | None:
    # A worktree and a submodule have a file of that name.
    return next((one for one in above if os.path.lexists(f"{one}/.git")), None)


def outermost_project(folder: str) -> str | None:
    """The outermost repository or project around a folder, written by others or not.

    The home folder of the account, and what is above it, belong to its user.
    """
    home = _account_home()
    found = (
        one
        for one in reversed(folders_above(folder))
        if os.path.lexists(f"{one}/.git") or os.path.lexists(f"{one}/{PROJECT_FOLDER}")
    )
    return next((one for one in found if not is_within(home, one)), None)


def _is_project(folder: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(f"{folder}/{PROJECT_FOLDER}").st_mode)  # noqa: PTH116
    except PermissionError:
        return True  # reading its settings reports the problem
    except (OSError, ValueError):
        return False


def _has_record(folder: str) -> bool:
    base = trust_folder()
    if base is None or not os.path.lexists(f"{base}/{file_name(folder)}.json"):
        return False
    return record_path(folder) is not None


def trust_folder() -> str | None:
    """The folder of the trust records; None where no home is known."""
    base = state_dir()
    return None if base is None else f"{base}/trust"


def record_path(project: str) -> str | None:
    """The file of a project's trust record; None where it cannot have one."""
    folder = trust_folder()
    if folder is None or shipped_by(os.path.realpath(folder), (project,)):
        return None
    return f"{folder}/{file_name(project)}.json"


def record_problem(project: str) -> str | None:
    """Why the records of a project are not used, wherever they are.

    Its repository could have brought them along.
    """
    folder, root = trust_folder(), _repository_root(folders_above(project))
    if (
        folder is None
        or root is None
        or not shipped_by(os.path.realpath(folder), [root])
    ):
        return None
    hint = "set HOME or XDG_STATE_HOME to a folder outside of it"
    return f"its trust record in {folder} is inside the repository {root}: {hint}"


def shipped_by(place: str, zones: Iterable[str]) -> str | None:
    """The folder that could have brought a resolved path along, if there is one.

    ``HOME`` and ``XDG_*`` can point into a project. The folders of the account are
    taken from the system: they count, and whoever wrote a project that contains the
    account's home is no stranger.
    """
    inside = [zone for zone in zones if is_within(place, zone)]
    if not inside:
        return None
    home = _account_home()
    if any(is_within(place, f"{home}/{own}") for own in _ACCOUNT_FOLDERS):
        return None
    return next((zone for zone in inside if not is_within(home, zone)), None)


def _account_home() -> str:
    """The home folder that the system knows; the environment can name any other."""
    if sys.platform != "win32":
        import pwd

        try:
            return os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
        except KeyError:
            return ""  # an account that the system does not know has none
    else:
        return os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111


class Place(Struct, frozen=True):
    """A folder that can hold settings."""

    source: HookSource
    folder: str
    project: str | None = None
    shipped_by: str | None = None
    """The project that a user's folder is inside of: its files are not the user's."""

    @property
    def stems(self) -> tuple[str, ...]:
        """The names of its settings files: what is for one machine first."""
        return (LOCAL_STEM, FILE_STEM) if self.project else (FILE_STEM,)

    def find(self, stem: str) -> str | None:
        """Find one of its files; raises ``SettingsError`` where it cannot be used."""
        file = find_settings_file(self.folder, stem)
        if file is not None and self.shipped_by is not None:
            problem = f"is inside {self.shipped_by}, so it is not used as the user's"
            hint = "set HOME and XDG_CONFIG_HOME to folders outside of it"
            raise SettingsError(f"{problem}: {hint}", file)
        return file


class SettingsPlaces(Struct, frozen=True, kw_only=True):
    """The directories that can hold a settings file."""

    project_dir: str | PathLike[str] | None = None
    """Where the search for projects begins; None searches for none."""
    also: tuple[str, ...] = ()
    """Where else it begins: each only adds."""
    user_dir: str | PathLike[str] | None = None
    """None is the platform's default, see ``default_user_dir``."""
    system_dir: str | PathLike[str] = SYSTEM_DIR

    def workspace(self) -> Workspace | None:
        """The projects that apply in ``project_dir``."""
        if self.project_dir is None:
            return None
        return find_workspace(self.project_dir, self.also)

    def folders(self, workspace: Workspace | None = None) -> list[Place]:
        """The folders of a workspace, the user and the system, in priority order."""
        places = [
            Place(HookSource.PROJECT, f"{project}/{PROJECT_FOLDER}", project)
            for project in (workspace.projects if workspace else ())
        ]
        if self.user_dir is not None:
            places.append(Place(HookSource.USER, fspath(self.user_dir)))
        elif user_dir := default_user_dir():
            zones = workspace.zones if workspace else ()
            shipped = shipped_by(os.path.realpath(user_dir), zones)
            places.append(Place(HookSource.USER, user_dir, shipped_by=shipped))
        return [*places, Place(HookSource.SYSTEM, fspath(self.system_dir))]


def default_user_dir() -> str | None:
    """The user's configuration folder; None where no home is known."""
    return _user_dir("config", "XDG_CONFIG_HOME", "~/.config")


def state_dir() -> str | None:
    """The user's folder for what programs remember; None where no home is known."""
    return _user_dir("state", "XDG_STATE_HOME", "~/.local/state")


def _user_dir(kind: str, variable: str, default: str) -> str | None:
    if sys.platform == "linux":
        # Importing platformdirs takes a tenth of 'hookline fire' (decision 0007).
        given = os.environ.get(variable, "")
        base = given if given.startswith("/") else default
        folder = os.path.expanduser(f"{base}/hookline")  # noqa: PTH111 - as above
    else:
        import platformdirs

        folder = getattr(platformdirs, f"user_{kind}_dir")("hookline", appauthor=False)
    # A relative one would be inside whatever project the agent works on, and trusted.
    return folder if os.path.isabs(folder) else None  # noqa: PTH117


def module_folders(project: str) -> list[str]:
    """Where the python hooks of a project find its modules."""
    return [f"{project}/{PROJECT_FOLDER}", project, f"{project}/src"]


def is_within(path: str, folder: str) -> bool:
    """Whether a resolved path is a folder or inside it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def find_settings_file(
    folder: str | PathLike[str], stem: str = FILE_STEM
) -> str | None:
    """Find one settings file in a folder; two languages are an error naming both."""
    files = [f"{fspath(folder)}/{stem}.{ending}" for ending in ("json", "toml")]
    found = [file for file in files if _exists(file)]
    if len(found) > 1:
        both = " and ".join(found)
        raise SettingsError(f"there are both {both}: keep one of them", found[0])
    return found[0] if found else None


def _exists(file: str) -> bool:
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        # Permission denied is not the same as missing.
        problem = getattr(error, "strerror", None) or str(error)
        raise SettingsError(f"cannot be accessed: {problem}", file) from error
    return True


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
        for around in {folder, state_dir() or folder}:
            _require_private(around, os.stat(around))  # noqa: PTH116
        with open(path, "rb") as file:  # noqa: PTH123 - no pathlib at start-up
            _require_private(path, os.fstat(file.fileno()))
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateFileError(f"{path}: cannot be read: {error.strerror}") from error


def _require_private(path: str, found: os.stat_result) -> None:
    if sys.platform != "win32":  # owner and mode bits mean nothing there
        if found.st_uid not in {os.geteuid(), 0}:
            raise StateFileError(f"{path}: belongs to another user, so it is not used")
        if found.st_mode & 0o022:
            problem = "other users can write it, so it is not used"
            mode = "700" if stat.S_ISDIR(found.st_mode) else "600"
            raise StateFileError(f"{path}: {problem}: run chmod {mode} on {path}")


def write_private(path: str, content: bytes, *, durable: bool = True) -> None:
    """Write a file atomically, readable by its owner only.

    ``durable``: wait for the disk, so that it also survives a power failure.
    """
    folder, name = os.path.split(path)
    make_folder(folder)
    temporary = f"{folder}/.{name[:100]}.{os.getpid()}.{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC
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
    is_private = state is not None and is_within(folder, state)
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
    make_folder(folder)
    fd = os.open(f"{folder}/.lock", os.O_RDWR | os.O_CREAT | _CLOEXEC, 0o600)
    try:
        os.chmod(f"{folder}/.lock", 0o600)  # noqa: PTH101
        # Without the lock the last writer wins, with a complete file.
        yield _lock(fd, wait=wait)
    finally:
        os.close(fd)  # releases the lock too


def _lock(fd: int, *, wait: bool) -> bool:
    if sys.platform != "win32":
        import fcntl

        with suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False
