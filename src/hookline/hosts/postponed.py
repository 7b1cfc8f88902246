"""A stop that a host does not obey at one event, kept until one where it does.

A bridge process lives for one event, so the stop is in a file.
"""

from __future__ import annotations

from hookline.errors import StateFileError
from hookline.settings.locations import (
    file_name,
    read_private,
    remove,
    state_dir,
    write_private,
)


def postpone_stop(conversation: str, reason: str) -> None:
    """Keep a stop; where there is no place for it, nothing can be done."""
    if (path := _path(conversation)) is not None:
        write_private(path, reason.encode(errors="replace"), durable=False)


def take_stop(conversation: str) -> str | None:
    """The reason of a stop that was kept, once."""
    path = _path(conversation)
    if path is None:
        return None
    try:
        kept = read_private(path)
        if kept is not None:
            remove(path)
    except StateFileError as error:
        return str(error)
    return None if kept is None else kept.decode(errors="replace")


def _path(conversation: str) -> str | None:
    folder = state_dir()
    return folder and f"{folder}/stops/{file_name(conversation)}"
