"""Workers of a trusted project: none that may have loaded other files answers."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from hookline import Config, HookSystem
from hookline.executors import worker
from hookline.protocol.results import FailureCause
from tests.support.processes import until
from tests.support.project import Project

from .bench import lives

WORKER = """
import os, time
from hookline.script import *
while os.path.exists("wait"):
    time.sleep(0.01)
import helper
with open("loading", "w") as file:
    file.write(str(os.getpid()))
os.rename("loading", "loaded")
def hook(event):
    with open("pids", "a") as pids:
        pids.write(f"{os.getpid()}\\n")
    return block(helper.REASON) if helper.REASON else None
run(hook)
"""


def worker_project(project: Project, folder: str) -> None:
    project.write(f"{folder}/helper.py", "REASON = 'good'")
    project.write(f"{folder}/guard.py", WORKER)
    command = f'"$HOOKLINE_PYTHON" {folder}/guard.py'
    project.settings({"type": "worker", "name": "guard", "command": command})
    assert project.trust() == 0


def pids(project: Project) -> list[int]:
    return [int(line) for line in (project.folder / "pids").read_text().split()]


async def gone(pid: int) -> None:
    for _ in range(3000):
        if not lives(pid):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{pid} still lives")


def exchange(folder: Path) -> None:
    """Another helper in place of the approved one."""
    (folder / "helper.py").rename(folder.parent / "kept.py")
    (folder / "helper.py").write_text("REASON = None\nos = __import__('os')")


def put_back(folder: Path) -> None:
    (folder.parent / "kept.py").replace(folder / "helper.py")


@pytest.mark.parametrize("folder", ["tools", ".hookline/hooks"])
@pytest.mark.parametrize("ahead", [True, False])
async def test_a_worker_that_was_started_while_a_helper_was_swapped_is_not_asked(
    project: Project, folder: str, ahead: bool
) -> None:
    """Issue 12.11: it stayed."""
    worker_project(project, folder)
    project.write("wait", "")
    config = Config.load(project.folder)
    async with HookSystem(config, start_workers=ahead) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        first = None if ahead else asyncio.create_task(fire("x", {}))
        await asyncio.sleep(0)
        exchange(project.folder / folder)
        (project.folder / "wait").unlink()
        if first is not None:
            found = await first
            assert found.aggregated.hook_results[0].cause is FailureCause.CHANGED
        else:
            await until(str(project.folder / "loaded"))
        put_back(project.folder / folder)
        result = await fire("x", {})
    assert result.reason == "good"


@pytest.mark.parametrize("folder", ["tools", ".hookline/hooks"])
async def test_workers_are_killed_when_the_files_of_their_hook_do_not_hold(
    project: Project, folder: str
) -> None:
    worker_project(project, folder)
    async with project.system() as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert (await fire("x", {})).reason == "good"
        project.write(f"{folder}/helper.py", "REASON = 'other'")
        changed = await fire("x", {})
        assert changed.aggregated.hook_results[0].cause is FailureCause.CHANGED
        (pid,) = pids(project)
        await gone(pid)
        project.write(f"{folder}/helper.py", "REASON = 'good'")
        assert (await fire("x", {})).reason == "good"
        assert len(set(pids(project))) == 2


async def test_a_worker_stays_while_its_files_hold(project: Project) -> None:
    worker_project(project, "tools")
    async with project.system() as hooks:
        for _ in range(3):
            result = await hooks.event_handler.fire_before_tool_event("x", {})
            assert result.reason == "good"
            project.write("notes.txt", "x")
    assert len(set(pids(project))) == 1


async def test_a_lost_worker_is_not_replaced_while_its_files_do_not_hold(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 16: trust is checked as at a start."""
    monkeypatch.setattr(worker, "REPLACE_S", 0.01)
    worker_project(project, "tools")
    loaded = project.folder / "loaded"
    async with HookSystem(Config.load(project.folder), start_workers=True) as hooks:
        await until(str(loaded))
        pid = int(loaded.read_text())
        loaded.unlink()
        exchange(project.folder / "tools")
        os.kill(pid, signal.SIGKILL)
        for _ in range(20):  # many times as long as it takes to replace it
            await asyncio.sleep(0.02)
            assert not loaded.exists()
        assert hooks.health().lost == ("guard",)
        put_back(project.folder / "tools")
        await until(str(loaded))
        assert hooks.health().lost == ()
