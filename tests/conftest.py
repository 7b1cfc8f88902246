from __future__ import annotations

import gc
import logging
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from tests.support.nats import NatsServer
from tests.support.project import Project
from tests.support.workspace import Workspace

# How long an example takes on a busy machine says nothing about what it proves.
settings.register_profile(
    "hookline", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("hookline")

# A shell starts background jobs with Ctrl-C ignored, and everything they start inherits
# that: the tests that interrupt a process would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The same with ``nohup`` and the signal of a terminal that is closed.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


# The modules of SDKs and tests stay: looking for garbage among them would take a third
# of the time of collecting, and time in every test that collects garbage.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


AGENT_VARIABLES = (
    *("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION", "AI_AGENT"),
    *("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI"),
    *("GEMINI_CLI", "QWEN_CODE", "QWEN_CODE_SESSION_ID"),
    *("COPILOT_CLI", "COPILOT_AGENT_SESSION_ID", "CURSOR_AGENT", "OPENCODE"),
    *("CLINE_ACTIVE", "GOOSE_TERMINAL"),
)


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def _own_folders(_homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the settings and the state of the user, or of another test."""
    home = _homes / uuid4().hex
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    for name in AGENT_VARIABLES:  # the tests may be run by a coding agent
        monkeypatch.delenv(name, raising=False)
    # A helper would outlive its test; those that are about it take care of that.
    monkeypatch.setenv("HOOKLINE_NO_RESIDENT", "1")


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """A command that a test runs in this process keeps its log to itself."""
    states = [
        (target, list(target.handlers), target.level, target.propagate)
        for target in map(logging.getLogger, ("hookline", "hookline.hooks"))
    ]
    yield
    for target, handlers, level, propagate in states:
        target.handlers[:] = handlers
        target.setLevel(level)
        target.propagate = propagate


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    folder = tmp_path / "project"
    folder.mkdir()
    return Workspace(folder)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project of its own, and a state folder outside it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("HOOKLINE_TRUST", raising=False)
    monkeypatch.delenv("HOOKLINE_DEPTH", raising=False)
    return Project(tmp_path / "project", tmp_path / "state")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """One nats-server for all tests; those that stop one start their own."""
    running = NatsServer(tmp_path_factory.mktemp("nats")).start()
    yield running
    running.stop()


@pytest.fixture
def prefix() -> str:
    """A subject prefix that no other test uses."""
    return f"test-{uuid4().hex}"


@pytest.fixture
async def cleanup() -> AsyncIterator[AsyncExitStack]:
    """Undo things at the end, the last one first."""
    async with AsyncExitStack() as stack:
        yield stack
