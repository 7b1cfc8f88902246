from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Where a test has its journal; nothing is there yet."""
    return tmp_path / "j.sqlite"
