"""Warm workers that misbehave: each must be replaced, and no verdict lost."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from hookline import Config, HookSystem, Settings
from hookline.protocol.results import FailureCause

from .faults import Fault, wrong_verdict
from .tally import Tally

_SCRIPT = """\
import os, sys, time
from hookline.script import block, run

def act(event):
    kind = event["tool_name"].split("-")[1]
    if kind == "deny":
        return block("no")
    if kind == "raise":
        raise ZeroDivisionError
    if kind == "die":
        os._exit(3)
    if kind == "killed":
        os.kill(os.getpid(), 9)
    if kind == "hang":
        time.sleep(300)
    if kind == "chatter":
        os.write(1, b"not an answer\\n" * 100)

run(act)
"""
_CRASH, _TIMEOUT = FailureCause.CRASH, FailureCause.TIMEOUT
WORKER_FAULTS = {
    "allow": Fault(name="worker-allow", command="", weight=20),
    "deny": Fault(name="worker-deny", command="", blocks=True, weight=20),
    "raise": Fault(name="worker-raise", command="", cause=_CRASH, weight=4),
    "die": Fault(name="worker-die", command="", cause=_CRASH, weight=2),
    "killed": Fault(name="worker-killed", command="", cause=_CRASH, weight=2),
    "hang": Fault(name="worker-hang", command="", cause=_TIMEOUT, weight=2),
    "chatter": Fault(name="worker-chatter", command="", weight=2),
}
_HANG_MS = 400


def settings(script: Path) -> Settings:
    """One hook for each policy; those that hang get a short time."""
    command = f"'{sys.executable}' '{script}'"
    groups = []
    for policy in ("allow", "block"):
        hook = {"type": "worker", "command": command, "onError": policy, "pool": 2}
        hang = {**hook, "name": f"hang-{policy}", "timeout": _HANG_MS}
        other = {**hook, "name": f"other-{policy}"}
        groups += [
            {"matcher": f"^worker-hang-{policy}$", "hooks": [hang]},
            {"matcher": f"^worker-(?!hang).*-{policy}$", "hooks": [other]},
        ]
    options = {"breaker": False}
    return Settings.from_mapping(
        {"hooks": {"BeforeTool": groups}, "hooksConfig": options}
    )


async def bother_workers(chance: random.Random, tally: Tally, until: float) -> None:
    """Fire at workers until the time is over; then all of them must be gone."""
    with tempfile.TemporaryDirectory() as folder:
        config = Config("soak", folder, settings(_script(folder)))
        async with HookSystem(config) as hooks, asyncio.TaskGroup() as group:
            for _ in range(3):
                own = random.Random(chance.random())
                group.create_task(_fire_on(hooks, own, tally, until))


def _script(folder: str) -> Path:
    script = Path(folder, "worker.py")
    script.write_text(_SCRIPT)
    return script


async def _fire_on(
    hooks: HookSystem, chance: random.Random, tally: Tally, until: float
) -> None:
    faults = list(WORKER_FAULTS.values())
    while time.monotonic() < until:
        (fault,) = chance.choices(faults, [fault.weight for fault in faults])
        policy = chance.choice(("allow", "block"))
        result = await hooks.event_handler.fire_before_tool_event(
            f"{fault.name}-{policy}", {"text": "x"}
        )
        tally.fired(fault.name, wrong_verdict(fault, policy, result))
        if fault.cause is _TIMEOUT and result.aggregated.hook_results:
            taken = result.aggregated.hook_results[0].duration
            tally.answered(taken, _HANG_MS)
