"""What hooks cost in each framework: the same agent with and without them.

One run is two model calls and one tool call, with a hook in this process on every
event. What building the agent costs is in both sides.
"""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Any

from hookline import Config, HookEventName, HookSystem, Settings
from hookline.agent import ScriptedReply, Session
from hookline.testing.adapters import Driver, Task

from .floor import Floors
from .measure import Bar, Figure, Timed, compare

FRAMEWORKS = (
    "own_agent", "pydantic_ai", "langchain", "openai_agents", "google_adk", "fastmcp",
    "strands", "claude_agent_sdk", "agent_hooks",
)  # fmt: skip
REPLIES = [ScriptedReply(calls=(("read", {"path": "a.md"}),))]
MAX_ADDED_US = 3000.0
ROUNDS = 60


async def figures(_floors: Floors, _folder: Path, rounds: int) -> list[Figure]:
    """One figure per framework that is installed here."""
    made = []
    for name in FRAMEWORKS:
        driver = _driver(name)
        if driver is not None:
            made.append(await _figure(name, driver, min(rounds, ROUNDS)))
    return made


def _driver(name: str) -> Driver | None:
    try:
        module = importlib.import_module(f"tests.adapters.drivers.{name}")
    except ImportError:
        return None
    kinds = [one for key, one in vars(module).items() if key.endswith("Driver")]
    own = [kind for kind in kinds if kind.__module__ == module.__name__]
    made: Driver = getattr(module, "MeasuredDriver", own[0])()
    return made


async def _figure(name: str, driver: Driver, rounds: int) -> Figure:
    config = Config("bench", ".", Settings())
    system = HookSystem(config)
    for event in HookEventName:
        system.on(event)(_nothing)
    async with config:
        return await compare(
            "adapters",
            f"{name}: a run with hooks",
            _run(driver, config.session("c")),
            _run(driver, None),
            "the same agent without hooks",
            rounds,
            Bar(MAX_ADDED_US, "added_us"),
        )


def _run(driver: Driver, session: Session | None) -> Timed:
    async def run() -> float:
        task = Task(replies=REPLIES)
        started = time.perf_counter()
        await driver.run(session, task, driver.entries[0])
        return time.perf_counter() - started

    return run


def _nothing(_: dict[str, Any]) -> None:
    return None
