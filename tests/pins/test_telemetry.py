"""What telemetry tells of each event and verdict: names, attributes, counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from hookline.telemetry.health import WorkerState
from hookline.telemetry.prometheus import PrometheusTelemetry
from tests.support.pins import PinTable, Row
from tests.support.telemetry_rows import scraped, telemetry_row


async def test_spans_and_figures_of_events_and_verdicts(
    pin_table: Callable[[str], PinTable], tmp_path: Path
) -> None:
    """A block is no error, and content stays here unless it is asked for."""

    async def recorded(_: str, row: Row) -> object:
        return await telemetry_row(row, tmp_path)

    await pin_table("telemetry/events").check(recorded)


async def test_state_of_a_worker_is_in_gauges(
    pin_table: Callable[[str], PinTable],
) -> None:
    """They are absent if the event loop does not answer."""
    figures = PrometheusTelemetry()

    def gauges(_: str, row: Row) -> object:
        state = row["state"] and msgspec.convert(row["state"], WorkerState)
        return {
            name.removeprefix("hookline_"): value
            for name, value in scraped(figures, state).items()
            if name.startswith("hookline_") and "build_info" not in name
        }

    await pin_table("telemetry/worker_state").check(gauges)
