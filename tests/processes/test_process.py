"""protocol.md#process: time, and what is left behind. Named after the hazards.

The guards against hanging are generous: what is tested is that an answer comes, what
it says, and that nothing of the group lives on.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hookline.processes.process import ProcessOutcome, run_process
from hookline.processes.spawn import ProcessSpec
from hookline.processes.watcher import watcher
from tests.support.processes import descriptors_left
from tests.support.workshop import Workshop


def spec(command: str, folder: Path, **more: object) -> ProcessSpec:
    bounds = {"timeout_s": 30.0, "max_output_bytes": 1 << 20, "stdin": b"{}"} | more
    return ProcessSpec(
        argv=("/bin/bash", "-c", command),
        cwd=str(folder),
        env=dict(os.environ),
        **bounds,  # type: ignore[arg-type]  # a dict of keywords
    )


def group_members(marker: str) -> list[str]:
    """Living processes that have the marker on their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if marker.encode() in words and state not in "ZX":
            found.append(pid)
    return found


def own_children() -> list[str]:
    me = str(os.getpid())
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == me:
            found.append(pid)
    return found


@pytest.fixture(autouse=True)
async def nothing_leaks() -> AsyncIterator[None]:
    watcher.stop()
    gc.collect()  # what other tests left open must not be closed meanwhile
    children, descriptors = set(own_children()), len(os.listdir("/proc/self/fd"))
    yield
    watcher.stop()
    assert set(own_children()) <= children
    assert len(os.listdir("/proc/self/fd")) == descriptors


async def test_timeout_gives_the_group_a_chance_to_end_itself(tmp_path: Path) -> None:
    tidy = "trap 'echo tidied; exit 3' TERM; sleep 60 & wait"
    outcome = await run_process(spec(tidy, tmp_path, timeout_s=0.3))
    assert outcome.timed_out
    assert outcome.stdout == b"tidied\n"


async def test_timeout_kills_a_hook_that_ignores_sigterm(tmp_path: Path) -> None:
    stubborn = "trap '' TERM; while :; do sleep 0.05; done # stubborn-hook-marker"
    outcome = await run_process(spec(stubborn, tmp_path, timeout_s=0.2, grace_s=0.3))
    assert (outcome.timed_out, outcome.exit_code) == (True, -9)
    assert group_members("stubborn-hook-marker") == []


async def test_timeout_leaves_no_child_that_ignores_sigterm_behind(
    tmp_path: Path,
) -> None:
    """The leader dies at SIGTERM, its child does not."""
    child = "bash -c 'trap \"\" TERM; while :; do sleep 0.05; done # orphan-marker'"
    outcome = await run_process(
        spec(f"{child} & sleep 60", tmp_path, timeout_s=0.3, grace_s=0.3)
    )
    assert outcome.timed_out
    assert group_members("orphan-marker") == []


async def test_timeout_lets_a_child_use_its_grace(tmp_path: Path) -> None:
    """SIGKILL comes after the grace, also when the leader went at once."""
    child = "bash -c 'trap \"sleep 0.5; touch cleaned; exit\" TERM; sleep 60 & wait'"
    outcome = await run_process(
        spec(f"{child} & sleep 60", tmp_path, timeout_s=0.3, grace_s=20.0)
    )
    assert outcome.timed_out
    assert (tmp_path / "cleaned").exists()


async def test_grandchild_holding_stdout_open_does_not_hold_up_the_answer(
    workshop: Workshop,
) -> None:
    hook = workshop.runs("""sleep 60 & echo '{"decision":"block","reason":"r"}'""")
    started = time.monotonic()
    result = await workshop.fire("BeforeTool", hook)
    assert (result.blocked, result.reason) == (True, "r")
    assert time.monotonic() - started < 30


async def test_child_left_running_on_purpose_is_not_killed(tmp_path: Path) -> None:
    later = "(sleep 0.4; touch later) >/dev/null 2>&1 & exit 0"
    outcome = await run_process(spec(later, tmp_path))
    assert outcome.exit_code == 0
    for _ in range(600):
        if (tmp_path / "later").exists():
            break
        await asyncio.sleep(0.05)
    assert (tmp_path / "later").exists()


