from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .recorded import Recorded


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Recorded]:
    folder = tmp_path / "project"
    folder.mkdir()
    recorded = Recorded(folder)
    yield recorded
    recorded.close()
