"""What telemetry tells of each event and verdict: names, attributes, counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.pins import PinTable, Row
from tests.support.telemetry_rows import telemetry_row


async def test_spans_and_figures_of_events_and_verdicts(
    pin_table: Callable[[str], PinTable], tmp_path: Path
) -> None:
    """Issue 16: a block is no error, and content stays here unless it is asked for."""

    async def recorded(_: str, row: Row) -> object:
        return await telemetry_row(row, tmp_path)

    await pin_table("telemetry/events").check(recorded)
