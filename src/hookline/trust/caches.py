"""Where the hooks of a project keep Python's compiled modules: outside the project.

Python believes a ``.pyc`` beside a module, and whoever can write there can forge one.
So hooks of projects get a private folder for them. It is kept between runs, or every
cold hook would compile all it imports. Its name follows the state of the pinned files:
what was compiled from a file that was swapped for a moment is never looked at again.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import lru_cache

from hookline._internal.state_files import file_name, make_folder, state_dir
from hookline.errors import StateFileError
from hookline.settings.model import Stamp

_VARIABLE = "PYTHONPYCACHEPREFIX"
_NOWHERE = {_VARIABLE: f"{os.devnull}/hookline", "PYTHONDONTWRITEBYTECODE": "1"}
_MAX_STATES = 16


def private_cache(project: str, stamp: Stamp) -> dict[str, str]:
    """The variables for the private folder; without one Python caches nothing."""
    base = cache_folder(project)
    if base is None:
        return _NOWHERE
    folder = f"{base}/{_key(stamp)}"
    if not _is_private(folder):
        if os.path.lexists(folder):
            return _NOWHERE  # others may have put something into it
        _make(base, folder)
        if not _is_private(folder):
            return _NOWHERE
    return {_VARIABLE: folder, "PYTHONDONTWRITEBYTECODE": ""}


def forget_caches(project: str) -> None:
    """Remove what was compiled for a project."""
    base = cache_folder(project)
    if base is not None and os.path.lexists(base):
        import shutil

        shutil.rmtree(base, ignore_errors=True)


def cache_folder(project: str) -> str | None:
    """Where what is compiled for a project is kept; None where that is nowhere."""
    state = state_dir()
    if state is None or state.startswith(f"{project}/"):
        return None
    return f"{state}/pycache/{_name(project)}"


_name = lru_cache(maxsize=64)(file_name)


@lru_cache(maxsize=64)
def _key(stamp: Stamp) -> str:
    """A name for the state of the pinned files, without the folders around them."""
    import hashlib

    files = tuple(part[:2] for part in stamp)
    return hashlib.sha256(repr(files).encode()).hexdigest()[:16]


def _make(base: str, folder: str) -> None:
    """Make a folder, and remove those of states that are long gone."""
    with suppress(StateFileError, OSError):
        make_folder(base)
        make_folder(folder)
        names = [f"{base}/{name}" for name in os.listdir(base)]  # noqa: PTH208
        for old in sorted(names, key=os.path.getmtime)[:-_MAX_STATES]:
            import shutil

            shutil.rmtree(old, ignore_errors=True)


def _is_private(folder: str) -> bool:
    """Whether it is a folder that only this user can use, in one of the same kind."""
    for path in (folder, os.path.dirname(folder)):  # noqa: PTH120
        try:
            found = os.lstat(path)
        except OSError:
            return False
        if not stat.S_ISDIR(found.st_mode):
            return False
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            return False
    return True
