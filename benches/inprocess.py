"""What costs no process: events that match nothing, and hooks in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, Settings

from .floor import Floors
from .measure import Bar, Figure, Timed, compare, timed

GROUP = "in process"
MANY = 10_000
REPEAT = 20
"""Few in a row: a longer round is more likely to be interrupted than its floor."""
INPUT = {"path": "src/main.py", "content": "x = 1\n"}
FLOOR = "an async call that does nothing"


async def figures(_: Floors, folder: Path, rounds: int) -> list[Figure]:
    """All figures of this group."""
    rounds *= 3
    return [
        await _silent("no match", folder, {}, rounds),
        await _silent(f"no match among {MANY:,} hooks", folder, _many(), rounds),
        await _hooked("plain function", folder, _plain, rounds, Bar(20, "us")),
        await _hooked("plain function that blocks", folder, _blocks, rounds),
        await _hooked("async function", folder, _async, rounds, Bar(20, "us")),
        await _hooked("async function that blocks", folder, _async_blocks, rounds),
        await _hooked("async function that waits", folder, _waits, rounds),
        await _plain_call("plain call", folder, 1, rounds // 10),
        await _plain_call("plain call, 8 threads at once", folder, 8, rounds // 10),
    ]


async def _plain_call(name: str, folder: Path, threads: int, rounds: int) -> Figure:
    """Plain calls of so many threads at once; times are per call."""
    async with HookSystem(Config("bench", folder, Settings())) as hooks:
        hooks.on("BeforeTool")(_async)
        event_input = {"tool_name": "write_file", "tool_input": INPUT}
        with ThreadPoolExecutor(threads) as pool:

            def hooked() -> None:
                hooks.fire_sync("BeforeTool", event_input)

            what = "the same threads, calling nothing"
            work = _in_threads(pool, threads, hooked)
            floor = _in_threads(pool, threads, _none)
            return await compare(GROUP, name, work, floor, what, rounds)


def _in_threads(
    pool: ThreadPoolExecutor, threads: int, call: Callable[[], None]
) -> Timed:
    def repeat(_: int) -> None:
        for _ in range(REPEAT):
            call()

    async def run() -> float:
        started = time.perf_counter()
        # The event loop of the caller waits meanwhile: the hooks have one of their own.
        list(pool.map(repeat, range(threads)))
        return (time.perf_counter() - started) / (threads * REPEAT)

    return run


def _none() -> None:
    pass


def _many() -> dict[str, Any]:
    hooks = [
        {
            "matcher": f"tool_{n}_.*",
            "hooks": [{"type": "command", "command": "true", "name": f"hook {n}"}],
        }
        for n in range(MANY)
    ]
    return {"hooks": {"BeforeTool": hooks}}


async def _silent(
    name: str, folder: Path, settings: dict[str, Any], rounds: int
) -> Figure:
    config = Config("bench", folder, Settings.from_mapping(settings))
    async with HookSystem(config) as hooks:
        work = _fires(hooks, 10 * REPEAT)
        bar = Bar(0.95, "us")
        return await compare(GROUP, name, work, _floor(), FLOOR, rounds, bar)


async def _hooked(
    name: str, folder: Path, function: Any, rounds: int, bar: Bar | None = None
) -> Figure:
    async with HookSystem(Config("bench", folder, Settings())) as hooks:
        hooks.on("BeforeTool")(function)
        work = _fires(hooks, REPEAT)
        return await compare(GROUP, name, work, _floor(), FLOOR, rounds, bar)


def _fires(hooks: HookSystem, repeat: int) -> Timed:
    fire = hooks.event_handler.fire_before_tool_event
    return timed(lambda: fire("write_file", INPUT), repeat)


def _floor() -> Timed:
    return timed(_nothing, 100 * REPEAT)


async def _nothing() -> None:
    pass


def _plain(_: dict[str, Any]) -> None:
    pass


def _blocks(_: dict[str, Any]) -> dict[str, Any]:
    return {"decision": "block", "reason": "no"}


async def _async(_: dict[str, Any]) -> None:
    pass


async def _async_blocks(_: dict[str, Any]) -> dict[str, Any]:
    return {"decision": "block", "reason": "no"}


async def _waits(_: dict[str, Any]) -> None:
    await asyncio.sleep(0)
