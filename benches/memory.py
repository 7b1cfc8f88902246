"""Peak memory of one fire: what the process grows by, and what Python allocates."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

CASES = {"small input, 1 hook": (300, 1), "5 MB input, 5 hooks": (5_000_000, 5)}

PROBE = """
import asyncio, json, resource, sys, tracemalloc
from hookline import Config, HookSystem, Settings
size, count = int(sys.argv[1]), int(sys.argv[2])
hooks = [{"type": "command", "command": "cat >/dev/null", "name": f"h{n}"}
         for n in range(count)]
settings = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": hooks}]}})
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
async def main():
    async with HookSystem(Config("bench", sys.argv[3], settings)) as system:
        fire = system.event_handler.fire_before_tool_event
        await fire("write_file", {"content": "warm-up"})
        given = {"content": "x" * size}
        before = peak()
        await fire("write_file", given)
        grown = peak() - before
        tracemalloc.start()
        await fire("write_file", given)
        allocated = tracemalloc.get_traced_memory()[1]
    print(json.dumps({"resident_kib": peak(), "grown_kib": grown,
                      "allocated_bytes": allocated}))
asyncio.run(main())
"""


class Memory(Struct, kw_only=True):
    """One case."""

    name: str
    input_bytes: int
    allocated_bytes: int
    """The most that Python held for the fire at any time."""
    grown_kib: int
    """How much higher the process stood after the first such fire."""
    resident_kib: int


def figures(folder: Path) -> list[Memory]:
    """All cases, each in a process of its own."""
    return [_measure(name, folder, *case) for name, case in CASES.items()]


def _measure(name: str, folder: Path, size: int, count: int) -> Memory:
    argv = [sys.executable, "-c", PROBE, str(size), str(count), str(folder)]
    printed = subprocess.run(argv, capture_output=True, check=True).stdout
    return Memory(name=name, input_bytes=size, **json.loads(printed))
