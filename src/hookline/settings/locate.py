"""Where settings files are: one place each for the project, the user and the system.

No environment variable moves the system's place: whoever sets the environment of an
agent could otherwise take its managed hooks away.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from msgspec import Struct

from hookline.errors import SettingsError

from .schema import HookSource

PROJECT_FOLDER = ".hookline"
SYSTEM_DIR = Path("/etc/hookline")
FILE_NAMES = ("settings.json", "settings.toml")


class SettingsPlaces(Struct, frozen=True, kw_only=True):
    """The directories that may hold a settings file."""

    project_dir: Path | None = None
    """The project itself; its settings are in ``.hookline`` there."""
    user_dir: Path | None = None
    """None is the platform's own, see ``default_user_dir``."""
    system_dir: Path = SYSTEM_DIR

    def folders(self) -> dict[HookSource, Path]:
        """Name the folder of each source, in priority order."""
        folders: dict[HookSource, Path] = {}
        if self.project_dir is not None:
            folders[HookSource.PROJECT] = self.project_dir / PROJECT_FOLDER
        if user_dir := self.user_dir or default_user_dir():
            folders[HookSource.USER] = user_dir
        folders[HookSource.SYSTEM] = self.system_dir
        return folders


def default_user_dir() -> Path | None:
    """Find the user's configuration folder, if there is a home at all."""
    if sys.platform == "linux":
        folder = _linux_user_dir()
    else:
        import platformdirs

        folder = platformdirs.user_config_dir("hookline", appauthor=False)
    # A relative one would lie in whatever project the agent works on, and be trusted.
    return Path(folder) if os.path.isabs(folder) else None  # noqa: PTH117


def _linux_user_dir() -> str:
    # The same answer as platformdirs, which takes longer to import than a hook to run.
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(configured if configured.startswith("/") else "~/.config")
    return os.path.expanduser(base / "hookline")  # noqa: PTH111 - must not raise


def find_settings_file(folder: Path) -> Path | None:
    """Find the settings file of one place; two of them are an error naming both."""
    found = [file for file in map(folder.joinpath, FILE_NAMES) if _is_there(file)]
    if len(found) > 1:
        both = " and ".join(str(file) for file in found)
        raise SettingsError(f"there are both {both}: keep one of them", found[0])
    return found[0] if found else None


def _is_there(file: Path) -> bool:
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        # Not to be allowed to look is not the same as nothing being there.
        problem = getattr(error, "strerror", None) or str(error)
        raise SettingsError(f"cannot be looked up: {problem}", file) from error
    return True
