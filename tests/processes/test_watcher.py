"""Nothing outlives its host: the shell that watches, with real hosts that die."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from hookline import HookSystem
from hookline.processes.watcher import watcher
from tests.support.processes import (
    STUBBORN,
    WORKER,
    children,
    descriptors_left,
    marked,
    none_left,
    until,
)
from tests.support.workshop import Workshop

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="looks into /proc"
)

HOST = """
import asyncio, json, os, signal, sys, threading
from hookline import Config, HookSystem, Settings

async def fire():
    settings = Settings.from_mapping(json.load(open("settings.json")))
    async with HookSystem(Config("s", ".", settings)) as hooks:
        await hooks.event_handler.fire_before_tool_event("t", {})
"""


class Host:
    """A program that uses the library, with one hook."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = f"HOST_TEST={folder}"

    def start(self, hook: dict[str, object], body: str) -> subprocess.Popen[str]:
        settings = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
        self.folder.joinpath("settings.json").write_text(json.dumps(settings))
        return subprocess.Popen(
            [sys.executable, "-c", HOST + dedent(body)],
            cwd=self.folder,
            env={**os.environ, "HOST_TEST": str(self.folder)},
            stdout=subprocess.PIPE,
            text=True,
        )

    def hook(self, command: str) -> dict[str, object]:
        return {"type": "command", "command": command}

    async def started(self) -> None:
        await until(str(self.folder / "started"))


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def is_watcher(pid: int) -> bool:
    # The words are there a moment after the process is.
    while not (words := Path(f"/proc/{pid}/cmdline").read_bytes()):
        if state(pid) == "Z":
            return False
    return b"hookline-watch" in words


async def is_gone(pid: int) -> bool:
    for _ in range(3000):
        if not await asyncio.to_thread(os.path.exists, f"/proc/{pid}/fd/0"):
            return True
        await asyncio.sleep(0.01)
    return False


def marked_beside(mark: str, pid: int) -> list[int]:
    return [one for one in marked(mark) if one != pid]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT]


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("command", STUBBORN.values(), ids=list(STUBBORN))
async def test_hooks_end_with_a_host_that_is_killed(
    host: Host, command: str, number: signal.Signals
) -> None:
    """Issue 12.16, for a host that uses the library."""
    with host.start(host.hook(command), "asyncio.run(fire())") as running:
        await host.started()
        (shell,) = filter(is_watcher, children(running.pid))
        running.send_signal(number)
    assert await none_left(host.mark)
    assert await is_gone(shell)


async def test_hanging_worker_and_its_child_end_with_a_host_that_is_killed(
    host: Host,
) -> None:
    host.folder.joinpath("worker.py").write_text(WORKER)
    hook: dict[str, object] = {
        "type": "worker",
        "command": f"{sys.executable} worker.py",
    }
    with host.start(hook, "asyncio.run(fire())") as running:
        await host.started()
        running.kill()
    assert await none_left(host.mark)


async def test_members_that_ignore_the_timeout_end_with_a_host_killed_in_the_grace(
    host: Host,
) -> None:
    """The leader has ended on SIGTERM, its child has not."""
    command = "(trap '' TERM; touch started; sleep 300) & trap 'touch gone' TERM; wait"
    hook = {**host.hook(command), "timeout": 300}
    with host.start(hook, "asyncio.run(fire())") as running:
        await until(str(host.folder / "gone"))
        running.kill()
    assert await none_left(host.mark)


async def test_hook_whose_number_the_host_never_learned_ends_with_it(
    host: Host,
) -> None:
    """Killed between the start of a process and the note of its number."""
    body = """
    from hookline.processes.spawn import Program, spawn
    from hookline.processes.watcher import watcher
    stdin, writing = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    watcher.expect(stdin)
    script = "sleep 300 & touch started; sleep 300"
    program = Program("/bin/sh", ("sh", "-c", script), os.environ)
    spawn(program, ".", (stdin, null, null))
    signal.pause()
    """
    with host.start({}, body) as running:
        await host.started()
        running.kill()
    assert await none_left(host.mark)


