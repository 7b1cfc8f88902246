"""The figures of a worker, read with the client's own parser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.telemetry.health import WorkerState
from hookline.telemetry.prometheus import PrometheusTelemetry
from tests.support.bus_rows import rule
from tests.support.telemetry_rows import scraped


def system_of(
    folder: Path, figures: PrometheusTelemetry, *hooks: dict[str, Any], **more: Any
) -> HookSystem:
    groups = [{"hooks": [hook]} for hook in hooks]
    settings = Settings.from_mapping({"hooks": {"BeforeTool": groups}, **more})
    return HookSystem(Config("s", folder, settings), telemetry=figures)


async def fire(system: HookSystem, *tools: str) -> None:
    async with system:
        for tool in tools or ("a tool",):
            await system.event_handler.fire_before_tool_event(tool, {"path": "secret"})


def events_total(figures: PrometheusTelemetry) -> dict[str, float]:
    """How many events there were, by name and verdict."""
    start = "hookline_events_total "
    return {
        name.removeprefix(start): value
        for name, value in scraped(figures).items()
        if name.startswith(start)
    }


async def test_counts_of_all_systems_add_up_beside_otel(tmp_path: Path) -> None:
    """The figures count although settings ask for OpenTelemetry; times are seconds.

    Neither tools nor contents are labels.
    """
    figures = PrometheusTelemetry()
    options = {"hooksConfig": {"telemetry": "otel"}}
    fine = {"type": "command", "name": "fine", "command": "echo printed"}
    for _ in range(2):
        await fire(system_of(tmp_path, figures, fine, **options), "tool-a", "tool-b")
    for word in ("tool-", "secret", "printed", str(tmp_path)):
        assert word not in figures.render(None).decode()
    assert events_total(figures) == {"{'event': 'BeforeTool', 'verdict': 'allowed'}": 4}
    labels = {"event": "BeforeTool"}
    seconds = scraped(figures)[f"hookline_event_duration_seconds_sum {labels}"]
    assert 0 < seconds < 60


HOSTILE = 'x"} 1\nfake_metric{a="b"} 7\r\\\u2028\ud800\x00\x85"'


async def test_hostile_name_of_a_hook_is_one_label_and_no_line(tmp_path: Path) -> None:
    figures = PrometheusTelemetry()
    system = system_of(tmp_path, figures)

    def hook(_: dict[str, Any]) -> None: ...

    hook.__name__ = HOSTILE
    system.on("BeforeTool")(hook)
    await fire(system)
    samples = scraped(figures, WorkerState(breakers={HOSTILE: True, "y" * 200: True}))
    shown = 'x"} 1\ufffdfake_metric{a="b"} 7\ufffd\\\ufffd\ufffd\ufffd\ufffd"'
    run = {"hook": shown, "outcome": "allowed", "type": "python"}
    assert samples[f"hookline_hook_runs_total {run}"] == 1
    for label in (shown, "y" * 99 + "…"):
        assert samples[f"hookline_hook_breaker_open { {'hook': label} }"] == 1
    assert not any(name.startswith("fake_metric") for name in samples)


async def test_hooks_beyond_the_limit_share_one_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules[PrometheusTelemetry.__module__]
    monkeypatch.setattr(module, "_MAX_HOOKS", 3)
    figures = PrometheusTelemetry()
    hooks = [rule(f"h{number}") for number in range(6)]
    await fire(system_of(tmp_path, figures, *hooks), "a", "b")
    runs = sorted(
        value
        for name, value in scraped(figures).items()
        if name.startswith("hookline_hook_runs_total ")
    )
    assert runs == [2, 2, 2, 6]
    other = {"hook": "(other)", "outcome": "allowed", "type": "other"}
    assert scraped(figures)[f"hookline_hook_runs_total {other}"] == 6


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_process_and_build_are_described() -> None:
    samples = scraped(PrometheusTelemetry())
    assert "process_resident_memory_bytes {}" in samples
    (build,) = (name for name in samples if name.startswith("hookline_build_info"))
    assert f"'python': '{'.'.join(map(str, sys.version_info[:3]))}'" in build
