"""Command hooks against bare spawns of the same shell commands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, Settings
from hookline.execute.command import default_shell

from .floor import Floors
from .measure import Bar, Figure, Timed, compare, timed

SHELL = default_shell("/")

GROUP = "processes"
SMALL = {"path": "src/main.py", "content": "x = 1\n"}
TALK = """echo '{"decision": "allow", "systemMessage": "seen"}'"""
SWALLOW = "cat >/dev/null"
INPUT_BYTES = 320
"""About what SMALL comes to with the base fields."""


async def figures(floors: Floors, folder: Path, rounds: int) -> list[Figure]:
    """All figures of this group."""
    bench = _Bench(floors, folder)
    few = max(5, rounds // 10)
    some = max(7, rounds // 4)
    return [
        await bench.hooks("one hook", "true", 1, rounds, Bar(1.25)),
        await bench.hooks("talking hook", TALK, 1, rounds, Bar(1.15)),
        await bench.hooks("5 at once", "true", 5, some, Bar(1.15)),
        await bench.hooks("20 at once", "true", 20, few),
        await bench.chain("chain of 5", "true", 5, some),
        await bench.fed("1 MB to 5 hooks", 1_000_000, 5, few),
        await bench.fed("5 MB to 5 hooks", 5_000_000, 5, few, Bar(1.3)),
        await bench.without_shell("plain words, no shell", some),
    ]


async def by_count(
    floors: Floors, folder: Path, rounds: int
) -> list[tuple[float, Figure]]:
    """Latency against the number of hooks."""
    bench = _Bench(floors, folder)
    return [
        (n, await bench.hooks(f"{n} hooks", "true", n, rounds))
        for n in (1, 2, 5, 10, 20)
    ]


async def by_size(
    floors: Floors, folder: Path, rounds: int
) -> list[tuple[float, Figure]]:
    """Latency of one hook against the size of its input."""
    bench = _Bench(floors, folder)
    sizes = (1_000, 10_000, 100_000, 1_000_000, 5_000_000)
    return [(n, await bench.fed(f"{n} bytes", n, 1, rounds)) for n in sizes]


class _Bench:
    def __init__(self, floors: Floors, folder: Path) -> None:
        self._floors = floors
        self._folder = folder

    async def hooks(
        self, name: str, command: str, count: int, rounds: int, bar: Bar | None = None
    ) -> Figure:
        argv = [SHELL, "-c", command]
        floor = self._floors.spawn(argv, count, INPUT_BYTES)
        async with fired(self._folder, command, count, SMALL) as work:
            return await self._compare(name, work, floor, rounds, bar)

    async def chain(self, name: str, command: str, count: int, rounds: int) -> Figure:
        one = self._floors.spawn([SHELL, "-c", command], 1, INPUT_BYTES)

        async def floor() -> float:
            return sum([await one() for _ in range(count)])

        async with fired(self._folder, command, count, SMALL, sequential=True) as work:
            return await self._compare(name, work, floor, rounds, None)

    async def fed(
        self, name: str, size: int, count: int, rounds: int, bar: Bar | None = None
    ) -> Figure:
        argv = [SHELL, "-c", SWALLOW]
        floor = self._floors.spawn(argv, count, size)
        big = {"path": "big", "content": "x" * (size - INPUT_BYTES)}
        async with fired(self._folder, SWALLOW, count, big) as work:
            return await self._compare(name, work, floor, rounds, bar)

    async def without_shell(self, name: str, rounds: int) -> Figure:
        """A program on PATH: the floor goes through the shell all the same."""
        floor = self._floors.spawn([SHELL, "-c", "sleep 0"], 1, INPUT_BYTES)
        async with fired(self._folder, "sleep 0", 1, SMALL) as work:
            return await self._compare(name, work, floor, rounds, None)

    async def _compare(
        self, name: str, work: Timed, floor: Timed, rounds: int, bar: Bar | None
    ) -> Figure:
        what = self._floors.kind
        return await compare(GROUP, name, work, floor, what, rounds, bar)


@asynccontextmanager
async def fired(
    folder: Path,
    command: str,
    count: int,
    tool_input: dict[str, Any],
    *,
    sequential: bool = False,
    kind: str = "command",
    repeat: int = 1,
    **options: Any,
) -> AsyncIterator[Timed]:
    """A system of equal hooks, and one whole fire on it as something to time."""
    hooks = [
        {"type": kind, "command": command, "name": f"hook {n}", **options}
        for n in range(count)
    ]
    group = {"hooks": hooks, "sequential": sequential}
    settings = Settings.from_mapping(
        {
            "hooks": {"BeforeTool": [group]},
            "hooksConfig": {"maxProcesses": 64, "journal": False},
        }
    )
    async with HookSystem(Config("bench", folder, settings)) as hooked:
        fire = hooked.event_handler.fire_before_tool_event

        async def once() -> None:
            result = await fire("write_file", tool_input)
            assert result.aggregated.success, result.aggregated.errors
            assert len(result.aggregated.hook_results) == count

        yield timed(once, repeat)
