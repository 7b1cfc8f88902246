"""``hookline serve`` with more requests than it can answer (protocol.md#bus)."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hookline import HookBusClient
from hookline.bus import NatsBus
from tests.support.command_project import command_hook
from tests.support.journals import wait_until
from tests.support.nats import NatsServer
from tests.support.serving import WAIT_S, Serving

MEBIBYTE = 2**20


def memory(serving: Serving) -> int:
    """Of the worker, in bytes; on Linux only."""
    status = Path(f"/proc/{serving.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def start_slow(serving: Serving, waits: str) -> Path:
    """A worker of two hooks at once, each of which takes its time; where they ran."""
    ran = serving.folder / "ran"
    serving.write(command_hook(f"echo x >> {ran}; {waits}"))
    serving.start("--concurrency", "2", "--metrics", "0")
    return ran


def is_idle(serving: Serving) -> bool:
    names = ("requests_in_flight", "requests_waiting")
    return not any(serving.metric(name) for name in names)


def event(size: int = 0) -> dict[str, Any]:
    return {"tool_name": "t", "tool_input": {"content": "x" * size}}


def codes(responses: list[Any]) -> Counter[str]:
    errors = (response.get("error", {"code": "verdict"}) for response in responses)
    return Counter(error["code"] for error in errors)


async def test_hooks_do_not_run_for_requesters_who_gave_up(
    server: NatsServer, prefix: str, serving: Serving
) -> None:
    """The deadline travels in the request: what has waited longer is dropped."""
    ran = start_slow(serving, "sleep 0.5")
    async with await NatsBus.connect(server.url, prefix=prefix) as bus:
        client = HookBusClient(bus, timeout_s=1)
        asked = (client.request("BeforeTool", event()) for _ in range(24))
        responses = await asyncio.gather(*asked)
        await asyncio.to_thread(wait_until, lambda: is_idle(serving))
        dropped = serving.metric("requests_dropped_total", reason="expired")
        assert dropped is not None
        # Another hook's process may start while the last requester gives up.
        assert len(ran.read_text().split()) == 24 - dropped < 8
        assert codes(responses)["timeout"] >= dropped > 0
        later = await client.request("BeforeTool", event(), timeout_s=WAIT_S)
    assert later["success"]


async def test_hooks_that_wait_for_a_process_do_not_start_late(
    server: NatsServer, prefix: str, serving: Serving
) -> None:
    """Nor does a request that waits in ``maxProcesses`` past its deadline."""
    ran = serving.folder / "ran"
    slow = command_hook(f"echo x >> {ran}; sleep 0.5")
    serving.write(slow, hooksConfig={"maxProcesses": 1})
    serving.start("--metrics", "0")
    async with await NatsBus.connect(server.url, prefix=prefix) as bus:
        client = HookBusClient(bus, timeout_s=1)
        asked = (client.request("BeforeTool", event()) for _ in range(12))
        await asyncio.gather(*asked)
        await asyncio.to_thread(wait_until, lambda: is_idle(serving))
        dropped = serving.metric("requests_dropped_total", reason="expired")
        assert dropped is not None
        assert len(ran.read_text().split()) == 12 - dropped < 4
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
            return {}

        bus.serve(handle)
        await bus.ready()
        await HookBusClient(bus, timeout_s=5).request("BeforeTool", event())
        await HookBusClient(bus).request("BeforeTool", event(), timeout_s=2, retries=1)
    left = [payload["timeoutMs"] for payload in seen[:2]]
    assert 4000 < left[0] <= 5000
    assert 0 < left[1] <= 1000


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_requests_that_wait_are_bounded_and_the_rest_is_answered_at_once(
    server: NatsServer, prefix: str, serving: Serving
) -> None:
    start_slow(serving, "until test -e go; do sleep 0.02; done")
    before = memory(serving)
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
        for answer in asyncio.as_completed(asked):
            refused.append(await answer)
            if len(refused) * 900_000 > 150 * 900_000 - 80 * MEBIBYTE:
                break
        took_s = time.monotonic() - started
        used = memory(serving) - before
        assert not any(task.done() and task.result()["success"] for task in asked)
        (serving.folder / "go").touch()
        for task in asked:
            task.cancel()
    assert codes(refused) == {"execution_failure": len(refused)}
    assert {response["error"]["details"]["cause"] for response in refused} == {
        "overload"
    }
    assert refused[0]["error"]["details"]["eventName"] == "BeforeTool"
    assert used < 150 * MEBIBYTE
    assert took_s < WAIT_S
