"""Nothing outlives its host: the shell that watches, with real hosts that die."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from hookline import HookSystem
from hookline.execute.watchdog import watcher
from tests.support.processes import (
    STUBBORN,
    WORKER,
    children,
    descriptors_left,
    is_alive,
    marked,
    none_left,
    until,
    wait_until,
)
from tests.support.workspace import Workspace

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="looks into /proc"
)

HOST = """
import asyncio, json, os, signal, sys, threading
from hookline import Config, HookSystem, Settings

# A shell starts background jobs with it ignored, the tests among them.
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

def system():
    settings = Settings.from_mapping(json.load(open("settings.json")))
    return HookSystem(Config("s", ".", settings))

async def fire():
    async with system() as hooks:
        await hooks.event_handler.fire_before_tool_event("t", {})

async def ask(hooks, **tool_input):
    result = await hooks.event_handler.fire_before_tool_event("t", tool_input)
    (ran,) = result.aggregated.hook_results
    print(result.blocked, ran.reran, flush=True)

def wait():
    while not os.path.exists("started"):
        pass

async def cancel():
    firing = asyncio.create_task(fire())
    await asyncio.to_thread(wait)
    firing.cancel()
    await asyncio.wait({firing})

def show_what_is_inherited(work):
    import ctypes
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    asyncio.run(work())
    try:
        print(os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        print("none")
"""
ROWS = tomllib.loads(Path(__file__).with_name("hosts.toml").read_text())
FIRES = "asyncio.run(fire())"
ANSWERS = """
from hookline.script import block, run
run(lambda event: block("no"))
"""


class Host:
    """A program that uses the library, with one hook."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = f"HOST_TEST={folder}"
        folder.joinpath("hangs.py").write_text(WORKER)
        folder.joinpath("answers.py").write_text(ANSWERS)

    def start(self, hook: dict[str, object], body: str) -> subprocess.Popen[str]:
        settings = json.dumps({"hooks": {"BeforeTool": [{"hooks": [hook]}]}})
        filled = settings.replace("<python>", sys.executable)
        self.folder.joinpath("settings.json").write_text(filled)
        return subprocess.Popen(
            [sys.executable, "-c", HOST + dedent(body)],
            cwd=self.folder,
            env={**os.environ, "HOST_TEST": str(self.folder)},
            stdout=subprocess.PIPE,
            text=True,
        )

    async def started(self, name: str = "started") -> None:
        await until(str(self.folder / name))


def command(text: str) -> dict[str, object]:
    return {"type": "command", "command": text}


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def is_watcher(pid: int) -> bool:
    # The words are there a moment after the process is.
    while not (words := Path(f"/proc/{pid}/cmdline").read_bytes()):
        if state(pid) == "Z":
            return False
    return b"hookline-watch" in words


def marked_beside(mark: str, pid: int) -> list[int]:
    return [other for other in marked(mark) if other != pid]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT]


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("text", STUBBORN.values(), ids=list(STUBBORN))
async def test_hooks_end_with_a_host_that_is_killed(
    host: Host, text: str, number: signal.Signals
) -> None:
    """For a host that uses the library."""
    with host.start(command(text), FIRES) as running:
        await host.started()
        (shell,) = filter(is_watcher, children(running.pid))
        running.send_signal(number)
    assert await none_left(host.mark)
    await wait_until(lambda: not is_alive(shell))


@pytest.mark.parametrize("row", ROWS["killed"].values(), ids=ROWS["killed"])
async def test_nothing_is_left_of_a_host_that_is_killed(
    host: Host, row: dict[str, Any]
) -> None:
    with host.start(row["hook"], row["body"]) as running:
        await host.started(row["when"])
        running.kill()
    assert await none_left(host.mark)


