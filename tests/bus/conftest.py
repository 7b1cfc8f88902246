"""One nats-server per test module, one subject prefix per test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest

from .servers import NatsServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A server for this module."""
    running = NatsServer(tmp_path_factory.mktemp("nats")).start()
    yield running
    running.stop()


@pytest.fixture
def prefix() -> str:
    """A corner of the server that no other test uses."""
    return f"test-{uuid4().hex}"


@pytest.fixture
async def cleanup() -> AsyncIterator[AsyncExitStack]:
    """Undo things at the end, the last one first."""
    async with AsyncExitStack() as stack:
        yield stack
