"""The files of the resident helper: its log, and who holds its lock.

The lock is held for as long as the helper takes clients, and has its process id.
"""

from __future__ import annotations

import sys

assert sys.platform == "linux", "the resident helper runs on Linux only"

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from .client import Place, folder, private_folder

_LOG_BYTES = 256 << 10
_ENTRY_CHARACTERS = 8000
_STOP_S = 10.0
_POLL_S = 0.01


class Log:
    """What went wrong here, in a file of bounded size beside the socket.

    One JSON object per line: nobody is there to ask for another format.
    """

    def __init__(self, place: Place) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        self._fd = os.open(place.log, flags, 0o600, dir_fd=place.fd)

    def write(self, text: str) -> None:
        """Add one entry; of a long one the end, which says what it was."""
        end = text.rstrip()[-_ENTRY_CHARACTERS:]
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "level": "error",
            "logger": "hookline.bridge",
            "message": end.encode(errors="backslashreplace").decode(),
            "process": os.getpid(),
        }
        with suppress(OSError):  # the disk is full
            if os.fstat(self._fd).st_size > _LOG_BYTES:
                os.ftruncate(self._fd, 0)
            os.write(self._fd, json.dumps(entry).encode() + b"\n")


class Running(Struct, frozen=True):
    """A helper that takes clients."""

    pid: int
    since: float
    log: str


def running() -> Iterator[Running]:
    """The helpers of this user: one for each installation of Hookline in use."""
    try:
        fd = private_folder(folder())
    except OSError:
        return
    try:
        for name in sorted(os.listdir(fd)):  # noqa: PTH208 - by descriptor
            if name.endswith(".lock"):
                with suppress(OSError, ValueError):
                    yield from _holder(name, fd)
    finally:
        os.close(fd)


def _holder(name: str, folder_fd: int) -> Iterator[Running]:
    lock = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder_fd)
    try:
        if _is_held(lock):
            pid = int(os.read(lock, 32))
            log = f"{folder()}/{name.removesuffix('.lock')}.log"
            yield Running(pid, os.fstat(lock).st_mtime, log)
    finally:
        os.close(lock)


def _is_held(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(lock, fcntl.LOCK_UN)
    return False


def stop(helper: Running) -> bool:
    """End a helper and what it runs; False if it does not react."""
    with suppress(ProcessLookupError):
        os.kill(helper.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_S
    while _exists(helper.pid) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return not _exists(helper.pid)


def _exists(pid: int) -> bool:
    return any(helper.pid == pid for helper in running())
