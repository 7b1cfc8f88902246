"""``hookline serve`` with more requests than it can answer (protocol.md#bus)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from hookline import HookBusClient
from hookline.bus import NatsBus
from tests.support.nats import NatsServer

MEBIBYTE = 2**20
WAIT_S = 60


class Serving:
    """A worker whose one hook notes that it ran, and takes its time."""

    def __init__(self, url: str, prefix: str, folder: Path, takes_s: float) -> None:
        self.ran = folder / "ran"
        settings = folder / "settings.json"
        command = f"echo x >> {self.ran}; sleep {takes_s}"
        hook = {"type": "command", "command": command}
        settings.write_text(json.dumps({"hooks": {"BeforeTool": [{"hooks": [hook]}]}}))
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "hookline", "serve", "--bus", url),
                *("--prefix", prefix, "--settings", str(settings)),
                *("--concurrency", "2", "--metrics", "0"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.metrics = self.process.stderr.readline().split()[-1]
        assert "ready" in self.process.stdout.readline()

    def memory(self) -> int:
        """In bytes; of Linux only."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def runs(self) -> int:
        return len(self.ran.read_text().split()) if self.ran.exists() else 0

    async def metric(self, name: str) -> float:
        def read() -> str:
            with urlopen(self.metrics) as response:
                return str(response.read().decode())

        while f"\n{name} " not in (text := await asyncio.to_thread(read)):
            pass  # the event loop of the worker was late
        return float(text.split(f"\n{name} ")[1].split("\n")[0])

    async def until_idle(self) -> None:
        deadline = time.monotonic() + WAIT_S
        while await self.metric("hookline_requests_in_flight") or await self.metric(
            "hookline_requests_waiting"
        ):
            assert time.monotonic() < deadline


@pytest.fixture
def serve(
    server: NatsServer, prefix: str, tmp_path: Path
) -> Iterator[Callable[[float], Serving]]:
    started: list[Serving] = []

    def start(takes_s: float) -> Serving:
        started.append(Serving(server.url, prefix, tmp_path, takes_s))
        return started[-1]

    yield start
    for serving in started:
        serving.process.kill()
        serving.process.communicate()


def event(size: int = 0) -> dict[str, Any]:
    return {"tool_name": "t", "tool_input": {"content": "x" * size}}


def codes(responses: list[Any]) -> Counter[str]:
    found = (response.get("error", {"code": "verdict"}) for response in responses)
    return Counter(error["code"] for error in found)


async def test_hooks_do_not_run_for_requesters_who_gave_up(
    server: NatsServer, prefix: str, serve: Callable[[float], Serving]
) -> None:
    """The deadline travels in the request: what has waited longer is dropped."""
    serving = serve(0.5)
    async with await NatsBus.connect(server.url, prefix=prefix) as bus:
        client = HookBusClient(bus, timeout_s=1)
        asked = (client.request("BeforeTool", event()) for _ in range(24))
        responses = await asyncio.gather(*asked)
        await serving.until_idle()
        dropped = await serving.metric(
            'hookline_requests_dropped_total{reason="expired"}'
        )
        # Another hook's process may start while the last requester gives up.
        assert serving.runs() == 24 - dropped < 8
        assert codes(responses)["timeout"] >= dropped > 0
        later = await client.request("BeforeTool", event(), timeout_s=WAIT_S)
    assert later["success"]


async def test_every_request_says_how_much_time_is_left(
    server: NatsServer, prefix: str
) -> None:
    """``timeoutMs`` is the time left when it was sent, by whichever way."""
    async with await NatsBus.connect(server.url, prefix=prefix) as bus:
        seen: list[Any] = []

        async def handle(payload: Any) -> Any:
            seen.append(payload)
            return None

        bus.serve(handle)
        await bus.ready()
        await HookBusClient(bus, timeout_s=5).request("BeforeTool", event())
        await HookBusClient(bus).request("BeforeTool", event(), timeout_s=2, retries=1)
    left = [one["timeoutMs"] for one in seen[:2]]
    assert 4000 < left[0] <= 5000
    assert 0 < left[1] <= 1000


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_requests_that_wait_are_bounded_and_the_rest_is_answered_at_once(
    server: NatsServer, prefix: str, serve: Callable[[float], Serving]
) -> None:
    serving = serve(10)
    before = serving.memory()
    async with await NatsBus.connect(server.url, prefix=prefix) as bus:
        client = HookBusClient(bus, timeout_s=WAIT_S)
        started = time.monotonic()
        asked = []
        for number in range(150):
            request = client.request("BeforeTool", event(900_000))
            asked.append(asyncio.create_task(request))
            if number % 10 == 9:  # a burst of 64 MiB would cut the worker off
                await asyncio.sleep(0.1)
        refused = []
        for done in asyncio.as_completed(asked):
            response = await done
            if response["success"]:
                break
            refused.append(response)
        took_s = time.monotonic() - started
        used = serving.memory() - before
        for task in asked:
            task.cancel()
    assert codes(refused) == {"execution_failure": len(refused)}
    assert len(refused) * 900_000 > 150 * 900_000 - 80 * MEBIBYTE
    assert {one["error"]["details"]["cause"] for one in refused} == {"overload"}
    assert refused[0]["error"]["details"]["eventName"] == "BeforeTool"
    assert used < 150 * MEBIBYTE
    assert took_s < WAIT_S
