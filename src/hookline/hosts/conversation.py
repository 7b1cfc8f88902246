"""What is remembered of a conversation from one of its events to the next.

A bridge process lives for one event, so it is in a private file, also where a helper
answers many events: the count of rejections, because a hook must not keep an agent busy
for ever, and a stop that the host does not obey at the event where a hook asked for it.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import msgspec

from hookline._internal.state_files import (
    file_name,
    read_private,
    remove,
    state_dir,
    write_private,
)
from hookline.errors import StateFileError

_OLD_S = 7 * 86400


class Memory(msgspec.Struct):
    """The content of the file."""

    rejections: int = 0
    """How often the answers of the turn were rejected in a row."""
    stop_reason: str | None = None
    """Of a stop that the host was not told yet."""


class Conversation:
    """One conversation of a host, or of a subagent in it."""

    def __init__(self, host: str, session_id: str, agent_id: str) -> None:
        folder = state_dir()
        name = file_name(f"{host} {session_id} {agent_id}")
        self._path = folder and f"{folder}/conversations/{name}"

    def count_rejection(self, *, again: bool) -> int:
        """How often the answers of a turn were rejected in a row, this one included.

        ``again``: the host says that the turn goes on because of a rejection. Where the
        file cannot be used it is always the first, and the host's own limit holds.
        """
        try:
            memory = self._read()
            memory.rejections = memory.rejections + 1 if again else 1
            self._write(memory)
        except StateFileError:
            return 1
        return memory.rejections

    def end_turn(self) -> None:
        """Forget the turn."""
        if self._path is not None:
            with suppress(StateFileError):
                remove(self._path)

    def postpone_stop(self, reason: str) -> None:
        """Keep a stop; where there is no place for it, nothing can be done."""
        try:
            memory = self._read()
        except StateFileError:
            memory = Memory()
        memory.stop_reason = reason.encode(errors="replace").decode()
        self._write(memory)

    def take_stop(self) -> str | None:
        """The reason of a stop that was kept, once; a file that is not ours stops."""
        try:
            memory = self._read()
            reason, memory.stop_reason = memory.stop_reason, None
            if reason is not None:
                self._write(memory)
        except StateFileError as error:
            return str(error)
        return reason

    def _read(self) -> Memory:
        content = None if self._path is None else read_private(self._path)
        try:
            return msgspec.json.decode(content or b"{}", type=Memory)
        except msgspec.MsgspecError as error:
            raise StateFileError(f"{self._path}: cannot be read: {error}") from error

    def _write(self, memory: Memory) -> None:
        if self._path is None:
            return
        if memory == Memory():
            remove(self._path)
            return
        write_private(self._path, msgspec.json.encode(memory), durable=False)
        # What sessions left that ended in the middle of a turn.
        with suppress(OSError):
            for file in Path(self._path).parent.iterdir():
                if file.stat().st_mtime < time.time() - _OLD_S:
                    file.unlink()