async def test_os_exit_leaves_nothing(host: Host) -> None:
    body = """
    def leave():
        while not os.path.exists("started"):
            pass
        os._exit(0)
    threading.Thread(target=leave).start()
    asyncio.run(fire())
    """
    with host.start(host.hook(STUBBORN["ignores SIGTERM"]), body) as running:
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
    command = "touch started.$$; sleep 300"
    with host.start(host.hook(command), body) as running:
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
        while not os.path.exists("started"):
            pass
        if os.fork() == 0:
            print("fork", os.getpid(), flush=True)
            while True:
                signal.pause()
    threading.Thread(target=fork, daemon=True).start()
    asyncio.run(fire())
    """
    with host.start(host.hook(STUBBORN["sleeps"]), body) as running:
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


async def test_fork_that_exits_ends_none_of_its_parents_workers(host: Host) -> None:
    host.folder.joinpath("worker.py").write_text(WORKER)
    body = """
    from hookline.processes.watcher import watcher
    def fork():
        while not os.path.exists("started"):
            pass
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
        print(len(watcher._rows), flush=True)
        os._exit(0)
    loop = threading.Thread(target=lambda: asyncio.run(fire()), daemon=True)
    loop.start()
    fork()
    """
    hook: dict[str, object] = {
        "type": "worker",
        "command": f"{sys.executable} worker.py",
    }
    with host.start(hook, body) as running:
        assert running.stdout is not None
        assert running.stdout.read().strip() == "1"
    assert await none_left(host.mark)


async def test_fork_keeps_no_hook_waiting_for_the_end_of_its_input(host: Host) -> None:
    """Issue 12.16: as of multiprocessing in another thread, while a hook starts."""
    body = """
    async def ask():
        settings = Settings.from_mapping(json.load(open("settings.json")))
        async with HookSystem(Config("s", ".", settings)) as hooks:
            big = {"content": "x" * 1_000_000}
            result = await hooks.event_handler.fire_before_tool_event("t", big)
            print(result.blocked, flush=True)
    def fork():
        while not os.path.exists("started"):
            pass
        if (pid := os.fork()) == 0:
            while True:
                signal.pause()
        forks.append(pid)
        open("forked", "w").close()
    forks = []
    thread = threading.Thread(target=fork)
    thread.start()
    asyncio.run(ask())
    thread.join()
    os.kill(forks[0], signal.SIGKILL)
    """
    waits = "touch started; until [ -e forked ]; do sleep 0.01; done"
    hook = {**host.hook(f"{waits}; cat >/dev/null; exit 2"), "timeout": 10_000}
    with host.start(hook, body) as running:
        assert running.stdout is not None
        assert running.stdout.read().strip() == "True"


INHERITS = """
import ctypes
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
async def cancel():
    firing = asyncio.create_task(fire())
    while not os.path.exists("started"):
        await asyncio.sleep(0.01)
    firing.cancel()
    await asyncio.wait({firing})
