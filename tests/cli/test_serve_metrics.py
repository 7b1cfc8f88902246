"""``hookline serve --metrics`` with a real server, real workers and HTTP (issue 16)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hookline.cli.main import main
from tests.support.nats import NatsServer

MAIN = (sys.executable, "-m", "hookline")
EVENT = {"tool_name": "write_file", "tool_input": {"path": "a"}}
WORKER = """\
import os
from hookline.script import run
with open("worker.pid", "w") as file:
    file.write(str(os.getpid()))
run(lambda event: None)
"""


class Serving:
    """A worker of the bus with a port for metrics."""

    def __init__(
        self, server: NatsServer, folder: Path, *hooks: Any, option: str = "-v"
    ) -> None:
        self.folder = folder
        self.url = server.url.replace("//", "//me:hunter2@")
        settings = folder / "settings.json"
        groups = [{"hooks": [hook]} for hook in hooks]
        settings.write_text(json.dumps({"hooks": {"BeforeTool": groups}}))
        self.process = subprocess.Popen(
            [
                *(*MAIN, "serve", "--bus", self.url, "--settings", str(settings)),
                *("--cwd", str(folder), "--metrics", "0", option),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(folder)},
        )
        self.address = ""
        while "metrics on" not in self.address:
            self.address = opened(self.process.stderr).readline()
            assert self.address
        self.address = self.address.split()[-1].removesuffix("/metrics")
        if hooks:
            assert "ready" in opened(self.process.stdout).readline()

    def ask(self, path: str) -> tuple[int, str]:
        try:
            with urlopen(f"{self.address}{path}") as response:
                return response.status, response.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def ready(self) -> tuple[int, dict[str, Any]]:
        while True:  # on a busy machine the loop may be late
            status, body = self.ask("/readyz")
            checks = json.loads(body)["checks"]
            if checks["event_loop"]["ok"]:
                return status, checks

    def wait_ready(self, expected: int) -> dict[str, Any]:
        wait_until(lambda: self.ready()[0] == expected)
        return self.ready()[1]

    def metric(self, name: str, **labels: str) -> float | None:
        text = ""
        while name != "event_loop_up" and "hookline_event_loop_up 1.0" not in text:
            text = self.ask("/metrics")[1]
        text = text or self.ask("/metrics")[1]
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if (sample.name, sample.labels) == (f"hookline_{name}", labels):
                    return float(sample.value)
        return None

    def request(self) -> subprocess.Popen[str]:
        event = self.folder / "event.json"
        event.write_text(json.dumps(EVENT))
        words = ("request", "BeforeTool", "--bus", self.url, "--input", str(event))
        null = subprocess.DEVNULL
        return subprocess.Popen([*MAIN, *words], stdout=null, stderr=null, text=True)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def opened(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.02)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServer]:
    folder = tmp_path / "nats"
    folder.mkdir()
    running = NatsServer(folder, "--user", "me", "--pass", "hunter2").start()
    yield running
    running.stop()


@pytest.fixture
def serve(own_server: NatsServer, tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    started: list[Serving] = []

    def start(*hooks: Any, option: str = "-v") -> Serving:
        started.append(Serving(own_server, tmp_path, *hooks, option=option))
        return started[-1]

    yield start
    for one in started:
        one.close()


def command(name: str, text: str) -> dict[str, Any]:
    return {"type": "command", "name": name, "command": text}


def test_figures_of_requests_and_readiness_without_credentials(
    serve: Callable[..., Serving], own_server: NatsServer
) -> None:
    serving = serve(command("block", "exit 2"), command("broken", "exit 1"))
    assert serving.ask("/healthz")[0] == 200
    assert serving.ready()[0] == 200
    assert serving.metric("hooks", state="enabled") == 2
    for _ in range(2):
        assert serving.request().wait() == 2
    labels = {"event": "BeforeTool", "verdict": "blocked"}
    assert serving.metric("events_total", **labels) == 2
    failed = {"hook": "broken", "type": "command", "cause": "crash"}
    assert serving.metric("hook_failures_total", **failed) == 2
    assert serving.metric("requests_in_flight") == 0
    loaded_at = serving.metric("settings_load_timestamp_seconds")
    assert loaded_at is not None
    assert abs(loaded_at - time.time()) < 3600
    for path in ("/metrics", "/readyz", "/healthz", "/hunter2"):
        body = serving.ask(path)[1]
        assert "hunter2" not in body
        assert "settings.json" not in body
    own_server.stop()
    checks = serving.wait_ready(503)
    assert "not connected" in checks["bus"]["message"]
    assert serving.metric("bus_connected") == 0
    assert serving.ask("/healthz")[0] == 200
    own_server.start()
    assert serving.wait_ready(200)["bus"]["ok"]
    assert serving.metric("bus_connected") == 1


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")
def test_readiness_follows_the_workers_of_hooks(
    serve: Callable[..., Serving], tmp_path: Path
) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    program = f"{sys.executable} worker.py"
    serving = serve({"type": "worker", "name": "guard", "command": program})
    pid_file = tmp_path / "worker.pid"
    wait_until(lambda: pid_file.exists() and bool(pid_file.read_text()))
    assert serving.ready()[0] == 200
    assert serving.metric("worker_processes") == 1
    (tmp_path / "worker.py").rename(tmp_path / "kept.py")
    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    checks = serving.wait_ready(503)
    assert "'guard'" in checks["workers"]["message"]
    assert serving.metric("workers_lost") == 1
    assert serving.metric("ready", check="workers") == 0
    (tmp_path / "kept.py").rename(tmp_path / "worker.py")
    assert serving.wait_ready(200)["workers"] == {"ok": True}
    assert serving.metric("worker_processes") == 1


def test_a_worker_that_finishes_its_requests_lives_but_is_not_ready(
    serve: Callable[..., Serving], tmp_path: Path
) -> None:
    hook = "touch started; until test -e gate; do sleep 0.02; done"
    serving = serve(command("slow", hook))
    request = serving.request()
    wait_until((tmp_path / "started").exists)
    assert serving.metric("requests_in_flight") == 1
    serving.process.terminate()
    assert "stopping" in serving.wait_ready(503)["bus"]["message"]
    assert serving.ask("/healthz")[0] == 200
    assert serving.metric("stopping") == 1
    (tmp_path / "gate").touch()
    assert request.wait() == 0
    assert serving.process.wait() == 0


def test_a_hook_that_blocks_the_loop_is_seen(
    serve: Callable[..., Serving], tmp_path: Path
) -> None:
    (tmp_path / "blocking.py").write_text(
        "import pathlib, time\n"
        "here = pathlib.Path(__file__).parent\n"
        "async def hook(event):\n"
        "    (here / 'started').touch()\n"
        "    while not (here / 'gate').exists():\n"
        "        time.sleep(0.02)\n"
    )
    serving = serve({"type": "python", "name": "slow", "function": "blocking:hook"})
    request = serving.request()
    wait_until((tmp_path / "started").exists)
    status, body = serving.ask("/healthz")
    assert status == 503
    assert "does not answer" in body
    assert serving.metric("event_loop_up") == 0
    (tmp_path / "gate").touch()
    assert request.wait() == 0
    assert serving.ask("/healthz")[0] == 200


def test_after_a_failed_reload_it_is_ready_with_the_previous_settings(
    serve: Callable[..., Serving], tmp_path: Path
) -> None:
    serving = serve(command("first", "true"))
    settings = tmp_path / "settings.json"
    settings.write_text("{ not JSON hunter2")
    wait_until(lambda: serving.metric("settings_reload_success") == 0)
    status, checks = serving.ready()
    assert status == 200
    assert "the last reload failed" in checks["settings"]["message"]
    assert "hunter2" not in serving.ask("/readyz")[1]
    assert serving.metric("hooks", state="enabled") == 1
    before = serving.metric("settings_load_timestamp_seconds")
    hooks = [command("first", "true"), command("second", "true")]
    text = json.dumps({"hooks": {"BeforeTool": [{"hooks": hooks}]}})
    settings.write_text(text)
    wait_until(lambda: serving.metric("hooks", state="enabled") == 2)
    wait_until(lambda: serving.metric("settings_reload_success") == 1)
    after = serving.metric("settings_load_timestamp_seconds")
    assert before is not None
    assert after is not None
    assert after > before
    assert serving.ready()[1]["settings"] == {"ok": True}


def test_a_worker_that_requires_hooks_is_not_ready_without_and_never_loses_all(
    serve: Callable[..., Serving], tmp_path: Path
) -> None:
    """An empty policy opens everything: it must not go unnoticed."""
    serving = serve(option="--require-hooks")
    checks = serving.wait_ready(503)
    assert "no hooks are configured" in checks["settings"]["message"]
    assert serving.request().wait() == 3  # it takes no requests
    settings = tmp_path / "settings.json"
    hook = {"type": "command", "command": "exit 2"}
    settings.write_text(json.dumps({"hooks": {"BeforeTool": [{"hooks": [hook]}]}}))
    serving.wait_ready(200)
    assert "serving 1 hook " in opened(serving.process.stdout).readline()
    settings.write_text("{}")
    wait_until(lambda: serving.metric("settings_reload_success") == 0)
    assert serving.ready()[0] == 200
    assert serving.metric("hooks", state="enabled") == 1
    assert serving.request().wait() == 2


def run(*words: str, code: str = "") -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", code] if code else [*MAIN]
    return subprocess.run(
        [*program, *words], capture_output=True, text=True, check=False
    )


def test_a_port_in_use_is_an_error(own_server: NatsServer, tmp_path: Path) -> None:
    words = ("serve", "--bus", own_server.url, "--cwd", str(tmp_path), "--metrics")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(*words, str(port))
    assert done.returncode == 1
    assert done.stderr == (
        f"hookline: --metrics 127.0.0.1:{port}: Address already in use\n"
    )


@pytest.mark.parametrize("given", ["x", "65536", "a:b", ":9100", "127.0.0.1:", "-1"])
def test_an_invalid_address_is_a_usage_error(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--bus", "nats://127.0.0.1:1", f"--metrics={given}"]) == 1
    said = capsys.readouterr().err
    assert "--metrics" in said
    assert "HOST:PORT" in said


def test_the_missing_package_is_named() -> None:
    code = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "from hookline.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    words = ("serve", "--bus", "nats://127.0.0.1:1", "--metrics", "0")
    done = run(*words, code=code)
    assert done.returncode == 1
    assert "install 'prometheus-client>=0.21'" in done.stderr
