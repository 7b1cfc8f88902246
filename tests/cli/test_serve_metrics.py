"""``hookline serve --metrics`` with a real server, real workers and HTTP."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from tests.support.command_project import command_hook
from tests.support.commandline import run_command
from tests.support.journals import wait_until
from tests.support.nats import NatsServer
from tests.support.serving import Serving, opened

METRICS = ("-v", "--metrics", "0")
WORKER = """\
import os
from hookline.script import run
with open("worker.pid", "w") as file:
    file.write(str(os.getpid()))
run(lambda event: None)
"""
BLOCKING = """\
import pathlib, time
here = pathlib.Path(__file__).parent
async def hook(event):
    (here / 'started').touch()
    while not (here / 'gate').exists():
        time.sleep(0.02)
"""


def test_figures_of_requests_and_readiness_without_credentials(
    logged_in: Serving, guarded_server: NatsServer
) -> None:
    logged_in.write(command_hook("exit 2", "block"), command_hook("exit 1", "broken"))
    logged_in.start(*METRICS)
    assert logged_in.get("/healthz")[0] == 200
    assert logged_in.ready()[0] == 200
    assert logged_in.metric("hooks", state="enabled") == 2
    for _ in range(2):
        assert logged_in.answer()[0] == 2
    labels = {"event": "BeforeTool", "verdict": "blocked"}
    assert logged_in.metric("events_total", **labels) == 2
    failed = {"hook": "broken", "type": "command", "cause": "crash"}
    assert logged_in.metric("hook_failures_total", **failed) == 2
    assert logged_in.metric("requests_in_flight") == 0
    loaded_at = logged_in.metric("settings_load_timestamp_seconds")
    assert loaded_at is not None
    assert abs(loaded_at - time.time()) < 3600
    for path in ("/metrics", "/readyz", "/healthz", "/hunter2"):
        body = logged_in.get(path)[1]
        assert "hunter2" not in body
        assert "settings.json" not in body
    guarded_server.stop()
    checks = logged_in.until_ready(503)
    assert "not connected" in checks["bus"]["message"]
    assert logged_in.metric("bus_connected") == 0
    assert logged_in.get("/healthz")[0] == 200
    guarded_server.start()
    assert logged_in.until_ready(200)["bus"]["ok"]
    assert logged_in.metric("bus_connected") == 1


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")
def test_readiness_follows_the_workers_of_hooks(serving: Serving) -> None:
    script = serving.folder / "worker.py"
    script.write_text(WORKER)
    program = f"{sys.executable} worker.py"
    serving.write({"type": "worker", "name": "guard", "command": program})
    serving.start(*METRICS)
    pid_file = serving.folder / "worker.pid"
    wait_until(lambda: pid_file.exists() and pid_file.read_text())
    assert serving.ready()[0] == 200
    assert serving.metric("worker_processes") == 1
    elsewhere = script.rename(serving.folder / "elsewhere.py")
    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    checks = serving.until_ready(503)
    assert "'guard'" in checks["workers"]["message"]
    assert serving.metric("workers_lost") == 1
    assert serving.metric("ready", check="workers") == 0
    elsewhere.rename(script)
    assert serving.until_ready(200)["workers"] == {"ok": True}
    assert serving.metric("worker_processes") == 1


def test_worker_that_finishes_its_requests_lives_but_is_not_ready(
    serving: Serving,
) -> None:
    hook = "touch started; until test -e gate; do sleep 0.02; done"
    serving.write(command_hook(hook, "slow"))
    serving.start(*METRICS)
    request = serving.request()
    wait_until((serving.folder / "started").exists)
    assert serving.metric("requests_in_flight") == 1
    serving.process.terminate()
    assert "stopping" in serving.until_ready(503)["bus"]["message"]
    assert serving.get("/healthz")[0] == 200
    assert serving.metric("stopping") == 1
    (serving.folder / "gate").touch()
    assert request.wait() == 0
    assert serving.process.wait() == 0


def test_hook_that_blocks_the_loop_is_seen(serving: Serving) -> None:
    (serving.folder / "blocking_in_serve.py").write_text(BLOCKING)
    function = "blocking_in_serve:hook"
    serving.write({"type": "python", "name": "slow", "function": function})
    serving.start(*METRICS)
    request = serving.request()
    wait_until((serving.folder / "started").exists)
    status, body = serving.get("/healthz")
    assert status == 503
    assert "does not answer" in body
    assert serving.metric("event_loop_up") == 0
    (serving.folder / "gate").touch()
    assert request.wait() == 0
    assert serving.get("/healthz")[0] == 200


def test_after_a_failed_reload_it_is_ready_with_the_previous_settings(
    serving: Serving,
) -> None:
    serving.write(command_hook("true", "first"))
    serving.start(*METRICS)
    serving.settings_file.write_text("{ not JSON hunter2")
    wait_until(lambda: serving.metric("settings_reload_success") == 0)
    status, checks = serving.ready()
    assert status == 200
    assert "the last reload failed" in checks["settings"]["message"]
    assert "hunter2" not in serving.get("/readyz")[1]
    assert serving.metric("hooks", state="enabled") == 1
    before = serving.metric("settings_load_timestamp_seconds")
    serving.write(command_hook("true", "first"), command_hook("true", "second"))
    wait_until(lambda: serving.metric("hooks", state="enabled") == 2)
    wait_until(lambda: serving.metric("settings_reload_success") == 1)
    after = serving.metric("settings_load_timestamp_seconds")
    assert before is not None
    assert after is not None
    assert after > before
    assert serving.ready()[1]["settings"] == {"ok": True}


def test_worker_that_requires_hooks_is_not_ready_without_and_never_loses_all(
    serving: Serving,
) -> None:
    """An empty policy opens everything: it must not go unnoticed."""
    serving.write()
    serving.start("--require-hooks", *METRICS, waits_for_hooks=True)
    checks = serving.until_ready(503)
    assert "no hooks are configured" in checks["settings"]["message"]
    assert serving.answer()[0] == 3  # it takes no requests
    serving.write(command_hook("exit 2"))
    serving.until_ready(200)
    assert "serving 1 hook " in opened(serving.process.stdout).readline()
    serving.settings_file.write_text("{}")
    wait_until(lambda: serving.metric("settings_reload_success") == 0)
    assert serving.ready()[0] == 200
    assert serving.metric("hooks", state="enabled") == 1
    assert serving.answer()[0] == 2


def test_port_in_use_is_an_error(server: NatsServer, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ("--bus", server.url, "--cwd", str(tmp_path), "--metrics", port)
        ended = run_command("serve", *words)
    assert ended.returncode == 1
    assert ended.stderr == (
        f"hookline: --metrics 127.0.0.1:{port}: Address already in use\n"
    )
