from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.telemetry_rows import TelemetryHost


@pytest.fixture
def host(tmp_path: Path) -> Iterator[TelemetryHost]:
    folder = tmp_path / "project"
    folder.mkdir()
    running = TelemetryHost(folder)
    yield running
    running.close()
