"""Standby in a project: none that may have loaded other files answers (issue 13.5)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hookline import Config, HookSystem
from hookline.protocol.results import FailureCause
from tests.support.project import Project

from .bench import hits, lives, until

GUARD = """
import json, os, sys, time
while os.path.exists("wait"):
    time.sleep(0.01)
import helper
with open("started", "a") as pids:
    pids.write(f"{os.getpid()}\\n")
sys.stdin.read()
with open("read", "a") as pids:
    pids.write(f"{os.getpid()}\\n")
if helper.REASON:
    print(json.dumps({"decision": "block", "reason": helper.REASON}))
"""


def guarded(project: Project, folder: str) -> None:
    project.write(f"{folder}/helper.py", "REASON = 'good'")
    project.write(f"{folder}/guard.py", GUARD)
    command = f'"$HOOKLINE_PYTHON" {folder}/guard.py'
    hook = {"type": "command", "name": "guard", "command": command, "standby": 1}
    project.settings(hook)


def pids(project: Project, name: str = "started") -> list[int]:
    file = project.folder / name
    return [int(line) for line in file.read_text().split()] if file.exists() else []


async def started(project: Project, count: int) -> list[int]:
    await until(lambda: len(pids(project)) >= count)
    return pids(project)


@pytest.mark.parametrize("folder", ["tools", ".hookline/hooks"])
async def test_a_trusted_hook_is_answered_from_standby(
    project: Project, folder: str
) -> None:
    guarded(project, folder)
    assert project.trust() == 0
    async with project.system() as hooks:
        for count in (1, 2, 3):
            await started(project, count)
            result = await hooks.event_handler.fire_before_tool_event("x", {})
            assert (result.reason, hits(result)) == ("good", [True])


@pytest.mark.parametrize("folder", ["tools", ".hookline/hooks"])
async def test_one_started_under_other_files_is_killed_unread(
    project: Project, folder: str
) -> None:
    """Files are checked for trust when it starts and when it is used.

    protocol.md#rules
    """
    guarded(project, folder)
    assert project.trust() == 0
    async with project.system() as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        (ahead,) = await started(project, 1)
        project.write(f"{folder}/helper.py", "REASON = None")
        changed = await fire("x", {})
        assert changed.aggregated.hook_results[0].cause is FailureCause.CHANGED
        assert changed.blocked
        await until(lambda: not lives(ahead))
        project.write(f"{folder}/helper.py", "REASON = 'good'")
        result = await fire("x", {})
        assert (result.reason, hits(result)) == ("good", [False])
        await started(project, 3)
        assert hits(await fire("x", {})) == [True]
    assert ahead not in pids(project, "read")


@pytest.mark.parametrize("folder", ["tools", ".hookline/hooks"])
async def test_edited_and_restored_between_two_events_is_thrown_away(
    project: Project, folder: str
) -> None:
    guarded(project, folder)
    assert project.trust() == 0
    async with project.system() as hooks:
        (ahead,) = await started(project, 1)
        for text in ("REASON = None", "REASON = 'good'"):
            project.write(f"{folder}/helper.py", text)
        result = await hooks.event_handler.fire_before_tool_event("x", {})
        assert (result.reason, hits(result)) == ("good", [False])
        await until(lambda: not lives(ahead))
    assert ahead not in pids(project, "read")


@pytest.mark.parametrize("folder", ["tools", ".hookline/hooks"])
async def test_one_that_loaded_a_swapped_helper_does_not_answer(
    project: Project, folder: str
) -> None:
    guarded(project, folder)
    assert project.trust() == 0
    project.write("wait", "")
    place = project.folder / folder
    async with HookSystem(Config.load(project.folder)) as hooks:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        (place / "helper.py").rename(place.parent / "kept.py")
        (place / "helper.py").write_text("REASON = None")
        (project.folder / "wait").unlink()
        (loaded,) = await started(project, 1)
        (place.parent / "kept.py").replace(place / "helper.py")
        result = await hooks.event_handler.fire_before_tool_event("x", {})
        assert (result.reason, hits(result)) == ("good", [False])
    assert loaded not in pids(project, "read")


async def test_nothing_of_an_untrusted_or_changed_project_is_started_ahead(
    project: Project, tmp_path: Path
) -> None:
    guarded(project, "tools")
    async with project.system() as hooks:
        await hooks.event_handler.fire_before_tool_event("x", {})
    assert project.trust() == 0
    project.write("tools/guard.py", GUARD + "\n")
    async with project.system() as hooks:
        result = await hooks.event_handler.fire_before_tool_event("x", {})
        await hooks.event_handler.fire_before_tool_event("x", {})
    assert result.blocked
    assert pids(project) == []


async def test_settings_that_change_throw_away_what_waits(project: Project) -> None:
    """protocol.md#rules: one that was started under other settings is thrown away."""
    guarded(project, "tools")
    assert project.trust() == 0
    async with project.system() as hooks:
        (ahead,) = await started(project, 1)
        settings = project.folder / ".hookline" / "settings.json"
        settings.write_text(
            settings.read_text().replace('"standby": 1', '"standby": 2')
        )
        result = await hooks.event_handler.fire_before_tool_event("x", {})
        assert result.aggregated.hook_results[0].cause is FailureCause.CHANGED
        await until(lambda: not lives(ahead))
    assert pids(project, "read") == []
