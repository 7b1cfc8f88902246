"""A stop that a host does not obey at one event, kept until one where it does.

A bridge process lives for one event, so the stop is in a file.
"""

from __future__ import annotations

from hookline._internal.state_files import (
    file_name,
    read_private,
    remove,
    state_dir,
    write_private,
)
from hookline.errors import StateFileError

from .host import HostEvent, Wire


def postpone_stop(event: HostEvent, reason: str) -> None:
    """Keep a stop; where there is no place for it, nothing can be done."""
    if (path := _path(event)) is not None:
        write_private(path, reason.encode(errors="replace"), durable=False)


def take_stop(event: HostEvent) -> Wire:
    """Say a stop that was kept, once."""
    path = _path(event)
    if path is None:
        return {}
    try:
        kept = read_private(path)
        if kept is None:
            return {}
        remove(path)
        reason = kept.decode(errors="replace")
    except StateFileError as error:
        reason = str(error)
    return {"continue": False, "stopReason": reason}


def _path(event: HostEvent) -> str | None:
    folder = state_dir()
    conversation = f"{event.session_id} {event.fields.get('agent_id', '')}"
    return folder and f"{folder}/stops/{file_name(conversation)}"
