"""What this process holds: memory, descriptors, children, and strays of its hooks."""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path

from msgspec import Struct

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
    deadline = asyncio.get_running_loop().time() + limit_s
    while (_children() or strays()) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.1)


def descriptors() -> int:
    """How many descriptors are open."""
    return len(os.listdir("/proc/self/fd")) - 1  # the listing itself needs one


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
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid() and wanted in _environ(name):
            found.append(int(name))
    return found


def _environ(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _children() -> list[int]:
    """Children of this process, the dead ones that nobody reaped included."""
    found: list[int] = []
    for task in os.listdir("/proc/self/task"):
        try:
            text = Path(f"/proc/self/task/{task}/children").read_text()
        except OSError:
            continue
        found += map(int, text.split())
    return found
