"""How workers start, are replaced and end; nothing of them is ever left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import pytest

from hookline import Config, ProcessedHookResult, Settings
from hookline.executors import worker
from hookline.executors.contract import HookCall
from hookline.executors.worker import WorkerExecutor, WorkerPool
from hookline.processes.process import ProcessSlots
from hookline.protocol.results import FailureCause, HookExecutionResult
from tests.support.processes import children

from .bench import TOOL, WorkerBench, lives, open_descriptors, until

RECORDED = """
from hookline.script import *
import os, sys, time, subprocess
def hook(event):
    with open("pids", "a") as pids:
        pids.write(f"{{os.getpid()}}\\n")
    {body}
run(hook)
"""
HANGS = RECORDED.format(
    body="""
    child = subprocess.Popen(["sleep", "1000"])
    with open("pids", "a") as pids:
        pids.write(f"{child.pid}\\n")
    open("hangs", "w").close()
    while True:
        time.sleep(1000)"""
)

FAULTS = {
    "dies": "os._exit(3)",
    "is killed": "os.kill(os.getpid(), 9)",
    "closes its output": "os.close(1); import time; time.sleep(1000)",
    "talks nonsense": "print('hello', flush=True); sys.stdin.read()",
    "answers another id": (
        "print(json.dumps({'id': frame['id'] + 1, 'exit_code': 0, 'stdout': '', "
        "'stderr': ''}), flush=True); sys.stdin.read()"
    ),
    "answers twice": (
        "print((json.dumps({'id': frame['id'], 'exit_code': 0, 'stdout': '', "
        "'stderr': ''}) + '\\n') * 2, end='', flush=True); sys.stdin.read()"
    ),
    "leaves a field out": (
        "print(json.dumps({'id': frame['id'], 'exit_code': 0}), flush=True)"
    ),
    "answers half a line": "sys.stdout.write('{'); sys.stdout.flush(); os._exit(0)",
}


@pytest.fixture(autouse=True)
async def nothing_is_left(bench: WorkerBench) -> AsyncIterator[None]:
    # Other tests in this process may have left a watcher of their hooks.
    descriptors, processes = open_descriptors(), set(children())
    yield
    await until(lambda: not any(map(lives, _all_pids(bench))))
    assert open_descriptors() <= descriptors
    assert set(children()) <= processes


def _all_pids(bench: WorkerBench) -> list[int]:
    return [*bench.pids(), *bench.pids("warm-pid")]


def _ran(result: ProcessedHookResult) -> HookExecutionResult:
    (ran,) = result.aggregated.hook_results
    return ran


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_event_is_rerun_cold_when_its_worker(
    bench: WorkerBench, fault: str
) -> None:
    """A verdict is never lost: the event in hand is run cold and marked so."""
    async with bench.system(bench.faulty(fault)) as hooks:
        for _ in range(2):
            result = await hooks.event_handler.fire("BeforeTool", TOOL)
            assert (result.blocked, result.reason) == (True, "cold")
            assert _ran(result).reran
            assert _ran(result).success
    assert len(set(bench.pids("warm-pid"))) == 2


async def test_rerun_has_only_the_time_that_is_left(bench: WorkerBench) -> None:
    source = """
    import os, sys, time
    if os.environ.get("HOOKLINE_WORKER") == "1":
        sys.stdin.readline()
        sys.exit(0)
    time.sleep(1000)
    """
    async with bench.system(bench.hook(source, timeout=1500)) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert _ran(result).timed_out
    assert _ran(result).reran


async def test_worker_that_hangs_is_timed_out_with_its_whole_group(
    bench: WorkerBench,
) -> None:
    hook = bench.hook(HANGS, timeout=3000)
    async with bench.system(hook) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        ran = _ran(result)
        assert (ran.timed_out, ran.cause) == (True, FailureCause.TIMEOUT)
        assert ran.output is None
        assert not ran.reran
        assert len(bench.pids()) == 2
        assert not any(map(lives, bench.pids()))


async def test_timed_out_worker_is_replaced(bench: WorkerBench) -> None:
    body = "time.sleep(1000 if event['tool_name'] == 'slow' else 0); return block('no')"
    hook = bench.hook(RECORDED.format(body=body), timeout=3000)
    async with bench.system(hook) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert _ran(await fire("slow", {})).timed_out
        assert (await fire("quick", {})).blocked
    assert len(set(bench.pids())) == 2


async def test_worker_that_ignores_sigterm_is_killed(bench: WorkerBench) -> None:
    source = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + HANGS
    hook = bench.hook(source, timeout=2000)
    async with bench.system(hook) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert _ran(result).timed_out


async def test_cancelling_the_caller_kills_the_worker_and_its_children(
    bench: WorkerBench,
) -> None:
    async with bench.system(bench.hook(HANGS)) as hooks:
        task = asyncio.create_task(hooks.event_handler.fire("BeforeTool", TOOL))
        await until(bench.folder.joinpath("hangs").exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not lives(bench.pids()[0])


async def test_worker_with_unexpected_output_is_replaced(bench: WorkerBench) -> None:
    fault = """
