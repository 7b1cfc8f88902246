"""Fire with hardly a descriptor left: the right verdict is the failure policy's.

Run as a process of its own under a limit of 64 descriptors; prints its figures.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import sys
import tempfile

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from hookline.protocol.results import FailureCause

from .tally import Tally
from .watch import descriptors, mark_everything, settle, strays

LIMIT = 64
HOOKS = {
    "deny": ("command", "exit 2"),
    "allow": ("command", "true"),
    "sleep": ("command", "sleep 0.01; exit 2"),
    # No worker at all: it is lost at once, and run again as a command.
    "worker": ("worker", "exit 2"),
}
PYTHON_NEEDS = 3
"""Descriptors that the interpreter may need in between, for an import say."""


def settings() -> Settings:
    """Healthy hooks under both policies."""
    groups = [
        {
            "matcher": f"^{name}-{policy}$",
            "hooks": [{"type": kind, "command": command, "onError": policy}],
        }
        for name, (kind, command) in HOOKS.items()
        for policy in ("allow", "block")
    ]
    return Settings.from_mapping({"hooks": {"BeforeTool": groups}})


def problem(
    name: str, policy: str, left: int, result: ProcessedHookResult
) -> str | None:
    """What is wrong with a verdict, if anything."""
    hooks = result.aggregated.hook_results
    if len(hooks) != 1:
        return f"{len(hooks)} hooks with {left} left: {result.aggregated.errors}"
    cause = hooks[0].cause
    if cause not in {None, FailureCause.SPAWN}:
        return f"cause {cause} with {left} left: {hooks[0].error}"
    if cause is None and left < PYTHON_NEEDS:
        return f"it ran with {left} descriptors left"
    by_hook = name != "allow"
    expected = by_hook if cause is None else policy == "block"
    if result.blocked is not expected:
        return f"blocked is {result.blocked} with {left} left, cause {cause}"
    return None


async def starve(fires: int, seed: int, tally: Tally) -> None:
    """Take descriptors away, fire, give them back."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        async with HookSystem(Config("soak", folder, settings())) as hooks:
            fire = hooks.event_handler.fire_before_tool_event
            for name in HOOKS:
                await fire(f"{name}-allow", {})
            before = descriptors()
            for _ in range(fires):
                name, policy = chance.choice(list(HOOKS)), chance.choice(POLICIES)
                left = chance.randrange(14)
                taken = take_all_but(left)
                at_once = chance.choice((1, 1, 3))
                results = await asyncio.gather(
                    *(fire(f"{name}-{policy}", {}) for _ in range(at_once))
                )
                for fd in taken:
                    os.close(fd)
                for result in results:
                    wrong = problem(name, policy, left, result)
                    tally.fired("descriptors exhausted", wrong)
            after = descriptors()
            await settle()
    if after != before:
        tally.leaks.append(f"descriptors under exhaustion: {before} -> {after}")
    if found := strays():
        tally.leaks.append(f"processes under exhaustion: {len(found)}")


POLICIES = ("allow", "block")


def take_all_but(left: int) -> list[int]:
    """Open descriptors until hardly any is left."""
    taken: list[int] = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for fd in taken[len(taken) - left :]:
        os.close(fd)
    return taken[: len(taken) - left]


def main() -> None:
    """Run with a count and a seed, and print the figures."""
    fires, seed = int(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    mark_everything(f"exhaustion-{os.getpid()}")
    tally = Tally()
    asyncio.run(starve(fires, seed, tally))
    print(json.dumps(tally.report()))


if __name__ == "__main__":
    main()
