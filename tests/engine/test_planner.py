"""protocol.md#planning: which hooks run, and in what order."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from hookline import Config, HookSystem, Settings
from hookline.engine.planner import HookPlanner
from hookline.engine.registry import HookRegistry
from hookline.protocol.events import HookEventName
from hookline.settings.model import HookConfig

BEFORE_TOOL = HookEventName.BeforeTool
COMMAND = {"type": "command", "command": "run", "name": "a"}
SETTINGS = {"hooks": {"BeforeTool": [{"hooks": [COMMAND]}]}}


async def test_no_hooks_means_no_plan_and_a_fresh_empty_success() -> None:
    """HOOK-062, DELTA-HFAIL-003, DELTA-HFAIL-004, rules F2 and F3."""
    async with HookSystem(Config()) as hooks:
        first = await hooks.event_handler.fire_before_tool_event("t", {})
        second = await hooks.event_handler.fire_before_tool_event("t", {})
    assert (first.aggregated.success, first.final_output) == (True, None)
    assert first.aggregated.hook_results == []
    assert first.aggregated.total_duration == 0
    assert first is not second
    assert first.aggregated is not second.aggregated
    assert first.aggregated.errors is not second.aggregated.errors


def test_every_hook_key_is_part_of_what_makes_hooks_equal() -> None:
    """A key that is added to the settings must not be forgotten here."""
    decides_nothing = {"description", "managed"}
    registry = HookRegistry(Settings.from_mapping(SETTINGS))
    hook = registry.for_event(BEFORE_TOOL)[0]
    for name in HookConfig.__struct_fields__:
        value: Any = {"A": "b"} if name in {"env", "headers", "then"} else object()
        changed = structs.replace(hook.config, **{name: value})
        other = structs.replace(hook, config=changed)
        in_options = name in {"on_error", "env_policy"}
        assert (other.key == hook.key) is (name in decides_nothing or in_options), name


def test_endless_tool_names_do_not_fill_the_memory() -> None:
    registry = HookRegistry(Settings.from_mapping(SETTINGS))
    planner = HookPlanner(registry)
    for number in range(10_000):
        assert (
            planner.plan_for(BEFORE_TOOL, {"tool_name": f"tool-{number}"}) is not None
        )
    assert sum(map(len, registry.plans.values())) <= 4096
