"""Count the rejections of one answer: a hook must not keep an agent busy for ever.

Some hosts let a hook reject answers without end. A bridge process lives for one event,
so the count is in a file; where that cannot be written, the host's own limit holds.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from hookline._internal.state_files import (
    file_name,
    read_private,
    remove,
    state_dir,
    write_private,
)
from hookline.errors import StateFileError

_OLD_S = 7 * 86400


def count_rejection(conversation: str, *, again: bool) -> int:
    """How often the answers of a turn were rejected in a row, this one included.

    ``again``: the host says that the turn goes on because of a rejection.
    """
    path = _path(conversation)
    if path is None:
        return 1
    try:
        before = int(read_private(path) or 0) if again else 0
        write_private(path, str(before + 1).encode(), durable=False)
        _remove_old(Path(path).parent)
    except (StateFileError, ValueError):
        return 1
    return before + 1


def forget_rejections(conversation: str) -> None:
    """The turn has ended."""
    if (path := _path(conversation)) is not None:
        with suppress(StateFileError):
            remove(path)


def _path(conversation: str) -> str | None:
    folder = state_dir()
    return folder and f"{folder}/rejections/{file_name(conversation)}"


def _remove_old(folder: Path) -> None:
    """Remove what sessions left that ended in the middle of a turn."""
    with suppress(OSError):
        for file in folder.iterdir():
            if file.stat().st_mtime < time.time() - _OLD_S:
                file.unlink()
