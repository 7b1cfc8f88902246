"""How workers start, are replaced and end; nothing of them is ever left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, Settings
from hookline.execute import worker
from hookline.protocol.results import FailureCause
from tests.support.hook_scripts import TOOL, HookScripts, only_hook
from tests.support.processes import is_alive, wait_until

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

FAULTY = """
import json, os, sys
if os.environ.get("HOOKLINE_WORKER") != "1":
    print(json.dumps({{"decision": "block", "reason": "cold"}}))
    sys.exit(0)
with open("warm-pid", "a") as pids:
    pids.write(f"{{os.getpid()}}\\n")
frame = json.loads(sys.stdin.readline())
{fault}
"""
"""Blocks when it is run cold, and does something else when it is kept warm."""

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
    scripts: HookScripts, fault: str, then: dict[str, Any]
) -> None:
    """A verdict is never lost: the event in hand is run cold and marked so."""
    hook = scripts.worker(FAULTY.format(fault=fault))
    async with scripts.system(hook, config={"maxOutputBytes": 4096}) as hooks:
        for _ in range(2):
            result = await hooks.event_handler.fire("BeforeTool", TOOL)
            assert (result.reason == "cold") is then["reran"]
            ran = only_hook(result)
            assert {name: getattr(ran, name) for name in then} == then
    assert len(set(scripts.pids("warm-pid"))) == 2


async def test_rerun_has_only_the_time_that_is_left(scripts: HookScripts) -> None:
    source = """
    import os, sys, time
    if os.environ.get("HOOKLINE_WORKER") == "1":
        sys.stdin.readline()
        sys.exit(0)
    time.sleep(1000)
    """
    async with scripts.system(scripts.worker(source, timeout=1500)) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert only_hook(result).timed_out
    assert only_hook(result).reran


IGNORES = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


async def test_worker_that_hangs_is_timed_out_with_its_whole_group(
    scripts: HookScripts,
) -> None:
    """One that ends at SIGTERM, and one that ignores it."""
    workers = [
        scripts.worker(HANGS, "hangs", timeout=2000),
        scripts.worker(IGNORES + HANGS, "ignores", timeout=2000),
    ]
    async with scripts.system(*workers) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        for ran in result.aggregated.hook_results:
            assert (ran.timed_out, ran.cause) == (True, FailureCause.TIMEOUT)
            assert (ran.output, ran.reran) == (None, False)
        assert len(scripts.pids()) == 4
        assert not any(map(is_alive, scripts.pids()))


async def test_cancelling_the_caller_kills_the_worker_and_its_children(
    scripts: HookScripts,
) -> None:
    async with scripts.system(scripts.worker(HANGS)) as hooks:
        task = asyncio.create_task(hooks.event_handler.fire("BeforeTool", TOOL))
        await wait_until(scripts.folder.joinpath("hangs").exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not is_alive(scripts.pids()[0])


async def test_worker_with_unexpected_output_is_replaced(scripts: HookScripts) -> None:
    fault = """
for answer in (1, 2):
    reply = {'id': frame['id'], 'exit_code': 0, 'stdout': '', 'stderr': ''}
    print(json.dumps(reply), flush=True)
    if not os.path.exists('asked'):
        open('asked', 'w').close()
    while not os.path.exists('go'):
        pass
    print('more', flush=True)
    sys.stdin.read()
