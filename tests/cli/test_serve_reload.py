"""``hookline serve`` whose settings change while it runs."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.support.command_project import command_hook
from tests.support.processes import until
from tests.support.serving import WAIT_S, Serving

WORKER = """
import os
from hookline.script import block, run
run(lambda event: block(str(os.getpid())))
"""
SLOW = command_hook(
    "touch started; while [ ! -e go ]; do sleep 0.01; done; echo old >&2; exit 2"
)


def rule(reason: str) -> dict[str, Any]:
    return {"type": "rule", "name": "r", "when": "true", "description": reason}


async def until_reason(serving: Serving, reason: str | None) -> None:
    deadline = time.monotonic() + WAIT_S
    while await serving.reason() != reason:
        assert time.monotonic() < deadline


async def test_changed_settings_apply_unless_they_have_errors(
    serving: Serving,
) -> None:
    serving.write(rule("one"))
    serving.start()
    assert await serving.reason() == "one"
    serving.write(rule("two"), rule("two"))
    await until_reason(serving, "two")
    assert serving.line() == "hookline: settings reloaded: 2 hooks\n"
    serving.settings_file.write_text("{ no")
    problem = f"{serving.settings_file}:1:3: is not valid JSON"
    assert serving.line().startswith(
        f"hookline: changed settings are not used: {problem}"
    )
    assert await serving.reason() == "two"
    serving.write(rule("two"), enableHooks=False)
    await until_reason(serving, None)
    serving.write(rule("three"))
    await until_reason(serving, "three")
    status, log = serving.stop()
    assert status == 0
    assert log.count("settings reloaded") == 3


async def test_sighup_loads_the_settings_and_kills_nothing(serving: Serving) -> None:
    """SIGHUP killed ``serve`` and its hooks."""
    (serving.folder / "w.py").write_text(WORKER)
    worker = {"type": "worker", "name": "w", "command": f"{sys.executable} w.py"}
    serving.write(worker)
    serving.start()
    process = await serving.reason()
    assert process is not None
    serving.process.send_signal(signal.SIGHUP)
    assert serving.line() == "hookline: settings have not changed\n"
    assert await serving.reason() == process
    serving.write({**worker, "env": {"NEW": "1"}})
    serving.process.send_signal(signal.SIGHUP)
    assert serving.line() == "hookline: settings reloaded: 1 hook\n"
    assert await serving.reason() != process
    deadline = time.monotonic() + WAIT_S
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    assert serving.stop()[0] == 0


async def test_request_in_progress_is_answered_by_the_old_settings(
    serving: Serving,
) -> None:
    serving.write(SLOW)
    serving.start()
    slow = asyncio.create_task(serving.reason())
    await until(str(serving.folder / "started"))
    serving.write(rule("new"))
    serving.process.send_signal(signal.SIGHUP)
    assert "settings reloaded" in serving.line()
    assert await serving.reason() == "new"
    (serving.folder / "go").touch()
    assert await slow == "old"


async def test_sighup_while_it_stops_does_not_kill_hooks_that_finish(
    serving: Serving,
) -> None:
    serving.write(SLOW)
    serving.start("-v")
    slow = asyncio.create_task(serving.reason())
    await until(str(serving.folder / "started"))
    serving.process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(serving.until, "stopping")
    serving.process.send_signal(signal.SIGHUP)
    (serving.folder / "go").touch()
    assert await slow == "old"
    assert serving.process.wait(WAIT_S) == 0


async def test_closed_terminal_ends_it_and_hangup_alone_does_not(
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
