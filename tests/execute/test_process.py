"""protocol.md#process: time, and what is left behind. Named after the hazards.

The guards against hanging are generous: what is tested is that an answer comes, what
it says, and that nothing of the group lives on.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import pty
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hookline import HookSystem
from hookline.execute.child import ProcessSpec
from hookline.execute.watchdog import watcher
from hookline.plan import HookCall
from hookline.protocol.results import FailureCause, HookExecutionResult
from tests.support.processes import (
    children,
    descriptors,
    descriptors_left,
    marked,
    until,
)
from tests.support.workspace import Workspace


@pytest.fixture(autouse=True)
async def nothing_leaks() -> AsyncIterator[None]:
    watcher.stop()
    processes, before = set(children()), Counter(descriptors())
    yield
    watcher.stop()
    assert set(children()) <= processes
    assert not Counter(descriptors()) - before


def marked_hook(workspace: Workspace, command: str, **more: Any) -> dict[str, Any]:
    """A hook whose processes can be found by their environment."""
    return workspace.runs(command, env={"MARK": str(workspace.folder)}, **more)


def left_of(workspace: Workspace) -> list[int]:
    return marked(f"MARK={workspace.folder}")


async def run(workspace: Workspace, hook: dict[str, Any]) -> HookExecutionResult:
    result = await workspace.fire("BeforeTool", hook)
    [ran] = result.aggregated.hook_results
    return ran


async def test_timeout_gives_the_group_a_chance_to_end_itself(
    workspace: Workspace,
) -> None:
    """SIGTERM first: to the leader, and to a child whose leader went at once."""
    tidy = "trap 'echo tidied; exit 3' TERM; sleep 60 & wait"
    ran = await run(workspace, marked_hook(workspace, tidy, timeout=300))
    assert (ran.timed_out, ran.stdout, ran.exit_code) == (True, "tidied", 3)
    child = "bash -c 'trap \"sleep 0.5; touch cleaned; exit\" TERM; sleep 60 & wait'"
    hook = marked_hook(workspace, f"{child} & sleep 60", timeout=300)
    assert (await run(workspace, hook)).timed_out
    assert workspace.ran("cleaned")
    assert left_of(workspace) == []


async def test_timeout_kills_what_ignores_sigterm(workspace: Workspace) -> None:
    """The leader, and a child whose leader went at once."""
    deaf = "trap '' TERM; while :; do sleep 0.05; done"
    child = "bash -c 'trap \"\" TERM; while :; do sleep 0.05; done' & sleep 60"
    hooks = [marked_hook(workspace, command, timeout=300) for command in (deaf, child)]
    result = await workspace.fire("BeforeTool", *hooks)
    ended = [(ran.timed_out, ran.exit_code) for ran in result.aggregated.hook_results]
    assert ended == [(True, -signal.SIGKILL), (True, -signal.SIGTERM)]
    assert left_of(workspace) == []


async def test_child_left_running_on_purpose_is_not_killed(
    workspace: Workspace,
) -> None:
    later = "(sleep 0.3; touch later) >/dev/null 2>&1 & exit 0"
    assert (await run(workspace, workspace.runs(later))).exit_code == 0
    await until(str(workspace.folder / "later"))


@contextmanager
def sigchld_ignored() -> Iterator[None]:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, before)


async def test_host_that_ignores_sigchld_gets_no_exit_code(
    workspace: Workspace,
) -> None:
    """The kernel reaps the child itself then, and its exit status is lost."""
    with sigchld_ignored():
        ran = await run(workspace, workspace.runs("echo no >&2; exit 2"))
    assert (ran.exit_code, ran.cause) == (None, FailureCause.CRASH)
    assert ran.error == "ended, but another part of the host took its exit status"


async def test_without_a_pidfd_the_end_is_found_by_polling(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS."""
    monkeypatch.delattr(os, "pidfd_open")
    ran = await run(workspace, workspace.runs("sleep 0.1; echo out; exit 5"))
    assert (ran.exit_code, ran.stdout) == (5, "out")
    assert (await run(workspace, workspace.runs("sleep 60", timeout=200))).timed_out


async def test_descriptors_running_out_is_an_outcome(workspace: Workspace) -> None:
    """At whatever step of the start, and the hook's policy applies."""
    closing = workspace.runs("exit 0", onError="block")
    settings = workspace.settings("BeforeTool", closing)
    errors = []
    async with HookSystem(workspace.config(settings)) as hooks:
        for room in range(9):
            with descriptors_left(room):
                result = await hooks.event_handler.fire_before_tool_event("x", {})
            [ran] = result.aggregated.hook_results
            failed = (FailureCause.SPAWN, True)
            assert (ran.cause, result.blocked) in (failed, (None, False))
            errors.append(ran.error)
    assert "could not start" in (errors[0] or "")
    assert all(error is None or "could not start" in error for error in errors)


