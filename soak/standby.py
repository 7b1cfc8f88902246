"""Hooks on standby that misbehave, before and after their event: no verdict is lost.

Sessions change, files change, processes end too early: an event gets a process that
was started for it, or runs cold. None may ever take the end of its input for an event.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, Settings
from hookline.protocol.results import FailureCause

from .faults import Fault, wrong_verdict
from .tally import Tally

_SCRIPT = """\
import json, os, sys, time
text = sys.stdin.read()
if not text:
    open("no-event", "w").close()
event = json.loads(text)
if event["session_id"] != os.environ["HOOKLINE_SESSION_ID"]:
    open("other-session", "w").close()
kind = event["tool_name"].split("-")[1]
if kind == "deny":
    print(json.dumps({"decision": "deny", "reason": "no"}))
elif kind == "raise":
    raise ZeroDivisionError
elif kind == "killed":
    os.kill(os.getpid(), 9)
elif kind == "hang":
    time.sleep(300)
elif kind == "flood":
    print("x" * 3_000_000)
"""
_CRASH, _TIMEOUT = FailureCause.CRASH, FailureCause.TIMEOUT
_OUTPUT = FailureCause.OUTPUT
STANDBY_FAULTS = (
    Fault(name="standby-allow", command="", weight=20),
    Fault(name="standby-deny", command="", blocks=True, weight=20),
    Fault(name="standby-raise", command="", cause=_CRASH, weight=3),
    Fault(name="standby-killed", command="", cause=_CRASH, weight=2),
    Fault(name="standby-hang", command="", cause=_TIMEOUT, weight=1),
    Fault(name="standby-flood", command="", cause=_OUTPUT, weight=2),
    # They end unused, after their output, or before they read.
    Fault(name="standby-unread", command="sleep 0.0$RANDOM; exit 2", blocks=True),
    Fault(
        name="standby-early",
        command="echo no >&2; cat >/dev/null; exit 2",
        blocks=True,
    ),
)
_NOTES = ("no-event", "other-session")
_HANG_MS = 700
_BRIEF = ("unread", "early")


def settings(script: Path) -> Settings:
    """One hook for each policy; those that hang get a short time."""
    command = f"'{sys.executable}' '{script}'"
    groups: list[dict[str, Any]] = []
    for policy in ("allow", "block"):
        hook = {"type": "command", "onError": policy, "standby": 2}
        hang = {"name": f"hang-{policy}", "command": command, "timeout": _HANG_MS}
        other = {"name": f"other-{policy}", "command": command}
        rest = f"^standby-(?!hang|{'|'.join(_BRIEF)}).*-{policy}$"
        groups += [
            {"matcher": f"^standby-hang-{policy}$", "hooks": [{**hook, **hang}]},
            {"matcher": rest, "hooks": [{**hook, **other}]},
        ]
        for fault in STANDBY_FAULTS:
            if fault.command:
                tool = f"{fault.name}-{policy}"
                own = {**hook, "name": tool, "command": fault.command}
                groups.append({"matcher": f"^{tool}$", "hooks": [own]})
    options = {"breaker": False, "maxProcesses": 6, "maxOutputBytes": 1_000_000}
    options["workerIdleMs"] = 1500
    return Settings.from_mapping(
        {"hooks": {"BeforeTool": groups}, "hooksConfig": options}
    )


async def bother_standby(chance: random.Random, tally: Tally, until: float) -> None:
    """Fire until the time is over; then all processes must be gone, none deceived."""
    with tempfile.TemporaryDirectory() as folder:
        script = _script(folder)
        async with (
            HookSystem(Config("soak", folder, settings(script))) as hooks,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(3):
                own = random.Random(chance.random())
                group.create_task(_fire_on(hooks, own, tally, until, script))
        for name in _deceived(folder):
            tally.fired("standby", f"a process on standby saw {name}")


def _script(folder: str) -> Path:
    script = Path(folder, "hook.py")
    script.write_text(_SCRIPT)
    return script


def _deceived(folder: str) -> list[str]:
    return [name for name in _NOTES if Path(folder, name).exists()]


async def _fire_on(
    hooks: HookSystem, chance: random.Random, tally: Tally, until: float, script: Path
) -> None:
    faults = STANDBY_FAULTS
    while time.monotonic() < until:
        (fault,) = chance.choices(faults, [fault.weight for fault in faults])
        policy = chance.choice(("allow", "block"))
        if chance.random() < 0.05:
            os.utime(script)
        given = {"tool_name": f"{fault.name}-{policy}", "tool_input": {"text": "x"}}
        if chance.random() < 0.2:
            given["session_id"] = chance.choice(("a", "b"))
        result = await hooks.event_handler.fire("BeforeTool", given)
        tally.fired(fault.name, wrong_verdict(fault, policy, result))
        (ran,) = result.aggregated.hook_results
        tally.faults["standby: hits" if ran.standby else "standby: misses"] += 1
        if fault.cause is _TIMEOUT:
            tally.answered(ran.duration, _HANG_MS)