for answer in (1, 2):
    said = {'id': frame['id'], 'exit_code': 0, 'stdout': '', 'stderr': ''}
    print(json.dumps(said), flush=True)
    if not os.path.exists('asked'):
        open('asked', 'w').close()
    while not os.path.exists('go'):
        pass
    print('more', flush=True)
    sys.stdin.read()
"""
    async with bench.system(bench.faulty(fault)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert not _ran(await fire("a", {})).reran
        (first,) = bench.pids("warm-pid")
        bench.folder.joinpath("go").touch()
        await until(lambda: not lives(first))
        await fire("b", {})
    assert len(set(bench.pids("warm-pid"))) == 2


async def test_idle_worker_ends_and_the_next_event_starts_another(
    bench: WorkerBench,
) -> None:
    hook = bench.hook(RECORDED.format(body="return None"))
    async with bench.system(hook, config={"workerIdleMs": 50}) as hooks:
        await hooks.event_handler.fire("BeforeTool", TOOL)
        (pid,) = bench.pids()
        await until(lambda: not lives(pid))
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert not _ran(result).reran
    assert len(set(bench.pids())) == 2


async def test_changed_script_restarts_its_worker(bench: WorkerBench) -> None:
    hook = bench.hook(RECORDED.format(body="return block('old')"))
    async with bench.system(hook) as hooks:
        assert (await hooks.event_handler.fire("BeforeTool", TOOL)).reason == "old"
        bench.hook(RECORDED.format(body="return block('new')"))
        assert (await hooks.event_handler.fire("BeforeTool", TOOL)).reason == "new"
    assert len(set(bench.pids())) == 2


@pytest.mark.parametrize(
    "command",
    [
        '"$HOOKLINE_PYTHON" "$CLAUDE_PROJECT_DIR"/hook.py',
        "bash -c 'exec \"$HOOKLINE_PYTHON\" hook.py'",
        "true; exec $HOOKLINE_PYTHON ho'ok'.py; false",
        '"$HOOKLINE_PYTHON" -m hook',
    ],
)
async def test_changed_script_restarts_its_worker_for_any_spelling_of_its_path(
    bench: WorkerBench, command: str
) -> None:
    hook = bench.hook(RECORDED.format(body="return block('old')"))
    async with bench.system(hook | {"command": command}) as hooks:
        assert (await hooks.event_handler.fire("BeforeTool", TOOL)).reason == "old"
        bench.hook(RECORDED.format(body="return block('newer')"))
        assert (await hooks.event_handler.fire("BeforeTool", TOOL)).reason == "newer"


async def test_workers_end_with_dispose_and_start_again_after_it(
    bench: WorkerBench,
) -> None:
    hooks = bench.system(bench.hook(RECORDED.format(body="return block('no')")))
    for _ in range(2):
        async with hooks:
            assert (await hooks.event_handler.fire("BeforeTool", TOOL)).blocked
        assert not any(map(lives, bench.pids()))
    assert len(set(bench.pids())) == 2


async def test_dispose_lets_a_call_in_flight_finish(bench: WorkerBench) -> None:
    body = """
    open("begun", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.002)
    return block("heard")"""
    hooks = bench.system(bench.hook(RECORDED.format(body=body.strip())))
    await hooks.initialize()
    call = asyncio.create_task(hooks.event_handler.fire("BeforeTool", TOOL))
    await until(bench.folder.joinpath("begun").exists)
    ending = asyncio.create_task(hooks.dispose())
    bench.folder.joinpath("go").touch()
    assert (await call).reason == "heard"
    await ending


async def test_workers_start_at_initialize_where_the_host_says_so(
    bench: WorkerBench,
) -> None:
    source = "open('started', 'w').close()\n" + RECORDED.format(body="return None")
    async with bench.system(bench.hook(source), start_workers=True):
        await until(bench.folder.joinpath("started").exists)


async def test_a_worker_that_was_started_ahead_is_replaced_without_an_event(
    bench: WorkerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 16: no event comes to a worker that is not ready."""
    monkeypatch.setattr(worker, "REPLACE_S", 0.01)
    source = """
    import os, sys
    with open("pids", "a") as pids:
        pids.write(f"{os.getpid()}\\n")
    sys.stdin.read()
    """
    async with bench.system(bench.hook(source), start_workers=True) as hooks:
        killed: set[int] = set()
        while len(killed) < 3:
            await until(lambda: len(bench.pids()) > len(killed))
            killed.add(bench.pids()[-1])
            os.kill(bench.pids()[-1], signal.SIGKILL)
        await until(lambda: len(bench.pids()) == 4)
        assert hooks.health().lost == ()
        hooks.set_hook_enabled("hook", enabled=False)
        await until(lambda: hooks.health().processes == 0)
    assert len(bench.pids()) == 4


