from __future__ import annotations

from pathlib import Path

import pytest

from .bench import WorkerBench


@pytest.fixture
def bench(tmp_path: Path) -> WorkerBench:
    folder = tmp_path / "project"
    folder.mkdir()
    return WorkerBench(folder)
