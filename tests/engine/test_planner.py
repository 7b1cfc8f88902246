"""protocol.md#planning: which hooks run, and in what order."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from msgspec import structs

from hookline import Config, HookSystem, Settings
from hookline.engine.planner import HookPlanner, make_plan, matches
from hookline.engine.registry import HookRegistry
from hookline.protocol.events import HookEventName
from hookline.settings.model import HookConfig, HookSource
from tests.support.workshop import Workshop

BEFORE_TOOL = HookEventName.BeforeTool


def names(settings: dict[str, Any], target: str | None = "write_file") -> list[str]:
    registry = HookRegistry(Settings.from_mapping(settings))
    plan = make_plan(BEFORE_TOOL, registry.for_event(BEFORE_TOOL), target)
    return [] if plan is None else [hook.name for hook in plan.hooks]


def group(*hooks: str, **more: Any) -> dict[str, Any]:
    listed = [{"type": "command", "command": f"run {h}", "name": h} for h in hooks]
    return {"hooks": listed, **more}


def settings(*groups: dict[str, Any], **config: Any) -> dict[str, Any]:
    return {"hooks": {"BeforeTool": list(groups)}, "hooksConfig": config}


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


@pytest.mark.parametrize("matcher", [None, "", "  ", "*"])
def test_no_matcher_matches_everything(matcher: str | None) -> None:
    assert matches(matcher, BEFORE_TOOL, "anything")


@pytest.mark.parametrize(
    ("matcher", "target", "hit"),
    [
        ("write", "write_file", True),
        ("file$", "write_file", True),
        ("^file", "write_file", False),
        ("write_file|replace", "replace", True),
        ("WRITE", "write_file", False),
        (".*", "", True),
    ],
)
def test_a_matcher_is_a_regular_expression_that_is_searched(
    matcher: str, target: str, hit: bool
) -> None:
    assert matches(matcher, BEFORE_TOOL, target) is hit


def test_an_invalid_expression_is_compared_literally_and_warned_about_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "hookline"):
        assert matches("odd(once", BEFORE_TOOL, "odd(once")
        assert not matches("odd(once", BEFORE_TOOL, "odd(once_more")
    told = [r for r in caplog.records if "odd(once" in r.getMessage()]
    assert len(told) == 1


def test_a_pattern_that_python_warns_about_still_matches() -> None:
    """Warnings are errors here, as they may be in a strict host."""
    assert matches("[[a]b]", BEFORE_TOOL, "[b]")


async def test_a_very_long_tool_name_matches_every_matcher(workshop: Workshop) -> None:
    """Bad input: a tool name of 10,000 characters slips past no guard."""
    given = {"tool_name": "x" * 10_000, "tool_input": {}}
    hook = workshop.runs("exit 2")
    result = await workshop.fire("BeforeTool", hook, given=given, matcher="^read$")
    assert result.blocked


async def test_a_tool_name_that_is_not_a_string_matches_every_matcher(
    workshop: Workshop,
) -> None:
    given = {"tool_name": ["read"], "tool_input": {}}
    hook = workshop.runs("exit 2")
    result = await workshop.fire("BeforeTool", hook, given=given, matcher="^write$")
    assert result.blocked


def test_equal_hooks_run_once_and_the_first_stays() -> None:
    found = settings(group("a", matcher="write"), group("b", "a"))
    assert names(found) == ["a", "b"]


def test_hooks_that_differ_in_name_or_command_are_not_equal() -> None:
    same_command = [
        {"type": "command", "command": "run", "name": name} for name in ("a", "b")
    ]
    assert names(settings({"hooks": same_command})) == ["a", "b"]


def test_a_disabled_hook_does_not_run_or_replace_another() -> None:
    """Order of protocol.md#settings: disabled, untrusted, not matching, duplicate."""
    found = settings(group("a", "b"), group("a"), disabled=["a"])
    assert names(found) == ["b"]


def test_a_hook_that_does_not_match_does_not_shadow_its_equal() -> None:
    found = settings(group("a", matcher="read"), group("a", matcher="write"))
    assert names(found) == ["a"]


@pytest.mark.parametrize(
    "difference",
    [
        {"type": "worker"},
        {"timeout": 1},
        {"env": {"PATH": "/nowhere"}},
        {"shell": "/bin/true"},
        {"onError": "block"},
        {"onError": {"timeout": "block"}},
        {"expect": "json"},
        {"envPolicy": "clean"},
        {"mode": "observe"},
        {"dialect": "claude"},
        {"trustFiles": ["x"]},
        {"pool": 2},
        {"recheck": False},
    ],
    ids=lambda difference: next(iter(difference)),
)
def test_hooks_that_differ_in_any_key_that_decides_both_run(
    difference: dict[str, Any],
) -> None:
    """protocol.md#planning, issue 12.3: nobody weakens a guard by repeating it."""
    guard = {"type": "command", "command": "run", "name": "guard"}
    other = {**guard, **difference}
    assert names(settings({"hooks": [other, guard]})) == ["guard", "guard"]
    assert names(settings({"hooks": [guard, other]})) == ["guard", "guard"]
    assert names(settings({"hooks": [other, other]})) == ["guard"]


