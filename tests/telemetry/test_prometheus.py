"""The figures, read with the client's own parser (issue 16: metrics)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hookline import Config, HookSystem, Settings
from hookline.telemetry.health import WorkerState
from hookline.telemetry.prometheus import OTHER, PrometheusTelemetry, label_of
from tests.support.processes import until

Labels = frozenset[tuple[str, str]]


class Scrape:
    """The samples of one scrape."""

    def __init__(
        self, figures: PrometheusTelemetry, state: WorkerState | None = None
    ) -> None:
        self.text = figures.render(state).decode()
        self.samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(self.text)
            for sample in family.samples
        }

    def get(self, name: str, **labels: str) -> float | None:
        return self.samples.get((f"hookline_{name}", frozenset(labels.items())))

    def names(self) -> set[str]:
        return {name for name, _ in self.samples}


def command(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "name": name, "command": text, **more}


def system_of(
    folder: Path, figures: PrometheusTelemetry, *hooks: dict[str, Any], **more: Any
) -> HookSystem:
    groups = [{"hooks": [hook]} for hook in hooks]
    settings = Settings.from_mapping({"hooks": {"BeforeTool": groups}, **more})
    return HookSystem(Config("s", folder, settings), telemetry=figures)


async def fire(system: HookSystem, times: int = 1, **tool_input: Any) -> None:
    async with system:
        for _ in range(times):
            await system.event_handler.fire_before_tool_event("a tool", tool_input)


async def test_events_are_counted_by_verdict_and_hooks_by_outcome(
    tmp_path: Path,
) -> None:
    figures = PrometheusTelemetry()
    block = command("block", "echo no >&2; exit 2")
    crash = command("crash", "exit 1")
    observe = command("observe", "exit 2", mode="observe")
    await fire(system_of(tmp_path, figures, block, crash, observe), times=2)
    await fire(system_of(tmp_path, figures, command("fine", "true")))
    found = Scrape(figures)
    assert found.get("events_total", event="BeforeTool", verdict="blocked") == 2
    assert found.get("events_total", event="BeforeTool", verdict="allowed") == 1
    for hook, outcome in (
        *(("block", "blocked"), ("crash", "failed"), ("observe", "would_block")),
    ):
        labels = {"hook": hook, "type": "command"}
        assert found.get("hook_runs_total", **labels, outcome=outcome) == 2, hook
        assert found.get("hook_duration_seconds_count", **labels) == 2
    crashed = {"hook": "crash", "type": "command", "cause": "crash"}
    assert found.get("hook_failures_total", **crashed) == 2
    observed = {"hook": "observe", "type": "command"}
    assert found.get("hook_would_blocks_total", **observed) == 2
    assert found.get("event_duration_seconds_count", event="BeforeTool") == 3
    seconds = found.get("event_duration_seconds_sum", event="BeforeTool")
    assert seconds is not None
    assert 0 < seconds < 60


async def test_changes_questions_stops_and_rechecks_are_told_apart(
    tmp_path: Path,
) -> None:
    figures = PrometheusTelemetry()
    change = 'echo \'{"hookSpecificOutput": {"tool_input": {"a": 2}}}\''
    hooks = (command("change", change), command("look", "true"))
    await fire(system_of(tmp_path, figures, *hooks), a=1)
    ask = command("ask", 'echo \'{"decision": "ask", "reason": "sure?"}\'')
    await fire(system_of(tmp_path, figures, ask))
    stop = command("stop", 'echo \'{"continue": false, "stopReason": "x"}\'')
    await fire(system_of(tmp_path, figures, stop))
    found = Scrape(figures)
    for verdict in ("changed", "ask", "stopped"):
        labels = {"event": "BeforeTool", "verdict": verdict}
        assert found.get("events_total", **labels) == 1, found.text
    for hook, outcome in (("ask", "ask"), ("stop", "stopped"), ("change", "allowed")):
        labels = {"hook": hook, "type": "command", "outcome": outcome}
        assert found.get("hook_runs_total", **labels) == 1, found.text
    looked = {"hook": "look", "type": "command"}
    assert found.get("hook_rechecks_total", **looked) == 1
    assert found.get("hook_runs_total", **looked, outcome="allowed") == 2


async def test_an_event_that_fails_or_is_cancelled_is_counted_as_that(
    tmp_path: Path,
) -> None:
    figures = PrometheusTelemetry()
    started = tmp_path / "started"
    system = system_of(tmp_path, figures, command("slow", f"touch {started}; sleep 60"))
    async with system:
        await system.event_handler.fire("SessionStart", {"source": "boot"})
        handler = system.event_handler
        firing = asyncio.create_task(handler.fire_before_tool_event("x", {}))
        await until(str(started))
        firing.cancel()
        await asyncio.wait({firing})
    found = Scrape(figures)
    assert found.get("events_total", event="SessionStart", verdict="failed") == 1
    assert found.get("events_total", event="BeforeTool", verdict="cancelled") == 1
    labels = {"hook": "slow", "type": "command", "outcome": "cancelled"}
    assert found.get("hook_runs_total", **labels) == 1


HOSTILE = 'x"} 1\nfake_metric{a="b"} 7\r\\\u2028\ud800\x00\x85"'


async def test_a_hostile_name_of_a_hook_is_one_label_and_no_line(
    tmp_path: Path,
) -> None:
    figures = PrometheusTelemetry()
    system = system_of(tmp_path, figures)

    def hook(_: dict[str, Any]) -> None: ...

    hook.__name__ = HOSTILE
    system.on("BeforeTool")(hook)
    await fire(system)
    found = Scrape(figures, WorkerState(breakers={HOSTILE: True}))
    shown = 'x"} 1\ufffdfake_metric{a="b"} 7\ufffd\\\ufffd\ufffd\ufffd\ufffd"'
    labels = {"hook": shown, "type": "python", "outcome": "allowed"}
    assert found.get("hook_runs_total", **labels) == 1, found.text
    assert found.get("hook_breaker_open", hook=shown) == 1
    assert "fake_metric" not in found.names()
    assert found.text.count("\n") == len(found.text.splitlines())


async def test_neither_tools_nor_sessions_nor_contents_are_labels(
    tmp_path: Path,
) -> None:
    figures = PrometheusTelemetry()
    system = system_of(tmp_path, figures, command("fine", "echo printed"))
    async with system:
        for number in range(5):
            await system.event_handler.fire_before_tool_event(
                f"tool-{number}", {"path": "a secret"}
            )
    text = Scrape(figures).text
    for word in ("tool-", "a secret", "printed", str(tmp_path)):
        assert word not in text


async def test_hooks_beyond_the_limit_share_one_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules[PrometheusTelemetry.__module__]
    monkeypatch.setattr(module, "_MAX_HOOKS", 3)
    figures = PrometheusTelemetry()
    hooks = [command(f"h{number}", "true") for number in range(6)]
    await fire(system_of(tmp_path, figures, *hooks), times=2)
    found = Scrape(figures)
    seen = {dict(labels).get("hook") for _, labels in found.samples} - {None}
    assert len(seen) == 4
    labels = {"hook": OTHER, "type": "other", "outcome": "allowed"}
    assert found.get("hook_runs_total", **labels) == 6


def test_a_long_name_is_cut() -> None:
    assert len(label_of("x" * 1_000_000)) == 100


def test_the_state_is_in_gauges_and_absent_if_the_loop_does_not_answer() -> None:
    figures = PrometheusTelemetry()
    state = WorkerState(
        bus_connected=True,
        settings_errors=2,
        settings_loaded_at=1234.5,
        reloaded=False,
        hooks={"enabled": 3, "disabled": 1},
        breakers={"slow": True, "fast": False},
        processes=4,
        lost=("gone",),
        in_flight=5,
        waiting=6,
    )
    found = Scrape(figures, state)
    for name, value in (
        *(("event_loop_up", 1), ("bus_connected", 1), ("stopping", 0)),
        *(("settings_errors", 2), ("settings_reload_success", 0)),
        *(("settings_load_timestamp_seconds", 1234.5), ("worker_processes", 4)),
        *(("workers_lost", 1), ("requests_in_flight", 5), ("requests_waiting", 6)),
    ):
        assert found.get(name) == value, name
    assert found.get("hooks", state="enabled") == 3
    assert found.get("hook_breaker_open", hook="slow") == 1
    assert found.get("hook_breaker_open", hook="fast") == 0
    assert found.get("ready", check="bus") == 1
    assert found.get("ready", check="workers") == 0
    stuck = Scrape(figures, None)
    assert stuck.get("event_loop_up") == 0
    assert stuck.get("bus_connected") is None


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_the_process_and_the_build_are_described() -> None:
    found = Scrape(PrometheusTelemetry())
    assert "process_resident_memory_bytes" in found.names()
    (build,) = (dict(k[1]) for k in found.samples if k[0] == "hookline_build_info")
    assert build["python"] == ".".join(map(str, sys.version_info[:3]))
    assert build["version"]


async def test_settings_add_otel_beside_the_figures(tmp_path: Path) -> None:
    """Both at once: the figures count although settings ask for OpenTelemetry."""
    figures = PrometheusTelemetry()
    options = {"hooksConfig": {"telemetry": "otel"}}
    await fire(system_of(tmp_path, figures, command("fine", "true"), **options))
    found = Scrape(figures)
    assert found.get("events_total", event="BeforeTool", verdict="allowed") == 1
