"""What an approval covers, and what becomes of hooks that are not as approved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.pins import PinTable
from tests.support.trusted import TrustStory

ATTACKED = ["guarded", "trust", "open", "fire"]


async def test_attack_on_a_trusted_guard_blocks_in_running_and_new_sessions(
    pin_table: Callable[[str], PinTable], tmp_path: Path
) -> None:
    """An approved guard cannot be edited away (protocol.md#settings).

    The guard is fired before and after the ``attack``, then a new session is started,
    and ``hookline trust`` tells what changed. ``harmless`` is what is no change.
    """
    numbers = iter(range(1000))

    async def attacked(_: str, row: dict[str, Any]) -> object:
        before = [{"files": row.get("files", {})}, *ATTACKED]
        attack = {"settings": row["settings"]} if "settings" in row else {"sh": "true"}
        steps = [*before, attack, {"sh": row.get("attack", "true")}, "fire"]
        story = TrustStory(tmp_path / str(next(numbers)))
        return await story.run([*steps, "close", "fire", {"trust": ["--cwd", "."]}])

    await pin_table("trust/attacks").check(attacked, at_once=1)


@pytest.mark.parametrize(
    "table", ["files", "code", "branches", "projects", "untrusted"]
)
async def test_hooks_run_as_they_were_approved_or_not_at_all(
    pin_table: Callable[[str], PinTable], tmp_path: Path, table: str
) -> None:
    """protocol.md#settings: a row is a story of steps (``TrustStory``)."""
    numbers = iter(range(1000))

    async def story(_: str, row: dict[str, Any]) -> object:
        return await TrustStory(tmp_path / str(next(numbers))).run(row["steps"])

    await pin_table(f"trust/{table}").check(story, at_once=1)
