from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_project import CommandProject
from tests.support.nats import NatsServer
from tests.support.serving import Serving


@pytest.fixture
def command_project(tmp_path: Path) -> CommandProject:
    return CommandProject(tmp_path)


@pytest.fixture
def serving(server: NatsServer, prefix: str, tmp_path: Path) -> Iterator[Serving]:
    """A worker that a test starts, on the server that all tests share."""
    worker = Serving(server.url, prefix, tmp_path)
    yield worker
    worker.close()


@pytest.fixture
def guarded_server(tmp_path: Path) -> Iterator[NatsServer]:
    """A server with a login, which a test may stop and start."""
    folder = tmp_path / "nats"
    folder.mkdir()
    running = NatsServer(folder, "--user", "me", "--pass", "hunter2").start()
    yield running
    running.stop()


@pytest.fixture
def logged_in(
    guarded_server: NatsServer, prefix: str, tmp_path: Path
) -> Iterator[Serving]:
    """A worker with a password in the address of its bus."""
    url = guarded_server.url.replace("//", "//me:hunter2@")
    worker = Serving(url, prefix, tmp_path)
    yield worker
    worker.close()
