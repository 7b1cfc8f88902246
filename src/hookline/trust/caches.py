"""Where the hooks of a project keep Python's compiled modules: outside the project.

Python believes a ``.pyc`` beside a module, and whoever can write there can forge one.
So hooks of projects get a private folder for them. It is kept between runs, or every
cold hook would compile all it imports. Its name follows the state of the pinned files:
what was compiled from a file that was swapped for a moment is never looked at again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from hookline._internal.state_files import file_name, make_folder, state_dir
from hookline.errors import StateFileError

from .stamps import PathsStamp

_VARIABLE = "PYTHONPYCACHEPREFIX"
_NOWHERE = {_VARIABLE: f"{os.devnull}/hookline", "PYTHONDONTWRITEBYTECODE": "1"}
_MAX_STATES = 16


def private_cache(project: str, stamps: Iterable[PathsStamp]) -> dict[str, str]:
    """The variables for the private folder; without one Python caches nothing."""
    import hashlib

    base = cache_folder(project)
    if base is None:
        return _NOWHERE
    states = [[*stamp.files.values(), *stamp.links.values()] for stamp in stamps]
    folder = f"{base}/{hashlib.sha256(repr(states).encode()).hexdigest()[:16]}"
    if not os.path.lexists(folder):
        with suppress(StateFileError, OSError):
            make_folder(folder)
            names = [f"{base}/{name}" for name in os.listdir(base)]  # noqa: PTH208
            for old in sorted(names, key=os.path.getmtime)[:-_MAX_STATES]:
                _remove(old)
    # Others may have put something into a folder that they can write.
    if not (_is_private(folder) and _is_private(base)):
        return _NOWHERE
    return {_VARIABLE: folder, "PYTHONDONTWRITEBYTECODE": ""}


def forget_caches(project: str) -> None:
    """Remove what was compiled for a project."""
    base = cache_folder(project)
    if base is not None and os.path.lexists(base):
        _remove(base)


def cache_folder(project: str) -> str | None:
    """Where what is compiled for a project is kept; None where that is nowhere."""
    state = state_dir()
    if state is None or state.startswith(f"{project}/"):
        return None
    return f"{state}/pycache/{file_name(project)}"


def _remove(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _is_private(folder: str) -> bool:
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_own and not status.st_mode & 0o077
