from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from .workshop import Workshop

# How long an example takes on a busy machine says nothing about what it proves.
settings.register_profile(
    "hookline", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("hookline")


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    folder = tmp_path / "project"
    folder.mkdir()
    return Workshop(folder)
