"""Kept processes after settings changed: those of changed hooks go, others stay."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline import Config
from tests.support.followed_settings import FollowedSettings
from tests.support.hook_scripts import STANDBY, HookScripts
from tests.support.processes import is_alive, wait_until
from tests.support.project import Project

WORKER = """
import os, pathlib, time
from hookline.script import block, run
def answer(event):
    if event.get("tool_name") == "slow":
        pathlib.Path("busy").touch()
        while not pathlib.Path("go").exists():
            time.sleep(0.01)
    return block(f"{os.environ.get('WORD', '')} {os.getpid()}")
run(answer)
"""


class FollowedScripts(FollowedSettings):
    """Hooks with processes that are kept, and a system that follows its settings."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.scripts = HookScripts(folder)

    def worker(self, name: str, **more: Any) -> dict[str, Any]:
        return self.scripts.worker(WORKER, name, **more)

    def standby(self, name: str) -> dict[str, Any]:
        return self.scripts.standby(STANDBY.replace("started", f"{name}-pids"), name)

    async def answers(self, tool: str = "x") -> dict[str, str]:
        """The reason of each hook: its word and its process."""
        fired = await self.fire(tool)
        assert not fired.aggregated.errors
        return {
            hook.hook_name: (hook.output and hook.output.reason) or ""
            for hook in fired.aggregated.hook_results
        }


def has_ended(answer: str) -> bool:
    """Whether the process that gave an answer is gone."""
    return not is_alive(int(answer.split()[-1]))


@pytest.fixture
def followed(tmp_path: Path) -> FollowedScripts:
    return FollowedScripts(tmp_path)


async def test_changed_hook_gets_new_workers_and_others_keep_theirs(
    followed: FollowedScripts,
) -> None:
    same, other = followed.worker("same"), followed.worker("other")
    followed.write(same, other)
    async with followed.start():
        before = await followed.answers()
        followed.write(followed.worker("other", env={"WORD": "new"}), same)
        after = await followed.answers()
        assert after["same"] == before["same"]
        assert after["other"].startswith("new ")
        await wait_until(lambda: has_ended(before["other"]))
        followed.write(same, group={"matcher": "*"}, hooksConfig={"onError": "block"})
        assert await followed.answers() == {"same": before["same"]}
        await wait_until(lambda: has_ended(after["other"]))
    await wait_until(lambda: has_ended(before["same"]))


async def test_busy_worker_of_a_hook_that_went_finishes_its_event(
    followed: FollowedScripts,
) -> None:
    followed.write(followed.worker("w"))
    async with followed.start() as system:
        before = await followed.answers()
        slow = asyncio.create_task(followed.answers("slow"))
        await wait_until((followed.folder / "busy").exists)
        followed.write()
        assert await followed.answers() == {}
        assert not has_ended(before["w"])
        (followed.folder / "go").touch()
        assert await slow == before
        await wait_until(lambda: has_ended(before["w"]))
        await wait_until(lambda: system.health().processes == 0)


async def test_event_of_the_old_settings_leaves_no_worker_behind(
    followed: FollowedScripts,
) -> None:
    """It needs the worker only after its hook is gone."""
    wait = "touch started; while [ ! -e go ]; do sleep 0.01; done"
    first = {"type": "command", "name": "first", "command": wait}
    followed.write(first, followed.worker("w"), group={"sequential": True})
    async with followed.start() as system:
        slow = asyncio.create_task(followed.answers())
        await wait_until((followed.folder / "started").exists)
        followed.write()
        assert await followed.answers() == {}
        (followed.folder / "go").touch()
        answer = (await slow)["w"]
        await wait_until(lambda: has_ended(answer))
        await wait_until(lambda: system.health().processes == 0)


async def test_disabled_hook_has_no_worker_and_gets_one_again(
    followed: FollowedScripts,
) -> None:
    followed.write(followed.worker("w"))
    async with followed.start() as system:
        before = await followed.answers()
        system.set_hook_enabled("w", False)
        await wait_until(lambda: has_ended(before["w"]))
        system.set_hook_enabled("w", True)
        again = await followed.answers()
        assert again == await followed.answers()
        assert again != before
        followed.write(followed.worker("w"), hooksConfig={"disabled": ["w"]})
        assert await followed.answers() == {}
        await wait_until(lambda: has_ended(again["w"]))


async def test_standby_follows_the_settings(followed: FollowedScripts) -> None:
    def started(name: str) -> bool:
        return len(followed.scripts.pids(f"{name}-pids")) == 1

    unchanged = followed.standby("same")
    followed.write(unchanged, followed.standby("other"))
    async with followed.start() as system:
        await wait_until(lambda: started("same") and started("other"))
        followed.write(unchanged, followed.standby("new"))
        await system.reload()
        await wait_until(lambda: started("new"))
        (other,) = followed.scripts.pids("other-pids")
        await wait_until(lambda: not is_alive(other))
        (same,) = followed.scripts.pids("same-pids")
        assert (await followed.answers())["same"] == str(same)


async def test_hooks_of_types_that_are_new_run(followed: FollowedScripts) -> None:
    """The first worker, standby, rule, http and cedar hook come with a reload."""
    policy = followed.folder / "p.cedar"
    policy.write_text('@reason("cedar") forbid(principal, action, resource);')
    followed.write()
    async with followed.start() as system:
        assert await followed.answers() == {}
        rule = {"type": "rule", "name": "r", "when": "true", "description": "rule"}
        cedar = {"type": "cedar", "name": "c", "policies": [str(policy)]}
        url = {"type": "http", "name": "h", "url": "http://127.0.0.1:9/"}
        followed.write(followed.worker("w"), followed.standby("s"), rule, cedar)
        answers = await followed.answers()
        assert answers.keys() == {"w", "s", "r", "c"}
        assert (answers["r"], answers["c"]) == ("rule", "cedar")
        followed.write(url)
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
