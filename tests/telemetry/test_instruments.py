"""Counters of verdicts and failures, histograms of time (issue 16: OpenTelemetry)."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from hookline.telemetry import instruments

from .recorded import TOOL, Recorded, id_of


def by_labels(points: list[Any], field: str) -> dict[tuple[Any, ...], Any]:
    return {
        tuple(value for _, value in sorted(point.attributes.items())): getattr(
            point, field
        )
        for point in points
    }


async def fires(host: Recorded, count: int = 1, **fields: Any) -> None:
    hook = {"type": "command", "command": "exit 3", "name": "broken"}
    async with host.system(hook) as hooks:
        says = {"decision": "block", "reason": "no"}
        hooks.on("BeforeTool", "danger", name="no")(lambda _: says)
        for _ in range(count):
            await hooks.event_handler.fire("BeforeTool", {**TOOL, **fields})


async def test_verdicts_and_failures_are_counted(host: Recorded) -> None:
    await fires(host, 2)
    await fires(host, tool_name="danger")
    assert by_labels(host.points("hookline.events"), "value") == {
        ("BeforeTool", "allowed"): 2,
        ("BeforeTool", "blocked"): 1,
    }
    assert by_labels(host.points("hookline.hook.failures"), "value") == {
        ("crash", "BeforeTool", "broken", "command"): 3
    }


async def test_time_of_events_and_hooks_is_in_histograms(host: Recorded) -> None:
    await fires(host, 3)
    events = by_labels(host.points("hookline.event.duration"), "count")
    assert events == {("BeforeTool", "allowed"): 3}
    (point,) = host.points("hookline.hook.duration")
    assert point.count == 3
    assert 0 < point.sum < 60
    assert tuple(point.explicit_bounds) == instruments.BUCKETS_S


async def test_a_bucket_leads_to_a_trace_and_keeps_no_more_than_one_span(
    host: Recorded,
) -> None:
    """Issue 16: histograms of time; what waits to be collected stays small."""
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


async def test_labels_have_few_values(host: Recorded) -> None:
    """Neither sessions nor the names that a model makes up are labels."""
    async with host.system() as hooks:
        hooks.on("BeforeTool", name="look")(lambda _: None)
        for number in range(50):
            odd = {"tool_name": f"tool_{number}", "session_id": f"s-{number}"}
            await hooks.event_handler.fire("BeforeTool", TOOL | odd)
    for metric in ("hookline.events", "hookline.event.duration"):
        assert len(host.points(metric)) == 1
    assert len(host.points("hookline.hook.duration")) == 1


async def test_systems_of_one_host_share_their_counts(host: Recorded) -> None:
    """A counter that is registered twice would be exported twice."""
    for _ in range(3):
        async with host.system() as hooks:
            await hooks.event_handler.fire("BeforeTool", TOOL)
    (point,) = host.points("hookline.events")
    assert point.value == 3


async def test_many_durations_are_handed_over_before_anybody_collects(
    host: Recorded, monkeypatch: pytest.MonkeyPatch
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


async def test_threads_lose_no_count(host: Recorded) -> None:
    async with host.system() as hooks:

        async def work() -> None:
            for _ in range(200):
                await hooks.event_handler.fire("BeforeTool", TOOL)

        threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in "1234"]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
    (point,) = host.points("hookline.events")
    assert point.value == 800


async def test_failure_outside_the_hooks_is_in_the_count(host: Recorded) -> None:
    async with host.system() as hooks:
        await hooks.event_handler.fire("SessionStart", {"source": "boot"})
    (point,) = host.points("hookline.events")
    assert dict(point.attributes) == {
        "hookline.event": "SessionStart",
        "hookline.verdict": "allowed",
        "error.type": "validation",
    }
