"""Command hooks on standby: who gets a process that was started ahead."""

from __future__ import annotations

import asyncio
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.protocol.results import FailureCause
from tests.support.hook_scripts import (
    STANDBY,
    TOOL,
    HookScripts,
    ask,
    hits,
    only_hook,
)
from tests.support.processes import is_alive, wait_until

ROWS = tomllib.loads(Path(__file__).with_name("standby.toml").read_text())
PREAMBLE = """
import json, os, sys, time
def note():
    with open("started", "a") as pids:
        pids.write(f"{os.getpid()}\\n")
"""


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_event_is_answered_by_the_process_that_waits(
    scripts: HookScripts, row: dict[str, Any]
) -> None:
    """protocol.md#rules: the deadline starts when the event is written."""
    event = {"tool_name": "write_file", "tool_input": {"content": "x" * 3_000_000}}
    hook = scripts.standby(PREAMBLE + row["source"], **row["options"])
    async with scripts.system(hook, config={"maxOutputBytes": 64}) as hooks:
        await scripts.started(1)
        ran = only_hook(await hooks.event_handler.fire("BeforeTool", event))
        await hooks.dispose(background_s=0)
    assert {name: getattr(ran, name) for name in row["then"]} == row["then"]


async def test_first_event_finds_a_process_that_was_started_ahead(
    scripts: HookScripts,
) -> None:
    """protocol.md#rules: started ahead and waiting on stdin."""
    async with scripts.system(scripts.standby()) as hooks:
        for count in (1, 2):
            pids = await scripts.started(count)
            assert await ask(hooks) == (str(pids[-1]), True)


