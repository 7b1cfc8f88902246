"""What Hookline takes from POSIX beyond what every system has.

Importing it raises on Windows: what needs these does not run there (decision 0150).
"""

from __future__ import annotations

import sys

__all__ = [
    "FIONREAD",
    "LOCK_EX",
    "O_NOCTTY",
    "O_NOFOLLOW",
    "O_NONBLOCK",
    "SIGHUP",
    "SIGKILL",
    "WNOHANG",
    "fchmod",
    "fcntl",
    "flock",
    "ioctl",
    "killpg",
    "pread",
    "pwrite",
    "register_at_fork",
    "set_blocking",
]

if sys.platform != "win32":
    from fcntl import LOCK_EX, fcntl, flock, ioctl
    from os import (
        O_NOCTTY,
        O_NOFOLLOW,
        O_NONBLOCK,
        WNOHANG,
        fchmod,
        killpg,
        pread,
        pwrite,
        register_at_fork,
        set_blocking,
    )
    from signal import SIGHUP, SIGKILL
    from termios import FIONREAD
else:
    # Declared for type checkers, which look at every system.
    from collections.abc import Callable
    from signal import Signals
    from typing import IO

    from hookline.errors import UnsupportedPlatformError

    FIONREAD: int
    LOCK_EX: int
    O_NOCTTY: int
    O_NOFOLLOW: int
    O_NONBLOCK: int
    SIGHUP: Signals
    SIGKILL: Signals
    WNOHANG: int
    fchmod: Callable[[int, int], None]
    fcntl: Callable[[int, int, int], int]
    flock: Callable[[IO[bytes], int], None]
    ioctl: Callable[[int, int, bytes], bytes]
    killpg: Callable[[int, int], None]
    pread: Callable[[int, int, int], bytes]
    pwrite: Callable[[int, bytes, int], int]
    register_at_fork: Callable[..., None]
    set_blocking: Callable[[int, bool], None]
    raise UnsupportedPlatformError
