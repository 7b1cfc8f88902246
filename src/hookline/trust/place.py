"""Where the record of a project's trust is. Cheap: every start of Hookline asks."""

from __future__ import annotations

import os

from hookline.statefiles import file_name, state_dir

SUFFIX = ".json"


def record_path(project: str) -> str | None:
    """The file that is about a project; None where nothing can be remembered."""
    folder = trust_folder()
    if folder is None or _could_be_shipped(folder, project):
        return None
    return f"{folder}/{file_name(project)}{SUFFIX}"


def trust_folder() -> str | None:
    """Where records of trust are, if they can be anywhere."""
    base = state_dir()
    return None if base is None else f"{base}/trust"


def _could_be_shipped(folder: str, project: str) -> bool:
    """Whether the project holds the folder: it could bring its own trust along.

    A project that holds the user's home is not one that somebody else made.
    """
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
    place = os.path.realpath(folder)
    return _is_within(place, project) and not _is_within(home, project)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
