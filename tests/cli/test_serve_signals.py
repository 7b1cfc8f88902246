"""``hookline serve`` that signals end: finished work, or nothing left (issue 12.16)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.nats import NatsServer
from tests.support.processes import STUBBORN, WORKER, marked, none_left, until

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="looks into /proc"
)
MAIN = (sys.executable, "-m", "hookline.cli.main")


class Serving:
    """A worker of the bus with one hook, and one request that is in progress."""

    def __init__(self, server: NatsServer, prefix: str, folder: Path) -> None:
        self.folder = folder
        self.mark = f"SERVE_TEST={folder}"
        self._bus = ("--bus", server.url, "--prefix", prefix)
        self._started: list[subprocess.Popen[Any]] = []

    async def start(self, hook: dict[str, Any]) -> subprocess.Popen[Any]:
        settings = self.folder / "settings.json"
        settings.write_text(json.dumps({"hooks": {"BeforeTool": [{"hooks": [hook]}]}}))
        words = (*self._bus, "--settings", str(settings), "--cwd", str(self.folder))
        env = {**os.environ, "SERVE_TEST": str(self.folder)}
        pipe = subprocess.PIPE
        serving = self._run("serve", "-v", *words, env=env, stdout=pipe, stderr=pipe)
        assert serving.stdout is not None
        assert b"ready" in serving.stdout.readline()
        event = self.folder / "event.json"
        event.write_text('{"tool_name": "x", "tool_input": {}}')
        asked = ("request", "BeforeTool", *self._bus, "--input", str(event))
        null = subprocess.DEVNULL
        self._run(*asked, stdout=null, stderr=null)
        await until(str(self.folder / "started"))
        return serving

    def _run(self, *words: str, **more: Any) -> subprocess.Popen[Any]:
        process = subprocess.Popen([*MAIN, *words], **more)
        self._started.append(process)
        return process

    def close(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()


@pytest.fixture
def serving(server: NatsServer, prefix: str, tmp_path: Path) -> Iterator[Serving]:
    found = Serving(server, prefix, tmp_path)
    yield found
    found.close()


def command(text: str) -> dict[str, Any]:
    return {"type": "command", "command": text}


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
    running = await serving.start(command(STUBBORN["has deaf children"]))
    *first, last = numbers
    for number in first:
        running.send_signal(number)
        await_draining(running)
    running.send_signal(last)
    assert running.wait() == -last
    assert await none_left(serving.mark)


def await_draining(running: subprocess.Popen[Any]) -> None:
    """Two signals of one kind at the same time would be one."""
    assert running.stderr is not None
    while b"stopping" not in running.stderr.readline():
        pass


async def test_hanging_worker_hook_ends_with_the_server(serving: Serving) -> None:
    serving.folder.joinpath("worker.py").write_text(WORKER)
    hook = {"type": "worker", "command": f"{sys.executable} worker.py"}
    running = await serving.start(hook)
    running.kill()
    running.wait()
    assert await none_left(serving.mark)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_first_signal_waits_for_the_hook_but_not_beyond_its_deadline(
    serving: Serving, number: signal.Signals
) -> None:
    running = await serving.start(command(STUBBORN["sleeps"]) | {"timeout": 1000})
    running.send_signal(number)
    assert running.wait() == 0
    assert marked(serving.mark) == []


async def test_two_signals_at_the_same_time_end_it_at_once(serving: Serving) -> None:
    """Stopped, it gets both when it goes on."""
    running = await serving.start(command(STUBBORN["ignores SIGTERM"]))
    sent = (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT)
    for number in sent:
        running.send_signal(number)
    assert running.wait() == -signal.SIGTERM
    assert await none_left(serving.mark)
