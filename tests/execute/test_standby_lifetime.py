"""How processes on standby end: killed before their stdin closes."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from hookline.execute.watchdog import watcher
from hookline.execute.worker import ProcessPool
from tests.support.hook_scripts import (
    STANDBY,
    TOOL,
    HookScripts,
    ask,
    hits,
    only_hook,
)
from tests.support.processes import is_alive, wait_until


async def test_dispose_kills_what_waits_without_an_end_of_input(
    scripts: HookScripts,
) -> None:
    """protocol.md#rules: it is killed before its stdin is closed."""
    hooks = scripts.system(scripts.standby(standby=3))
    for round_ in (1, 2):
        async with hooks:
            pids = await scripts.started(3 * round_)
        assert not any(map(is_alive, pids))
    assert scripts.read("read") == ""


async def test_idle_process_ends_and_comes_back_with_the_next_event(
    scripts: HookScripts,
) -> None:
    async with scripts.system(
        scripts.standby(), config={"workerIdleMs": 2000}
    ) as hooks:
        (ahead,) = await scripts.started(1)
        await wait_until(lambda: not is_alive(ahead))
        assert (await ask(hooks))[1] is False
        await scripts.started(3)
    assert len(scripts.pids("read")) == 1


UNREAD = {
    "exits 0": "import sys; sys.exit(0)",
    "blocks": "import sys; print('no', file=sys.stderr); sys.exit(2)",
    "crashes": "raise ZeroDivisionError",
    "is killed": "import os; os.kill(os.getpid(), 9)",
    "leaves a child": "import subprocess; subprocess.Popen(['sleep', '600'])",
}


@pytest.mark.parametrize("source", UNREAD.values(), ids=UNREAD)
async def test_one_that_ends_unused_is_not_replaced_with_one_warning(
    scripts: HookScripts, source: str, caplog: pytest.LogCaptureFixture
) -> None:
    """protocol.md#rules: not replaced, with a warning; the event runs cold."""
    note = 'import os; open("started", "a").write(f"{os.getpid()}\\n")\n'
    hook = scripts.standby(note + source, standby=2)
    with caplog.at_level(logging.WARNING, "hookline"):
        async with scripts.system(hook) as hooks:
            pids = await scripts.started(2)
            await wait_until(lambda: not any(map(is_alive, pids)))
            await wait_until(lambda: "is no longer started ahead" in caplog.text)
            result = await hooks.event_handler.fire("BeforeTool", TOOL)
            result = await hooks.event_handler.fire("BeforeTool", TOOL)
    failed = source in (UNREAD["crashes"], UNREAD["is killed"])
    ran = only_hook(result)
    assert (ran.standby, ran.cause is not None) == (False, failed)
    assert result.blocked is (source == UNREAD["blocks"])
    assert len(scripts.pids("started")) == 4
    assert caplog.text.count("is no longer started ahead") == 1
    assert "'hook'" in caplog.text


async def test_end_that_the_loop_has_not_seen_yet_is_seen_in_time(
    scripts: HookScripts,
) -> None:
    """The event is not given to a process that has ended: it blocks, cold."""
    source = """
    import os, sys
    print("no", file=sys.stderr, flush=True)
    open("started", "a").write(f"{os.getpid()}\\n")
    sys.exit(2)
    """
    async with scripts.system(scripts.standby(source)) as hooks:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        while not scripts.read("started") or any(
            map(is_alive, scripts.pids("started"))
        ):
            pass  # the event loop must not run
        assert await ask(hooks) == ("no", False)


async def test_one_that_has_closed_its_stdin_is_not_used(scripts: HookScripts) -> None:
    source = """
    import os, sys, time
    os.close(0)
    open("started", "a").write(f"{os.getpid()}\\n")
    if not os.path.exists("go"):
        time.sleep(1000)
    sys.exit(2)
    """
    async with scripts.system(scripts.standby(source)) as hooks:
        (ahead,) = await scripts.started(1)
        scripts.folder.joinpath("go").touch()
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert (result.blocked, hits(result)) == (True, [False])
        assert not is_alive(ahead)


async def test_event_is_never_lost_on_a_process_that_ends_at_any_moment(
    scripts: HookScripts,
) -> None:
    """A guard that blocks without reading blocks, whenever the event comes."""
    source = """
    import os, sys, time
    open("started", "a").write(f"{os.getpid()}\\n")
    time.sleep(0.01)
    print("no", file=sys.stderr)
    sys.exit(2)
    """
    for delay in range(12):
        async with scripts.system(scripts.standby(source)) as hooks:
            await asyncio.sleep(delay / 200)
            assert (await ask(hooks))[0] == "no"


