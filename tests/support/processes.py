"""Processes that hooks leave behind: found by a mark in their environment."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 60.0


def descriptors() -> list[str]:
    """What the descriptors of this process point at."""
    found = []
    for fd in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(fd.readlink()))
        except OSError:
            continue  # the one that listed them
    return sorted(found)


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Leave this process so many descriptors, whatever gaps others have left.

    The limit is on the number that a new descriptor gets, and that is the lowest free
    one: a gap below an open descriptor is room too.
    """
    own = Path("/proc/self/fd")
    gc.disable()  # what other tests left open must not be closed meanwhile
    used = {int(name) for name in os.listdir(own) if os.path.lexists(own / name)}
    free = (number for number in itertools.count() if number not in used)
    limit = next(itertools.islice(free, count, None))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        gc.enable()


def children(of: int | None = None) -> list[int]:
    """Children of a process, the dead ones that nobody reaped included."""
    found: list[int] = []
    for task in Path(f"/proc/{of or 'self'}/task").iterdir():
        try:
            found += map(int, (task / "children").read_text().split())
        except FileNotFoundError:
            continue  # the thread has ended meanwhile
    return found


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}


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


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait on a state."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        await asyncio.sleep(0.005)


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


# A host that is killed in the millisecond in which it starts a hook leaves it running.
_STARTED = "sleep 0.1; touch started"
STUBBORN = {
    "sleeps": f"{_STARTED}; sleep 300",
    "ignores SIGTERM": f"trap '' TERM HUP INT; {_STARTED}; sleep 300; sleep 300",
    "has children": f"sleep 300 & (sleep 300; sleep 300) & {_STARTED}; wait",
    "has deaf children": f"(trap '' TERM HUP INT; sleep 300) & {_STARTED}; wait",
    "never reads stdin": f"exec <&-; {_STARTED}; sleep 300",
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
