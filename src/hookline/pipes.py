"""The parent's ends of a child's three pipes: write all of it, read a bounded part.

Everything happens in callbacks of the event loop on non-blocking descriptors; nothing
here waits, and nothing here raises for what the other end does.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable

from msgspec import Struct

_READ_SIZE = 64 * 1024
_DRAIN_READS = 64
PIPE_SIZE = 64 * 1024
"""What a pipe holds, as a rule, before its writer has to wait."""


_F_SETPIPE_SZ: int | None = getattr(fcntl, "F_SETPIPE_SZ", None)
_BIG_PIPE_SIZE = 256 * 1024  # much more would no longer fit the processor's cache


class PipeEnds(Struct, frozen=True):
    """Descriptors for stdin, stdout and stderr: the child's and the parent's ends."""

    child: tuple[int, int, int]
    parent: tuple[int, int, int]

    def close_child(self) -> None:
        """Close the ends that belong to the child alone once it runs."""
        for fd in self.child:
            os.close(fd)

    def close_parent(self) -> None:
        """Close the ends that nobody will use, since nothing was started."""
        for fd in self.parent:
            os.close(fd)


def open_pipes() -> PipeEnds:
    """Open three pipes; where descriptors run out, none stays open."""
    opened: list[int] = []
    try:
        for _ in range(3):
            opened += os.pipe()
    except OSError:
        for fd in opened:
            os.close(fd)
        raise
    in_read, in_write, out_read, out_write, err_read, err_write = opened
    for fd in (in_write, out_read, err_read):
        os.set_blocking(fd, False)
    return PipeEnds((in_read, out_write, err_write), (in_write, out_read, err_read))


class Feeder:
    """Writes one payload into a pipe and closes it, also where nobody reads."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, fd: int, payload: bytes
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._rest = memoryview(payload)
        self._open = True
        self._waiting = False
        if len(payload) > PIPE_SIZE:
            _enlarge(fd)
        self._write()

    def close(self) -> None:
        """Close the pipe, written or not."""
        if self._open:
            self._open = False
            if self._waiting:
                self._loop.remove_writer(self._fd)
            os.close(self._fd)

    def _write(self) -> None:
        try:
            self._rest = self._rest[os.write(self._fd, self._rest) :]
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        if not self._rest:
            self.close()
        elif not self._waiting:
            self._waiting = True
            self._loop.add_writer(self._fd, self._write)


class Collector:
    """Reads a pipe to its end and keeps the first ``limit`` bytes.

    Nothing is read before ``watch`` or ``drain`` is called.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        limit: int,
        on_end: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._room = limit
        self._pieces: list[bytes] = []
        self._on_end = on_end
        self.ended = False
        self.truncated = False
        self._watched = False

    def watch(self) -> None:
        """Read whenever there is something, from now on."""
        if not self.ended and not self._watched:
            self._loop.add_reader(self._fd, self._on_readable)
            self._watched = True

    def data(self) -> bytes:
        """What was kept."""
        return b"".join(self._pieces)

    def drain(self) -> None:
        """Read what is there already; an endless writer gets a bounded share."""
        for _ in range(_DRAIN_READS):
            if not self._read():
                return

    def close(self) -> None:
        """Stop reading."""
        if not self.ended:
            self.ended = True
            if self._watched:
                self._loop.remove_reader(self._fd)
            os.close(self._fd)

    def _on_readable(self) -> None:
        if not self._read() and self.ended:
            self._on_end()

    def _read(self) -> bool:
        """Read once; False where nothing is there now or ever."""
        if self.ended:
            return False
        try:
            piece = os.read(self._fd, _READ_SIZE)
        except BlockingIOError:
            return False
        except OSError:
            piece = b""
        if not piece:
            self.close()
            return False
        self._keep(piece)
        return True

    def _keep(self, piece: bytes) -> None:
        if len(piece) > self._room:
            self.truncated = True
            piece = piece[: self._room]
        if piece:
            self._room -= len(piece)
            self._pieces.append(piece)


def _enlarge(fd: int) -> None:
    """Spare the loop wake-ups for a big payload, where the kernel grants it."""
    if _F_SETPIPE_SZ is not None:
        try:
            fcntl.fcntl(fd, _F_SETPIPE_SZ, _BIG_PIPE_SIZE)
        except OSError:
            pass  # over the user's share of pipe memory: the default size works too
