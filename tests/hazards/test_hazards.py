"""Hooks that misbehave: the host is not hurt, and the verdict is the right one."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hookline import HookSystem, ProcessedHookResult
from hookline.protocol.results import FailureCause
from tests.support.processes import (
    children,
    descriptors,
    marked,
    none_left,
    until,
)
from tests.support.workspace import Workspace

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="looks into /proc"
)


@pytest.fixture
def mark(tmp_path: Path) -> str:
    return f"HAZARD={tmp_path}"


@pytest.fixture
def hook(workspace: Workspace, mark: str) -> Any:
    def make(command: str, **more: Any) -> dict[str, Any]:
        name, value = mark.split("=", 1)
        return workspace.runs(command, "guard", env={name: value}, **more)

    return make


def causes(result: ProcessedHookResult) -> list[FailureCause | None]:
    return [one.cause for one in result.aggregated.hook_results]


POLICIES = pytest.mark.parametrize("policy", ["allow", "block"])


async def test_child_that_ignores_sigterm_outlives_neither_timeout_nor_cancellation(
    workspace: Workspace, hook: Any, mark: str
) -> None:
    """Cancelled while the group's last member is being waited for."""
    command = (
        "(trap '' TERM; touch ready; sleep 300) & trap 'touch gone; exit' TERM; wait"
    )
    settings = workspace.settings("BeforeTool", hook(command, timeout=1500))
    async with HookSystem(workspace.config(settings)) as hooks:
        event = hooks.event_handler.fire_before_tool_event("x", {})
        task = asyncio.create_task(event)
        await until(str(workspace.folder / "ready"))
        await until(str(workspace.folder / "gone"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    for _ in range(500):
        if not marked(mark):
            break
        await asyncio.sleep(0.01)
    assert marked(mark) == []


async def test_setsid_grandchild_holding_the_pipes(
    workspace: Workspace, hook: Any
) -> None:
    command = 'setsid sleep 20 & echo \'{"decision": "deny", "reason": "no"}\''
    before = descriptors()
    started = time.monotonic()
    result = await workspace.fire("BeforeTool", hook(command))
    assert result.reason == "no"
    assert time.monotonic() - started < 15
    assert descriptors() == before


async def test_fork_bomb_of_bounded_size(
    workspace: Workspace, hook: Any, mark: str
) -> None:
    bomb = (
        "f() { [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & wait; }; sleep 300; }; f 4"
    )
    earlier = set(children())
    result = await workspace.fire("BeforeTool", hook(bomb, timeout=1000))
    assert causes(result) == [FailureCause.TIMEOUT]
    assert marked(mark) == []
    assert set(children()) <= earlier


@POLICIES
async def test_endless_output(workspace: Workspace, hook: Any, policy: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await workspace.fire(
        "BeforeTool",
        hook("yes; yes >&2", timeout=500, onError=policy),
        config={"maxOutputBytes": 100_000},
    )
    assert causes(result) == [FailureCause.TIMEOUT]
    assert result.blocked is (policy == "block")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 * 1024


async def test_hook_that_never_reads_a_big_input(
    workspace: Workspace, hook: Any
) -> None:
    event = {"tool_name": "x", "tool_input": {"text": "x" * 5_000_000}}
    for command in ("exec 0<&-; sleep 0.1; exit 2", "sleep 0.2; exit 2", "exit 2"):
        result = await workspace.fire("BeforeTool", hook(command), given=event)
        assert result.blocked
    hangs = hook("sleep 60", timeout=300)
    result = await workspace.fire("BeforeTool", hangs, given=event)
    assert causes(result) == [FailureCause.TIMEOUT]


async def test_closed_pipes(workspace: Workspace, hook: Any, mark: str) -> None:
    closed = "exec 0<&- 1>&- 2>&-"
    assert (await workspace.fire("BeforeTool", hook(f"{closed}; exit 2"))).blocked
    result = await workspace.fire(
        "BeforeTool", hook(f"{closed}; sleep 300", timeout=300)
    )
    assert causes(result) == [FailureCause.TIMEOUT]
    assert marked(mark) == []


@POLICIES
async def test_working_directory_removed_midway(
    workspace: Workspace, hook: Any, policy: str
) -> None:
    settings = workspace.settings(
        "BeforeTool", hook('rm -rf "$PWD"; exit 2', onError=policy)
    )
    async with HookSystem(workspace.config(settings)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert (await fire("x", {})).reason == "Blocked by hook"
        gone = await fire("x", {})
    assert causes(gone) == [FailureCause.SPAWN]
    where = f"the working directory {str(workspace.folder)!r}"
    [ran] = gone.aggregated.hook_results
    assert ran.error == f"could not start: {where} is missing"
    assert gone.blocked is (policy == "block")


async def test_cancellation_at_any_point_leaves_nothing(
    workspace: Workspace, hook: Any, mark: str
) -> None:
    settings = workspace.settings("BeforeTool", hook("sleep 300 & sleep 300"))
    earlier = set(children())
    async with HookSystem(workspace.config(settings)) as hooks:

        async def cancel_after(delay: float) -> None:
            event = hooks.event_handler.fire_before_tool_event("x", {})
            task = asyncio.create_task(event)
            await asyncio.wait({task}, timeout=delay)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        await cancel_after(0.05)
        before = descriptors(), children()  # with the host's watcher
        for delay in (0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05):
            await cancel_after(delay)
        assert (descriptors(), children()) == before
    assert set(children()) <= earlier
    assert await none_left(mark)


def test_hook_that_fires_hookline_forever_is_stopped_at_the_depth_limit(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOOKLINE_DEPTH", raising=False)
    file = workspace.folder / "settings.json"
    again = (
        f"echo >> fired; exec '{sys.executable}' -m hookline.cli.main fire BeforeTool "
        f"--tool x --settings '{file}'"
    )
    settings = workspace.settings("BeforeTool", workspace.runs(again, "again"))
    file.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "hookline.cli.main", "fire", "BeforeTool"]
    subprocess.run(
        [*command, "--tool", "x", "--settings", str(file)],
        cwd=workspace.folder,
        capture_output=True,
        check=True,
    )
    assert (workspace.folder / "fired").read_text().count("\n") == 4


def endings(result: ProcessedHookResult) -> list[tuple[Any, ...]]:
    ran = result.aggregated.hook_results
    return [(one.exit_code, one.stdout[:8], one.stderr, one.timed_out) for one in ran]


def test_results_are_the_same_under_uvloop(workspace: Workspace) -> None:
    """Streams are pipes, not the sockets that uvloop would make."""
    uvloop = pytest.importorskip("uvloop")
    hooks = [
        workspace.runs("cat | wc -c; echo e >&2; exit 4"),
        workspace.runs("kill -9 $$"),
        workspace.runs("sleep 60 & exit 0"),
        workspace.runs("yes", timeout=500),
        workspace.runs("readlink /proc/self/fd/0 | cut -c1-4"),
    ]
    event = {"tool_name": "t", "tool_input": {"content": "x" * 3_000_000}}

    async def fire() -> list[tuple[Any, ...]]:
        limit = {"maxOutputBytes": 100}
        result = await workspace.fire("BeforeTool", *hooks, given=event, config=limit)
        return endings(result)

    (size, *others), *rest = uvloop.run(fire())
    assert (3_000_000 < size_of(others[0]) < 3_001_000, size) == (True, 4)
    assert others[1:] == ["e", False]
    assert rest == [
        (-9, "", "", False),
        (0, "", "", False),
        (-15, "y\ny\ny\ny\n", "", True),
        (0, "pipe", "", False),
    ]


def size_of(text: str) -> int:
    return int(text.split()[0])
