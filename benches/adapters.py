"""What hooks cost in each framework: the same agent with and without them.

One run is two model calls and one tool call, with a hook in this process on every
event. What building the agent costs is in both sides.
"""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from types import ModuleType
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
        module = _module(name)
        if module is None:
            continue
        contract = getattr(module, "ContractDriver", None)
        bar = Bar(MAX_ADDED_US, "added_us")
        plain = f"{name}: a run with hooks", "the same agent without hooks"
        made.append(await _figure(_driver(module), plain, min(rounds, ROUNDS), bar))
        if contract:
            # The framework takes hooks only through middleware with a cost of its own.
            own = f"{name}: the hooks alone", "the same agent with that middleware"
            made.append(await _figure(contract(), own, min(rounds, ROUNDS), bar))
    return made


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(f"tests.adapters.drivers.{name}")
    except ImportError:
        return None


def _driver(module: ModuleType) -> Driver:
    kinds = [one for key, one in vars(module).items() if key.endswith("Driver")]
    own = [kind for kind in kinds if kind.__module__ == module.__name__]
    made: Driver = getattr(module, "MeasuredDriver", own[0])()
    return made


async def _figure(
    driver: Driver, names: tuple[str, str], rounds: int, bar: Bar
) -> Figure:
    config = Config("bench", ".", Settings())
    system = HookSystem(config)
    for event in HookEventName:
        system.on(event)(_nothing)
    async with config:
        return await compare(
            "adapters",
            names[0],
            _run(driver, config.session("c")),
            _run(driver, None),
            names[1],
            rounds,
            bar,
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
