"""``hookline serve`` and ``hookline request`` as processes."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.support.nats import ROOT, NatsServer

FLEET = ROOT / "examples" / "fleet"
MAIN = [sys.executable, "-m", "hookline.cli.main"]
SECRET = {"tool_name": "write_file", "tool_input": {"path": ".env"}}
HARMLESS = {"tool_name": "write_file", "tool_input": {"path": "a.py"}}


class Worker:
    """A ``hookline serve`` process that is ready."""

    def __init__(self, server: NatsServer, prefix: str, *words: str) -> None:
        self.process = subprocess.Popen(
            [*MAIN, "serve", "--bus", server.url, "--prefix", prefix, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.ready = _out(self.process.stdout).readline()

    def stop(self) -> tuple[int, str]:
        """Tell it to stop; returns the exit status and what it logged."""
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate()
        return self.process.returncode, errors

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def _out(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


@pytest.fixture
def worker(server: NatsServer, prefix: str) -> Iterator[Worker]:
    running = Worker(
        server,
        prefix,
        *("--cwd", str(FLEET), "--settings", str(FLEET / "settings.json"), "-v"),
    )
    yield running
    running.kill()


def hookline(*words: str, given: Any = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MAIN, *words],
        input=None if given is None else json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )


def request(
    server: NatsServer, prefix: str, given: Any, *words: str
) -> tuple[int, Any]:
    done = hookline(
        *("request", "BeforeTool", "--bus", server.url, "--prefix", prefix),
        *("--input", "-", "--json", *words),
        given=given,
    )
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    return done.returncode, json.loads(done.stdout)


def test_worker_gives_verdicts_and_logs_requests(
    worker: Worker, server: NatsServer, prefix: str
) -> None:
    assert "ready, serving 1 hook on" in worker.ready
    assert prefix in worker.ready

    status, response = request(server, prefix, SECRET)
    assert status == 2
    assert response["success"] is True
    assert response["processed"]["blocked"] is True
    assert response["processed"]["reason"] == "keep secrets out of .env files"

    status, response = request(server, prefix, HARMLESS)
    assert status == 0
    assert response["output"]["hookResults"][0]["name"] == "no-env-files"

    status, response = request(server, prefix, {"tool_name": 5})
    assert status == 3
    assert response["error"]["code"] == "validation_failure"

    status, log = worker.stop()
    assert status == 0
    lines = [line for line in log.splitlines() if "'BeforeTool'" in line]
    assert [line.split()[3] for line in lines] == ["blocked", "allowed", "failed:"]


def test_response_is_readable_json_without_the_option(
    worker: Worker, server: NatsServer, prefix: str
) -> None:
    done = hookline(
        *("request", "BeforeTool", "--bus", server.url, "--prefix", prefix),
        *("--input", "-"),
        given=SECRET,
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["processed"]["blocked"] is True
    assert done.stdout.count("\n") > 10


def test_stopping_worker_finishes_the_hook_in_progress(
    server: NatsServer, prefix: str, tmp_path: Path
) -> None:
    started, gate = tmp_path / "started", tmp_path / "gate"
    command = "touch started; until test -e gate; do sleep 0.02; done; echo no >&2"
    settings = tmp_path / "settings.json"
    hook = {"type": "command", "command": command + "; exit 2", "name": "slow"}
    settings.write_text(json.dumps({"hooks": {"BeforeTool": [{"hooks": [hook]}]}}))
    words = ("--cwd", str(tmp_path), "--settings", str(settings))
    worker = Worker(server, prefix, *words)
    with subprocess.Popen(
        [
            *MAIN,
            *("request", "BeforeTool", "--bus", server.url, "--prefix", prefix),
            *("--input", "-", "--json"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as asking:
        with _out(asking.stdin) as stdin:
            json.dump(SECRET, stdin)
        while not started.exists():
            time.sleep(0.01)
        worker.process.send_signal(signal.SIGTERM)
        while code_of_a_late_request(server, prefix) != "no_responders":
            pass
        assert worker.process.poll() is None
        gate.touch()
        answer = _out(asking.stdout).read()
    assert asking.returncode == 2
    assert json.loads(answer)["processed"]["reason"] == "no"
    assert worker.process.wait() == 0
    worker.kill()


def code_of_a_late_request(server: NatsServer, prefix: str) -> str:
    _, response = request(server, prefix, SECRET, "--timeout", "0.5")
    return str(response["error"]["code"])


def test_request_without_a_worker_has_no_verdict(
    server: NatsServer, prefix: str
) -> None:
    status, response = request(server, prefix, SECRET)
    assert status == 3
    assert response["success"] is False
    assert response["error"]["code"] == "no_responders"


def test_request_without_a_server_has_no_verdict() -> None:
    done = hookline(
        *("request", "BeforeTool", "--bus", "nats://127.0.0.1:1", "--json"),
        *("--timeout", "0.3"),
    )
    assert done.returncode == 3
    response = json.loads(done.stdout)
    assert response["error"]["code"] == "no_responders"
    assert "127.0.0.1:1" in response["error"]["message"]


def test_request_for_an_unknown_event_is_the_caller_s_mistake() -> None:
    """protocol.md#results."""
    done = hookline("request", "BeforeTol", "--bus", "nats://127.0.0.1:1", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "did you mean 'BeforeTool'?" in done.stderr


@pytest.mark.parametrize("command", [["serve"], ["request", "BeforeTool"]])
def test_missing_bus_is_explained(command: list[str]) -> None:
    done = hookline(*command)
    assert done.returncode == 1
    assert "--bus is required" in done.stderr
    assert "nats://localhost:4222" in done.stderr
    assert done.stdout == ""


def test_missing_package_is_explained() -> None:
    code = (
        "import sys; sys.modules['nats.aio.client'] = None;"
        "from hookline.cli.main import main;"
        "sys.exit(main(['serve', '--bus', 'nats://127.0.0.1:1']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "install 'nats-py[nkeys]>=2.9'" in done.stderr


def test_worker_with_a_wrong_password_fails(tmp_path: Path) -> None:
    guarded = NatsServer(tmp_path, "--user", "me", "--pass", "secret").start()
    password = tmp_path / "password"
    password.write_text("guessed\n")
    done = hookline(
        *("serve", "--bus", guarded.url, "--cwd", str(tmp_path)),
        *("--user", "me", "--password-file", str(password)),
    )
    guarded.stop()
    assert done.returncode == 1
    assert "authorization" in done.stderr.lower()
    assert "guessed" not in done.stderr


def test_worker_without_hooks_warns(
    server: NatsServer, prefix: str, tmp_path: Path
) -> None:
    """Issue 17: in a wrong directory it said yes to everything, and looked ready."""
    (tmp_path / "settings.json").write_text("{}")
    settings = ("--settings", str(tmp_path / "settings.json"))
    worker = Worker(server, prefix, "--cwd", str(tmp_path), *settings)
    assert "serving 0 hooks" in worker.ready
    status, errors = worker.stop()  # right after it was ready
    assert status == 0
    assert f"no hooks are configured for {tmp_path}, so every request" in errors


def test_missing_credentials_file_is_named(tmp_path: Path) -> None:
    """Issue 17: nats-py logs in without it, and the server refuses that."""
    missing = str(tmp_path / "no.creds")
    done = hookline("serve", "--bus", "nats://127.0.0.1:1", "--creds", missing)
    assert done.returncode == 1
    assert f"--creds {missing}: No such file or directory" in done.stderr


def test_worker_with_disabled_hooks_does_not_start(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text('{"enableHooks": false}')
    done = hookline("serve", "--bus", "nats://127.0.0.1:1", "--settings", str(settings))
    assert done.returncode == 1
    assert "enableHooks" in done.stderr


def test_concurrency_below_one_is_a_usage_error() -> None:
    done = hookline("serve", "--bus", "nats://127.0.0.1:1", "--concurrency", "0")
    assert done.returncode == 1
    assert "--concurrency" in done.stderr


def test_help_shows_options_and_exit_status() -> None:
    for command in ("serve", "request"):
        done = hookline(command, "--help")
        assert done.returncode == 0
        assert "--password-file" in done.stdout
        assert "exit status" in done.stdout


def test_example_runs_from_another_directory(
    server: NatsServer, prefix: str, tmp_path: Path
) -> None:
    copy = tmp_path / "a fleet"
    shutil.copytree(FLEET, copy)
    worker = Worker(
        server,
        prefix,
        *("--cwd", str(copy), "--settings", str(copy / "settings.json")),
    )
    try:
        assert request(server, prefix, SECRET)[0] == 2
    finally:
        worker.kill()