"""
    hook = scripts.worker(FAULTY.format(fault=fault))
    async with scripts.system(hook) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert not only_hook(await fire("a", {})).reran
        (first,) = scripts.pids("warm-pid")
        scripts.folder.joinpath("go").touch()
        await wait_until(lambda: not is_alive(first))
        await fire("b", {})
    assert len(set(scripts.pids("warm-pid"))) == 2


async def test_idle_worker_ends_and_the_next_event_starts_another(
    scripts: HookScripts,
) -> None:
    hook = scripts.worker(RECORDED.format(body="return None"))
    async with scripts.system(hook, config={"workerIdleMs": 50}) as hooks:
        await hooks.event_handler.fire("BeforeTool", TOOL)
        (pid,) = scripts.pids()
        await wait_until(lambda: not is_alive(pid))
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert not only_hook(result).reran
    assert len(set(scripts.pids())) == 2


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
    scripts: HookScripts, command: str
) -> None:
    hook = scripts.worker(RECORDED.format(body="return block('old')"))
    async with scripts.system(hook | {"command": command}) as hooks:
        assert (await hooks.event_handler.fire("BeforeTool", TOOL)).reason == "old"
        scripts.worker(RECORDED.format(body="return block('newer')"))
        assert (await hooks.event_handler.fire("BeforeTool", TOOL)).reason == "newer"


async def test_workers_end_with_dispose_and_start_again_after_it(
    scripts: HookScripts,
) -> None:
    hooks = scripts.system(scripts.worker(RECORDED.format(body="return block('no')")))
    for _ in range(2):
        async with hooks:
            assert (await hooks.event_handler.fire("BeforeTool", TOOL)).blocked
        assert not any(map(is_alive, scripts.pids()))
    assert len(set(scripts.pids())) == 2


async def test_dispose_lets_a_call_in_flight_finish(scripts: HookScripts) -> None:
    body = """
    open("begun", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.002)
    return block("heard")"""
    hooks = scripts.system(scripts.worker(RECORDED.format(body=body.strip())))
    await hooks.initialize()
    call = asyncio.create_task(hooks.event_handler.fire("BeforeTool", TOOL))
    await wait_until(scripts.folder.joinpath("begun").exists)
    ending = asyncio.create_task(hooks.dispose())
    scripts.folder.joinpath("go").touch()
    assert (await call).reason == "heard"
    await ending


async def test_worker_that_was_started_ahead_is_replaced_without_an_event(
    scripts: HookScripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No event comes to a worker that is not ready."""
    monkeypatch.setattr(worker, "REPLACE_S", 0.01)
    source = """
    import os, sys
    with open("pids", "a") as pids:
        pids.write(f"{os.getpid()}\\n")
    sys.stdin.read()
    """
    async with scripts.system(scripts.worker(source), start_workers=True) as hooks:
        killed: set[int] = set()
        while len(killed) < 3:
            await wait_until(lambda: len(scripts.pids()) > len(killed))
            killed.add(scripts.pids()[-1])
            os.kill(scripts.pids()[-1], signal.SIGKILL)
        await wait_until(lambda: len(scripts.pids()) == 4)
        assert hooks.health().lost == ()
        hooks.set_hook_enabled("hook", enabled=False)
        await wait_until(lambda: hooks.health().processes == 0)
    assert len(scripts.pids()) == 4


async def test_only_enabled_workers_are_started_ahead(scripts: HookScripts) -> None:
    off = scripts.worker("open('off', 'w').close()", "off")
    on = scripts.worker("open('on', 'w').close()\nimport sys; sys.stdin.read()", "on")
    options = {"disabled": ["off"]}
    async with scripts.system(off, on, config=options, start_workers=True):
        await wait_until(scripts.folder.joinpath("on").exists)
    assert not scripts.folder.joinpath("off").exists()


async def test_plain_and_async_calls_of_one_host_keep_a_worker_each(
    scripts: HookScripts,
) -> None:
    """An async agent with plain tools does not start one for each call."""
    hook = scripts.worker(RECORDED.format(body="return block('no')"))
    settings = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    async with Config("s-1", scripts.folder, settings) as config:
        session = config.session()
        for _ in range(3):
            assert (await session.fire("BeforeTool", TOOL)).blocked
            assert session.fire_sync("BeforeTool", TOOL).blocked
        assert len(set(scripts.pids())) == 2
    assert not any(map(is_alive, scripts.pids()))


async def test_cancelled_dispose_is_finished_by_the_next(scripts: HookScripts) -> None:
    """The worker takes a while to end, which the second one waits for as well."""
    source = IGNORES + RECORDED.format(body="return block('no')")
    source += "\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
    hooks = scripts.system(scripts.worker(source))
    await hooks.initialize()
    assert (await hooks.event_handler.fire("BeforeTool", TOOL)).blocked
    (pid,) = scripts.pids()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await hooks.dispose()
    second = asyncio.create_task(hooks.dispose())
    await asyncio.wait({second}, timeout=0.5)
    assert (is_alive(pid), second.done()) == (True, False)
    scripts.folder.joinpath("go").touch()
    await second
    assert not is_alive(pid)


@pytest.mark.parametrize("idle_ms", [50, 60_000])
def test_worker_serves_one_event_loop_after_the_other(
    tmp_path: Path, idle_ms: int
) -> None:
    """And ends when it is idle, in the second one too."""
    scripts = HookScripts(tmp_path)
    hook = scripts.worker(RECORDED.format(body="return block('no')"))
    hooks = scripts.system(hook, config={"workerIdleMs": idle_ms})

    async def fire(*, last: bool) -> None:
        await hooks.initialize()
        assert (await hooks.event_handler.fire("BeforeTool", TOOL)).blocked
        if last and idle_ms == 50:
            await wait_until(lambda: not any(map(is_alive, scripts.pids())))

    asyncio.run(fire(last=False))
    asyncio.run(fire(last=True))
    assert len(scripts.pids()) == 2
    asyncio.run(hooks.dispose())
    assert not any(map(is_alive, scripts.pids()))
