"""Who may switch off, loosen or tighten what: "A project can only add".

protocol.md#settings
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.protocol.events import HookEventName
from hookline.protocol.results import FailureCause
from hookline.settings.load import GlobalOptions, HookOptions, Settings
from hookline.settings.model import (
    Breaker,
    EnvPolicy,
    FailurePolicy,
    HookConfig,
    HookSource,
    HookType,
    OnFailure,
    SettingsLayer,
    TelemetryOptions,
    ToolSelection,
)
from hookline.settings.parse import parse_layer

PROJECT, USER, SYSTEM = HookSource.PROJECT, HookSource.USER, HookSource.SYSTEM
EXTENSIONS = HookSource.EXTENSIONS
ALLOW, BLOCK = OnFailure.ALLOW, OnFailure.BLOCK
IN_CODE = HookConfig(type=HookType.PYTHON, name="h")


def layer(
    source: HookSource,
    *hooks: dict[str, Any],
    enable: bool = True,
    explicit: bool = False,
    **options: Any,
) -> SettingsLayer:
    entries = [{"type": "command", "command": "x", "name": "h", **h} for h in hooks]
    raw: dict[str, Any] = {"enableHooks": enable, "hooksConfig": options}
    if entries:
        raw["hooks"] = {"BeforeTool": [{"hooks": entries}]}
    read = parse_layer(raw, source, explicit=explicit)
    assert read.warnings == ()
    return read


def hook_of(layer: SettingsLayer) -> HookConfig:
    return layer.groups[HookEventName.BeforeTool][0].hooks[0]


def running(settings: Settings) -> list[tuple[HookSource, str]]:
    """The hooks that are neither switched off nor disabled."""
    return [
        (layer.source, hook.name)
        for layer in settings.layers
        for groups in settings.groups_of(layer).values()
        for group in groups
        for hook in group.hooks
        if not settings.disabled(layer, hook)
    ]


def options_in(*layers: SettingsLayer, of: SettingsLayer | None) -> HookOptions:
    hook = IN_CODE if of is None else hook_of(of)
    return Settings(layers=layers).hook_options(of, hook)


def global_in(*layers: SettingsLayer) -> GlobalOptions:
    return Settings(layers=layers).global_options


MANAGED = {"name": "m", "managed": True}


def test_enable_hooks_false_of_a_project_reaches_its_own_hooks_only() -> None:
    settings = Settings(
        layers=(
            layer(PROJECT, {}, enable=False),
            layer(USER, {}),
            layer(SYSTEM, {}),
            layer(EXTENSIONS, {}),
        )
    )
    assert [source for source, _ in running(settings)] == [USER, SYSTEM, EXTENSIONS]
    assert settings.hooks_enabled


def test_enable_hooks_false_of_an_extension_reaches_its_own_hooks_only() -> None:
    settings = Settings(layers=(layer(USER, {}), layer(EXTENSIONS, {}, enable=False)))
    assert [source for source, _ in running(settings)] == [USER]
    assert settings.hooks_enabled


@pytest.mark.parametrize("source", [USER, SYSTEM])
def test_enable_hooks_false_of_user_or_system_reaches_all_but_managed(
    source: HookSource,
) -> None:
    layers = (
        layer(PROJECT, {}),
        layer(USER, {}, enable=source is not USER),
        layer(SYSTEM, {}, MANAGED, enable=source is not SYSTEM),
        layer(EXTENSIONS, {}),
    )
    settings = Settings(layers=layers)
    assert running(settings) == [(SYSTEM, "m")]
    assert settings.hooks_enabled


def test_enable_hooks_false_of_an_explicit_file_leaves_managed_hooks() -> None:
    explicit = layer(PROJECT, {}, enable=False, explicit=True)
    settings = Settings(layers=(explicit, layer(SYSTEM, MANAGED)))
    assert running(settings) == [(SYSTEM, "m")]
    assert settings.hooks_enabled
    assert not Settings(layers=(explicit,)).hooks_enabled


@pytest.mark.parametrize(
    ("layers", "enabled"),
    [
        pytest.param((), True, id="nothing at all"),
        pytest.param((layer(PROJECT, {}, enable=False),), False, id="project alone"),
        pytest.param(
            (layer(PROJECT, {}, enable=False), layer(USER)), False, id="others empty"
        ),
        pytest.param((layer(PROJECT), layer(USER, enable=False)), False, id="user"),
        pytest.param((layer(SYSTEM, {}, enable=False),), False, id="system"),
        pytest.param((layer(EXTENSIONS, enable=False),), True, id="extension"),
    ],
)
def test_hooks_are_enabled_unless_nothing_could_run(
    layers: tuple[SettingsLayer, ...], enabled: bool
) -> None:
    assert Settings(layers=layers).hooks_enabled is enabled


@pytest.mark.parametrize("speaker", [PROJECT, EXTENSIONS])
def test_disabled_list_of_project_or_extension_reaches_its_own_hooks_only(
    speaker: HookSource,
) -> None:
    layers = tuple(
        layer(source, {}, disabled=["h"] if source is speaker else [])
        for source in (PROJECT, USER, SYSTEM, EXTENSIONS)
    )
    settings = Settings(layers=layers)
    assert speaker not in [source for source, _ in running(settings)]
    assert len(running(settings)) == 3
    assert not settings.disabled(None, IN_CODE)


@pytest.mark.parametrize("speaker", [USER, SYSTEM])
def test_disabled_list_of_user_or_system_reaches_all_but_managed(
    speaker: HookSource,
) -> None:
    layers = tuple(
        layer(source, {}, disabled=["h", "m"] if source is speaker else [])
        for source in (PROJECT, USER, EXTENSIONS)
    )
    off = ["h", "m"] if speaker is SYSTEM else []
    settings = Settings(layers=(*layers, layer(SYSTEM, {}, MANAGED, disabled=off)))
    assert running(settings) == [(SYSTEM, "m")]
    assert settings.disabled(None, IN_CODE)


def test_disabled_list_of_an_explicit_file_leaves_managed_hooks() -> None:
    explicit = layer(PROJECT, {}, explicit=True, disabled=["h", "m"])
    settings = Settings(layers=(explicit, layer(SYSTEM, MANAGED)))
    assert running(settings) == [(SYSTEM, "m")]


def test_hook_options_have_the_documented_defaults() -> None:
    own = layer(PROJECT, {})
    assert options_in(own, of=own) == HookOptions(
        on_error=FailurePolicy(ALLOW, ALLOW, ALLOW, ALLOW, BLOCK),
        env_policy=EnvPolicy.INHERIT,
        max_output_bytes=8 * 1024 * 1024,
        breaker=Breaker(3, 300_000),
        max_depth=4,
    )


def test_hook_options_come_from_hook_then_layer_then_user_then_system() -> None:
    own = layer(
        PROJECT,
        {"onError": {"spawn": "block"}},
        onError={"spawn": "allow", "crash": "block"},
        maxDepth=1,
    )
    user = layer(USER, onError={"crash": "allow", "timeout": "block"}, maxDepth=2)
    system = layer(
        SYSTEM, onError={"timeout": "allow", "output": "block"}, maxOutputBytes=7
    )
    options = options_in(own, user, system, of=own)
    assert options.on_error == FailurePolicy(BLOCK, BLOCK, BLOCK, BLOCK, BLOCK)
    assert (options.max_depth, options.max_output_bytes) == (1, 7)


LOOSE: dict[str, Any] = {
    "onError": {"changed": "allow"},
    "envPolicy": "clean",
    "maxOutputBytes": 1,
    "breaker": False,
    "maxDepth": 1,
    "workerIdleMs": 1,
}


@pytest.mark.parametrize("of", [USER, SYSTEM, EXTENSIONS, None])
def test_hook_options_of_a_project_never_reach_other_hooks(
    of: HookSource | None,
) -> None:
    own = None if of is None else layer(of, {})
    others = () if own is None else (own,)
    project = layer(PROJECT, {}, **LOOSE)
    assert options_in(project, *others, of=own) == HookOptions()
    assert options_in(project, *others, of=project) != HookOptions()


@pytest.mark.parametrize("speaker", [USER, SYSTEM])
def test_hook_options_of_user_and_system_reach_all_hooks(speaker: HookSource) -> None:
    said = layer(speaker, **LOOSE)
    expected = HookOptions(
        on_error=FailurePolicy(ALLOW, ALLOW, ALLOW, ALLOW, ALLOW),
        env_policy=EnvPolicy.CLEAN,
        max_output_bytes=1,
        breaker=None,
        max_depth=1,
        worker_idle_ms=1,
    )
    for own in (layer(PROJECT, {}), layer(EXTENSIONS, {}), None):
        layers = (said,) if own is None else (own, said)
        assert options_in(*layers, of=own) == expected


def test_hook_options_of_a_managed_hook_come_from_the_system_alone() -> None:
    system = layer(SYSTEM, MANAGED, onError={"crash": "block"})
    user = layer(USER, **LOOSE)
    explicit = layer(PROJECT, {}, explicit=True, **LOOSE)
    expected = HookOptions(on_error=FailurePolicy(ALLOW, BLOCK, ALLOW, ALLOW, BLOCK))
    assert options_in(user, system, of=system) == expected
    assert options_in(explicit, system, of=system) == expected


def test_hook_options_of_an_explicit_file_replace_the_systems() -> None:
    explicit = layer(PROJECT, {}, explicit=True)
    system = layer(SYSTEM, MANAGED, **LOOSE)
    assert options_in(explicit, system, of=explicit) == HookOptions()


def test_breaker_comes_back_when_a_nearer_layer_says_so() -> None:
    own = layer(PROJECT, {}, breaker={"timeouts": 9})
    assert options_in(own, layer(USER, breaker=False), of=own).breaker == Breaker(9)


def test_global_options_have_the_documented_defaults() -> None:
    assert global_in() == GlobalOptions(
        max_processes=4 * (os.cpu_count() or 1),
        tool_selection=ToolSelection.UNION,
        journal=False,
        on_ask=BLOCK,
    )


def test_global_options_of_the_system_beat_the_users() -> None:
    options = global_in(
        layer(USER, onAsk="block", maxProcesses=9, toolSelection="union", journal=True),
        layer(
            SYSTEM,
            onAsk="allow",
            maxProcesses=50,
            toolSelection="intersect",
            journal=False,
        ),
    )
    assert options == GlobalOptions(
        on_ask=ALLOW,
        max_processes=50,
        tool_selection=ToolSelection.INTERSECT,
        journal=False,
    )


@pytest.mark.parametrize(
    ("user", "project", "expected"),
    [
        ({}, {"onAsk": "allow"}, {"on_ask": BLOCK}),
        ({"onAsk": "allow"}, {"onAsk": "block"}, {"on_ask": BLOCK}),
        ({"onAsk": "allow"}, {}, {"on_ask": ALLOW}),
        ({"maxProcesses": 3}, {"maxProcesses": 9}, {"max_processes": 3}),
        ({"maxProcesses": 3}, {"maxProcesses": 2}, {"max_processes": 2}),
        ({}, {"maxProcesses": 1}, {"max_processes": 1}),
        (
            {"toolSelection": "intersect"},
            {"toolSelection": "union"},
            {"tool_selection": ToolSelection.INTERSECT},
        ),
        (
            {},
            {"toolSelection": "intersect"},
            {"tool_selection": ToolSelection.INTERSECT},
        ),
        ({"journal": False}, {"journal": True}, {"journal": False}),
        ({}, {"journal": True}, {"journal": True}),
        ({"telemetry": False}, {"telemetry": "otel"}, {"telemetry": None}),
        ({}, {"telemetry": "otel"}, {"telemetry": TelemetryOptions()}),
    ],
)
def test_global_options_of_a_project_only_tighten(
    user: dict[str, Any], project: dict[str, Any], expected: dict[str, Any]
) -> None:
    options = global_in(layer(PROJECT, **project), layer(USER, **user))
    assert {name: getattr(options, name) for name in expected} == expected


def test_global_options_of_an_explicit_file_count_like_the_users() -> None:
    explicit = layer(PROJECT, explicit=True, onAsk="allow", maxProcesses=999)
    options = global_in(explicit)
    assert (options.on_ask, options.max_processes) == (ALLOW, 999)


def test_global_options_of_an_explicit_file_do_not_weaken_managed_hooks() -> None:
    explicit = layer(PROJECT, explicit=True, onAsk="allow", toolSelection="union")
    system = layer(SYSTEM, MANAGED, onAsk="block", toolSelection="intersect")
    options = global_in(explicit, system)
    assert options.on_ask is BLOCK
    assert options.tool_selection is ToolSelection.INTERSECT


def test_global_options_of_extensions_do_not_count() -> None:
    extension = layer(EXTENSIONS, onAsk="allow", maxProcesses=1, journal=True)
    assert global_in(extension) == global_in()


option_values = st.fixed_dictionaries(
    {},
    optional={
        "disabled": st.just(["h"]),
        "toolSelection": st.sampled_from(["union", "intersect"]),
        "onError": st.sampled_from(["allow", "block", {"changed": "allow"}]),
        "envPolicy": st.sampled_from(["inherit", "clean"]),
        "maxOutputBytes": st.integers(1, 9),
        "maxProcesses": st.integers(1, 9),
        "breaker": st.booleans(),
        "maxDepth": st.integers(1, 9),
        "workerIdleMs": st.integers(1, 9),
        "onAsk": st.sampled_from(["allow", "block"]),
    },
)


@given(option_values, st.booleans(), option_values, option_values)
def test_no_project_changes_anything_for_others(
    mine: dict[str, Any], enable: bool, users: dict[str, Any], systems: dict[str, Any]
) -> None:
    user, system = layer(USER, {}, **users), layer(SYSTEM, {}, MANAGED, **systems)
    without = Settings(layers=(user, system))
    project = layer(PROJECT, {"name": "p"}, enable=enable, **mine)
    beside = Settings(layers=(project, user, system))
    assert [h for h in running(beside) if h[0] is not PROJECT] == running(without)
    for own in (user, system):
        assert beside.hook_options(own, hook_of(own)) == without.hook_options(
            own, hook_of(own)
        )
    before, after = without.global_options, beside.global_options
    assert after.max_processes <= before.max_processes
    assert after.on_ask in (BLOCK, before.on_ask)


@given(option_values, option_values, st.booleans(), st.sampled_from([USER, PROJECT]))
def test_nothing_reaches_a_managed_hook_but_the_system(
    others: dict[str, Any], systems: dict[str, Any], enable: bool, source: HookSource
) -> None:
    system = layer(SYSTEM, MANAGED, **systems)
    other = layer(source, {}, enable=enable, explicit=source is PROJECT, **others)
    alone, beside = Settings(layers=(system,)), Settings(layers=(other, system))
    assert (SYSTEM, "m") in running(beside)
    managed = hook_of(system)
    options = beside.hook_options(system, managed)
    assert options == alone.hook_options(system, managed)
    assert all(options.on_error.get(cause) for cause in FailureCause)
    assert beside.hooks_enabled
    assert beside.has_managed