async def test_disabled_worker_is_not_started_ahead(bench: WorkerBench) -> None:
    off = bench.hook("open('off', 'w').close()", "off")
    on = bench.hook("open('on', 'w').close()\nimport sys; sys.stdin.read()", "on")
    options = {"disabled": ["off"]}
    async with bench.system(off, on, config=options, start_workers=True):
        await until(bench.folder.joinpath("on").exists)
    assert not bench.folder.joinpath("off").exists()


HOST = """
import asyncio, os, sys
from hookline import Config, HookSystem, Settings
async def main():
    settings = Settings.from_mapping({{"hooks": {{"BeforeTool": [{{"hooks": [
        {{"type": "worker", "command": sys.executable + " hook.py"}}]}}]}}}})
    hooks = HookSystem(Config("s", ".", settings))
    await hooks.initialize()
    {deed}
asyncio.run(main())
"""


def _run_host(bench: WorkerBench, deed: str) -> subprocess.Popen[bytes]:
    host = bench.folder / "host.py"
    host.write_text(dedent(HOST.format(deed=deed)))
    return subprocess.Popen([sys.executable, str(host)], cwd=bench.folder)


async def test_hanging_worker_does_not_outlive_a_killed_host(
    bench: WorkerBench,
) -> None:
    bench.hook(HANGS)
    deed = "await hooks.event_handler.fire_before_tool_event('t', {})"
    with _run_host(bench, deed) as host:
        await until(bench.folder.joinpath("hangs").exists)
        host.send_signal(signal.SIGKILL)
    await until(lambda: not any(map(lives, bench.pids())))
    assert len(bench.pids()) == 2


async def test_workers_end_with_a_host_that_does_not_dispose(
    bench: WorkerBench,
) -> None:
    bench.hook(RECORDED.format(body="return None"))
    deed = "await hooks.event_handler.fire_before_tool_event('t', {})"
    with _run_host(bench, deed) as host:
        assert host.wait() == 0
    await until(lambda: not any(map(lives, bench.pids())))
    assert len(bench.pids()) == 1


