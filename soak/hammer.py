"""Fire events at misbehaving hooks, many at a time, and cancel some in between."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import time
from pathlib import Path

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from hookline.protocol.results import FailureCause

from .bus import bother_bus
from .faults import FAULTS, Fault, settings, wrong_verdict
from .observers import bother_observers
from .rules import bother_rules
from .services import bother_services
from .standby import bother_standby
from .tally import Tally
from .watch import Held, held, settle
from .workers import bother_workers

_OTHERS = (
    *(bother_workers, bother_bus, bother_standby, bother_rules, bother_services),
    bother_observers,
)
AT_ONCE = 10
ROUND_S = 20.0
WARM_S = 5.0
BIG = "x" * 300_000
_MEMORY_KIB = 64 * 1024


async def hammer(seconds: float, seed: int, tally: Tally) -> None:
    """Fire for a while, in rounds; after each round nothing may be left."""
    chance = random.Random(seed)
    ends = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        config = Config("soak", folder, Settings.from_mapping(settings()))
        async with HookSystem(config) as hooks:
            register_functions(hooks)
            # Opens what stays open and loads what stays loaded.
            warm = time.monotonic() + min(WARM_S, seconds)
            await _round(hooks, chance, tally, warm)
            await settle()
            first = held()
            while (now := time.monotonic()) < ends:
                await _round(hooks, chance, tally, min(ends, now + ROUND_S))
                await settle()
                _compare(first, held(), tally)


async def _round(
    hooks: HookSystem, chance: random.Random, tally: Tally, until: float
) -> None:
    async def fire_on() -> None:
        own = random.Random(chance.random())
        while time.monotonic() < until:
            await _fire_one(hooks, own, tally)

    async def pull_the_ground_away() -> None:
        own = random.Random(chance.random())
        while time.monotonic() < until:
            await _without_directory(own, tally)
            await asyncio.sleep(own.uniform(0.1, 0.5))

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(fire_on())
        group.create_task(pull_the_ground_away())
        for bother in _OTHERS:
            group.create_task(bother(random.Random(chance.random()), tally, until))


async def _fire_one(hooks: HookSystem, chance: random.Random, tally: Tally) -> None:
    kind = chance.random()
    if kind < 0.1:
        await _fire_function(hooks, chance, tally)
        return
    (fault,) = chance.choices(FAULTS, [fault.weight for fault in FAULTS])
    policy = chance.choice(("allow", "block"))
    given = {"text": BIG if chance.random() < 0.1 else "x"}
    event = hooks.event_handler.fire_before_tool_event(f"{fault.name}-{policy}", given)
    if kind < 0.2:
        await _cancel_somewhere(event, fault, policy, chance, tally)
        return
    result = await event
    tally.fired(fault.name, wrong_verdict(fault, policy, result))
    if fault.cause is FailureCause.TIMEOUT and result.aggregated.hook_results:
        taken = result.aggregated.hook_results[0].duration
        tally.answered(taken, fault.timeout_ms)


async def _cancel_somewhere(
    event: object, fault: Fault, policy: str, chance: random.Random, tally: Tally
) -> None:
    task = asyncio.ensure_future(event)  # type: ignore[call-overload]  # a coroutine
    await asyncio.wait({task}, timeout=chance.choice((0, 0.001, chance.random() / 3)))
    task.cancel()
    try:
        result: ProcessedHookResult = await task
    except asyncio.CancelledError:
        tally.fired("cancellation", None)
        return
    tally.fired("cancellation too late", wrong_verdict(fault, policy, result))


async def _without_directory(chance: random.Random, tally: Tally) -> None:
    """The working directory goes away under a hook, and is gone for the next one."""
    folder = tempfile.mkdtemp()
    policy = chance.choice(("allow", "block"))
    hook = {"type": "command", "command": 'rm -rf "$PWD"; exit 2', "onError": policy}
    found = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    async with HookSystem(Config("soak", folder, found)) as hooks:
        for cause in (None, FailureCause.SPAWN):
            fault = Fault(name="", command="", cause=cause, blocks=True)
            fired = await hooks.event_handler.fire_before_tool_event("x", {})
            problem = wrong_verdict(fault, policy, fired)
            tally.fired("directory removed", problem)
    shutil.rmtree(folder, ignore_errors=True)


def register_functions(hooks: HookSystem) -> None:
    """Hooks of this process that misbehave."""

    @hooks.on("BeforeTool", "^python-raise$")
    def fail(_: object) -> None:
        raise ZeroDivisionError

    @hooks.on("BeforeTool", "^python-hang$", timeout_ms=50)
    async def hang(_: object) -> None:
        await asyncio.sleep(300)

    @hooks.on("BeforeTool", "^python-deny$")
    async def deny(_: object) -> dict[str, str]:
        await asyncio.sleep(0)
        return {"decision": "deny"}

    @hooks.on("BeforeTool", "^python-exit$")
    def leave(_: object) -> None:
        raise SystemExit(2)

    @hooks.on("BeforeTool", "^python-nonsense$")
    def nonsense(_: object) -> object:
        return 17


FUNCTIONS = {
    "python-raise": Fault(name="", command="", cause=FailureCause.CRASH),
    "python-hang": Fault(name="", command="", cause=FailureCause.TIMEOUT),
    "python-deny": Fault(name="", command="", blocks=True),
    "python-exit": Fault(name="", command="", blocks=True),
    "python-nonsense": Fault(name="", command="", cause=FailureCause.OUTPUT),
}


async def _fire_function(
    hooks: HookSystem, chance: random.Random, tally: Tally
) -> None:
    name = chance.choice(list(FUNCTIONS))
    result = await hooks.event_handler.fire_before_tool_event(name, {"a": 1})
    tally.fired(name, wrong_verdict(FUNCTIONS[name], "allow", result))


def _compare(first: Held, now: Held, tally: Tally) -> None:
    if now.descriptors > first.descriptors:
        grown = f"{first.descriptors} -> {now.descriptors}"
        open_now = [_target(fd) for fd in Path("/proc/self/fd").iterdir()]
        tally.leaks.append(f"descriptors: {grown}: {open_now}")
    if now.children:
        tally.leaks.append(f"children: {now.children}")
    if now.strays:
        tally.leaks.append(f"processes that should be dead: {now.strays}")
    if now.memory_kib > first.memory_kib + _MEMORY_KIB:
        tally.leaks.append(f"memory: {first.memory_kib} -> {now.memory_kib} KiB")


def _target(fd: Path) -> str:
    try:
        return str(fd.readlink())
    except OSError:
        return "?"
