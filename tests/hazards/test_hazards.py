"""Hooks that misbehave: the host is not hurt, and the verdict is the right one."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookline import HookSystem, ProcessedHookResult
from hookline.processes.spawn import GRACE_S
from hookline.protocol.results import FailureCause
from tests.support.processes import (
    children,
    descriptors,
    descriptors_left,
    marked,
    none_left,
    until,
)
from tests.support.workshop import Workshop

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="looks into /proc"
)
LATE_S = 10
"""Against hanging only: a loaded machine is late now and then."""


@pytest.fixture
def mark(tmp_path: Path) -> str:
    return f"HAZARD={tmp_path}"


@pytest.fixture
def hook(workshop: Workshop, mark: str) -> Any:
    def make(command: str, **more: Any) -> dict[str, Any]:
        name, value = mark.split("=", 1)
        return workshop.runs(command, "guard", env={name: value}, **more)

    return make


def causes(result: ProcessedHookResult) -> list[FailureCause | None]:
    return [one.cause for one in result.aggregated.hook_results]


POLICIES = pytest.mark.parametrize("policy", ["allow", "block"])


@POLICIES
async def test_sigterm_ignored(
    workshop: Workshop, hook: Any, mark: str, policy: str
) -> None:
    deaf = hook("trap '' TERM; sleep 300; sleep 300", timeout=200, onError=policy)
    started = time.monotonic()
    result = await workshop.fire("BeforeTool", deaf)
    assert time.monotonic() - started < 0.2 + GRACE_S + LATE_S
    assert causes(result) == [FailureCause.TIMEOUT]
    assert result.blocked is (policy == "block")
    assert marked(mark) == []


async def test_a_child_that_ignores_sigterm_outlives_neither_timeout_nor_cancellation(
    workshop: Workshop, hook: Any, mark: str
) -> None:
    """Cancelled while the group's last member is being waited for."""
    command = (
        "(trap '' TERM; touch ready; sleep 300) & trap 'touch gone; exit' TERM; wait"
    )
    settings = workshop.settings("BeforeTool", hook(command, timeout=1500))
    async with HookSystem(workshop.config(settings)) as hooks:
        event = hooks.event_handler.fire_before_tool_event("x", {})
        task = asyncio.create_task(event)
        await until(str(workshop.folder / "ready"))
        await until(str(workshop.folder / "gone"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    for _ in range(500):
        if not marked(mark):
            break
        await asyncio.sleep(0.01)
    assert marked(mark) == []


async def test_setsid_grandchild_holding_the_pipes(
    workshop: Workshop, hook: Any
) -> None:
    command = 'setsid sleep 20 & echo \'{"decision": "deny", "reason": "no"}\''
    before = descriptors()
    started = time.monotonic()
    result = await workshop.fire("BeforeTool", hook(command))
    assert result.reason == "no"
    assert time.monotonic() - started < 15
    assert descriptors() == before


async def test_fork_bomb_of_bounded_size(
    workshop: Workshop, hook: Any, mark: str
) -> None:
    bomb = (
        "f() { [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & wait; }; sleep 300; }; f 4"
    )
    result = await workshop.fire("BeforeTool", hook(bomb, timeout=1000))
    assert causes(result) == [FailureCause.TIMEOUT]
    assert marked(mark) == []
    assert children() == []


@POLICIES
async def test_endless_output(workshop: Workshop, hook: Any, policy: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await workshop.fire(
        "BeforeTool",
        hook("yes; yes >&2", timeout=500, onError=policy),
        config={"maxOutputBytes": 100_000},
    )
    assert causes(result) == [FailureCause.TIMEOUT]
    assert result.blocked is (policy == "block")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 * 1024


async def test_a_hook_that_never_reads_a_big_input(
    workshop: Workshop, hook: Any
) -> None:
    given = {"tool_name": "x", "tool_input": {"text": "x" * 5_000_000}}
    for command in ("exec 0<&-; sleep 0.1; exit 2", "sleep 0.2; exit 2", "exit 2"):
        result = await workshop.fire("BeforeTool", hook(command), given=given)
        assert result.blocked


async def test_closed_pipes(workshop: Workshop, hook: Any, mark: str) -> None:
    closed = "exec 0<&- 1>&- 2>&-"
    assert (await workshop.fire("BeforeTool", hook(f"{closed}; exit 2"))).blocked
    result = await workshop.fire(
        "BeforeTool", hook(f"{closed}; sleep 300", timeout=300)
    )
    assert causes(result) == [FailureCause.TIMEOUT]
    assert marked(mark) == []


@POLICIES
async def test_working_directory_removed_midway(
    workshop: Workshop, hook: Any, policy: str
) -> None:
    settings = workshop.settings(
        "BeforeTool", hook('rm -rf "$PWD"; exit 2', onError=policy)
    )
    async with HookSystem(workshop.config(settings)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert (await fire("x", {})).reason == "Blocked by hook"
        gone = await fire("x", {})
    assert causes(gone) == [FailureCause.SPAWN]
    assert "is missing" in str(gone.aggregated.errors[0].message)
    assert gone.blocked is (policy == "block")


async def test_cancellation_at_any_point_leaves_nothing(
    workshop: Workshop, hook: Any, mark: str
) -> None:
    settings = workshop.settings("BeforeTool", hook("sleep 300 & sleep 300"))
    async with HookSystem(workshop.config(settings)) as hooks:

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
    assert children() == []
    assert await none_left(mark)


@pytest.fixture
def hardly_any_descriptor() -> Iterator[None]:
    with descriptors_left(2):
        yield


@POLICIES
async def test_descriptors_exhausted(
    workshop: Workshop, hook: Any, policy: str, request: pytest.FixtureRequest
) -> None:
    settings = workshop.settings("BeforeTool", hook("true", onError=policy))
    async with HookSystem(workshop.config(settings)) as hooks:
        request.getfixturevalue("hardly_any_descriptor")
        before = descriptors()
        result = await hooks.event_handler.fire_before_tool_event("x", {})
        assert causes(result) == [FailureCause.SPAWN]
        assert result.blocked is (policy == "block")
        assert descriptors() == before


def test_a_hook_that_fires_hookline_forever_is_stopped_at_the_depth_limit(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOOKLINE_DEPTH", raising=False)
    file = workshop.folder / "settings.json"
    again = (
        f"echo >> fired; exec '{sys.executable}' -m hookline.cli.main fire BeforeTool "
        f"--tool x --settings '{file}'"
    )
    settings = workshop.settings("BeforeTool", workshop.runs(again, "again"))
    file.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "hookline.cli.main", "fire", "BeforeTool"]
    subprocess.run(
        [*command, "--tool", "x", "--settings", str(file)],
        cwd=workshop.folder,
        capture_output=True,
        check=True,
    )
    assert (workshop.folder / "fired").read_text().count("\n") == 4
