"""Where settings files are: one place each for the project, the user and the system.

No environment variable moves the system's place: whoever sets the environment of an
agent could otherwise take its managed hooks away. Paths are plain strings here and in
``read``: importing pathlib takes longer than reading a settings file.
"""

from __future__ import annotations

import os
import sys
from os import PathLike, fspath

from msgspec import Struct

from hookline.errors import SettingsError

from .schema import HookSource

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