def test_worker_serves_one_event_loop_after_the_other(tmp_path: Path) -> None:
    bench = WorkerBench(tmp_path)
    hooks = bench.system(bench.hook(RECORDED.format(body="return block('no')")))

    async def fire() -> bool:
        await hooks.initialize()
        return (await hooks.event_handler.fire("BeforeTool", TOOL)).blocked

    assert asyncio.run(fire())
    assert asyncio.run(fire())
    asyncio.run(hooks.dispose())
    assert not any(map(lives, bench.pids()))


async def test_plain_and_async_calls_of_one_host_keep_a_worker_each(
    bench: WorkerBench,
) -> None:
    """Issue 17: an async agent with plain tools does not start one for each call."""
    hook = bench.hook(RECORDED.format(body="return block('no')"))
    settings = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    async with Config("s-1", bench.folder, settings) as config:
        session = config.session()
        for _ in range(3):
            assert (await session.fire("BeforeTool", TOOL)).blocked
            assert session.fire_sync("BeforeTool", TOOL).blocked
        assert len(set(bench.pids())) == 2
    assert not any(map(lives, bench.pids()))


def test_idle_worker_ends_also_in_a_second_event_loop(tmp_path: Path) -> None:
    bench = WorkerBench(tmp_path)
    hook = bench.hook(RECORDED.format(body="return block('no')"))
    hooks = bench.system(hook, config={"workerIdleMs": 50})

    async def fire(*, wait: bool) -> None:
        await hooks.initialize()
        assert (await hooks.event_handler.fire("BeforeTool", TOOL)).blocked
        if wait:
            await until(lambda: not any(map(lives, bench.pids())))

    asyncio.run(fire(wait=False))
    asyncio.run(fire(wait=True))
    assert len(bench.pids()) == 2
    asyncio.run(hooks.dispose())


async def test_cancelled_dispose_is_finished_by_the_next(bench: WorkerBench) -> None:
    stubborn = """
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    """
    source = dedent(stubborn) + dedent(RECORDED.format(body="return block('no')"))
    hooks = bench.system(bench.hook(source + "\nimport time; time.sleep(600)\n"))
    await hooks.initialize()
    assert (await hooks.event_handler.fire("BeforeTool", TOOL)).blocked
    (pid,) = bench.pids()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await hooks.dispose()
    assert lives(pid)
    await hooks.dispose()
    assert not lives(pid)


async def test_the_answer_of_a_worker_is_no_output_of_a_cold_run(
    bench: WorkerBench,
) -> None:
    """Issue 13.6: a program that is a worker only fails, whatever it makes of it."""
    source = """
    import json, os, sys
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            os._exit(1)
        answer = {"exit_code": 2, "stdout": "", "stderr": "no input"}
        print(json.dumps({"id": request.get("id"), **answer}), flush=True)
    """
    async with bench.system(bench.hook(source, onError="block")) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    ran = _ran(result)
    assert (result.blocked, ran.cause, ran.reran) == (True, FailureCause.OUTPUT, True)
    assert "docs/how-to/workers.md#cold-runs" in (ran.error or "")


async def test_threads_with_their_first_events_at_once_share_one_pool(
    bench: WorkerBench,
) -> None:
    """The workers of a pool that is not kept would never end."""
    (hook,) = bench.system(bench.hook("")).get_all_hooks()
    call = HookCall(hook.event, {"cwd": str(bench.folder), "session_id": "s"})
    ready = threading.Barrier(4)

    def pool_of(executor: WorkerExecutor) -> WorkerPool:
        ready.wait()
        return executor._pool(hook, call)

    with ThreadPoolExecutor(4) as threads:
        for _ in range(200):
            executor = WorkerExecutor(ProcessSlots(4))
            assert len(set(threads.map(pool_of, [executor] * 4))) == 1
