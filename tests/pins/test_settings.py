"""What is taken from settings, what is dropped, and what ``hookline check`` says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.loaded import load_row, watch_row
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


async def test_changed_settings_are_taken_file_by_file(
    pin_table: Callable[[str], PinTable], tmp_path: Path
) -> None:
    """A file with new errors keeps its old content, and holds up no other.

    At a start one that cannot be read raises, and an entry that is dropped is a
    warning; later a guard that was there would be gone. Nobody who can write to a
    project keeps the guards of others from applying (protocol.md#settings).
    """

    def watched(name: str, row: dict[str, Any]) -> object:
        return watch_row(row, tmp_path / name)

    await pin_table("settings/changed").check(watched)