@pytest.mark.parametrize("size", [1, 1_000_000], ids=["small", "big"])
async def test_one_that_ends_without_reading_its_event_has_not_answered(
    scripts: HookScripts, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It gave up waiting just before; what ends unused is no answer.

    protocol.md#rules
    """
    source = """
    import os, sys, time
    waits = not os.path.exists("given")
    open("started", "a").write(f"{os.getpid()}\\n")
    while waits and not os.path.exists("given"):
        time.sleep(0.001)
    if not waits:
        print(len(sys.stdin.read()), file=sys.stderr)
        sys.exit(2)
    """
    async with scripts.system(scripts.standby(source)) as hooks:
        await scripts.started(1)
        fire = hooks.event_handler.fire_before_tool_event("x", {"content": "x" * size})
        firing = asyncio.ensure_future(fire)
        pool = hooks._executors.runtimes.here().part(ProcessPool)
        await wait_until(lambda: not pool.waiting)
        scripts.folder.joinpath("given").touch()
        result = await firing
    assert (result.blocked, hits(result)) == (True, [False])
    assert int(result.reason or 0) > size
    assert "ended without reading its event" in caplog.text


async def test_no_other_process_holds_the_input_of_one_that_waits(
    scripts: HookScripts,
) -> None:
    """Else it would not end with its host."""
    look = "ls -l /proc/$$/fd /proc/*/fd/0 > fds 2>/dev/null; exit 0"
    beside = {"type": "command", "command": look, "name": "beside"}
    async with scripts.system(scripts.standby(standby=3), beside) as hooks:
        pids = await scripts.started(3)
        stdin = {pid: Path(f"/proc/{pid}/fd/0").readlink() for pid in pids}
        holders = {pid: _holders(str(pipe)) for pid, pipe in stdin.items()}
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert True in hits(result)
    for pid, holding in holders.items():
        assert set(holding) == {pid, os.getpid()}
    assert len({str(pipe) for pipe in stdin.values()}) == 3


def _holders(pipe: str) -> list[int]:
    holding = set()
    for fd in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(fd.readlink()) == pipe:
                holding.add(int(fd.parts[2]))
        except OSError:
            continue
    return sorted(holding)


HOST = """
import asyncio, json, os, signal, sys
from hookline import Config, HookSystem, Settings
settings = Settings.from_mapping(json.load(open("settings.json")))
hooks = HookSystem(Config("s", ".", settings))

async def main():
    await hooks.initialize()
    while not os.path.exists("started") or open("started").read().count("\\n") < 2:
        await asyncio.sleep(0.002)
    open("ready", "w").close()
    {deed}

asyncio.run(main())
{after}
"""
KILLED = {
    "is killed": ("await asyncio.sleep(600)", signal.SIGKILL),
    "gets SIGTERM": ("await asyncio.sleep(600)", signal.SIGTERM),
    "is aborted": ("os.abort()", None),
    "leaves by os._exit": ("os._exit(3)", None),
    "becomes another program": ("os.execv('/bin/true', ['true'])", None),
}
ENDS = {
    "gets SIGINT": ("await asyncio.sleep(600)", signal.SIGINT),
    "ends without dispose": ("pass", None),
    "raises": ("raise SystemExit(4)", None),
    "disposes": ("await hooks.dispose()", None),
}


def _host(scripts: HookScripts, deed: str, after: str = "") -> subprocess.Popen[bytes]:
    settings = {"hooks": {"BeforeTool": [{"hooks": [scripts.standby(standby=2)]}]}}
    scripts.folder.joinpath("settings.json").write_text(json.dumps(settings))
    source = HOST.format(deed=deed, after=dedent(after))
    return subprocess.Popen(
        [sys.executable, "-c", source], cwd=scripts.folder, stderr=subprocess.DEVNULL
    )


@pytest.mark.parametrize("deed", (KILLED | ENDS).values(), ids=KILLED | ENDS)
async def test_processes_end_when_their_host(
    scripts: HookScripts, deed: tuple[str, signal.Signals | None]
) -> None:
    """protocol.md#rules: killed before stdin is closed, unless the host is killed."""
    statement, number = deed
    with _host(scripts, statement) as host:
        await wait_until(scripts.folder.joinpath("ready").exists)
        if number is not None:
            host.send_signal(number)
        await asyncio.to_thread(host.wait)
    await wait_until(lambda: not any(map(is_alive, scripts.pids("started"))))
    assert deed in KILLED.values() or scripts.read("read") == ""
    assert len(scripts.pids("started")) == 2


FORKS = """
pid = os.fork()
if pid == 0:
    {deed}
    os._exit(0)
os.waitpid(pid, 0)
alive = [int(line) for line in open("started")][:2]
for pid in alive:
    os.kill(pid, 0)

async def fire():
    result = await hooks.event_handler.fire_before_tool_event("t", {{}})
    return result.aggregated.hook_results[0].standby

open("parent", "w").write(str(asyncio.run(fire())))
asyncio.run(hooks.dispose())
"""
IN_FORK = {
    "nothing": "pass",
    "exits": "sys.exit(0)",
    "fires": "asyncio.run(hooks.event_handler.fire_before_tool_event('t', {}))",
    "disposes": "asyncio.run(hooks.dispose())",
}


@pytest.mark.parametrize("deed", IN_FORK.values(), ids=IN_FORK)
async def test_fork_leaves_the_processes_of_its_parent_to_it(
    scripts: HookScripts, deed: str
) -> None:
    with _host(scripts, "pass", FORKS.format(deed=deed)) as host:
        assert await asyncio.to_thread(host.wait) == 0
    # The first event loop is closed, so that a new one starts anew.
    assert scripts.read("parent") == "False"
    first, second = scripts.pids("started")[:2]
    assert not {first, second} & set(scripts.pids("read"))


async def test_system_that_is_dropped_kills_what_waits(scripts: HookScripts) -> None:
    hooks = scripts.system(scripts.standby())
    await hooks.initialize()
    await scripts.started(1)
    await asyncio.sleep(0)
    del hooks
    gc.collect()
    await wait_until(lambda: not any(map(is_alive, scripts.pids("started"))))
    assert scripts.read("read") == ""
    watcher.stop()


async def test_event_that_outlives_dispose_starts_none_ahead(
    scripts: HookScripts,
) -> None:
    source = STANDBY + "while not os.path.exists('go'): pass"
    hooks = scripts.system(scripts.standby(source))
    await hooks.initialize()
    await scripts.started(1)
    firing = asyncio.create_task(ask(hooks))
    await wait_until(lambda: bool(scripts.pids("read")))
    await hooks.dispose()
    scripts.folder.joinpath("go").touch()
    await firing
    for _ in range(10):
        await asyncio.sleep(0.01)
    assert len(scripts.pids("started")) == 1
    watcher.stop()
