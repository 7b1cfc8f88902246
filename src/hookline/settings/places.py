"""Where settings are kept, and which projects apply in a folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from os import PathLike, fspath

from msgspec import Struct

from hookline._internal.state_files import account_folder, file_name, state_dir
from hookline.errors import SettingsError

from .model import HookSource

PROJECT_FOLDER = ".hookline"
SYSTEM_DIR = "/etc/hookline"
FILE_STEM, LOCAL_STEM = "settings", "settings.local"

_ACCOUNT_FOLDERS = (
    *(".config/hookline", ".local/state/hookline"),
    "Library/Application Support/hookline",
)


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
    spelled = absolute(working_dir)
    folder = os.path.realpath(spelled)
    above = folders_above(folder)
    root = _repository_root(above) or folder
    records = trust_folder()

    def has_record(path: str) -> bool:
        file = f"{records}/{file_name(path)}.json"
        return records is not None and os.path.lexists(file) and bool(record_path(path))

    projects = [
        path
        for path in above
        if (is_within(path, root) and _is_project(path)) or has_record(path)
    ]
    linked = [] if spelled == folder else folders_above(spelled)
    projects += (path for path in linked if path not in above and has_record(path))
    projects.sort(key=len)  # each contains the next
    beside = [path for place in also for path in find_workspace(place).projects]
    outer = [path for path in dict.fromkeys(beside) if path not in projects]
    return Workspace(folder, root, (*outer, *projects))


def project_around(folder: str | PathLike[str]) -> str:
    """The project of a folder: with hooks, else its repository, else itself."""
    workspace = find_workspace(folder)
    return workspace.project_dir or workspace.root


def absolute(path: str | PathLike[str]) -> str:
    """A path from the root on, also where the working directory was deleted."""
    try:
        return os.path.abspath(path)  # noqa: PTH100 - a string
    except FileNotFoundError:
        # As a shell does: it was deleted with a session in it.
        joined = os.path.join("/", os.environ.get("PWD", ""), path)  # noqa: PTH118
        return os.path.normpath(joined)


def resolved(path: str, folder: str) -> str:
    """The full path of a file that settings name; ``~`` is the user's home."""
    joined = os.path.join(folder, os.path.expanduser(path))  # noqa: PTH111, PTH118
    return os.path.normpath(joined)


def folders_above(folder: str) -> list[str]:
    """A folder and those that it is in, up to the root."""
    above = [folder]
    while (parent := os.path.dirname(above[-1])) != above[-1]:  # noqa: PTH120
        above.append(parent)
    return above


def _repository_root(above: list[str]) -> str | None:
    # A worktree and a submodule have a file of that name.
    return next((path for path in above if os.path.lexists(f"{path}/.git")), None)


def outermost_project(folder: str) -> str | None:
    """The outermost repository or project around a folder, written by others or not.

    The home folder of the account, and what is above it, belong to its user.
    """
    home = _account_home()
    for path in reversed(folders_above(folder)):
        marks = (f"{path}/.git", f"{path}/{PROJECT_FOLDER}")
        if any(map(os.path.lexists, marks)) and not is_within(home, path):
            return path
    return None


def _is_project(folder: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(f"{folder}/{PROJECT_FOLDER}").st_mode)  # noqa: PTH116
    except PermissionError:
        return True  # reading its settings reports the problem
    except (OSError, ValueError):
        return False


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
    if not folder or not root or not shipped_by(os.path.realpath(folder), [root]):
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
    if any(is_within(place, f"{home}/{folder}") for folder in _ACCOUNT_FOLDERS):
        return None
    return next((zone for zone in inside if not is_within(home, zone)), None)


def _account_home() -> str:
    """The home folder that the system knows; the environment can name any other."""
    import pwd

    try:
        return os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return ""  # an account that the system does not know has none


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
    """Where settings are loaded from: all places, or one file beside the system's."""

    project_dir: str | PathLike[str] | None = None
    """Where the search for projects begins; None searches for none."""
    also: tuple[str, ...] = ()
    """Where else it begins: each only adds."""
    user_dir: str | PathLike[str] | None = None
    """None is the platform's default, see ``default_user_dir``."""
    system_dir: str | PathLike[str] = SYSTEM_DIR
    file: str | None = None
    """The whole path of a file in place of projects and user."""
    label: str = ""
    """That file as it was named."""

    @classmethod
    def around(
        cls, folder: str | PathLike[str] | None, also: tuple[str, ...] = ()
    ) -> SettingsPlaces:
        """All places, with the projects that apply in a folder, or also in others."""
        return cls(project_dir=None if folder is None else absolute(folder), also=also)

    def workspace(self) -> Workspace | None:
        """The projects that apply in ``project_dir``."""
        if self.project_dir is None:
            return None
        return find_workspace(self.project_dir, self.also)

    def folders(self, workspace: Workspace | None = None) -> list[Place]:
        """The folders of a workspace, the user and the system, in priority order."""
        system = Place(HookSource.SYSTEM, fspath(self.system_dir))
        if self.file is not None:
            return [system]
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
        return [*places, system]


def default_user_dir() -> str | None:
    """The user's configuration folder; None where no home is known."""
    return account_folder("config", "XDG_CONFIG_HOME", "~/.config")


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
    files: list[str] = []
    for ending in ("json", "toml"):
        file = f"{fspath(folder)}/{stem}.{ending}"
        try:
            os.lstat(file)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            # Permission denied is not the same as missing.
            problem = getattr(error, "strerror", None) or str(error)
            raise SettingsError(f"cannot be accessed: {problem}", file) from error
        files.append(file)
    if len(files) > 1:
        both = " and ".join(files)
        raise SettingsError(f"there are both {both}: keep one of them", files[0])
    return files[0] if files else None
