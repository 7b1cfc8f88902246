"""``hookline serve`` that signals end: finished work, or nothing left."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_project import command_hook
from tests.support.processes import STUBBORN, WORKER, marked, none_left, until
from tests.support.serving import Serving

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="looks into /proc"
)


async def start_with_a_request(serving: Serving, hook: dict[str, Any]) -> str:
    """A worker whose hook is running; the mark of the processes that it starts."""
    serving.write(hook)
    serving.start("-v", SERVE_TEST=str(serving.folder))
    serving.request()
    await until(str(serving.folder / "started"))
    return f"SERVE_TEST={serving.folder}"


AT_ONCE = [
    (signal.SIGKILL,),
    (signal.SIGINT, signal.SIGTERM),
    (signal.SIGTERM, signal.SIGINT),
    (signal.SIGTERM, signal.SIGTERM),
    (signal.SIGINT, signal.SIGINT),
]


@pytest.mark.parametrize(
    "numbers", AT_ONCE, ids=lambda numbers: "-".join(n.name for n in numbers)
)
async def test_hooks_end_with_a_worker_that_ends_at_once(
    serving: Serving, numbers: tuple[signal.Signals, ...]
) -> None:
    mark = await start_with_a_request(
        serving, command_hook(STUBBORN["has deaf children"])
    )
    *first, last = numbers
    for number in first:
        serving.process.send_signal(number)
        serving.until("stopping")  # two signals of one kind at once would be one
    serving.process.send_signal(last)
    assert serving.process.wait() == -last
    assert await none_left(mark)


async def test_hanging_worker_hook_ends_with_the_server(serving: Serving) -> None:
    serving.folder.joinpath("worker.py").write_text(WORKER)
    hook = {"type": "worker", "command": f"{sys.executable} worker.py"}
    mark = await start_with_a_request(serving, hook)
    serving.process.kill()
    serving.process.wait()
    assert await none_left(mark)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_first_signal_waits_for_the_hook_but_not_beyond_its_deadline(
    serving: Serving, number: signal.Signals
) -> None:
    hook = command_hook(STUBBORN["sleeps"], timeout=1000)
    mark = await start_with_a_request(serving, hook)
    serving.process.send_signal(number)
    assert serving.process.wait() == 0
    assert marked(mark) == []


async def test_two_signals_at_the_same_time_end_it_at_once(serving: Serving) -> None:
    """Stopped, it gets both when it goes on."""
    mark = await start_with_a_request(
        serving, command_hook(STUBBORN["ignores SIGTERM"])
    )
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        serving.process.send_signal(number)
    assert serving.process.wait() == -signal.SIGTERM
    assert await none_left(mark)
