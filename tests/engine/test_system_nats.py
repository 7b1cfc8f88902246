"""A hook system on a real NATS server: its subscription, and what it answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.bus import HookBusClient, NatsBus
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
    guarded = Guarded(tmp_path)
    yield guarded
    guarded.server.stop()


def system_on(bus: NatsBus) -> HookSystem:
    settings = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": [BLOCK]}]}})
    return HookSystem(Config("s", ".", settings), bus)


async def test_server_that_refuses_the_subscription_is_asked_again(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    """HBUS-002: the direct path works meanwhile."""
    bus = await guarded.connect("worker")
    hooks = system_on(bus)
    await asyncio.gather(*(hooks.initialize() for _ in range(5)))
    assert (await hooks.event_handler.fire("BeforeTool", TOOL)).blocked
    assert caplog.text.count("the bus refused the subscription") == 1
    # A server refuses logins while it reads its users again: connected before that.
    asking = await guarded.connect("agent")
    guarded.allow(True)
    guarded.server.reload()
    async with asyncio.timeout(60):
        while True:
            await hooks.initialize()
            response = await HookBusClient(asking).request("BeforeTool", TOOL)
            if response["success"]:
                break
    assert response["processed"]["blocked"] is True
    await hooks.dispose()
    await asking.close()
    await bus.close()
