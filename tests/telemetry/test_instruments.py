"""Counters of verdicts and failures, histograms of time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hookline.telemetry import instruments
from tests.support.telemetry_rows import TOOL, TelemetryHost, id_of, run_in_threads


async def test_a_bucket_leads_to_a_trace_and_keeps_no_more_than_one_span(
    host: TelemetryHost,
) -> None:
    """Histograms of time; what waits to be collected stays small."""
    async with host.system() as hooks:
        for _ in range(200):
            await hooks.event_handler.fire("BeforeTool", TOOL)
    found = instruments.instruments_of(host.meters)
    assert found is not None
    (series,) = found._times._series.values()
    assert len(series._traced) <= len(instruments.BUCKETS_S) + 1
    (point,) = host.points("hookline.event.duration")
    assert point.count == 200
    spans = {id_of(span) for span in host.spans}
    assert point.exemplars
    assert {one.span_id for one in point.exemplars} <= spans


async def test_many_durations_are_handed_over_before_anybody_collects(
    host: TelemetryHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instruments, "MANY", 64)
    many = 10 * instruments.MANY
    async with host.system() as hooks:
        for _ in range(many):
            await hooks.event_handler.fire("BeforeTool", TOOL)
    found = instruments.instruments_of(host.meters)
    assert found is not None
    for thread in threading.enumerate():
        if thread.name == "hookline-figures":
            await asyncio.to_thread(thread.join)
    assert found._times._waiting < many
    (point,) = host.points("hookline.event.duration")
    assert point.count == many


async def test_threads_lose_no_count(host: TelemetryHost) -> None:
    async with host.system() as hooks:

        async def work() -> None:
            for _ in range(200):
                await hooks.event_handler.fire("BeforeTool", TOOL)

        await run_in_threads(work)
    (point,) = host.points("hookline.events")
    assert point.value == 800


async def test_systems_of_one_host_share_their_counts_with_few_labels(
    host: TelemetryHost,
) -> None:
    """Neither sessions nor names that a model makes up are labels; times are seconds.

    A counter that is registered twice would be exported twice.
    """
    for number in range(3):
        async with host.system() as hooks:
            hooks.on("BeforeTool", name="look")(lambda _: None)
            odd = {"tool_name": f"tool_{number}", "session_id": f"s-{number}"}
            await hooks.event_handler.fire("BeforeTool", TOOL | odd)
    (events,) = host.points("hookline.events")
    (times,) = host.points("hookline.event.duration")
    (hook_times,) = host.points("hookline.hook.duration")
    assert (events.value, times.count, hook_times.count) == (3, 3, 3)
    assert 0 < hook_times.sum < 60
    assert tuple(hook_times.explicit_bounds) == instruments.BUCKETS_S
