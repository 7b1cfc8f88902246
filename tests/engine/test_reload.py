"""Settings that change while events go on: each event has the hooks of one version.

Which changes are used and which are refused is in ``tests/pins/engine/reload.json``.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HooklineError, HookSystem, ProcessedHookResult, Settings
from hookline.journal.query import EventFilter, read_journal
from hookline.settings.model import TrustStatus
from tests.support.followed_settings import FollowedSettings
from tests.support.processes import wait_until
from tests.support.project import Project

CALL = {"tool_name": "x", "tool_input": {}}


def rule(reason: str, name: str = "rule") -> dict[str, Any]:
    then = {"decision": "deny", "reason": reason}
    return {"type": "rule", "name": name, "when": "true", "then": then}


def group(*hooks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"hooks": {"BeforeTool": [{"hooks": list(hooks)}]}, **more}


@pytest.fixture
def followed(tmp_path: Path) -> FollowedSettings:
    return FollowedSettings(tmp_path)


@pytest.fixture
def user_settings() -> Path:
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "hookline"
    folder.mkdir(parents=True)
    return folder / "settings.json"


async def test_nothing_is_loaded_without_the_option(followed: FollowedSettings) -> None:
    followed.write(rule("one"))
    config = Config("s", followed.folder, Settings.from_file(followed.file))
    async with HookSystem(config) as followed.system:
        followed.write(rule("two"))
        assert await followed.reason() == "one"
        assert followed.system.last_reload is None
        outcome = await followed.system.reload()
        assert (outcome.changed, outcome.problems) == (True, ())
        assert await followed.reason() == "two"


@pytest.mark.parametrize("reload", [True, False])
async def test_settings_of_a_mapping_cannot_be_reloaded(reload: bool) -> None:
    config = Config("s", "/", Settings.from_mapping({}))
    with pytest.raises(HooklineError, match=r"use Config\.load\(\)"):
        await HookSystem(config, reload=reload).reload()


async def test_config_load_builds_a_system_that_follows(
    tmp_path: Path, user_settings: Path
) -> None:
    """Also where hooks are switched off at first, and for sessions and plain code."""
    file = user_settings
    file.write_text(json.dumps(group(rule("one"), enableHooks=False)))
    folder = tmp_path / "work"
    folder.mkdir()
    async with Config.load(folder, reload=True) as config:
        session = config.session()
        assert (await session.fire("BeforeTool", CALL)).reason is None
        assert not await session.has_hooks("BeforeTool")
        file.write_text(json.dumps(group(rule("one"))))
        assert await session.has_hooks("BeforeTool")
        assert (await session.fire("BeforeTool", CALL)).reason == "one"
        file.write_text(json.dumps(group(rule("two"))))
        fired = await asyncio.to_thread(session.fire_sync, "BeforeTool", CALL)
        assert fired.reason == "two"
        assert config.settings.layers[0].groups


VERSIONS = 300


def hooks_of(version: int) -> list[dict[str, Any]]:
    return [rule(f"{version}.{number}", f"r{number}") for number in range(4)]


def rewrite(followed: FollowedSettings, stop: threading.Event) -> None:
    for version in range(1, VERSIONS):
        # By turns as programs do that take care, and as others do.
        if version % 2:
            followed.write(*hooks_of(version))
        else:
            followed.file.write_text(json.dumps(group(*hooks_of(version))))
    stop.set()


async def test_every_verdict_belongs_to_one_version(followed: FollowedSettings) -> None:
    """No event sees half of each, from whatever thread or event loop."""
    stop, seen = threading.Event(), list[ProcessedHookResult]()
    followed.write(*hooks_of(0))

    async def hammer() -> None:
        while not stop.is_set():
            seen.append(await followed.fire())

    def hammer_from_a_thread() -> None:
        while not stop.is_set():
            seen.append(followed.system.fire_sync("BeforeTool", CALL))

    async with followed.start() as system:
        await asyncio.gather(
            asyncio.to_thread(rewrite, followed, stop),
            *(hammer() for _ in range(4)),
            *(asyncio.to_thread(hammer_from_a_thread) for _ in range(2)),
        )
        seen.append(await followed.fire())
    await system._config.dispose()
    verdicts = [(result.reason or "").splitlines() for result in seen]
    assert {len(reasons) for reasons in verdicts} == {4}
    assert all(
        len({reason.split(".")[0] for reason in reasons}) == 1 for reasons in verdicts
    )
    assert verdicts[-1][0] == f"{VERSIONS - 1}.0"


async def test_event_in_progress_ends_with_the_hooks_it_began_with(
    followed: FollowedSettings,
) -> None:
    wait = "touch started; while [ ! -e go ]; do sleep 0.01; done"
    first = {"type": "command", "name": "first", "command": wait}
    followed.write(first, rule("old", "second"), group={"sequential": True})
    async with followed.start():
        slow = asyncio.create_task(followed.reason())
        await wait_until((followed.folder / "started").exists)
        followed.write(rule("new"))
        assert await followed.reason() == "new"
        (followed.folder / "go").touch()
        assert await slow == "old"


async def test_functions_and_switches_of_the_host_stay(
    followed: FollowedSettings,
) -> None:
    followed.write(rule("a", "a"), rule("b", "b"))
    async with followed.start() as system:

        @system.on("BeforeTool", name="mine")
        def mine(_: dict[str, Any]) -> dict[str, Any]:
            return {"decision": "deny", "reason": "mine"}

        system.set_hook_enabled("b", False)
        assert await followed.reason() == "mine\na"
        followed.write(rule("a"), enableHooks=False)
        assert await followed.reason() is None
        followed.write(rule("a2", "a"), rule("b", "b"), rule("c", "c"))
        assert await followed.reason() == "mine\na2\nc"
        system.set_hook_enabled("b", True)
        system.off(mine)
        assert await followed.reason() == "a2\nb\nc"


async def test_journal_moves_with_the_settings(followed: FollowedSettings) -> None:
    followed.write()
    async with followed.start():
        for name in ("a", "b", "a"):
            path = followed.folder / f"{name}.sqlite"
            followed.write(rule(name), hooksConfig={"journal": str(path)})
            await followed.fire(f"tool-{name}")
    assert _targets(followed.folder / "a.sqlite") == ["tool-a", "tool-a"]
    assert _targets(followed.folder / "b.sqlite") == ["tool-b"]


def _targets(path: Path) -> list[str | None]:
    with read_journal(str(path)) as reader:
        return [entry.target for entry in reader.newest(EventFilter(), None)]


async def test_reload_that_fails_or_leaves_no_hook_is_in_the_journal(
    user_settings: Path, tmp_path: Path
) -> None:
    """A guard does not vanish without a trace: an agent may have deleted its file."""
    journal = tmp_path / "j.sqlite"
    options = {"journal": str(journal)}
    user_settings.write_text(json.dumps(group(rule("user"), hooksConfig=options)))
    async with Config.load(tmp_path, reload=True) as config:
        session = config.session()
        assert (await session.fire("BeforeTool", CALL)).blocked
        user_settings.write_text("{")
        assert (await session.fire("BeforeTool", CALL)).blocked
        user_settings.unlink()
        assert not (await session.fire("BeforeTool", CALL)).blocked
    assert _targets(journal) == ["x", "Hookline", "x", "Hookline"]


async def test_late_results_go_to_the_journal_of_their_event(
    followed: FollowedSettings,
) -> None:
    wait = "touch started; while [ ! -e go ]; do sleep 0.01; done; echo said >&2"
    late = {"type": "command", "name": "late", "command": wait, "async": True}
    first, second = followed.folder / "1.sqlite", followed.folder / "2.sqlite"
    followed.write(late, hooksConfig={"journal": str(first)})
    async with followed.start():
        await followed.fire()
        await wait_until((followed.folder / "started").exists)
        followed.write(hooksConfig={"journal": str(second)})
        await followed.fire()
        (followed.folder / "go").touch()
    with read_journal(str(first)) as reader:
        event = reader.find(1)
    assert event is not None
    assert [hook["stderr"] for hook in event.hooks] == ["said"]


async def test_breaker_that_is_open_stays_open(
    followed: FollowedSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(followed.folder / "state"))
    slow = {"type": "command", "name": "slow", "command": "sleep 9", "timeout": 10}
    followed.write(slow)
    async with followed.start():
        for _ in range(3):
            await followed.fire()
        followed.write(slow, rule("new"))
        result = await followed.fire()
        errors = [error.message for error in result.aggregated.errors]
        assert result.reason == "new"
        assert any("skipped: it timed out 3 times" in error for error in errors)


async def test_dispose_waits_for_a_load_and_nothing_is_left(
    followed: FollowedSettings,
) -> None:
    followed.write(rule("a"))
    for number in range(10):
        async with followed.start() as system:
            await followed.fire()
            followed.write(rule(f"b{number}"))
            firing = asyncio.create_task(followed.reason())
            await asyncio.sleep(0)
        assert await firing in {f"b{number}", "a"} | {f"b{n}" for n in range(number)}
        await wait_until(
            lambda: all(one.name != "hookline-reload" for one in threading.enumerate())
        )
        await system.dispose()


async def test_event_that_is_cancelled_leaves_the_load_to_others(
    followed: FollowedSettings,
) -> None:
    followed.write(rule("a"))
    async with followed.start():
        await followed.fire()
        followed.write(rule("b"))
        first = asyncio.create_task(followed.reason())
        second = asyncio.create_task(followed.reason())
        await asyncio.sleep(0)
        first.cancel()
        assert await second == "b"
        with pytest.raises(asyncio.CancelledError):
            await first


@pytest.mark.parametrize("error", [RuntimeError("no thread"), SystemExit(3)])
async def test_load_that_cannot_run_or_exits_holds_up_no_event(
    followed: FollowedSettings, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    followed.write(rule("a"))
    async with followed.start() as system, asyncio.timeout(10):
        await followed.fire()
        followed.write(rule("b"))
        with monkeypatch.context() as patch:
            if isinstance(error, SystemExit):  # as an extension's code may
                patch.setattr("hookline.settings.watch.load_settings", fail)
            else:
                patch.setattr(threading.Thread, "start", fail)
            assert await followed.reason() == "a"
        assert system.last_reload is not None
        assert system.last_reload.problems
        assert await followed.reason() == "b"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
async def test_fork_during_a_load_does_not_wait_for_it(
    followed: FollowedSettings,
) -> None:
    followed.write(rule("a"))
    async with followed.start():
        await followed.fire()
        followed.write(rule("b"))
        firing = asyncio.create_task(followed.reason())
        await asyncio.sleep(0)
        child = os.fork()
        if child == 0:
            os._exit(_fires_in_a_child(followed))
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert (await firing, status) == ("b", 0)


def _fires_in_a_child(followed: FollowedSettings) -> int:
    asyncio.events._set_running_loop(None)
    return 0 if asyncio.run(followed.reason()) == "b" else 1


async def test_hooks_of_a_project_are_checked_as_at_a_start(
    project: Project, user_settings: Path
) -> None:
    """``"untrusted": "block"`` holds for what comes with a reload."""
    user_settings.write_text(json.dumps({"hooksConfig": {"untrusted": "block"}}))
    async with Config.load(project.folder, reload=True) as config:
        session = config.session()

        async def reason() -> str | None:
            return (await session.fire("BeforeTool", CALL)).reason

        assert await reason() is None
        project.settings(rule("one", "guard"))
        assert "hooksConfig.untrusted blocks" in (await reason() or "")
        project.trust()
        assert await reason() == "one"
        project.settings(rule("two", "guard"))
        assert "changed since it was approved" in (await reason() or "")
        system = config.get_hook_system()
        assert system is not None
        states = {hook.trust for hook in system.get_all_hooks()}
        assert states == {TrustStatus.CHANGED, TrustStatus.UNTRUSTED}
        project.trust()
        assert await reason() == "two"
        user_settings.write_text("{}")
        project.trust("--revoke")
        assert await reason() is None


async def test_broken_project_keeps_no_guard_and_no_revocation_away(
    project: Project, user_settings: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Trust is checked as at a start, whatever a project's files hold."""
    user_settings.write_text("{}")
    file = project.settings(rule("project", "guard"))
    project.trust()
    async with Config.load(project.folder, reload=True) as config:
        session = config.session()
        assert (await session.fire("BeforeTool", CALL)).reason == "project"
        file.write_text("{ no")
        user_settings.write_text(json.dumps(group(rule("user"))))
        reason = (await session.fire("BeforeTool", CALL)).reason or ""
        assert "changed since it was approved" in reason
        assert "user" in reason.splitlines()
        assert "settings.json:1:3: is not valid JSON" in caplog.text
        project.trust("--revoke")
        assert (await session.fire("BeforeTool", CALL)).reason == "user"
