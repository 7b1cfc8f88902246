"""The log of ``hookline serve``: connections, requests, and JSON (issue 16)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.support.nats import NatsServer

MAIN = (sys.executable, "-m", "hookline")
EVENT = {"tool_name": "write_file", "tool_input": {"path": ".env"}}
BLOCKS = {"type": "command", "command": "echo no >&2; exit 2", "name": "blocks"}
FAILS = {"type": "command", "command": "echo broken >&2; exit 1", "name": "fails"}
PRINTS = {"type": "python", "function": "prints:hook", "name": "prints"}


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServer]:
    """A server that this test may stop, with a login."""
    folder = tmp_path / "nats"
    folder.mkdir()
    login = ("--user", "me", "--pass", "hunter2")
    running = NatsServer(folder, *login).start()
    yield running
    running.stop()


class Serving:
    """A worker of the bus whose output is read line by line."""

    def __init__(self, server: NatsServer, folder: Path, *words: str) -> None:
        self.url = server.url.replace("//", "//me:hunter2@")
        hooks = [{"hooks": [BLOCKS, FAILS, PRINTS]}]
        text = "def hook(event):\n    print('printed', flush=True)\n"
        (folder / "prints.py").write_text(text)
        settings = folder / "settings.json"
        settings.write_text(json.dumps({"hooks": {"BeforeTool": hooks}}))
        self.process = subprocess.Popen(
            [
                *(*MAIN, "serve", "--bus", self.url, "--settings", str(settings)),
                *("--cwd", str(folder), *words),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(folder)},
        )
        self.ready = opened(self.process.stdout).readline()
        self.lines: list[str] = []

    def until(self, text: str) -> str:
        """The first line of the log, from here on, that has this text."""
        for line in opened(self.process.stderr):
            self.lines.append(line)
            if text in line:
                return line
        pytest.fail(f"the log ended without {text!r}: {self.lines}")

    def request(self, event: Any = EVENT) -> None:
        words = ("request", "BeforeTool", "--bus", self.url, "--input", "-")
        subprocess.run(
            [*MAIN, *words],
            input=json.dumps(event),
            text=True,
            capture_output=True,
            check=False,
        )

    def stop(self) -> str:
        """End it; returns everything that it logged."""
        self.process.terminate()
        _, rest = self.process.communicate()
        assert self.process.returncode == 0
        return "".join(self.lines) + rest


def opened(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


@pytest.mark.parametrize("verbose", [True, False], ids=["verbose", "plain"])
def test_a_lost_and_regained_connection_is_told_without_credentials(
    own_server: NatsServer, tmp_path: Path, verbose: bool
) -> None:
    """Issue 16: ``serve -v`` tells of connections lost and regained."""
    serving = Serving(own_server, tmp_path, *(["-v"] if verbose else []))
    own_server.stop()
    lost = serving.until("lost")
    if verbose:
        serving.until("Connect call failed")
    own_server.start()
    regained = serving.until("again")
    assert f"connection to {own_server.url} lost" in lost
    assert f"connected to {own_server.url} again after" in regained
    serving.request()
    log = serving.stop()
    assert log.count("lost") == log.count("again") == 1
    assert ("Connect call failed" in log) is verbose
    assert (" blocked " in log) is verbose
    assert "hunter2" not in log.replace("--password-file", "")


def test_every_line_is_an_object_with_the_fields_of_what_it_is_about(
    own_server: NatsServer, tmp_path: Path
) -> None:
    """Issue 16: JSON logs, one object a line."""
    serving = Serving(own_server, tmp_path, "-v", "--log-format", "json")
    serving.request()
    serving.until('"request"')
    serving.request({"tool_name": 5})
    serving.until("validation_failure")
    own_server.stop()
    serving.until("lost")
    own_server.start()
    serving.until("again")
    (tmp_path / "settings.json").write_text("{ not JSON")
    serving.until("not used")
    found = [json.loads(line) for line in serving.stop().splitlines()]
    assert json.loads(serving.ready)["message"].startswith("ready, serving 3 hooks on")
    for one in found:
        assert list(one)[:4] == ["time", "level", "logger", "message"]
    first, second = (one["request"] for one in found if "request" in one)
    assert (first["event"], first["verdict"]) == ("BeforeTool", "blocked")
    assert first["correlation_id"]
    assert first["duration_ms"] > 0
    assert (second["verdict"], second["error"]) == ("failed", "validation_failure")
    (failure,) = (one for one in found if one["message"] == "hook:failure")
    assert failure["level"] == "warning"
    assert failure["logger"] == "hookline.hooks"
    assert failure["hook"]["hook"] == "fails"
    assert failure["hook"]["stderr"] == "broken"
    buses = [one["bus"] for one in found if "bus" in one]
    assert {"address", "error"} in map(set, buses)
    assert {"address", "gone_s"} in map(set, buses)
    (reload,) = (one for one in found if "settings" in one)
    assert (reload["level"], reload["logger"]) == ("error", "hookline.reload")
    assert reload["settings"] == {"reloaded": False}
    assert str(tmp_path / "settings.json") in reload["message"]
    assert found[-1]["message"] == "stopping: finishing requests in progress"
    assert "hunter2" not in json.dumps(found)


def test_a_refused_login_is_json_and_shows_no_password(own_server: NatsServer) -> None:
    url = own_server.url.replace("//", "//me:hunter3@")
    words = ("serve", "--bus", url, "--log-format", "json")
    done = subprocess.run([*MAIN, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    warning, error = map(json.loads, done.stderr.splitlines())
    assert warning["level"] == "warning"
    assert "--password-file" in warning["message"]
    assert error["message"].startswith(f"no connection to {own_server.url}")
    assert "hunter3" not in done.stderr