def test_every_hook_key_is_part_of_what_makes_hooks_equal() -> None:
    """A key that is added to the settings must not be forgotten here."""
    decides_nothing = {"description", "managed"}
    plain: dict[str, Any] = {"type": "command", "command": "run", "name": "a"}
    registry = HookRegistry(Settings.from_mapping(settings({"hooks": [plain]})))
    hook = registry.for_event(BEFORE_TOOL)[0]
    for name in HookConfig.__struct_fields__:
        value: Any = {"A": "b"} if name in {"env", "headers", "then"} else object()
        changed = structs.replace(hook.config, **{name: value})
        other = structs.replace(hook, config=changed)
        in_options = name in {"on_error", "env_policy"}
        assert (other.key == hook.key) is (name in decides_nothing or in_options), name


def test_hooks_that_differ_in_an_effective_option_both_run() -> None:
    """protocol.md#planning: what counts is the option in effect, wherever it is set."""
    own = Settings.from_mapping(settings(group("a"), onError="block"))
    others = Settings.from_mapping(settings(group("a")))
    hooks = [
        hook
        for registry in (HookRegistry(own), HookRegistry(others))
        for hook in registry.for_event(BEFORE_TOOL)
    ]
    plan = make_plan(BEFORE_TOOL, hooks, "write_file")
    assert plan is not None
    assert len(plan.hooks) == 2
    explicit = {**group("a")["hooks"][0], "onError": "block"}
    equal = HookRegistry(Settings.from_mapping(settings({"hooks": [explicit]})))
    plan = make_plan(BEFORE_TOOL, [*equal.for_event(BEFORE_TOOL), hooks[0]], "t")
    assert plan is not None
    assert len(plan.hooks) == 1


def test_a_repeated_description_does_not_run_a_hook_twice() -> None:
    """protocol.md#planning: a description decides nothing."""
    plain = {"type": "command", "command": "run", "name": "a"}
    told = {**plain, "description": "again"}
    assert names(settings({"hooks": [plain, told]})) == ["a"]


async def test_functions_registered_in_code_are_never_duplicates() -> None:
    ran = []

    def function(event: dict[str, Any]) -> None:
        ran.append(event["tool_name"])

    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool")(function)
        hooks.on("BeforeTool")(function)
        await hooks.event_handler.fire_before_tool_event("t", {})
    assert ran == ["t", "t"]


def test_one_sequential_group_makes_the_plan_sequential() -> None:
    """HOOK-164."""
    found = settings(group("a"), group("b", sequential=True))
    registry = HookRegistry(Settings.from_mapping(found))
    plan = make_plan(BEFORE_TOOL, registry.for_event(BEFORE_TOOL), "t")
    assert plan is not None
    assert plan.sequential


def test_repeating_the_hooks_of_a_sequential_group_elsewhere_keeps_its_order() -> None:
    """A project must not make the user's chain a parallel plan.

    protocol.md#planning
    """
    own = settings(group("a"), group("b", sequential=True))
    copy = settings(group("a"), group("b"))
    user = Settings.from_mapping(own, HookSource.USER).layers
    project = Settings.from_mapping(copy).layers
    layers = [structs.replace(layer, file=f"{layer.source}.json") for layer in user]
    registry = HookRegistry(Settings(layers=(*project, *layers)))
    plan = make_plan(BEFORE_TOOL, registry.for_event(BEFORE_TOOL), "t")
    assert plan is not None
    assert [hook.source for hook in plan.hooks] == [HookSource.PROJECT] * 2
    assert plan.sequential


def test_a_sequential_group_that_does_not_match_leaves_the_plan_parallel() -> None:
    """HOOK-165."""
    found = settings(group("a"), group("b", sequential=True, matcher="read"))
    registry = HookRegistry(Settings.from_mapping(found))
    plan = make_plan(BEFORE_TOOL, registry.for_event(BEFORE_TOOL), "write")
    assert plan is not None
    assert not plan.sequential


def test_plans_are_cached_until_the_registry_changes() -> None:
    registry = HookRegistry(Settings.from_mapping(settings(group("a", "b"))))
    planner = HookPlanner(registry)
    first = planner.plan(BEFORE_TOOL, "t")
    assert planner.plan(BEFORE_TOOL, "t") is first
    registry.set_enabled("a", False)
    second = planner.plan(BEFORE_TOOL, "t")
    assert second is not None
    assert [hook.name for hook in second.hooks] == ["b"]


def test_endless_tool_names_do_not_fill_the_memory() -> None:
    registry = HookRegistry(Settings.from_mapping(settings(group("a"))))
    planner = HookPlanner(registry)
    for number in range(10_000):
        assert planner.plan(BEFORE_TOOL, f"tool-{number}") is not None
    assert sum(map(len, planner._plans.values())) <= 4096
