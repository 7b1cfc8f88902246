"""Servers for tests of model calls, one of each for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # the SDKs are slow to import, and not every test needs them
    from hookline.testing.loopback import AnsweringServer

    from .model_calls import ScriptedServer


@pytest.fixture(scope="session")
def model_server() -> Iterator[ScriptedServer]:
    """Answers as models do."""
    from .model_calls import ScriptedServer

    with ScriptedServer() as running:
        yield running


@pytest.fixture(scope="session")
def wire_server() -> Iterator[AnsweringServer]:
    """Answers byte by byte as a test says."""
    from hookline.testing.cases import ServerAnswer
    from hookline.testing.loopback import AnsweringServer

    with AnsweringServer(ServerAnswer()) as running:
        yield running
