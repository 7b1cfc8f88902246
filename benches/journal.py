"""What the journal costs the firing side: a fire with it beside one without.

Run with ``python -m benches.journal``. The bar is 30 microseconds, as the median over
many events, for inputs of up to 4 KB, whether or not a hook matches. The two fires are
taken in turns in one run, so that a busy machine slows both.
"""

from __future__ import annotations

import asyncio
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hookline.config import Config
from hookline.engine.system import HookSystem
from hookline.protocol.events import HookEventName
from hookline.settings.load import Settings

BAR_US = 30.0
ROUNDS = 2000

Fire = Callable[[HookSystem], Awaitable[object]]

TOOL_INPUTS: dict[str, dict[str, Any]] = {
    "tiny": {"path": "a.py"},
    "one text": {"path": "src/app.py", "content": "x = 1  # a line\n" * 240},
    "160 keys": {f"name_{number:03}": f"value {number:03}" for number in range(160)},
    "90 edits": {"edits": [{"line": n, "text": "a = b", "all": 1} for n in range(90)]},
}
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "word " * 20}] * 30}


async def hook(event: dict[str, Any]) -> dict[str, Any]:
    return {"decision": "allow", "hookSpecificOutput": {"tool_input": {"checked": 1}}}


async def main() -> int:
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"{ROUNDS} fires each; medians in microseconds, the bar is {BAR_US:g}"
    )
    print(f"{'input':12} {'hooks':>5} {'without':>9} {'with':>9} {'cost':>7}")
    costs = [await measure(*case) for case in cases()]
    worst = max(costs)
    print(f"worst: {worst:.1f}, {'within' if worst <= BAR_US else 'OVER'} the bar")
    return 0 if worst <= BAR_US else 1


def cases() -> list[tuple[str, int, Fire]]:
    found = [
        (name, hooks, tool_fire(tool, tool_input))
        for hooks, tool in enumerate(("other", "hooked"))
        for name, tool_input in TOOL_INPUTS.items()
    ]
    model = (
        "30 messages",
        0,
        lambda s: s.event_handler.fire_before_model_event(REQUEST),
    )
    return [*found, model]


def tool_fire(tool: str, tool_input: dict[str, Any]) -> Fire:
    return lambda s: s.event_handler.fire_before_tool_event(tool, tool_input)


async def measure(name: str, hooks: int, fire: Fire) -> float:
    """Print one line and return what the journal cost; its backlog is written after."""
    with tempfile.TemporaryDirectory() as folder:
        journal = {"hooksConfig": {"journal": str(Path(folder) / "journal.sqlite")}}
        bare, kept = system_with({}), system_with(journal)
        async with bare, kept:
            without, with_journal = await medians(fire, bare, kept)
    cost = with_journal - without
    print(f"{name:12} {hooks:5} {without:9.1f} {with_journal:9.1f} {cost:7.1f}")
    return cost


def system_with(settings: dict[str, Any]) -> HookSystem:
    system = HookSystem(Config(settings=Settings.from_mapping(settings)))
    system.on(HookEventName.BeforeTool, matcher="hooked")(hook)
    return system


async def medians(fire: Fire, *systems: HookSystem) -> list[float]:
    """Fire on the systems in turns, so that a busy machine slows all of them."""
    times: list[list[float]] = [[] for _ in systems]
    for _ in range(ROUNDS):
        for system, taken in zip(systems, times, strict=True):
            started = time.perf_counter()
            await fire(system)
            taken.append((time.perf_counter() - started) * 1e6)
    return [statistics.median(taken) for taken in times]


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
