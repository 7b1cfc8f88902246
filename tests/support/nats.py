"""Real servers and real workers for the tests: processes on loopback."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_SERVER = Path(sysconfig.get_path("scripts")) / "nats-server"


class NatsServer:
    """A nats-server process on a free port, which it keeps over restarts."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._arguments = arguments
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self.port = -1

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> NatsServer:
        ports = self._folder / "ports"
        ports.mkdir(exist_ok=True)
        for stale in ports.iterdir():
            stale.unlink()
        log = (self._folder / "server.log").open("ab")
        self._process = subprocess.Popen(
            [
                str(_SERVER),
                *("-a", "127.0.0.1", "-p", str(self.port)),
                *("--ports_file_dir", str(ports), *self._arguments),
            ],
            stdout=log,
            stderr=log,
            env=self._environment,
        )
        log.close()
        self.port = self._wait_for_port(ports)
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Let it hang: neither dead nor answering."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after ``pause``."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def reload(self) -> None:
        """Let it read its configuration again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def _wait_for_port(self, ports: Path) -> int:
        assert self._process is not None
        file = ports / f"nats-server_{self._process.pid}.ports"
        while True:
            if self._process.poll() is not None:
                raise RuntimeError((self._folder / "server.log").read_text())
            try:
                urls = json.loads(file.read_text())["nats"]
            except (FileNotFoundError, ValueError):
                continue
            return int(urls[0].rpartition(":")[2])


class WorkerProcess:
    """A worker in a process of its own, which answers with its process id."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    @classmethod
    async def start(
        cls, url: str, prefix: str, *, mode: str = "answer", concurrency: int = 64
    ) -> WorkerProcess:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.bus.worker", url, prefix, mode, str(concurrency)),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        worker = cls(process)
        assert await worker.line() == "ready"
        return worker

    async def line(self) -> str:
        """The next line it prints."""
        assert self._process.stdout is not None
        return (await self._process.stdout.readline()).decode().strip()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def ended(self) -> int:
        assert self._process.stdout is not None
        await self._process.stdout.read()
        return await self._process.wait()

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self.ended()


def codes(responses: Sequence[Any]) -> dict[str, int]:
    """How often each outcome occurs among responses."""
    return Counter(
        "success" if response["success"] else response["error"]["code"]
        for response in responses
    )
