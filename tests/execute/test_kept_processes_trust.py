"""Kept processes of a trusted project: none that may have loaded other files answers.

Workers, and command hooks on standby.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest

from hookline import Config, HookSystem, ProcessedHookResult
from hookline.execute import worker
from hookline.protocol.results import FailureCause
from tests.support.hook_scripts import HookScripts, ask
from tests.support.processes import is_alive, wait_until
from tests.support.project import Project

LOADS = """
import json, os, sys, time
while os.path.exists("wait"):
    time.sleep(0.01)
import helper
def note(name):
    with open(name, "a") as pids:
        pids.write(f"{os.getpid()}\\n")
note("started")
"""
STANDBY = """
sys.stdin.read()
note("read")
if helper.REASON:
    print(json.dumps({"decision": "block", "reason": helper.REASON}))
"""
WORKER = """
from hookline.script import block, run
def hook(event):
    note("read")
    return block(helper.REASON) if helper.REASON else None
run(hook)
"""
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "standby": ({"type": "command", "standby": 1}, LOADS + STANDBY),
    "worker": ({"type": "worker"}, LOADS + WORKER),
}
HIT, COLD = {"standby": True, "worker": None}, {"standby": False, "worker": None}
"""What a result says of standby: whether a process that waited gave it."""
FOLDERS = pytest.mark.parametrize("folder", ["tools", ".hookline/hooks"])
BOTH = pytest.mark.parametrize("kind", KINDS)


class GuardedProject:
    """A trusted project whose guard blocks for the reason that its helper has."""

    def __init__(self, project: Project, kind: str, folder: str = "tools") -> None:
        self.project = project
        scripts = HookScripts(project.folder)
        self.pids, self.started = scripts.pids, scripts.started
        self.folder = project.folder / folder
        self.helper = self.folder / "helper.py"
        options, source = KINDS[kind]
        project.write(f"{folder}/helper.py", "REASON = 'good'")
        project.write(f"{folder}/guard.py", source)
        command = f'"$HOOKLINE_PYTHON" {folder}/guard.py'
        self.hook = {"name": "guard", "command": command, **options}
        project.settings(self.hook)
        assert project.trust() == 0

    def system(self, *, ahead: bool = True) -> HookSystem:
        """Its processes are started before the first event, or by it."""
        return HookSystem(Config.load(self.project.folder), start_workers=ahead)

    def exchange(self) -> None:
        """Put another helper in the place of the approved one."""
        self.helper.rename(self.folder.parent / "approved.py")
        self.helper.write_text("REASON = None\nos = __import__('os')")

    def put_back(self) -> None:
        (self.folder.parent / "approved.py").replace(self.helper)


async def fire(hooks: HookSystem) -> ProcessedHookResult:
    return await hooks.event_handler.fire_before_tool_event("x", {})


def cause_of(result: ProcessedHookResult) -> FailureCause | None:
    [ran] = result.aggregated.hook_results
    assert result.blocked
    return ran.cause


@FOLDERS
@BOTH
async def test_kept_process_answers_while_its_files_hold(
    project: Project, folder: str, kind: str
) -> None:
    guarded = GuardedProject(project, kind, folder)
    async with guarded.system() as hooks:
        for count in (1, 2, 3):
            await guarded.started(count if kind == "standby" else 1)
            assert await ask(hooks) == ("good", HIT[kind])
            project.write("notes.txt", "x")
    assert len(set(guarded.pids("read"))) == (3 if kind == "standby" else 1)


@FOLDERS
@BOTH
async def test_one_started_under_other_files_is_killed_unread(
    project: Project, folder: str, kind: str
) -> None:
    """Files are checked for trust when it starts and when it is used.

    protocol.md#rules
    """
    guarded = GuardedProject(project, kind, folder)
    async with guarded.system() as hooks:
        (ahead,) = await guarded.started(1)
        guarded.exchange()
        assert cause_of(await fire(hooks)) is FailureCause.CHANGED
        await wait_until(lambda: not is_alive(ahead))
        guarded.put_back()
        assert await ask(hooks) == ("good", COLD[kind])
        await guarded.started(3 if kind == "standby" else 2)
        assert await ask(hooks) == ("good", HIT[kind])
        if kind == "worker":  # one that has answered is killed as well
            answered = guarded.pids("started")[-1]
            guarded.exchange()
            assert cause_of(await fire(hooks)) is FailureCause.CHANGED
            await wait_until(lambda: not is_alive(answered))
    assert ahead not in guarded.pids("read")


@FOLDERS
@BOTH
async def test_edited_and_restored_between_two_events_is_thrown_away(
    project: Project, folder: str, kind: str
) -> None:
    guarded = GuardedProject(project, kind, folder)
    async with guarded.system() as hooks:
        (ahead,) = await guarded.started(1)
        for text in ("REASON = None", "REASON = 'good'"):
            guarded.helper.write_text(text)
        assert await ask(hooks) == ("good", COLD[kind])
        await wait_until(lambda: not is_alive(ahead))
    assert ahead not in guarded.pids("read")


@FOLDERS
@pytest.mark.parametrize(
    ("kind", "ahead"), [("standby", True), ("worker", True), ("worker", False)]
)
async def test_one_that_loaded_a_swapped_helper_does_not_answer(
    project: Project, folder: str, kind: str, ahead: bool
) -> None:
    """It stayed. Started ahead, or by the event itself."""
    guarded = GuardedProject(project, kind, folder)
    project.write("wait", "")
    async with guarded.system(ahead=ahead) as hooks:
        first = None if ahead else asyncio.create_task(fire(hooks))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        guarded.exchange()
        (project.folder / "wait").unlink()
        (loaded,) = await guarded.started(1)
        if first is not None:
            assert cause_of(await first) is FailureCause.CHANGED
        guarded.put_back()
        assert await ask(hooks) == ("good", COLD[kind])
    assert guarded.pids("read").count(loaded) == (not ahead)


@BOTH
async def test_nothing_of_an_untrusted_or_changed_project_is_started_ahead(
    project: Project, kind: str
) -> None:
    guarded = GuardedProject(project, kind)
    assert project.trust("--revoke") == 0
    async with guarded.system() as hooks:
        await fire(hooks)
    assert project.trust() == 0
    project.write("tools/guard.py", KINDS[kind][1] + "\n")
    async with guarded.system() as hooks:
        for _ in range(2):
            assert cause_of(await fire(hooks)) is FailureCause.CHANGED
    assert guarded.pids("started") == []


@BOTH
async def test_settings_that_change_throw_away_what_waits(
    project: Project, kind: str
) -> None:
    """protocol.md#rules: one that was started under other settings is thrown away."""
    guarded = GuardedProject(project, kind)
    async with guarded.system() as hooks:
        (ahead,) = await guarded.started(1)
        project.settings({**guarded.hook, "description": "nobody has seen this"})
        assert cause_of(await fire(hooks)) is FailureCause.CHANGED
        await wait_until(lambda: not is_alive(ahead))
    assert guarded.pids("read") == []


async def test_lost_worker_is_not_replaced_while_its_files_do_not_hold(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trust is checked as at a start."""
    monkeypatch.setattr(worker, "REPLACE_S", 0.01)
    guarded = GuardedProject(project, "worker")
    async with guarded.system() as hooks:
        (lost,) = await guarded.started(1)
        guarded.exchange()
        os.kill(lost, signal.SIGKILL)
        for _ in range(20):  # many times as long as it takes to replace it
            await asyncio.sleep(0.02)
            assert guarded.pids("started") == [lost]
        assert hooks.health().lost == ("guard",)
        guarded.put_back()
        await guarded.started(2)
        assert hooks.health().lost == ()
