"""Plain tools whose hooks run on other machines: a verdict, and promptly.

Two tests look inside the bus: how many connections it holds for other loops cannot be
seen from outside, nor can its loop be ended at the moment that matters.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hookline import Config, Settings
from hookline.agent import hooked_tool
from hookline.bus import HookBusClient, NatsBus, RemoteHooks
from hookline.bus.server import RequestServer
from hookline.protocol.events import HookEventName
from tests.bus.fakes import RecordingHandler, result_of
from tests.support.nats import NatsServer

pytest.importorskip("nats")
DEADLINE_S = 70.0
PROMPTLY_S = 30.0
"""Well below the deadline, which is what a call without a verdict takes."""


class WorkerThread:
    """A worker that denies everything, on a loop of its own."""

    def __init__(self, url: str, prefix: str) -> None:
        self._url, self._prefix = url, prefix
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._work()))
        self._thread.start()
        self._ready.wait()

    async def _work(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        denied = {"decision": "deny", "reason": "not here"}
        handler = RecordingHandler(result_of(denied, HookEventName.BeforeTool))
        async with await NatsBus.connect(self._url, prefix=self._prefix) as bus:
            RequestServer(handler, bus).subscribe()
            await bus.ready()
            self._ready.set()
            await self._over.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()


@pytest.fixture
def worker(server: NatsServer, prefix: str) -> Iterator[WorkerThread]:
    running = WorkerThread(server.url, prefix)
    yield running
    running.stop()


class Tool:
    """A plain tool with hooks on a bus."""

    def __init__(self, bus: NatsBus) -> None:
        self.ran = 0
        self.config = Config("s", ".", Settings())
        client = HookBusClient(bus, "block", timeout_s=DEADLINE_S)
        self.config.use_hooks(RemoteHooks(client))
        self.call: Callable[[str], Any] = hooked_tool(self.config)(self._write)

    def _write(self, path: str) -> str:
        self.ran += 1
        return path


def is_denied_promptly(tool: Tool) -> bool:
    started = time.monotonic()
    answer = tool.call(".env")
    assert time.monotonic() - started < PROMPTLY_S
    return "not here" in str(answer) and tool.ran == 0


@pytest.mark.usefixtures("worker")
async def test_plain_tool_called_on_the_loop_of_the_bus(
    server: NatsServer, prefix: str
) -> None:
    """That loop cannot run while the tool is called."""
    async with await NatsBus.connect(server.url, prefix=prefix) as bus:
        tool = Tool(bus)
        assert is_denied_promptly(tool)
        assert is_denied_promptly(tool)
        await tool.config.dispose()


@pytest.mark.usefixtures("worker")
async def test_fire_sync_on_the_loop_of_the_bus_and_in_threads(
    server: NatsServer, prefix: str
) -> None:
    """``fire_sync`` works with a running loop, from any thread, over a bus."""
    given: dict[str, Any] = {"tool_name": "write", "tool_input": {}}
    async with await NatsBus.connect(server.url, prefix=prefix) as bus:
        config = Tool(bus).config
        session = config.session("a")
        assert session.fire_sync("BeforeTool", given).reason == "not here"
        results = await asyncio.gather(
            asyncio.to_thread(session.fire_sync, "BeforeTool", given),
            session.fire("BeforeTool", given),
        )
        assert [result.reason for result in results] == ["not here"] * 2
        await config.dispose()


@pytest.mark.usefixtures("worker")
async def test_plain_tools_called_in_threads(server: NatsServer, prefix: str) -> None:
    async with await NatsBus.connect(server.url, prefix=prefix) as bus:
        tool = Tool(bus)
        calls = (asyncio.to_thread(is_denied_promptly, tool) for _ in range(8))
        assert all(await asyncio.gather(*calls))
        assert len(bus._others) == 1
        await tool.config.dispose()


@pytest.mark.usefixtures("worker")
def test_plain_tool_called_after_the_loop_of_the_bus_has_ended(
    server: NatsServer, prefix: str
) -> None:
    async def connect() -> NatsBus:
        bus = await NatsBus.connect(server.url, prefix=prefix)
        await bus._connection.client.close()
        bus._connection.closed.clear()  # as if the loop had just ended
        return bus

    tool = Tool(asyncio.run(connect()))
    assert is_denied_promptly(tool)
    asyncio.run(tool.config.dispose())


@pytest.mark.usefixtures("worker")
def test_connection_of_the_background_loop_is_closed_with_it(
    server: NatsServer, prefix: str, recwarn: pytest.WarningsRecorder
) -> None:
    async def call() -> None:
        async with await NatsBus.connect(server.url, prefix=prefix) as bus:
            tool = Tool(bus)
            assert is_denied_promptly(tool)
            await tool.config.dispose()

    asyncio.run(call())
    gc.collect()
    assert [str(w.message) for w in recwarn if "unclosed" in str(w.message)] == []


async def test_closed_bus_is_not_opened_again(server: NatsServer, prefix: str) -> None:
    bus = await NatsBus.connect(server.url, prefix=prefix)
    await bus.close()
    tool = Tool(bus)
    answer = await asyncio.to_thread(tool.call, ".env")
    assert "no_responders" in str(answer)
    assert bus._others == {}
    await tool.config.dispose()


def test_no_worker_is_no_verdict_at_once(server: NatsServer, prefix: str) -> None:
    async def call() -> Any:
        async with await NatsBus.connect(server.url, prefix=prefix) as bus:
            tool = Tool(bus)
            answer = tool.call(".env")
            await tool.config.dispose()
            return answer

    started = time.monotonic()
    assert "no_responders" in str(asyncio.run(call()))
    assert time.monotonic() - started < PROMPTLY_S