async def test_many_at_once_all_come_back(workspace: Workspace) -> None:
    command = 'read line; echo "${line##*number}" | tr -dc 0-9 >&2; exit 2'
    settings = workspace.settings("BeforeTool", workspace.runs(command))
    async with HookSystem(workspace.config(settings)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        events = [fire("x", {"number": number}) for number in range(60)]
        results = await asyncio.gather(*events)
    assert [result.reason for result in results] == [str(n) for n in range(60)]


async def test_cancellation_while_output_is_drained_leaks_nothing(
    workspace: Workspace,
) -> None:
    hook = workspace.runs("sleep 0.6 & touch exited; exit 0")
    task = asyncio.create_task(workspace.fire("BeforeTool", hook))
    await until(str(workspace.folder / "exited"))
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled() or not task.result().blocked


LOOK = """
grep SigIgn /proc/self/status | cut -f2 >&2
cut -d ' ' -f 5 /proc/$$/stat >&2
echo $$ >&2
cd /proc/self/fd; echo * >&2
exit 2
"""


async def test_process_gets_three_descriptors_a_group_and_default_signals(
    workspace: Workspace,
) -> None:
    """protocol.md#process: no descriptor of the host's, no terminal, one group."""
    assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN
    leaky = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(leaky, True)
    try:
        result = await workspace.fire("BeforeTool", workspace.runs(LOOK))
    finally:
        os.close(leaky)
    ignored, group, pid, opened = (result.reason or "").splitlines()
    assert not int(ignored, 16) & 1 << signal.SIGPIPE - 1
    assert group == pid
    assert opened == "0 1 2 3"  # and the one that lists them


HOST = """
import asyncio, sys
from hookline import Config, HookSystem, Settings
open("/dev/tty").close()
hook = {"type": "command", "command": "(: < /dev/tty) 2>/dev/null && exit 2; exit 0"}
settings = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": [hook]}]}})
async def fire():
    async with HookSystem(Config("s", "/", settings)) as hooks:
        return await hooks.event_handler.fire_before_tool_event("t", {})
sys.exit(7 if asyncio.run(fire()).blocked else 0)
"""


def test_process_has_no_terminal_though_its_host_has_one() -> None:
    """protocol.md#process: the behaviour is the same with and without a TTY."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", HOST])
    try:
        status = os.waitpid(pid, 0)[1]
    finally:
        os.close(master)
    assert os.waitstatus_to_exitcode(status) == 0


class LoopThatCannotWatch(asyncio.SelectorEventLoop):
    """An event loop whose selector has no room for the end of a process."""

    # The base class ties the arguments to the callback's, which no test needs.
    def add_reader(  # type: ignore[override]
        self, fd: Any, callback: Any, *args: Any
    ) -> None:
        if "[pidfd]" in str(Path(f"/proc/self/fd/{fd}").readlink()):
            raise OSError(errno.ENOSPC, "no watch left")
        super().add_reader(fd, callback, *args)


@pytest.mark.parametrize("kind", ["command", "worker"])
def test_process_that_cannot_be_watched_is_a_failure_and_leaks_nothing(
    workspace: Workspace, kind: str
) -> None:
    hook = {**marked_hook(workspace, "sleep 60; true"), "type": kind}
    with asyncio.Runner(loop_factory=LoopThatCannotWatch) as runner:
        before = len(os.listdir("/proc/self/fd"))
        ran = runner.run(run(workspace, hook))
        watcher.stop()
        assert len(os.listdir("/proc/self/fd")) == before
    assert (ran.cause, ran.exit_code) == (FailureCause.SPAWN, None)
    assert "no watch left" in (ran.error or "")
    assert left_of(workspace) == []


FORK = """
import asyncio, os
from hookline.execute.runtime import Runtimes
runtimes = Runtimes(1)
async def take_slot():
    await asyncio.wait_for(runtimes.here().slots.acquire(), 10)
loop = asyncio.new_event_loop()
loop.run_until_complete(take_slot())
if os.fork() == 0:
    loop.run_until_complete(take_slot())
    os._exit(0)
raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_fork_does_not_wait_for_slots_that_its_parent_has_taken(tmp_path: Path) -> None:
    """It would wait forever, since nobody gives them back in it.

    By the slots themselves: a hook that runs at the moment of a fork is rare.
    """
    done = subprocess.run([sys.executable, "-c", FORK], check=False, cwd=tmp_path)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "hook",
    [
        {"type": "command", "name": "prints", "command": "echo out; echo err >&2"},
        {
            "type": "rule",
            "name": "misses a field",
            "when": "tool_input.a.glob('**/b') || tool_input.c.contains('d')",
            "then": {"decision": "deny"},
        },
    ],
    ids=lambda hook: str(hook["type"]),
)
async def test_an_event_is_given_back_without_a_collection(
    workspace: Workspace, hook: dict[str, Any]
) -> None:
    """A few large ones would else fill the memory of the resident helper."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        await run(workspace, hook)
        gc.collect()
        kept = [each for each in gc.garbage if isinstance(each, HookCall | ProcessSpec)]
    finally:
        gc.set_debug(0)
        gc.enable()
        gc.garbage.clear()
    assert kept == []
