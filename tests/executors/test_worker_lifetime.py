"""How workers start, are replaced and end; nothing of them is ever left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, Settings
from hookline.executors import worker
from hookline.protocol.results import FailureCause

from .bench import TOOL, WorkerBench, lives, only_hook, until

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

FAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "dies": ("os._exit(3)", {"reran": True, "success": True}),
    "answers without an end": (
        "while True: sys.stdout.write('x' * 65536)",
        {"reran": False, "truncated": True},
    ),
}
"""What other faults come to is in ``tests/pins/fire/workers.json``."""


@pytest.mark.parametrize(("fault", "then"), FAULTS.values(), ids=FAULTS)
async def test_worker_is_replaced_when_it(
    bench: WorkerBench, fault: str, then: dict[str, Any]
) -> None:
    """A verdict is never lost: the event in hand is run cold and marked so."""
    hook = bench.faulty(fault)
    async with bench.system(hook, config={"maxOutputBytes": 4096}) as hooks:
        for _ in range(2):
            result = await hooks.event_handler.fire("BeforeTool", TOOL)
            assert (result.reason == "cold") is then["reran"]
            ran = only_hook(result)
            assert {name: getattr(ran, name) for name in then} == then
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
    assert only_hook(result).timed_out
    assert only_hook(result).reran


IGNORES = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


@pytest.mark.parametrize("source", [HANGS, IGNORES + HANGS], ids=["", "SIGTERM"])
async def test_worker_that_hangs_is_timed_out_with_its_whole_group(
    bench: WorkerBench, source: str
) -> None:
    async with bench.system(bench.hook(source, timeout=2000)) as hooks:
        ran = only_hook(await hooks.event_handler.fire("BeforeTool", TOOL))
        assert (ran.timed_out, ran.cause) == (True, FailureCause.TIMEOUT)
        assert (ran.output, ran.reran) == (None, False)
        assert len(bench.pids()) == 2
        assert not any(map(lives, bench.pids()))


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
        assert not only_hook(await fire("a", {})).reran
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
        assert not only_hook(result).reran
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


async def test_only_enabled_workers_are_started_ahead(bench: WorkerBench) -> None:
    off = bench.hook("open('off', 'w').close()", "off")
    on = bench.hook("open('on', 'w').close()\nimport sys; sys.stdin.read()", "on")
    options = {"disabled": ["off"]}
    async with bench.system(off, on, config=options, start_workers=True):
        await until(bench.folder.joinpath("on").exists)
    assert not bench.folder.joinpath("off").exists()


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


async def test_cancelled_dispose_is_finished_by_the_next(bench: WorkerBench) -> None:
    source = IGNORES + RECORDED.format(body="return block('no')")
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


@pytest.mark.parametrize("idle_ms", [50, 60_000])
def test_worker_serves_one_event_loop_after_the_other(
    tmp_path: Path, idle_ms: int
) -> None:
    """And ends when it is idle, in the second one too."""
    bench = WorkerBench(tmp_path)
    hook = bench.hook(RECORDED.format(body="return block('no')"))
    hooks = bench.system(hook, config={"workerIdleMs": idle_ms})

    async def fire(*, last: bool) -> None:
        await hooks.initialize()
        assert (await hooks.event_handler.fire("BeforeTool", TOOL)).blocked
        if last and idle_ms == 50:
            await until(lambda: not any(map(lives, bench.pids())))

    asyncio.run(fire(last=False))
    asyncio.run(fire(last=True))
    assert len(bench.pids()) == 2
    asyncio.run(hooks.dispose())
    assert not any(map(lives, bench.pids()))