async def test_nothing_is_started_ahead_deeper_than_hooks_may_run(
    scripts: HookScripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKLINE_DEPTH", "1")
    deep = scripts.standby(STANDBY.replace("started", "deep"), "deep")
    for limit in (1, 2):
        async with scripts.system(deep, config={"maxDepth": limit}):
            if limit == 2:
                await wait_until(lambda: len(scripts.pids("deep")) == 1)
            else:
                for _ in range(5):
                    await asyncio.sleep(0)
    assert len(scripts.pids("deep")) == 1


@pytest.mark.parametrize(("standby", "events"), [(1, 2), (3, 5)])
async def test_there_are_never_more_than_n_in_all(
    scripts: HookScripts, standby: int, events: int
) -> None:
    """protocol.md#rules: up to n, in all; other events at the same time run cold."""
    async with scripts.system(scripts.standby(standby=standby)) as hooks:
        await scripts.started(standby)
        answers = await asyncio.gather(*(ask(hooks) for _ in range(events)))
        assert all(reason for reason, _ in answers)
        assert [hit for _, hit in answers].count(True) == standby
        pids = await scripts.started(standby + events)
        assert sum(map(is_alive, pids)) == standby


async def test_another_session_is_left_alone_and_the_hook_runs_cold(
    scripts: HookScripts,
) -> None:
    """protocol.md#rules: one started for another session is left alone.

    And one that belongs to another event loop.
    """
    async with scripts.system(scripts.standby()) as hooks:
        (ahead,) = await scripts.started(1)
        other = {**TOOL, "session_id": "another"}
        for _ in range(2):
            result = await hooks.event_handler.fire("BeforeTool", other)
            assert (result.blocked, hits(result)) == (True, [False])
        in_thread = await asyncio.to_thread(lambda: asyncio.run(ask(hooks)))
        assert in_thread[1] is False
        assert is_alive(ahead)
        assert await ask(hooks) == (str(ahead), True)


SAYS_WORD = STANDBY.replace("str(os.getpid())", 'os.environ["WORD"]')
CHANGES: dict[str, Callable[[HookScripts], object]] = {
    "environment": lambda scripts: os.environ.update(WORD="new"),
    "script": lambda scripts: scripts.standby(
        STANDBY.replace("str(os.getpid())", '"new"')
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_environment_and_the_script_are_those_of_the_event(
    scripts: HookScripts,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[HookScripts], object],
) -> None:
    """protocol.md#rules: one that was started under other files is thrown away."""
    monkeypatch.setenv("WORD", "old")
    async with scripts.system(scripts.standby(SAYS_WORD)) as hooks:
        (ahead,) = await scripts.started(1)
        change(scripts)
        assert await ask(hooks) == ("new", False)
        assert ahead not in scripts.pids("read")
        await wait_until(lambda: not is_alive(ahead))
        await scripts.started(3)
        assert await ask(hooks) == ("new", True)


async def test_folder_that_was_exchanged_gets_a_new_process(
    scripts: HookScripts,
) -> None:
    folder = scripts.folder
    source = STANDBY.replace("str(os.getpid())", 'open("content").read()')
    (folder / "content").write_text("old")
    async with scripts.system(scripts.standby(source)) as hooks:
        await scripts.started(1)
        folder.rename(folder.parent / "moved")
        folder.mkdir()
        for name in ("hook.py", "started"):
            (folder.parent / "moved" / name).rename(folder / name)
        (folder / "content").write_text("new")
        assert await ask(hooks) == ("new", False)


async def test_rechecks_run_cold(scripts: HookScripts) -> None:
    """protocol.md#rules: re-checks run cold, with their own variable."""
    source = STANDBY.replace(
        'print(json.dumps({"decision": "block", "reason": str(os.getpid())}))',
        'open("again", "a").write(os.environ.get("HOOKLINE_RECHECK", "0") + "\\n")',
    )
    changes = 'echo \'{"hookSpecificOutput": {"tool_input": {"path": "b"}}}\''
    beside = {"type": "command", "command": changes, "name": "beside"}
    async with scripts.system(scripts.standby(source, standby=2), beside) as hooks:
        await scripts.started(2)
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert hits(result) == [True, None, None]
    assert result.aggregated.hook_results[2].recheck
    assert scripts.read("again").split() == ["0", "1"]


@pytest.mark.parametrize("more", [{"standby": 0}, {"async": True}], ids=str)
async def test_nothing_is_started_ahead_where_standby_has_no_effect(
    scripts: HookScripts, more: dict[str, Any]
) -> None:
    off = scripts.standby(STANDBY.replace("started", "off"), "off", **more)
    async with scripts.system(off, scripts.standby()) as hooks:
        await scripts.started(1)
        assert scripts.pids("off") == []
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert hits(result) == [None, True]
        await scripts.started(2)
    assert len(scripts.pids("off")) == 1


async def test_host_that_fires_once_starts_nothing_ahead(scripts: HookScripts) -> None:
    settings = {"hooks": {"BeforeTool": [{"hooks": [scripts.standby()]}]}}
    config = Config("s-1", scripts.folder, Settings.from_mapping(settings))
    config.one_shot = True
    async with HookSystem(config) as hooks:
        reason, hit = await ask(hooks)
    assert ([reason], hit) == ([str(pid) for pid in scripts.pids("started")], None)


@pytest.mark.parametrize("ends", ["at its timeout", "with its caller"])
async def test_one_that_hangs_with_its_event_is_killed_with_its_group(
    scripts: HookScripts, ends: str
) -> None:
    source = """
    import os, subprocess, sys, time
    child = subprocess.Popen(["sleep", "1000"])
    open("started", "a").write(f"{os.getpid()}\\n{child.pid}\\n")
    sys.stdin.read()
    open("read", "a").write(f"{os.getpid()}\\n")
    time.sleep(1000)
    """
    timeout = 300 if ends == "at its timeout" else 60_000
    async with scripts.system(scripts.standby(source, timeout=timeout)) as hooks:
        pids = await scripts.started(2)
        firing = asyncio.create_task(hooks.event_handler.fire("BeforeTool", TOOL))
        await wait_until(lambda: scripts.pids("read") == pids[:1])
        if ends == "with its caller":
            firing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await firing
        else:
            ran = only_hook(await firing)
            assert (ran.standby, ran.cause) == (True, FailureCause.TIMEOUT)
            assert ran.duration >= 300
            assert not is_alive(pids[1])
        assert not is_alive(pids[0])


async def test_with_one_process_at_a_time_standby_gives_way(
    scripts: HookScripts,
) -> None:
    """Waiting processes count in maxProcesses, and keep no event from running."""
    other = scripts.standby(STANDBY.replace("started", "others"), "other", standby=0)
    group = {"matcher": "^write_file$", "hooks": [scripts.standby(standby=3)]}
    beside = {"matcher": "^other$", "hooks": [other]}
    settings = {
        "hooks": {"BeforeTool": [group, beside]},
        "hooksConfig": {"maxProcesses": 1},
    }
    config = Config("s-1", scripts.folder, Settings.from_mapping(settings))
    async with HookSystem(config) as hooks:
        (ahead,) = await scripts.started(1)
        fire = hooks.event_handler.fire_before_tool_event
        assert (await fire("other", {})).blocked
        await wait_until(lambda: not is_alive(ahead))
        reason, hit = await ask(hooks)
        pids = await scripts.started(3)
        assert (reason, hit) == (str(pids[1]), False)
        assert await ask(hooks) == (str(pids[2]), True)
        pids = await scripts.started(4)
        assert sum(map(is_alive, pids)) == 1


async def test_one_that_has_an_event_is_not_killed_by_another_thread(
    scripts: HookScripts,
) -> None:
    source = STANDBY + "while not os.path.exists('go'): pass"
    async with scripts.system(scripts.standby(source)) as hooks:
        (ahead,) = await scripts.started(1)
        firing = asyncio.ensure_future(ask(hooks))
        await wait_until(lambda: bool(scripts.pids("read")))
        await asyncio.to_thread(hooks.set_hook_enabled, "hook", False)
        scripts.folder.joinpath("go").touch()
        assert await firing == (str(ahead), True)


async def test_hook_that_is_switched_off_keeps_no_process(scripts: HookScripts) -> None:
    async with scripts.system(scripts.standby()) as hooks:
        (ahead,) = await scripts.started(1)
        hooks.set_hook_enabled("hook", False)
        await wait_until(lambda: not is_alive(ahead))
        hooks.set_hook_enabled("hook", True)
        assert (await ask(hooks))[1] is False
        await scripts.started(3)
        assert (await ask(hooks))[1] is True
    assert ahead not in scripts.pids("read")
