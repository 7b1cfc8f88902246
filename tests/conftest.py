from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from .workshop import Workshop

# How long an example takes on a busy machine says nothing about what it proves.
settings.register_profile(
    "hookline", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("hookline")

# A shell starts background jobs with Ctrl-C ignored, and everything they start inherits
# that: the tests that interrupt a process would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _own_state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests leave nothing in the home of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """A command that a test runs in this process keeps its log to itself."""
    kept = [
        (target, list(target.handlers), target.level, target.propagate)
        for target in map(logging.getLogger, ("hookline", "hookline.hooks"))
    ]
    yield
    for target, handlers, level, propagate in kept:
        target.handlers[:] = handlers
        target.setLevel(level)
        target.propagate = propagate


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    folder = tmp_path / "project"
    folder.mkdir()
    return Workshop(folder)
