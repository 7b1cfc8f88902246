"""Breaker, depth, number of processes, environment, shadow mode, managed hooks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from hookline.execute.runtime import Slots
from hookline.plan import current_depth
from hookline.settings.places import SettingsPlaces
from tests.support.processes import until
from tests.support.workspace import Workspace


@pytest.fixture(autouse=True)
def _no_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOOKLINE_DEPTH", raising=False)


async def test_processes_beyond_the_limit_wait_in_order_and_keep_their_time(
    workspace: Workspace,
) -> None:
    """All of them together take longer than each of them may."""
    command = (
        "echo {n} >> order; mkdir running.$$; ls -d running.* | wc -l > count.$$; "
        "sleep 0.3; rmdir running.$$"
    )
    hooks = [
        workspace.runs(command.format(n=n), f"h{n}", timeout=2000) for n in range(8)
    ]
    result = await workspace.fire("BeforeTool", *hooks, config={"maxProcesses": 1})
    assert result.aggregated.success
    assert (workspace.folder / "order").read_text().split() == list("01234567")
    counts = [path.read_text() for path in workspace.folder.glob("count.*")]
    assert counts == ["1\n"] * 8


async def test_changed_limit_reaches_those_who_wait_and_those_who_come() -> None:
    """``maxProcesses`` after a reload."""
    slots = Slots(1)
    await slots.acquire()
    waiting = [asyncio.create_task(slots.acquire()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    slots.resize(2)
    await waiting[1]
    slots.resize(1)
    slots.release()
    assert (slots.free, waiting[2].done()) == (0, False)
    slots.release()
    await waiting[2]
    slots.release()
    assert slots.free == 1


async def test_slot_survives_a_cancelled_waiter() -> None:
    """Also one that is cancelled and handed a slot in the same moment."""
    slots = Slots(1)
    await slots.acquire()
    first, second = (asyncio.create_task(slots.acquire()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    slots.release()
    with pytest.raises(asyncio.CancelledError):
        await first
    await second
    third = asyncio.create_task(slots.acquire())
    await asyncio.sleep(0)
    slots.release()
    third.cancel()
    with pytest.raises(asyncio.CancelledError):
        await third
    await asyncio.wait_for(slots.acquire(), 5)


def close_a_loop_under_its_hooks(folder: str) -> None:
    """Hooks of two event loops, one of which is closed while they run or wait."""
    workspace = Workspace(Path(folder))
    wait = (
        'touch "$HOOKLINE_SESSION_ID"; while [ ! -e go ]; do sleep 0.02; done; exit 2'
    )
    settings = workspace.settings("BeforeTool", workspace.runs(wait))
    file = workspace.folder / "settings.json"

    def limit(processes: int) -> None:
        options = {"hooksConfig": {"maxProcesses": processes}}
        file.write_text(json.dumps(settings | options))

    limit(1)
    config = Config("s", workspace.folder, Settings.from_file(str(file)))
    system = HookSystem(config)

    async def fire(session: str) -> ProcessedHookResult:
        await system.initialize()
        event = {"tool_name": "t", "tool_input": {}, "session_id": session}
        return await system.event_handler.fire("BeforeTool", event)

    def close_a_loop_with_waiters() -> None:
        loop = asyncio.new_event_loop()
        running, *waiting = [loop.create_task(fire(f"lost{n}")) for n in range(3)]
        loop.run_until_complete(until(str(workspace.folder / "lost0")))
        running.cancel()
        loop.run_until_complete(asyncio.wait({running}))
        loop.close()
        for task in waiting:
            task._log_destroy_pending = False  # type: ignore[attr-defined] # meant so

    async def fire_meanwhile() -> list[ProcessedHookResult]:
        firing = [asyncio.create_task(fire(f"here{n}")) for n in range(3)]
        await until(str(workspace.folder / "here0"))
        await asyncio.to_thread(close_a_loop_with_waiters)
        limit(2)
        await system.reload()
        (workspace.folder / "go").touch()
        return await asyncio.wait_for(asyncio.gather(*firing), 30)

    async def fire_after() -> ProcessedHookResult:
        return await asyncio.wait_for(fire("after"), 30)

    assert all(result.blocked for result in asyncio.run(fire_meanwhile()))
    assert asyncio.run(fire_after()).blocked
    asyncio.run(config.dispose())


def test_closed_event_loop_keeps_neither_slot_nor_verdict(workspace: Workspace) -> None:
    """What waited in it is gone; a hook that ran elsewhere still blocks.

    In a process of its own: nobody reaps what ran in a loop that its host has closed.
    """
    code = "import sys; from tests.engine.test_limits import *; "
    code += "close_a_loop_under_its_hooks(sys.argv[1])"
    command = [sys.executable, "-c", code, str(workspace.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("policy", ["allow", "block"])
async def test_depth_goes_up_for_every_hook_until_it_is_skipped_by_policy(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    reset = {"HOOKLINE_DEPTH": "0"}
    hook = workspace.runs("echo $HOOKLINE_DEPTH >> depth", env=reset, onError=policy)
    for depth in ("2", "3"):
        monkeypatch.setenv("HOOKLINE_DEPTH", depth)
        assert not (await workspace.fire("BeforeTool", hook)).blocked
    monkeypatch.setenv("HOOKLINE_DEPTH", "4")
    result = await workspace.fire("BeforeTool", hook)
    assert (workspace.folder / "depth").read_text() == "3\n4\n"
    assert result.blocked is (policy == "block")
    (skipped,) = result.aggregated.hook_results
    assert skipped.error == "skipped: nested deeper than maxDepth 4"


@pytest.mark.parametrize("depth", ["", "x", "-1", "9" * 5000, "1.5"])
def test_invalid_depth_counts_as_zero(
    monkeypatch: pytest.MonkeyPatch, depth: str
) -> None:
    monkeypatch.setenv("HOOKLINE_DEPTH", depth)
    assert current_depth() == 0


async def test_function_that_fires_its_own_event_is_stopped_at_the_depth_limit(
    workspace: Workspace,
) -> None:
    depths = []
    config = Config("s", workspace.folder, Settings())
    async with HookSystem(config) as hooks:

        @hooks.on("BeforeTool")
        async def again(_: dict[str, Any]) -> None:
            depths.append(current_depth())
            await hooks.event_handler.fire_before_tool_event("x", {})

        await hooks.event_handler.fire_before_tool_event("x", {})
        await hooks.event_handler.fire_before_tool_event("x", {})
    assert depths == [1, 2, 3, 4] * 2
    assert current_depth() == 0


async def environment_of(workspace: Workspace, **more: Any) -> dict[str, str]:
    hook = workspace.runs("env -0 > env", **more)
    await workspace.fire("BeforeTool", hook)
    pairs = (workspace.folder / "env").read_text().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


async def test_clean_environment_holds_no_secrets(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("API_KEY", "GITHUB_TOKEN", "LC_SECRET", "SSH_AUTH_SOCK", "FOO"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("LC_TIME", "C")
    assert (await environment_of(workspace))["API_KEY"] == "hunter2"
    env = await environment_of(
        workspace, envPolicy="clean", env={"OWN": "1", "MY_TOKEN": "given"}
    )
    assert "hunter2" not in env.values()
    assert env["PATH"] == os.environ["PATH"]
    assert env["LC_TIME"] == "C"
    assert env["OWN"] == "1"
    assert env["MY_TOKEN"] == "given"
    assert env["HOOKLINE_EVENT"] == "BeforeTool"


MANAGED = {"type": "command", "name": "guard", "command": "exit 2", "managed": True}


EQUAL = {"hooks": {"BeforeTool": [{"hooks": [{**MANAGED, "mode": "observe"}]}]}}


@pytest.mark.parametrize(
    "against",
    [
        {"enableHooks": False},
        {"hooksConfig": {"disabled": ["guard"]}},
        {"hooksConfig": {"maxDepth": 1}},
        EQUAL,
    ],
    ids=["switched off", "disabled", "depth", "shadowed"],
)
@pytest.mark.parametrize("who", ["p/.hookline", "user"])
async def test_nothing_turns_a_managed_hook_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, against: dict[str, Any], who: str
) -> None:
    monkeypatch.setenv("HOOKLINE_TRUST", "all")
    monkeypatch.setenv("HOOKLINE_DEPTH", "50")
    managed = {"hooks": {"BeforeTool": [{"hooks": [MANAGED]}]}}
    (tmp_path / "p").mkdir()
    for name, settings in (("system", managed), (who, against)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "settings.json").write_text(json.dumps(settings))
    places = SettingsPlaces(
        project_dir=tmp_path / "p",
        user_dir=tmp_path / "user",
        system_dir=tmp_path / "system",
    )
    config = Config("s", tmp_path / "p", Settings.load(places=places))
    hooks = config.get_hook_system()
    assert hooks is not None
    async with hooks:
        hooks.set_hook_enabled("guard", False)
        result = await hooks.event_handler.fire_before_tool_event("x", {})
    assert result.blocked