async def test_hook_that_never_reads_a_big_stdin_times_out_cleanly(
    tmp_path: Path,
) -> None:
    outcome = await run_process(
        spec("sleep 60", tmp_path, timeout_s=0.3, stdin=b"x" * 5_000_000)
    )
    assert outcome.timed_out


async def test_endless_output_is_bounded_and_marked(tmp_path: Path) -> None:
    outcome = await run_process(
        spec("yes; true", tmp_path, timeout_s=0.5, max_output_bytes=10_000)
    )
    assert (outcome.timed_out, outcome.stdout_truncated) == (True, True)
    assert len(outcome.stdout) == 10_000


async def test_output_of_exactly_the_limit_is_not_truncated(tmp_path: Path) -> None:
    outcome = await run_process(
        spec("head -c 5000 /dev/zero", tmp_path, max_output_bytes=5000)
    )
    assert (len(outcome.stdout), outcome.stdout_truncated) == (5000, False)


async def test_cancellation_kills_the_whole_group(tmp_path: Path) -> None:
    forker = (
        "sleep 60 & bash -c 'trap \"\" TERM; sleep 60' & touch up; wait # cancel-me"
    )
    task = asyncio.create_task(run_process(spec(forker, tmp_path)))
    for _ in range(600):
        if (tmp_path / "up").exists():
            break
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert group_members("cancel-me") == []


async def test_cancellation_while_output_is_drained_leaks_nothing(
    tmp_path: Path,
) -> None:
    task = asyncio.create_task(
        run_process(spec("sleep 0.6 & touch exited; exit 0", tmp_path))
    )
    for _ in range(600):
        if (tmp_path / "exited").exists():
            break
        await asyncio.sleep(0.01)
    task.cancel()
    try:
        outcome = await task
    except asyncio.CancelledError:
        outcome = None
    assert outcome is None or outcome.exit_code == 0


async def test_a_host_that_ignores_sigchld_gets_no_exit_code(
    tmp_path: Path,
) -> None:
    """The kernel reaps the child itself then, and its exit status is lost."""
    import signal

    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        outcome = await run_process(spec("exit 0", tmp_path))
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert outcome.exit_code is None


async def test_without_a_pidfd_the_end_is_found_by_polling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS."""
    monkeypatch.delattr(os, "pidfd_open")
    outcome = await run_process(spec("sleep 0.1; echo out; exit 5", tmp_path))
    assert (outcome.exit_code, outcome.stdout) == (5, b"out\n")
    outcome = await run_process(spec("sleep 60", tmp_path, timeout_s=0.2))
    assert outcome.timed_out


async def test_descriptors_running_out_is_an_outcome(tmp_path: Path) -> None:
    outcomes: list[ProcessOutcome] = []
    for room in range(9):
        with descriptors_left(room):
            outcomes.append(await run_process(spec("exit 0", tmp_path)))
    assert "could not start" in (outcomes[0].spawn_error or "")
    assert all(o.exit_code == 0 or o.spawn_error for o in outcomes)


async def test_many_at_once_all_come_back(tmp_path: Path) -> None:
    specs = [spec(f"echo {n}; exit {n % 3}", tmp_path) for n in range(60)]
    outcomes = await asyncio.gather(*map(run_process, specs))
    assert [o.exit_code for o in outcomes] == [n % 3 for n in range(60)]
    assert [int(o.stdout) for o in outcomes] == list(range(60))


FORK = """
import asyncio, os
from hookline.processes.process import ProcessSlots
slots = ProcessSlots(1)
asyncio.run(slots.acquire())
if os.fork() == 0:
    asyncio.run(asyncio.wait_for(slots.acquire(), 10))
    os._exit(0)
raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_fork_does_not_wait_for_slots_that_its_parent_has_taken() -> None:
    """Issue 12.16: it would wait forever, since nobody gives them back in it."""
    done = subprocess.run([sys.executable, "-c", FORK], check=False)
    assert done.returncode == 0
