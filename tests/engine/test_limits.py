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
from hookline.engine.admission import CircuitBreaker
from hookline.engine.registry import HookRegistry
from hookline.executors.contract import current_depth
from hookline.processes.process import ProcessSlots
from hookline.protocol.results import FailureCause
from hookline.settings.locations import SettingsPlaces, locked
from hookline.settings.model import HookSource
from tests.support.processes import until
from tests.support.workshop import Workshop

HANG = {"type": "command", "name": "slow", "command": "sleep 60", "timeout": 50}


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("HOOKLINE_DEPTH", raising=False)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def fire_often(
    workshop: Workshop, hook: dict[str, Any], times: int, **config: Any
) -> list[ProcessedHookResult]:
    settings = workshop.settings("BeforeTool", hook, config=config)
    async with HookSystem(workshop.config(settings)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        return [await fire("x", {}) for _ in range(times)]


def errors(results: list[ProcessedHookResult]) -> list[str]:
    return [str(one.aggregated.hook_results[0].error) for one in results]


async def test_a_hook_that_keeps_timing_out_is_skipped(workshop: Workshop) -> None:
    found = errors(await fire_often(workshop, HANG, 5))
    assert found[:3] == ["timed out after 50 ms"] * 3
    assert found[3:] == ["skipped: it timed out 3 times in a row"] * 2


async def test_a_skip_for_timeouts_blocks_at_once_where_timeouts_block(
    workshop: Workshop,
) -> None:
    results = await fire_often(workshop, {**HANG, "onError": "block"}, 4)
    assert all(result.blocked for result in results)
    assert results[3].aggregated.hook_results[0].duration == 0


async def test_the_breaker_can_be_disabled(workshop: Workshop) -> None:
    found = errors(await fire_often(workshop, HANG, 4, breaker=False))
    assert found == ["timed out after 50 ms"] * 4


async def test_an_answer_in_between_resets_the_count(workshop: Workshop) -> None:
    command = "test -e fine || sleep 60"
    settings = workshop.settings("BeforeTool", {**HANG, "command": command})
    fine = workshop.folder / "fine"
    async with HookSystem(workshop.config(settings)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        results = [await fire("x", {}) for _ in range(2)]
        fine.touch()
        results.append(await fire("x", {}))
        fine.unlink()
        results += [await fire("x", {}) for _ in range(3)]
    assert not any("skipped" in error for error in errors(results))


def registered(hook: dict[str, Any]) -> Any:
    settings = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    (found,) = HookRegistry(Settings.from_mapping(settings)).all_hooks()
    return found


def test_a_clock_that_was_set_back_skips_no_hook_for_longer() -> None:
    clock, hook = Clock(), registered(HANG)
    breaker = CircuitBreaker(clock=clock)
    for _ in range(3):
        breaker.note(hook, FailureCause.TIMEOUT)
    clock.now -= 100_000
    assert breaker.skips(hook) == 0


def fire_in_a_process(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "hookline.cli.main", "fire", "BeforeTool"]
    done = subprocess.run(
        [*command, "--tool", "x", "--json", "--settings", "settings.json"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    found: dict[str, Any] = json.loads(done.stdout)["hooks"][0]
    return found


def test_timeouts_are_remembered_from_one_process_to_the_next(
    workshop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    from hookline.cli.main import main

    settings = workshop.settings("BeforeTool", HANG)
    (workshop.folder / "settings.json").write_text(json.dumps(settings))
    found = [fire_in_a_process(workshop.folder)["error"] for _ in range(4)]
    assert found[3] == "skipped: it timed out 3 times in a row"
    capfd.readouterr()
    file = str(workshop.folder / "settings.json")
    main(["list", "--json", "--cwd", str(workshop.folder), "--settings", file])
    assert json.loads(capfd.readouterr().out)[0]["tripped"] is True
    main(["list", "--cwd", str(workshop.folder), "--settings", file])
    assert "skipped: repeated timeouts" in capfd.readouterr().out


async def test_no_more_processes_than_allowed_run_at_a_time(
    workshop: Workshop,
) -> None:
    command = (
        "mkdir running.$$; ls -d running.* | wc -l > count.$$; sleep 0.05; "
        "rmdir running.$$"
    )
    hooks = [workshop.runs(command, f"h{number}") for number in range(8)]
    await workshop.fire("BeforeTool", *hooks, config={"maxProcesses": 2})
    counts = [int(path.read_text()) for path in workshop.folder.glob("count.*")]
    assert len(counts) == 8
    assert max(counts) <= 2


async def test_waiting_for_a_slot_does_not_count_against_the_timeout(
    workshop: Workshop,
) -> None:
    slow = [workshop.runs("sleep 0.6", f"h{n}") for n in range(6)]
    last = workshop.runs("exit 2", "last", timeout=3000)
    result = await workshop.fire("BeforeTool", *slow, last, config={"maxProcesses": 1})
    assert result.blocked
    assert not any(one.timed_out for one in result.aggregated.hook_results)


async def test_slots_are_handed_out_in_order() -> None:
    slots, order = ProcessSlots(1), []
    await slots.acquire()

    async def take(number: int) -> None:
        await slots.acquire()
        order.append(number)
        slots.release()

    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(take(number))
        await asyncio.sleep(0)
        slots.release()
    assert order == [0, 1, 2, 3, 4]


async def test_a_changed_limit_reaches_those_who_wait_and_those_who_come() -> None:
    """Issue 16: ``maxProcesses`` after a reload."""
    slots = ProcessSlots(1)
    await slots.acquire()
    waiting = [asyncio.create_task(slots.acquire()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.to_thread(slots.resize, 2)
    await waiting[1]
    slots.resize(1)
    slots.release()
    assert (slots.free, waiting[2].done()) == (0, False)
    slots.release()
    await waiting[2]
    slots.release()
    assert slots.free == 1


async def test_a_slot_survives_a_cancelled_waiter() -> None:
    """Also one that is cancelled and handed a slot in the same moment."""
    slots = ProcessSlots(1)
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
    workshop = Workshop(Path(folder))
    wait = (
        'touch "$HOOKLINE_SESSION_ID"; while [ ! -e go ]; do sleep 0.02; done; exit 2'
    )
    settings = workshop.settings("BeforeTool", workshop.runs(wait))
    file = workshop.folder / "settings.json"

    def limit(processes: int) -> None:
        options = {"hooksConfig": {"maxProcesses": processes}}
        file.write_text(json.dumps(settings | options))

    limit(1)
    config = Config("s", workshop.folder, Settings.from_file(str(file)))
    system = HookSystem(config)

    async def fire(session: str) -> ProcessedHookResult:
        await system.initialize()
        given = {"tool_name": "t", "tool_input": {}, "session_id": session}
        return await system.event_handler.fire("BeforeTool", given)

    def close_a_loop_with_waiters() -> None:
        loop = asyncio.new_event_loop()
        running, *waiting = [loop.create_task(fire(f"lost{n}")) for n in range(3)]
        loop.run_until_complete(until(str(workshop.folder / "lost0")))
        running.cancel()
        loop.run_until_complete(asyncio.wait({running}))
        loop.close()
        for task in waiting:
            task._log_destroy_pending = False  # type: ignore[attr-defined] # meant so

    async def fire_meanwhile() -> list[ProcessedHookResult]:
        firing = [asyncio.create_task(fire(f"here{n}")) for n in range(3)]
        await until(str(workshop.folder / "here0"))
        await asyncio.to_thread(close_a_loop_with_waiters)
        limit(2)
        await system.reload()
        (workshop.folder / "go").touch()
        return await asyncio.wait_for(asyncio.gather(*firing), 30)

    async def fire_after() -> ProcessedHookResult:
        return await asyncio.wait_for(fire("after"), 30)

    assert all(result.blocked for result in asyncio.run(fire_meanwhile()))
    assert asyncio.run(fire_after()).blocked
    asyncio.run(config.dispose())


def test_a_closed_event_loop_keeps_neither_slot_nor_verdict(workshop: Workshop) -> None:
    """What waited in it is gone; a hook that ran elsewhere still blocks.

    In a process of its own: nobody reaps what ran in a loop that its host has closed.
    """
    code = "import sys; from tests.engine.test_limits import *; "
    code += "close_a_loop_under_its_hooks(sys.argv[1])"
    command = [sys.executable, "-c", code, str(workshop.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


async def test_the_depth_goes_up_in_every_hooks_environment(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKLINE_DEPTH", "2")
    hook = workshop.runs("echo $HOOKLINE_DEPTH > depth", env={"HOOKLINE_DEPTH": "0"})
    await workshop.fire("BeforeTool", hook)
    assert (workshop.folder / "depth").read_text() == "3\n"


@pytest.mark.parametrize("policy", ["allow", "block"])
async def test_hooks_beyond_the_depth_are_skipped_by_policy(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    monkeypatch.setenv("HOOKLINE_DEPTH", "4")
    hook = workshop.runs("touch ran", onError=policy)
    result = await workshop.fire("BeforeTool", hook)
    assert not workshop.ran("ran")
    assert result.blocked is (policy == "block")
    assert "maxDepth 4" in str(result.aggregated.hook_results[0].error)


@pytest.mark.parametrize("said", ["", "x", "-1", "9" * 5000, "1.5"])
def test_an_invalid_depth_counts_as_zero(
    monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setenv("HOOKLINE_DEPTH", said)
    assert current_depth() == 0


async def test_a_function_that_fires_its_own_event_is_stopped_at_the_depth_limit(
    workshop: Workshop,
) -> None:
    depths = []
    config = Config("s", workshop.folder, Settings())
    async with HookSystem(config) as hooks:

        @hooks.on("BeforeTool")
        async def again(_: dict[str, Any]) -> None:
            depths.append(current_depth())
            await hooks.event_handler.fire_before_tool_event("x", {})

        await hooks.event_handler.fire_before_tool_event("x", {})
        await hooks.event_handler.fire_before_tool_event("x", {})
    assert depths == [1, 2, 3, 4] * 2
    assert current_depth() == 0


async def environment_of(workshop: Workshop, **more: Any) -> dict[str, str]:
    hook = workshop.runs("env -0 > env", **more)
    await workshop.fire("BeforeTool", hook)
    pairs = (workshop.folder / "env").read_text().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


async def test_a_clean_environment_holds_no_secrets(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("API_KEY", "GITHUB_TOKEN", "LC_SECRET", "SSH_AUTH_SOCK", "FOO"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("LC_TIME", "C")
    found = await environment_of(
        workshop, envPolicy="clean", env={"OWN": "1", "MY_TOKEN": "given"}
    )
    assert "hunter2" not in found.values()
    assert found["PATH"] == os.environ["PATH"]
    assert found["LC_TIME"] == "C"
    assert found["OWN"] == "1"
    assert found["MY_TOKEN"] == "given"
    assert found["HOOKLINE_EVENT"] == "BeforeTool"


async def test_the_environment_is_inherited_by_default(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "hunter2")
    assert (await environment_of(workshop))["API_KEY"] == "hunter2"


async def test_observed_hooks_count_for_nothing(workshop: Workshop) -> None:
    shadow = {"mode": "observe"}
    change = {"hookSpecificOutput": {"tool_input": {"path": "other"}}}
    result = await workshop.fire(
        "BeforeTool",
        {**workshop.says({"decision": "deny", **change}, "strict"), **shadow},
        workshop.runs("exit 1", "broken", onError="block", **shadow),
        workshop.says({"decision": "allow"}, "real"),
        sequential=True,
    )
    assert not result.blocked
    assert result.aggregated.success
    assert result.aggregated.errors == []
    assert len(result.aggregated.all_outputs) == 1
    assert result.final_output is not None
    assert result.final_output.modified_tool_input is None
    told = {one.hook_name: one.would_block for one in result.aggregated.hook_results}
    assert told == {"strict": True, "broken": True, "real": False}


async def test_an_observed_hook_changes_nothing_for_the_next_of_a_chain(
    workshop: Workshop,
) -> None:
    change = {"hookSpecificOutput": {"tool_input": {"path": "other"}}}
    await workshop.fire(
        "BeforeTool",
        {**workshop.says(change, "shadow"), "mode": "observe"},
        workshop.runs("cat > seen.json", "next"),
        sequential=True,
    )
    assert workshop.seen()["tool_input"]["path"] == "a.txt"


MANAGED = {"type": "command", "name": "guard", "command": "exit 2", "managed": True}


def with_managed(tmp_path: Path, project: dict[str, Any], user: dict[str, Any]) -> Any:
    places = {"system": {"hooks": {"BeforeTool": [{"hooks": [MANAGED]}]}}}
    for name, found in {**places, "user": user, "p/.hookline": project}.items():
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "settings.json").write_text(json.dumps(found))
    return SettingsPlaces(
        project_dir=tmp_path / "p",
        user_dir=tmp_path / "user",
        system_dir=tmp_path / "system",
    )


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
@pytest.mark.parametrize("who", ["project", "user"])
async def test_nothing_turns_a_managed_hook_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, against: dict[str, Any], who: str
) -> None:
    monkeypatch.setenv("HOOKLINE_TRUST", "all")
    monkeypatch.setenv("HOOKLINE_DEPTH", "50")
    given = {"project": {}, "user": {}, who: against}
    places = with_managed(tmp_path, given["project"], given["user"])
    config = Config("s", tmp_path / "p", Settings.load(places=places))
    hooks = config.get_hook_system()
    assert hooks is not None
    async with hooks:
        hooks.set_hook_enabled("guard", False)
        result = await hooks.event_handler.fire_before_tool_event("x", {})
    assert result.blocked


async def test_a_named_settings_file_keeps_managed_hooks(tmp_path: Path) -> None:
    with_managed(tmp_path, {}, {})
    file = tmp_path / "own.json"
    file.write_text(json.dumps({"enableHooks": False}))
    settings = Settings.from_file(file, system_dir=tmp_path / "system")
    hooks = Config("s", tmp_path, settings).get_hook_system()
    assert hooks is not None
    async with hooks:
        result = await hooks.event_handler.fire_before_tool_event("x", {})
    assert result.blocked


async def test_the_breaker_never_skips_a_managed_hook(tmp_path: Path) -> None:
    hang = {**MANAGED, "command": "sleep 60", "timeout": 50}
    settings = Settings.from_mapping(
        {"hooks": {"BeforeTool": [{"hooks": [hang]}]}}, HookSource.SYSTEM
    )
    async with HookSystem(Config("s", tmp_path, settings)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        found = errors([await fire("x", {}) for _ in range(4)])
    assert found == ["timed out after 50 ms"] * 4


@pytest.mark.parametrize("who", ["user", "project"])
async def test_a_project_does_not_widen_what_the_user_keeps_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    monkeypatch.setenv("HOOKLINE_TRUST", "all")
    monkeypatch.setenv("API_KEY", "hunter2")
    wide = {"type": "command", "command": "env > env", "envPolicy": "inherit"}
    hooks: dict[str, Any] = {"hooks": {"BeforeTool": [{"hooks": [wide]}]}}
    clean: dict[str, Any] = {"hooksConfig": {"envPolicy": "clean"}}
    project = hooks if who == "project" else {}
    user = clean if who == "project" else {**clean, **hooks}
    places = with_managed(tmp_path, project, user)
    settings = Settings.load(places=places)
    async with HookSystem(Config("s", tmp_path / "p", settings)) as system:
        await system.event_handler.fire_before_tool_event("x", {})
    seen = (tmp_path / "p" / "env").read_text()
    assert ("hunter2" in seen) is (who == "user")


def test_a_lock_held_elsewhere_neither_waits_nor_loses_the_count(
    tmp_path: Path,
) -> None:
    """The event loop must not wait for another process."""
    hook = registered(HANG)
    with locked(str(tmp_path / "state" / "hookline" / "timeouts")):
        CircuitBreaker(str(tmp_path)).note(hook, FailureCause.TIMEOUT)
    for _ in range(2):
        CircuitBreaker(str(tmp_path)).note(hook, FailureCause.TIMEOUT)
    assert CircuitBreaker(str(tmp_path)).open_for(hook) == 3
