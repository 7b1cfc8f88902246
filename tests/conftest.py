from __future__ import annotations

from pathlib import Path

import pytest

from .workshop import Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    folder = tmp_path / "project"
    folder.mkdir()
    return Workshop(folder)
