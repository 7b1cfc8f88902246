"""What is taken from settings, what is dropped, and what ``hookline check`` says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.loaded import load_row
from tests.support.pins import PinTable


@pytest.mark.parametrize("table", ["texts", "hooks", "options", "layers", "cedar"])
async def test_settings_are_taken_as_far_as_they_are_good(
    pin_table: Callable[[str], PinTable], tmp_path: Path, table: str
) -> None:
    """protocol.md#settings: a mistake is named with its place, the rest works."""
    numbers = iter(range(10_000))

    def loaded(_: str, row: dict[str, Any]) -> object:
        return load_row(row, tmp_path / str(next(numbers)))

    await pin_table(f"settings/{table}").check(loaded)
