"""What this process holds: memory, descriptors, children, and strays of its hooks."""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path

from msgspec import Struct

from hookline.execute.watchdog import watcher

MARK = "HOOKLINE_SOAK"
"""In the environment of everything that this run starts."""


class Held(Struct, frozen=True):
    """What is held at one moment."""

    descriptors: int
    children: int
    strays: int
    memory_kib: int


def mark_everything(mark: str) -> None:
    """From here on every hook and what it starts can be told from others."""
    os.environ[MARK] = mark


def held() -> Held:
    """Look now."""
    return Held(descriptors(), len(_children()), len(strays()), memory_kib())


async def settle(limit_s: float = 20.0) -> None:
    """Wait for what hooks left behind on purpose to end by itself."""
    for _ in range(int(limit_s * 10)):
        watcher.stop()  # its shell is a child too; it stays if a process is not freed
        if not _children() and not strays():
            return
        await asyncio.sleep(0.1)


def descriptors() -> int:
    """How many descriptors are open."""
    # The listing itself needs one.
    return sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1


def memory_kib() -> int:
    """The resident memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024


def peak_memory_kib() -> int:
    """The most that was ever resident."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def strays() -> list[int]:
    """Processes that bear our mark, beside this one."""
    wanted = f"{MARK}={os.environ[MARK]}".encode()
    names = (path.name for path in Path("/proc").iterdir())
    others = (name for name in names if name.isdigit() and int(name) != os.getpid())
    return [int(name) for name in others if wanted in _environ(name)]


def _environ(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _children() -> list[int]:
    """Children of this process, the dead ones that nobody reaped included."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        try:
            text = (task / "children").read_text()
        except OSError:
            continue
        found += map(int, text.split())
    return found
