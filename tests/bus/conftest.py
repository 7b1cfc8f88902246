from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import nats
import pytest

from hookline.bus import HookBusClient, NatsBus
from hookline.bus.server import RequestServer
from tests.support.nats import NatsServer, WorkerProcess


class Fleet:
    """Workers in this process or in their own, and clients, on one server."""

    def __init__(self, server: NatsServer, prefix: str, stack: AsyncExitStack) -> None:
        self.server, self.prefix, self._stack = server, prefix, stack

    async def worker(self, handler: Any, **options: Any) -> NatsBus:
        """A worker in this process."""
        return await self.serve(RequestServer(handler, **options).handle_request)

    async def serve(self, handle: Any) -> NatsBus:
        bus = await self.bus()
        bus.serve(handle)
        await bus.ready()
        return bus

    async def process(self, mode: str = "answer", **options: Any) -> WorkerProcess:
        """A worker in a process of its own."""
        worker = await WorkerProcess.start(
            self.server.url, self.prefix, mode=mode, **options
        )
        self._stack.push_async_callback(worker.kill)
        return worker

    async def bus(self, **options: Any) -> NatsBus:
        bus = await NatsBus.connect(self.server.url, prefix=self.prefix, **options)
        self._stack.push_async_callback(bus.close)
        return bus

    async def client(self, **options: Any) -> HookBusClient:
        return HookBusClient(await self.bus(), **options)

    async def connection(self) -> Any:
        """A connection without anything of Hookline."""
        connection = await nats.connect(self.server.url)
        self._stack.push_async_callback(connection.close)
        return connection


@pytest.fixture
def fleet(server: NatsServer, prefix: str, cleanup: AsyncExitStack) -> Fleet:
    return Fleet(server, prefix, cleanup)


@pytest.fixture
def fleet_of_its_own(
    tmp_path: Path, prefix: str, cleanup: AsyncExitStack
) -> Iterator[Fleet]:
    """A fleet whose server may be stopped."""
    server = NatsServer(tmp_path).start()
    yield Fleet(server, prefix, cleanup)
    server.stop()
