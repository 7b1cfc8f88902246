"""``hookline serve`` follows its settings without a restart (issue 16: reload)."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookline import HookBusClient, RemoteHooks
from hookline.bus.nats import NatsBus
from tests.support.nats import NatsServer
from tests.support.processes import until

WAIT_S = 60
WORKER = """
import os
from hookline.script import block, run
run(lambda event: block(str(os.getpid())))
"""


def rule(reason: str) -> dict[str, Any]:
    return {"type": "rule", "name": "r", "when": "true", "description": reason}


class Serving:
    """A ``hookline serve`` process, its settings file, and a client."""

    def __init__(self, server: NatsServer, prefix: str, folder: Path) -> None:
        self.server, self.prefix, self.folder = server, prefix, folder
        self.file = folder / "hooks.json"
        self.process: subprocess.Popen[str]
        self._started = False

    def write(self, *hooks: dict[str, Any], **more: Any) -> None:
        text = json.dumps({"hooks": {"BeforeTool": [{"hooks": list(hooks)}]}, **more})
        (self.folder / "new").write_text(text)
        (self.folder / "new").replace(self.file)

    def words(self) -> list[str]:
        return [
            *(sys.executable, "-m", "hookline.cli.main", "serve"),
            *("--bus", self.server.url, "--prefix", self.prefix),
            *("--settings", str(self.file), "--cwd", str(self.folder)),
        ]

    def start(self, *more: str) -> None:
        self.process = subprocess.Popen(
            [*self.words(), *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started = True
        assert self.process.stdout is not None
        assert "ready" in self.process.stdout.readline()

    def logged(self) -> str:
        """The next line of its log."""
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    async def reason(self) -> str | None:
        async with await NatsBus.connect(self.server.url, prefix=self.prefix) as bus:
            fired = await RemoteHooks(HookBusClient(bus)).fire_before_tool_event(
                "x", {}
            )
        return fired.reason

    async def until(self, reason: str | None) -> None:
        deadline = time.monotonic() + WAIT_S
        while await self.reason() != reason:
            assert time.monotonic() < deadline

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, errors

    def close(self) -> None:
        if self._started:
            self.process.kill()
            self.process.communicate()


@pytest.fixture
def serving(server: NatsServer, prefix: str, tmp_path: Path) -> Iterator[Serving]:
    found = Serving(server, prefix, tmp_path)
    yield found
    found.close()


async def test_changed_settings_apply_unless_they_have_errors(
    serving: Serving,
) -> None:
    serving.write(rule("one"))
    serving.start()
    assert await serving.reason() == "one"
    serving.write(rule("two"), rule("two"))
    await serving.until("two")
    assert serving.logged() == "hookline: settings reloaded: 2 hooks\n"
    serving.file.write_text("{ no")
    problem = f"{serving.file}:1:3: is not valid JSON"
    assert serving.logged().startswith(
        f"hookline: changed settings are not used: {problem}"
    )
    assert await serving.reason() == "two"
    serving.write(rule("two"), enableHooks=False)
    await serving.until(None)
    serving.write(rule("three"))
    await serving.until("three")
    status, errors = serving.stop()
    assert status == 0
    assert errors.count("settings reloaded") == 2


async def test_sighup_loads_the_settings_and_kills_nothing(serving: Serving) -> None:
    """Issue 16: SIGHUP killed ``serve`` and its hooks."""
    (serving.folder / "w.py").write_text(WORKER)
    worker = {"type": "worker", "name": "w", "command": f"{sys.executable} w.py"}
    serving.write(worker)
    serving.start()
    process = await serving.reason()
    assert process is not None
    serving.process.send_signal(signal.SIGHUP)
    assert serving.logged() == "hookline: settings have not changed\n"
    assert await serving.reason() == process
    serving.write({**worker, "env": {"NEW": "1"}})
    serving.process.send_signal(signal.SIGHUP)
    assert serving.logged() == "hookline: settings reloaded: 1 hook\n"
    assert await serving.reason() != process
    deadline = time.monotonic() + WAIT_S
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    assert serving.stop()[0] == 0


async def test_a_request_in_progress_is_answered_by_the_old_settings(
    serving: Serving,
) -> None:
    wait = "touch started; while [ ! -e go ]; do sleep 0.01; done; echo old >&2; exit 2"
    serving.write({"type": "command", "name": "slow", "command": wait})
    serving.start()
    slow = asyncio.create_task(serving.reason())
    await until(str(serving.folder / "started"))
    serving.write(rule("new"))
    serving.process.send_signal(signal.SIGHUP)
    assert "settings reloaded" in serving.logged()
    assert await serving.reason() == "new"
    (serving.folder / "go").touch()
    assert await slow == "old"


async def test_sighup_while_it_stops_does_not_kill_hooks_that_finish(
    serving: Serving,
) -> None:
    wait = "touch started; while [ ! -e go ]; do sleep 0.01; done; echo old >&2; exit 2"
    serving.write({"type": "command", "name": "slow", "command": wait})
    serving.start("-v")
    slow = asyncio.create_task(serving.reason())
    await until(str(serving.folder / "started"))
    serving.process.send_signal(signal.SIGTERM)
    while "stopping" not in await asyncio.to_thread(serving.logged):
        pass
    serving.process.send_signal(signal.SIGHUP)
    (serving.folder / "go").touch()
    assert await slow == "old"
    assert serving.process.wait(WAIT_S) == 0


async def test_a_closed_terminal_ends_it_and_hangup_alone_does_not(
    serving: Serving,
) -> None:
    serving.write(rule("no"))
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, serving.words())
    try:
        await asyncio.to_thread(read_until, terminal, b"ready")
        os.kill(child, signal.SIGHUP)
        await asyncio.to_thread(read_until, terminal, b"settings have not changed")
        assert await serving.reason() == "no"
    finally:
        os.close(terminal)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def read_until(terminal: int, wanted: bytes) -> None:
    shown = b""
    while wanted not in shown:
        shown += os.read(terminal, 65536)
