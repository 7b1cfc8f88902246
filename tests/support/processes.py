"""Processes that hooks leave behind: found by a mark in their environment."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path


def descriptors() -> list[str]:
    """What the descriptors of this process point at."""
    found = []
    for fd in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(fd.readlink()))
        except OSError:
            continue  # the one that listed them
    return sorted(found)


def children(of: int | None = None) -> list[int]:
    """Children of a process, the dead ones that nobody reaped included."""
    found: list[int] = []
    for task in Path(f"/proc/{of or 'self'}/task").iterdir():
        try:
            found += map(int, (task / "children").read_text().split())
        except FileNotFoundError:
            continue  # the thread has ended meanwhile
    return found


def marked(mark: str) -> list[int]:
    """Living processes that have a mark in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


async def until(condition: str, seconds: float = 30) -> None:
    """Wait for a file to appear."""
    for _ in range(int(seconds * 100)):
        if await asyncio.to_thread(os.path.exists, condition):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{condition} never came")


async def none_left(mark: str, seconds: float = 30) -> bool:
    """Whether all marked processes end; a killed one may take a moment."""
    for _ in range(int(seconds * 100)):
        if not marked(mark):
            return True
        await asyncio.sleep(0.01)
    return False


STUBBORN = {
    "sleeps": "touch started; sleep 300",
    "ignores SIGTERM": "trap '' TERM HUP INT; touch started; sleep 300; sleep 300",
    "has children": "sleep 300 & (sleep 300; sleep 300) & touch started; wait",
    "has deaf children": "(trap '' TERM HUP INT; sleep 300) & touch started; wait",
    "never reads stdin": "exec <&-; touch started; sleep 300",
}
"""Commands of hooks that would run for minutes; each creates a file ``started``."""

WORKER = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["sleep", "300"])
open("started", "w").close()
while True:
    signal.pause()
"""
"""A worker hook that hangs, with a child."""
