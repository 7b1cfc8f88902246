"""Command hooks on standby: who gets a process that was started ahead (issue 13.5)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.executors.contract import HookCall
from hookline.executors.standby import StandbyExecutor
from hookline.processes.process import ProcessSlots
from hookline.processes.watcher import watcher
from hookline.protocol.results import FailureCause
from tests.support.processes import children

from .bench import (
    STANDBY,
    TOOL,
    StandbyBench,
    hits,
    lives,
    open_descriptors,
    until,
)


@pytest.fixture
def bench(tmp_path: Path) -> StandbyBench:
    folder = tmp_path / "project"
    folder.mkdir()
    return StandbyBench(folder)


@pytest.fixture(autouse=True)
async def nothing_is_left(bench: StandbyBench) -> AsyncIterator[None]:
    # Other tests in this process may have left a watcher of their hooks.
    descriptors, processes = open_descriptors(), set(children())
    yield
    assert not any(map(lives, bench.pids("started")))
    assert open_descriptors() <= descriptors
    assert set(children()) <= processes


async def test_the_first_event_finds_a_process_that_was_started_ahead(
    bench: StandbyBench,
) -> None:
    """protocol.md#rules: started ahead and waiting on stdin."""
    async with bench.system(bench.hook()) as hooks:
        (ahead,) = await bench.started(1)
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert (result.reason, hits(result)) == (str(ahead), [True])
        (_, next_one) = await bench.started(2)
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert (result.reason, hits(result)) == (str(next_one), [True])


async def test_the_event_arrives_whole_and_the_answer_is_read_as_ever(
    bench: StandbyBench,
) -> None:
    source = """
    import json, sys
    open("started", "a").write("0\\n")
    text = sys.stdin.read()
    open("seen.json", "w").write(text)
    print("no", file=sys.stderr)
    sys.exit(2)
    """
    content = {"path": "a.txt", "content": "x" * 3_000_000}
    async with bench.system(bench.hook(source)) as hooks:
        await until((bench.folder / "started").exists)
        result = await hooks.event_handler.fire_before_tool_event("write", content)
    assert hits(result) == [True]
    assert (result.blocked, result.reason) == (True, "no")
    assert '"hook_event_name":"BeforeTool"' in bench.read("seen.json")
    assert bench.read("seen.json").count("x") >= 3_000_000


async def test_output_from_before_the_event_is_output_of_the_run(
    bench: StandbyBench,
) -> None:
    source = """
    import sys
    print('{"decision": "block",', flush=True)
    print("early", file=sys.stderr, flush=True)
    open("started", "a").write("0\\n")
    sys.stdin.read()
    print('"reason": "both halves"}')
    """
    async with bench.system(bench.hook(source)) as hooks:
        await until((bench.folder / "started").exists)
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert (result.reason, hits(result)) == ("both halves", [True])
    assert result.aggregated.hook_results[0].stderr == "early"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_a_flood_before_the_event_waits_and_is_cut_to_the_limit(
    bench: StandbyBench, stream: str
) -> None:
    source = f"""
    import sys
    open("started", "a").write("0\\n")
    for _ in range(200):
        sys.{stream}.write("x" * 100_000)
    sys.{stream}.flush()
    sys.stdin.read()
    sys.exit(2)
    """
    options = {"maxOutputBytes": 1000}
    async with bench.system(bench.hook(source), config=options) as hooks:
        await until((bench.folder / "started").exists)
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    (ran,) = result.aggregated.hook_results
    assert (ran.standby, ran.truncated, ran.exit_code) == (True, True, 2)
    assert len(getattr(ran, stream)) <= 1000