asyncio.run({how}())
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("none")
"""
LEAVES = "sleep 300 & sleep 300 & touch started; wait"


@pytest.mark.parametrize(
    ("how", "kind", "command", "timeout_ms"),
    [
        ("fire", "command", LEAVES, 1000),
        ("cancel", "command", LEAVES, 60_000),
        ("fire", "worker", f"read -r line; {LEAVES}", 1000),
        ("cancel", "worker", f"read -r line; {LEAVES}", 60_000),
    ],
)
async def test_host_that_inherits_what_a_hook_left_behind_reaps_it(
    host: Host, how: str, kind: str, command: str, timeout_ms: int
) -> None:
    """No zombie, also where the host is the first in a container.

    protocol.md#process
    """
    hook = {"type": kind, "command": command, "timeout": timeout_ms}
    with host.start(hook, INHERITS.replace("{how}", how)) as running:
        assert running.stdout is not None
        assert running.stdout.read().strip() == "none"


ANSWERS = """
from hookline.script import block, run
run(lambda event: block("no"))
"""


async def test_fork_that_uses_the_hooks_leaves_the_workers_of_its_parent_to_it(
    host: Host,
) -> None:
    """Issue 12.16: the two share what the event loop listens to."""
    host.folder.joinpath("answers.py").write_text(ANSWERS)
    body = """
    async def ask(hooks):
        result = await hooks.event_handler.fire_before_tool_event("t", {})
        (ran,) = result.aggregated.hook_results
        print(result.blocked, ran.reran, flush=True)
    def fork(hooks):
        if os.fork() == 0:
            asyncio.run(ask(hooks))
            asyncio.run(hooks.dispose())
            os._exit(0)
        os.wait()
    async def main():
        settings = Settings.from_mapping(json.load(open("settings.json")))
        async with HookSystem(Config("s", ".", settings)) as hooks:
            await ask(hooks)
            await asyncio.to_thread(fork, hooks)
            await ask(hooks)
    asyncio.run(main())
    """
    hook: dict[str, object] = {
        "type": "worker",
        "command": f"{sys.executable} answers.py",
        "timeout": 10_000,
    }
    with host.start(hook, body) as running:
        assert running.stdout is not None
        assert running.stdout.read().splitlines() == ["True False"] * 3
    assert await none_left(host.mark)


async def test_watcher_ends_with_dispose_and_leaves_no_child(
    workshop: Workshop,
) -> None:
    watcher.stop()
    before = children()
    settings = workshop.settings("BeforeTool", workshop.runs("true"))
    for _ in range(2):
        async with HookSystem(workshop.config(settings)) as hooks:
            await hooks.event_handler.fire_before_tool_event("x", {})
            await hooks.event_handler.fire_before_tool_event("x", {})
            new = set(children()) - set(before)
            assert [is_watcher(pid) for pid in new] == [True]
        assert children() == before


async def test_no_watcher_without_a_process(workshop: Workshop) -> None:
    """protocol.md#planning: no hook, no process."""
    watcher.stop()
    before = children()
    settings = workshop.settings("BeforeTool", workshop.runs("true"), matcher="other")
    async with HookSystem(workshop.config(settings)) as hooks:
        await hooks.event_handler.fire_before_tool_event("x", {})
        assert children() == before


async def test_watcher_that_was_killed_is_replaced(workshop: Workshop) -> None:
    watcher.stop()
    before = set(children())
    settings = workshop.settings("BeforeTool", workshop.runs("true"))
    async with HookSystem(workshop.config(settings)) as hooks:
        await hooks.event_handler.fire_before_tool_event("x", {})
        (first,) = set(children()) - before
        os.kill(first, signal.SIGKILL)
        while state(first) != "Z":  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await hooks.event_handler.fire_before_tool_event("x", {})
        (second,) = set(children()) - before
        assert second != first
        assert is_watcher(second)


async def test_watcher_that_could_not_start_is_tried_again(workshop: Workshop) -> None:
    """Too few descriptors for a moment must not end the protection for good."""
    watcher.stop()
    before = set(children())
    settings = workshop.settings("BeforeTool", workshop.runs("true"))
    async with HookSystem(workshop.config(settings)) as hooks:
        for room in range(12):
            with descriptors_left(room):
                await hooks.event_handler.fire_before_tool_event("x", {})
        await hooks.event_handler.fire_before_tool_event("x", {})
        (shell,) = set(children()) - before
        assert is_watcher(shell)
    assert set(children()) == before


async def test_child_left_on_purpose_outlives_its_host(host: Host) -> None:
    """protocol.md#process: after a normal exit of the hook nothing is hunted."""
    hook = host.hook("sleep 300 >/dev/null 2>&1 & echo $! > left; exit 0")
    with host.start(hook, "asyncio.run(fire())") as running:
        assert running.wait() == 0
    left = int(host.folder.joinpath("left").read_text())
    os.kill(left, signal.SIGKILL)  # raises if it is gone
