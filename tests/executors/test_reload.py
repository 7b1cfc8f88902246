"""Processes of hooks after a reload: those that changed go, others stay (issue 16)."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from tests.support.project import Project

from .bench import lives, until

WORKER = """
import os, pathlib, time
from hookline.script import block, run
def answer(event):
    if event.get("tool_name") == "slow":
        pathlib.Path("started").touch()
        while not pathlib.Path("go").exists():
            time.sleep(0.01)
    return block(f"{os.environ.get('WORD', '')} {os.getpid()}")
run(answer)
"""
STANDBY = """
import os, sys
sys.stdin.read()
print(os.getpid(), file=sys.stderr)
sys.exit(2)
"""


class Bench:
    """Hooks with processes that are kept, and a system that follows its settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "hooks.json"
        (folder / "w.py").write_text(WORKER)
        (folder / "s.py").write_text(STANDBY)
        self.system: HookSystem

    def worker(self, name: str, **more: Any) -> dict[str, Any]:
        command = f"{sys.executable} w.py"
        return {"type": "worker", "name": name, "command": command, **more}

    def standby(self, name: str, **more: Any) -> dict[str, Any]:
        command = f"exec {sys.executable} s.py"
        more = {"standby": 1, **more}
        return {"type": "command", "name": name, "command": command, **more}

    def write(self, *groups: dict[str, Any], **more: Any) -> None:
        new = self.folder / "new"
        new.write_text(json.dumps({"hooks": {"BeforeTool": list(groups)}, **more}))
        new.replace(self.file)

    def start(self) -> HookSystem:
        config = Config("s", self.folder, Settings.from_file(self.file))
        self.system = HookSystem(config, reload=True)
        return self.system

    async def pids(self, tool: str = "x") -> dict[str, str]:
        """What each hook said: its word and its process."""
        fired = await self.system.event_handler.fire_before_tool_event(tool, {})
        results = fired.aggregated.hook_results
        assert not fired.aggregated.errors
        return {
            one.hook_name: (one.output and one.output.reason) or "" for one in results
        }


def hooks(*given: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"hooks": list(given), **more}


def has_ended(answer: str) -> bool:
    """Whether the process that gave an answer is gone."""
    return not lives(int(answer.split()[-1]))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_a_changed_hook_gets_new_workers_and_others_keep_theirs(
    bench: Bench,
) -> None:
    same, other = bench.worker("same"), bench.worker("other")
    bench.write(hooks(same, other))
    async with bench.start():
        before = await bench.pids()
        bench.write(hooks(bench.worker("other", env={"WORD": "new"}), same))
        after = await bench.pids()
        assert after["same"] == before["same"]
        assert after["other"].startswith("new ")
        await until(lambda: has_ended(before["other"]))
        bench.write(hooks(same, matcher="*"), hooksConfig={"onError": "block"})
        assert await bench.pids() == {"same": before["same"]}
        await until(lambda: has_ended(after["other"]))
    await until(lambda: has_ended(before["same"]))


async def test_a_busy_worker_of_a_hook_that_went_finishes_its_event(
    bench: Bench,
) -> None:
    bench.write(hooks(bench.worker("w")))
    async with bench.start() as system:
        before = await bench.pids()
        slow = asyncio.create_task(bench.pids("slow"))
        await until((bench.folder / "started").exists)
        bench.write()
        assert await bench.pids() == {}
        assert not has_ended(before["w"])
        (bench.folder / "go").touch()
        assert await slow == before
        await until(lambda: has_ended(before["w"]))
        await until(lambda: system.health().processes == 0)


async def test_an_event_of_the_old_settings_leaves_no_worker_behind(
    bench: Bench,
) -> None:
    """It needs the worker only after its hook is gone."""
    wait = "touch started; while [ ! -e go ]; do sleep 0.01; done"
    first = {"type": "command", "name": "first", "command": wait}
    bench.write(hooks(first, bench.worker("w"), sequential=True))
    async with bench.start() as system:
        slow = asyncio.create_task(bench.pids())
        await until((bench.folder / "started").exists)
        bench.write()
        assert await bench.pids() == {}
        (bench.folder / "go").touch()
        said = (await slow)["w"]
        await until(lambda: has_ended(said))
        await until(lambda: system.health().processes == 0)


async def test_a_disabled_hook_has_no_worker_and_gets_one_again(bench: Bench) -> None:
    bench.write(hooks(bench.worker("w")))
    async with bench.start() as system:
        before = await bench.pids()
        system.set_hook_enabled("w", False)
        await until(lambda: has_ended(before["w"]))
        system.set_hook_enabled("w", True)
        again = await bench.pids()
        assert again == await bench.pids()
        assert again != before
        bench.write(hooks(bench.worker("w")), hooksConfig={"disabled": ["w"]})
        assert await bench.pids() == {}
        await until(lambda: has_ended(again["w"]))


async def test_standby_follows_the_settings(bench: Bench) -> None:
    bench.write(hooks(bench.standby("same"), bench.standby("other")))
    async with bench.start() as system:
        standby = system._executors.standby
        assert standby is not None

        def waiting() -> dict[str, int]:
            ours = standby._waiting
            return {one.pool.hook.name: one.child.group.pid for one in ours}

        await until(lambda: len(waiting()) == 2)
        before = waiting()
        bench.write(hooks(bench.standby("same"), bench.standby("new")))
        await system.reload()
        await until(lambda: waiting().keys() == {"same", "new"})
        assert waiting()["same"] == before["same"]
        await until(lambda: has_ended(str(before["other"])))
        assert (await bench.pids())["same"] == str(before["same"])


async def test_hooks_of_types_that_are_new_run(bench: Bench) -> None:
    """The first worker, standby, rule, http and cedar hook come with a reload."""
    policy = bench.folder / "p.cedar"
    policy.write_text('@reason("cedar") forbid(principal, action, resource);')
    bench.write()
    async with bench.start() as system:
        assert await bench.pids() == {}
        rule = {"type": "rule", "name": "r", "when": "true", "description": "rule"}
        cedar = {"type": "cedar", "name": "c", "policies": [str(policy)]}
        url = {"type": "http", "name": "h", "url": "http://127.0.0.1:9/"}
        bench.write(hooks(bench.worker("w"), bench.standby("s"), rule, cedar))
        said = await bench.pids()
        assert said.keys() == {"w", "s", "r", "c"}
        assert (said["r"], said["c"]) == ("rule", "cedar")
        bench.write(hooks(url))
        fired = await system.event_handler.fire_before_tool_event("x", {})
        (error,) = fired.aggregated.errors
        assert "http://127.0.0.1:9/ cannot be reached" in error.message


async def test_workers_of_an_approved_project_are_those_that_were_approved(
    project: Project,
) -> None:
    """Another content of the same worker runs only after it was approved."""
    project.write("w.py", WORKER)
    command = f"{sys.executable} w.py"
    hook = {"type": "worker", "name": "w", "command": command}
    project.settings(hook)
    project.trust()
    config = Config.load(project.folder, reload=True)
    call = {"tool_name": "x", "tool_input": {}}
    async with config:
        fire = config.session().fire
        before = (await fire("BeforeTool", call)).reason
        assert before == (await fire("BeforeTool", call)).reason
        project.write("w.py", WORKER.replace("'')} ", "'')} approved "))
        project.trust()
        after = (await fire("BeforeTool", call)).reason or ""
        assert "approved" in after
        project.settings({**hook, "description": "nobody has seen this"})
        assert "changed since" in ((await fire("BeforeTool", call)).reason or "")
