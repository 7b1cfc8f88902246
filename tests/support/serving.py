"""``hookline serve`` as a process: its settings, its log, and requests to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from hookline import HookBusClient, RemoteHooks
from hookline.bus import NatsBus

from .command_project import PROGRAM, settings_of
from .commandline import run_command
from .journals import wait_until

WAIT_S = 60.0
"""A guard against hanging, not a claim about speed."""
EVENT = {"tool_name": "write_file", "tool_input": {"path": ".env"}}


class Serving:
    """A worker of the bus in a folder of its own, started when a test is ready."""

    def __init__(self, url: str, prefix: str, folder: Path) -> None:
        self.folder = folder
        self.settings_file = folder / "settings.json"
        self.log: list[str] = []
        self.ready_line = ""
        self.metrics_address = ""
        self._url, self._prefix = url, prefix
        self._bus = ("--bus", url, "--prefix", prefix)
        self._started: list[subprocess.Popen[str]] = []

    def write(self, *hooks: dict[str, Any], **more: Any) -> None:
        """Write settings with these hooks, all at once as editors do."""
        new = self.folder / "new"
        new.write_text(json.dumps({**settings_of(*hooks), **more}))
        new.replace(self.settings_file)

    def words(self, *more: str) -> list[str]:
        """The command line of the worker."""
        places = ("--settings", str(self.settings_file), "--cwd", str(self.folder))
        return [*PROGRAM, "serve", *self._bus, *places, *more]

    def start(self, *more: str, waits_for_hooks: bool = False, **env: str) -> None:
        """Start it; unless it waits for its first hooks, it is ready afterwards."""
        self.process = self._start(self.words(*more), stderr=subprocess.PIPE, env=env)
        if "--metrics" in more:
            line = self.until("metrics on")
            self.metrics_address = line.split()[-1].removesuffix("/metrics")
        if not waits_for_hooks:
            self.ready_line = opened(self.process.stdout).readline()
            assert "ready" in self.ready_line

    def line(self) -> str:
        """The next line of its log."""
        self.log.append(opened(self.process.stderr).readline())
        assert self.log[-1], f"the log ended: {self.log}"
        return self.log[-1]

    def until(self, text: str) -> str:
        """The next line of its log that has this text."""
        while text not in (line := self.line()):
            pass
        return line

    def request(self) -> subprocess.Popen[str]:
        """Ask it by a process of its own, which waits for the answer."""
        file = self.folder / "event.json"
        file.write_text(json.dumps(EVENT))
        words = [*PROGRAM, "request", "BeforeTool", *self._bus, "--input", str(file)]
        return self._start(words, stderr=subprocess.DEVNULL)

    def answer(self, event: Any = EVENT, *more: str) -> tuple[int, Any]:
        """The exit status of a request, and the response."""
        words = ("request", "BeforeTool", *self._bus, "--input", "-", *more)
        ended = run_command(*words, stdin=json.dumps(event))
        return ended.returncode, ended.json()

    async def reason(self) -> str | None:
        """Why a tool call is blocked, if it is, by a client in this process."""
        async with await NatsBus.connect(self._url, prefix=self._prefix) as bus:
            hooks = RemoteHooks(HookBusClient(bus))
            return (await hooks.fire_before_tool_event("x", {})).reason

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a page beside its metrics."""
        try:
            with urlopen(f"{self.metrics_address}{path}") as response:
                return response.status, response.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def ready(self) -> tuple[int, dict[str, Any]]:
        """Whether it is ready, and its checks; on a busy machine its loop is late."""
        while True:
            status, body = self.get("/readyz")
            checks = json.loads(body)["checks"]
            if checks["event_loop"]["ok"]:
                return status, checks

    def until_ready(self, status: int) -> dict[str, Any]:
        """Wait until readiness is this; the checks."""
        wait_until(lambda: self.ready()[0] == status)
        return self.ready()[1]

    def metric(self, name: str, **labels: str) -> float | None:
        """One of its figures, when its loop is not late."""
        text = ""
        while name != "event_loop_up" and "hookline_event_loop_up 1.0" not in text:
            text = self.get("/metrics")[1]
        text = text or self.get("/metrics")[1]
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if (sample.name, sample.labels) == (f"hookline_{name}", labels):
                    return float(sample.value)
        return None

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Tell it to stop; its exit status, and all that it logged."""
        self.process.send_signal(number)
        _, rest = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, "".join(self.log) + rest

    def close(self) -> None:
        """Leave nothing behind."""
        for process in self._started:
            process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def _start(
        self,
        words: list[str],
        *,
        stderr: int,
        env: dict[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, "PYTHONPATH": str(self.folder), **(env or {})},
        )
        self._started.append(process)
        return process


def opened(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
