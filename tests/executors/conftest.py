from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.processes import children

from .bench import WorkerBench, open_descriptors


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[WorkerBench]:
    """A folder with hooks, of which no process and no descriptor may be left."""
    folder = tmp_path / "project"
    folder.mkdir()
    # Other tests in this process may have left a watcher of their hooks.
    descriptors, processes = open_descriptors(), set(children())
    bench = WorkerBench(folder)
    yield bench
    await bench.nothing_is_left()
    assert open_descriptors() <= descriptors
    assert set(children()) <= processes