async def test_nothing_is_started_ahead_deeper_than_hooks_may_run(
    bench: StandbyBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKLINE_DEPTH", "1")
    deep = bench.hook(STANDBY.replace("started", "deep"), "deep")
    for limit in (1, 2):
        async with bench.system(deep, config={"maxDepth": limit}):
            if limit == 2:
                await until(lambda: len(bench.pids("deep")) == 1)
            else:
                for _ in range(5):
                    await asyncio.sleep(0)
    assert len(bench.pids("deep")) == 1


async def test_two_events_at_once_share_one_process_as_hit_and_miss(
    bench: StandbyBench,
) -> None:
    async with bench.system(bench.hook()) as hooks:
        await bench.started(1)
        fire = hooks.event_handler.fire
        results = await asyncio.gather(*(fire("BeforeTool", TOOL) for _ in "ab"))
        assert sorted(hits(result)[0] is True for result in results) == [False, True]
        assert all(result.blocked for result in results)


async def test_there_are_never_more_than_n_in_all(bench: StandbyBench) -> None:
    """protocol.md#rules: up to n, in all."""
    async with bench.system(bench.hook(standby=3)) as hooks:
        await bench.started(3)
        results = await asyncio.gather(
            *(hooks.event_handler.fire("BeforeTool", TOOL) for _ in range(5))
        )
        assert [hits(result)[0] for result in results].count(True) == 3
        pids = await bench.started(8)
        assert sum(map(lives, pids)) == 3


async def test_another_session_is_left_alone_and_the_hook_runs_cold(
    bench: StandbyBench,
) -> None:
    """protocol.md#rules: one started for another session is left alone."""
    async with bench.system(bench.hook()) as hooks:
        (ahead,) = await bench.started(1)
        other = {**TOOL, "session_id": "another"}
        for _ in range(2):
            result = await hooks.event_handler.fire("BeforeTool", other)
            assert result.blocked
            assert hits(result) == [False]
        assert lives(ahead)
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert (result.reason, hits(result)) == (str(ahead), [True])


async def test_the_environment_is_that_of_the_event(
    bench: StandbyBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = STANDBY.replace("str(os.getpid())", 'os.environ["COLOUR"]')
    monkeypatch.setenv("COLOUR", "green")
    async with bench.system(bench.hook(source)) as hooks:
        (ahead,) = await bench.started(1)
        monkeypatch.setenv("COLOUR", "red")
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert (result.reason, hits(result)) == ("red", [False])
        await until(lambda: not lives(ahead))
        await bench.started(3)
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert (result.reason, hits(result)) == ("red", [True])


async def test_a_folder_that_was_exchanged_gets_a_new_process(
    bench: StandbyBench,
) -> None:
    folder = bench.folder
    source = STANDBY.replace("str(os.getpid())", 'open("content").read()')
    (folder / "content").write_text("old")
    async with bench.system(bench.hook(source)) as hooks:
        await bench.started(1)
        folder.rename(folder.parent / "moved")
        folder.mkdir()
        for name in ("hook.py", "started"):
            (folder.parent / "moved" / name).rename(folder / name)
        (folder / "content").write_text("new")
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert (result.reason, hits(result)) == ("new", [False])


async def test_a_changed_script_is_run_as_it_is_now(bench: StandbyBench) -> None:
    """protocol.md#rules: one that was started under other files is thrown away."""
    async with bench.system(bench.hook()) as hooks:
        (ahead,) = await bench.started(1)
        bench.hook(STANDBY.replace("str(os.getpid())", '"new"'))
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert (result.reason, hits(result)) == ("new", [False])
        assert ahead not in bench.pids("read")
        await until(lambda: not lives(ahead))
        await bench.started(3)
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert (result.reason, hits(result)) == ("new", [True])


async def test_rechecks_run_cold(bench: StandbyBench) -> None:
    """protocol.md#rules: re-checks run cold, with their own variable."""
    source = STANDBY.replace(
        'print(json.dumps({"decision": "block", "reason": str(os.getpid())}))',
        'open("again", "a").write(os.environ.get("HOOKLINE_RECHECK", "0") + "\\n")',
    )
    changes = 'echo \'{"hookSpecificOutput": {"tool_input": {"path": "b"}}}\''
    beside = {"type": "command", "command": changes, "name": "beside"}
    async with bench.system(bench.hook(source, standby=2), beside) as hooks:
        await bench.started(2)
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert hits(result) == [True, None, None]
    assert result.aggregated.hook_results[2].recheck
    assert bench.read("again").split() == ["0", "1"]


@pytest.mark.parametrize("more", [{"standby": 0}, {"async": True}], ids=str)
async def test_nothing_is_started_ahead_where_standby_has_no_effect(
    bench: StandbyBench, more: dict[str, Any]
) -> None:
    off = bench.hook(STANDBY.replace("started", "off"), "off", **more)
    async with bench.system(off, bench.hook()) as hooks:
        await bench.started(1)
        assert bench.pids("off") == []
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert hits(result) == [None, True]
        await bench.started(2)
    assert len(bench.pids("off")) == 1


async def test_a_host_that_fires_once_starts_nothing_ahead(
    bench: StandbyBench,
) -> None:
    settings = {"hooks": {"BeforeTool": [{"hooks": [bench.hook()]}]}}
    config = Config("s-1", bench.folder, Settings.from_mapping(settings))
    config.one_shot = True
    async with HookSystem(config) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert (result.blocked, hits(result)) == (True, [None])
    assert len(bench.pids("started")) == 1


async def test_claude_hooks_are_answered_from_standby(bench: StandbyBench) -> None:
    source = STANDBY.replace("str(os.getpid())", 'json.loads(text)["tool_name"]')
    hook = bench.hook(source, dialect="claude")
    async with bench.system(hook) as hooks:
        await bench.started(1)
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert hits(result) == [True]
    assert result.reason == "Write"


async def test_a_start_longer_than_the_timeout_happens_before_the_event(
    bench: StandbyBench,
) -> None:
    """protocol.md#rules: the deadline starts when the event is written."""
    source = f"import time; time.sleep(1.5)\n{STANDBY}"
    async with bench.system(bench.hook(source, timeout=1000)) as hooks:
        await bench.started(1)
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        (ran,) = result.aggregated.hook_results
        assert (ran.standby, ran.success, result.blocked) == (True, True, True)
        assert ran.duration < 1000


async def test_one_that_hangs_with_its_event_is_timed_out_with_its_group(
    bench: StandbyBench,
) -> None:
    source = """
    import os, subprocess, sys, time
    child = subprocess.Popen(["sleep", "1000"])
    open("started", "a").write(f"{os.getpid()}\\n{child.pid}\\n")
    sys.stdin.read()
    time.sleep(1000)
    """
    async with bench.system(bench.hook(source, timeout=300)) as hooks:
        pids = await bench.started(2)
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        (ran,) = result.aggregated.hook_results
        assert (ran.standby, ran.cause) == (True, FailureCause.TIMEOUT)
        assert ran.duration >= 300
        assert not any(map(lives, pids[:2]))


async def test_cancelling_the_caller_kills_the_process_that_has_the_event(
    bench: StandbyBench,
) -> None:
    source = STANDBY + "\nimport time; time.sleep(1000)\n"
    async with bench.system(bench.hook(source)) as hooks:
        (ahead,) = await bench.started(1)
        task = asyncio.create_task(hooks.event_handler.fire("BeforeTool", TOOL))
        await until(lambda: bench.pids("read") == [ahead])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not lives(ahead)


async def test_with_one_process_at_a_time_standby_gives_way(
    bench: StandbyBench,
) -> None:
    """Waiting processes count in maxProcesses, and keep no event from running."""
    other = bench.hook(STANDBY.replace("started", "others"), "other", standby=0)
    options = {"maxProcesses": 1}
    group = {"matcher": "^write_file$", "hooks": [bench.hook(standby=3)]}
    beside = {"matcher": "^other$", "hooks": [other]}
    settings = {"hooks": {"BeforeTool": [group, beside]}, "hooksConfig": options}
    config = Config("s-1", bench.folder, Settings.from_mapping(settings))
    async with HookSystem(config) as hooks:
        (ahead,) = await bench.started(1)
        fire = hooks.event_handler.fire_before_tool_event
        assert (await fire("other", {})).blocked
        await until(lambda: not lives(ahead))
        result = await fire("write_file", {})
        assert (result.blocked, hits(result)) == (True, [False])
        pids = await bench.started(3)
        result = await fire("write_file", {})
        assert (result.reason, hits(result)) == (str(pids[2]), [True])
        pids = await bench.started(4)
        assert sum(map(lives, pids)) == 1


async def test_another_event_loop_runs_cold(bench: StandbyBench) -> None:
    async with bench.system(bench.hook()) as hooks:
        (ahead,) = await bench.started(1)
        fire = hooks.event_handler.fire_before_tool_event
        result = await asyncio.to_thread(lambda: asyncio.run(fire("x", {})))
        assert hits(result) == [False]
        assert lives(ahead)
        result = await fire("x", {})
        assert (result.reason, hits(result)) == (str(ahead), [True])


async def test_one_that_has_an_event_is_not_killed_by_another_thread(
    bench: StandbyBench,
) -> None:
    """Another thread may have seen it waiting, and make room a moment too late."""
    source = STANDBY + "while not os.path.exists('go'): pass"
    async with bench.system(bench.hook(source)) as hooks:
        await bench.started(1)
        assert hooks._executors.standby is not None
        (seen,) = hooks._executors.standby._waiting
        firing = asyncio.ensure_future(hooks.event_handler.fire("BeforeTool", TOOL))
        await until(lambda: bool(bench.pids("read")))
        await asyncio.to_thread(seen.discard)
        bench.folder.joinpath("go").touch()
        result = await firing
    assert (result.blocked, hits(result)) == (True, [True])


async def test_threads_that_start_them_at_once_start_n_in_all(
    bench: StandbyBench,
) -> None:
    """protocol.md#rules: n in all."""
    hooks = bench.system(bench.hook(standby=2)).get_all_hooks()
    executor = StandbyExecutor(ProcessSlots(20))
    call = HookCall(hooks[0].event, {"cwd": str(bench.folder), "session_id": "s"})
    ready = threading.Barrier(4)

    async def start() -> None:
        ready.wait()
        executor.start(hooks, call)
        for _ in range(6):
            await asyncio.sleep(0)

    work = [asyncio.to_thread(asyncio.run, start()) for _ in range(4)]
    await asyncio.gather(*work)
    waiting = len(executor._waiting)
    await executor.close()
    watcher.stop()
    assert waiting == 2


async def test_a_hook_that_is_switched_off_keeps_no_process(
    bench: StandbyBench,
) -> None:
    async with bench.system(bench.hook()) as hooks:
        (ahead,) = await bench.started(1)
        hooks.set_hook_enabled("hook", False)
        await until(lambda: not lives(ahead))
        hooks.set_hook_enabled("hook", True)
        assert hits(await hooks.event_handler.fire("BeforeTool", TOOL)) == [False]
        await bench.started(3)
        assert hits(await hooks.event_handler.fire("BeforeTool", TOOL)) == [True]
    assert ahead not in bench.pids("read")


async def test_a_claude_hook_on_standby_can_say_that_nobody_should_wait(
    bench: StandbyBench,
) -> None:
    """protocol.md#dialects."""
    says = "\nprint(json.dumps({'async': True}), flush=True)\ntime.sleep(60)\n"
    source = f"{STANDBY.partition('text =')[0]}import time\nsys.stdin.read(){says}"
    async with bench.system(bench.hook(source, dialect="claude")) as hooks:
        await bench.started(1)
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        (answered,) = result.aggregated.hook_results
        assert answered.is_async
        await hooks.dispose(background_s=0)
