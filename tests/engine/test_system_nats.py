"""A hook system on a real NATS server: it is subscribed, or ``initialize()`` fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.bus import HookBusClient, NatsBus
from hookline.errors import BusConnectionError
from tests.support.nats import NatsServer

TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a"}}
BLOCK = {"type": "command", "command": "echo no >&2; exit 2"}


class Guarded:
    """A server whose worker may subscribe, or not."""

    def __init__(self, folder: Path) -> None:
        self._config = folder / "server.conf"
        self.allow(False)
        self.server = NatsServer(folder, "-c", str(self._config)).start()

    def allow(self, may_subscribe: bool) -> None:
        subscribe = ">" if may_subscribe else {"deny": ["hookline.>"]}
        worker = {
            "user": "worker",
            "password": "w",
            "permissions": {"subscribe": subscribe},
        }
        users = [worker, {"user": "agent", "password": "a"}]
        self._config.write_text(f"authorization: {json.dumps({'users': users})}")

    async def connect(self, user: str) -> NatsBus:
        return await NatsBus.connect(self.server.url, user=user, password=user[0])


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    found = Guarded(tmp_path)
    yield found
    found.server.stop()


def system_on(bus: NatsBus) -> HookSystem:
    settings = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": [BLOCK]}]}})
    return HookSystem(Config("s", ".", settings), bus)


async def test_initialize_fails_as_long_as_the_server_refuses_the_subscription(
    guarded: Guarded,
) -> None:
    """Issue 12.16: a retry subscribes or fails."""
    bus = await guarded.connect("worker")
    hooks = system_on(bus)
    for _ in range(3):
        with pytest.raises(BusConnectionError, match="permissions violation"):
            await hooks.initialize()
        assert not hooks.status.initialized
    guarded.allow(True)
    guarded.server.reload()
    while not hooks.status.initialized:  # until the server has read its file again
        try:
            await hooks.initialize()
        except BusConnectionError:
            await asyncio.sleep(0.01)
    asking = await guarded.connect("agent")
    response = await HookBusClient(asking).request("BeforeTool", TOOL)
    assert response["processed"]["blocked"] is True
    await hooks.dispose()
    await asking.close()
    await bus.close()


async def test_concurrent_calls_share_a_failed_subscription(guarded: Guarded) -> None:
    bus = await guarded.connect("worker")
    hooks = system_on(bus)
    calls = [hooks.initialize() for _ in range(5)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(one) for one in results} == {BusConnectionError}
    assert not hooks.status.initialized
    await bus.close()


async def test_initialize_on_a_closed_bus_fails_every_time(server: NatsServer) -> None:
    bus = await NatsBus.connect(server.url)
    await bus.close()
    hooks = system_on(bus)
    for _ in range(2):
        with pytest.raises(BusConnectionError):
            await hooks.initialize()
        assert not hooks.status.initialized


async def test_system_answers_as_soon_as_it_is_initialized(
    server: NatsServer, prefix: str
) -> None:
    bus = await NatsBus.connect(server.url, prefix=prefix)
    asking = await NatsBus.connect(server.url, prefix=prefix)
    async with system_on(bus):
        response = await HookBusClient(asking).request("BeforeTool", TOOL)
        assert response["processed"]["blocked"] is True
    await asking.close()
    await bus.close()