@pytest.mark.parametrize("row", ROWS["printed"].values(), ids=ROWS["printed"])
async def test_no_verdict_is_lost_and_nothing_is_left_by_a_host_that(
    host: Host, row: dict[str, Any]
) -> None:
    """protocol.md#process."""
    with host.start(row["hook"], row["body"]) as running:
        assert running.stdout is not None
        assert running.stdout.read() == row["printed"]
        assert running.wait() == 0
    assert await none_left(host.mark)


async def test_several_loops_in_threads_share_one_watcher(host: Host) -> None:
    body = """
    def run():
        asyncio.run(fire())
    for _ in range(4):
        threading.Thread(target=run, daemon=True).start()
    signal.pause()
    """
    with host.start(command("sleep 0.1; touch started.$$; sleep 300"), body) as running:
        while len([*host.folder.glob("started.*")]) < 4:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        shells = [pid for pid in children(running.pid) if is_watcher(pid)]
        assert len(shells) == 1
        running.kill()
    assert await none_left(host.mark)


async def test_fork_of_a_host_keeps_no_hook_alive_and_kills_none(host: Host) -> None:
    """The fork lives on: it neither holds the pipe nor owns the hooks."""
    body = """
    def fork():
        wait()
        if os.fork() == 0:
            print("fork", os.getpid(), flush=True)
            while True:
                signal.pause()
    threading.Thread(target=fork, daemon=True).start()
    asyncio.run(fire())
    """
    with host.start(command(STUBBORN["sleeps"]), body) as running:
        assert running.stdout is not None
        fork = int(running.stdout.readline().split()[1])
        running.kill()
    try:
        while (left := marked_beside(host.mark, fork)) != []:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert left == []
        os.kill(fork, 0)
    finally:
        os.kill(fork, signal.SIGKILL)


async def test_watcher_ends_with_dispose_and_leaves_no_child(
    workspace: Workspace,
) -> None:
    watcher.stop()
    before = children()
    settings = workspace.settings("BeforeTool", workspace.runs("true"))
    for _ in range(2):
        async with HookSystem(workspace.config(settings)) as hooks:
            await hooks.event_handler.fire_before_tool_event("x", {})
            await hooks.event_handler.fire_before_tool_event("x", {})
            new = set(children()) - set(before)
            assert [is_watcher(pid) for pid in new] == [True]
        assert children() == before


async def test_watcher_that_was_killed_is_replaced(workspace: Workspace) -> None:
    watcher.stop()
    before = set(children())
    settings = workspace.settings("BeforeTool", workspace.runs("true"))
    async with HookSystem(workspace.config(settings)) as hooks:
        await hooks.event_handler.fire_before_tool_event("x", {})
        (first,) = set(children()) - before
        os.kill(first, signal.SIGKILL)
        while state(first) != "Z":  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await hooks.event_handler.fire_before_tool_event("x", {})
        (second,) = set(children()) - before
        assert second != first
        assert is_watcher(second)


async def test_watcher_that_could_not_start_is_tried_again(
    workspace: Workspace,
) -> None:
    """Too few descriptors for a moment must not end the protection for good."""
    watcher.stop()
    before = set(children())
    settings = workspace.settings("BeforeTool", workspace.runs("true"))
    async with HookSystem(workspace.config(settings)) as hooks:
        for room in range(12):
            with descriptors_left(room):
                await hooks.event_handler.fire_before_tool_event("x", {})
        await hooks.event_handler.fire_before_tool_event("x", {})
        (shell,) = set(children()) - before
        assert is_watcher(shell)
    assert set(children()) == before


async def test_child_left_on_purpose_outlives_its_host(host: Host) -> None:
    """protocol.md#process: after a normal exit of the hook nothing is hunted."""
    hook = command("sleep 300 >/dev/null 2>&1 & echo $! > left; exit 0")
    with host.start(hook, FIRES) as running:
        assert running.wait() == 0
    left = int(host.folder.joinpath("left").read_text())
    os.kill(left, signal.SIGKILL)  # raises if it is gone
