from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.protocol.events import HookEventName
from hookline.settings.fields import (
    GROUP_FIELDS,
    HOOK_FIELDS,
    OPTION_FIELDS,
    ROOT_FIELDS,
)
from hookline.settings.model import (
    Breaker,
    Dialect,
    EnvPolicy,
    Expect,
    FailurePolicy,
    HookConfig,
    HookMode,
    HooksOptions,
    HookSource,
    HookType,
    OnFailure,
    SettingsLayer,
    TelemetryOptions,
    ToolSelection,
)
from hookline.settings.parse import parse_layer

ALLOW, BLOCK = OnFailure.ALLOW, OnFailure.BLOCK
FILE = "/p/.hookline/settings.json"


def parse(
    raw: dict[str, Any], source: HookSource = HookSource.PROJECT
) -> SettingsLayer:
    return parse_layer(raw, source, FILE)


def parse_hooks(
    *hooks: Any, source: HookSource = HookSource.PROJECT
) -> tuple[tuple[HookConfig, ...], tuple[str, ...]]:
    layer = parse({"hooks": {"BeforeTool": [{"hooks": list(hooks)}]}}, source)
    groups = layer.groups.get(HookEventName.BeforeTool, ())
    return tuple(hook for group in groups for hook in group.hooks), layer.warnings


def parse_hook(**fields: Any) -> tuple[HookConfig, tuple[str, ...]]:
    (hook,), warnings = parse_hooks({"type": "command", "command": "x", **fields})
    return hook, warnings


def parse_options(**fields: Any) -> tuple[HooksOptions, tuple[str, ...]]:
    layer = parse({"hooksConfig": fields})
    return layer.options, layer.warnings


def test_hook_has_the_documented_defaults() -> None:
    """protocol.md#settings: timeout 60000, the name is the command."""
    hook, warnings = parse_hook()
    assert hook == HookConfig(type=HookType.COMMAND, command="x", name="x")
    assert hook.timeout_ms == 60_000
    assert warnings == ()


def test_hook_takes_every_key() -> None:
    hook, warnings = parse_hook(
        type="worker",
        name="n",
        description="d",
        timeout=5000,
        env={"LEVEL": "strict"},
        shell="zsh",
        onError="block",
        expect="json",
        envPolicy="clean",
        mode="observe",
        dialect="claude",
        trustFiles=["a.txt"],
        pool=2,
    )
    assert warnings == ()
    assert hook == HookConfig(
        type=HookType.WORKER,
        command="x",
        name="n",
        description="d",
        timeout_ms=5000,
        env={"LEVEL": "strict"},
        shell="zsh",
        on_error=FailurePolicy(BLOCK, BLOCK, BLOCK, BLOCK, BLOCK),
        expect=Expect.JSON,
        env_policy=EnvPolicy.CLEAN,
        mode=HookMode.OBSERVE,
        dialect=Dialect.CLAUDE,
        trust_files=("a.txt",),
        pool=2,
    )


def test_options_take_every_key() -> None:
    options, warnings = parse_options(
        disabled=["a"],
        toolSelection="intersect",
        onError={"timeout": "block"},
        envPolicy="clean",
        journal=True,
        maxOutputBytes=10,
        maxProcesses=2,
        breaker={"timeouts": 5, "cooldownMs": 1000},
        maxDepth=2,
        workerIdleMs=1.5,
        onAsk="allow",
        notifications={"anything": "goes"},
    )
    assert warnings == ()
    assert options == HooksOptions(
        disabled=frozenset({"a"}),
        tool_selection=ToolSelection.INTERSECT,
        on_error=FailurePolicy(timeout=BLOCK),
        env_policy=EnvPolicy.CLEAN,
        journal=True,
        max_output_bytes=10,
        max_processes=2,
        breaker=Breaker(5, 1000),
        max_depth=2,
        worker_idle_ms=1.5,
        on_ask=ALLOW,
    )


def test_python_hook_is_named_after_its_function() -> None:
    (hook,), _ = parse_hooks({"type": "python", "function": "acme.guards:no_env"})
    assert (hook.name, hook.function) == ("acme.guards:no_env", "acme.guards:no_env")


def test_plugin_hook_is_accepted_and_has_a_name() -> None:
    """protocol.md#settings: accepted for compatibility."""
    (hook,), warnings = parse_hooks({"type": "plugin"})
    assert (hook.type, hook.name, warnings) == (HookType.PLUGIN, "plugin", ())


@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        pytest.param(7, "expected a hook, got 7", id="number"),
        pytest.param(None, "expected a hook, got null", id="null"),
        pytest.param({}, "has no type", id="no type"),
        pytest.param({"type": "teleport"}, "unknown type 'teleport'", id="unknown"),
        pytest.param({"type": "comand"}, "did you mean 'command'", id="misspelt"),
        pytest.param({"type": ["command"]}, "unknown type a list", id="type a list"),
        pytest.param({"type": "command"}, "needs a command", id="no command"),
        pytest.param({"type": "worker"}, "needs a command", id="worker"),
        pytest.param({"type": "python"}, "needs a function", id="no function"),
        pytest.param(
            {"type": "python", "function": "guards"}, "package.module:name", id="colon"
        ),
        pytest.param({"type": "command", "command": " "}, "got ' '", id="blank"),
        pytest.param({"type": "command", "command": 7}, "got 7", id="command a number"),
        pytest.param({"type": "command", "command": "a\0b"}, "some text", id="NUL"),
        pytest.param({"type": "command", "command": "\ud800"}, "some", id="surrogate"),
    ],
)
def test_bad_hook_is_dropped_with_one_warning_and_the_rest_works(
    hook: Any, reason: str
) -> None:
    """protocol.md#settings: the warning names file, event and reason."""
    good = {"type": "command", "command": "good"}
    hooks, (warning,) = parse_hooks(good, hook, good)
    assert [hook.name for hook in hooks] == ["good", "good"]
    assert warning.startswith(f"{FILE}: hooks.BeforeTool[0].hooks[1]: dropped: ")
    assert reason in warning


@pytest.mark.parametrize(
    ("definitions", "place"),
    [
        pytest.param("nonsense", "hooks.BeforeTool: ", id="no list"),
        pytest.param(["nonsense"], "hooks.BeforeTool[0]: ", id="group no object"),
        pytest.param([{"hooks": "no"}], "hooks.BeforeTool[0].hooks: ", id="no hooks"),
        pytest.param([{}], "hooks.BeforeTool[0].hooks: ", id="hooks missing"),
    ],
)
def test_bad_definition_is_dropped_with_one_warning(
    definitions: Any, place: str
) -> None:
    good = [{"hooks": [{"type": "command", "command": "good"}]}]
    layer = parse({"hooks": {"BeforeTool": definitions, "AfterTool": good}})
    assert list(layer.groups) == [HookEventName.AfterTool]
    (warning,) = layer.warnings
    assert warning.startswith(f"{FILE}: {place}")
    assert "dropped" in warning


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("BeforTool", "did you mean 'BeforeTool'?"),
        ("beforetool", "did you mean 'BeforeTool'?"),
        ("PreToolUse", "did you mean 'BeforeTool'?"),
        ("Zzz", "one of BeforeTool, AfterTool,"),
    ],
)
def test_unknown_event_is_dropped_with_the_nearest_name(name: str, advice: str) -> None:
    hooks = [{"hooks": [{"type": "command", "command": "x"}]}]
    layer = parse({"hooks": {name: hooks, "SessionEnd": hooks}})
    assert list(layer.groups) == [HookEventName.SessionEnd]
    (warning,) = layer.warnings
    assert warning.startswith(f"{FILE}: hooks.{name}: dropped: unknown event {name!r}")
    assert advice in warning


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", ""),
        ("name", 7),
        ("description", 7),
        ("timeout", "5"),
        ("timeout", True),
        ("timeout", 0),
        ("timeout", -1),
        ("timeout", float("inf")),
        ("timeout", float("nan")),
        pytest.param("timeout", 10**5000, id="timeout-huge"),
        ("env", ["A=1"]),
        ("shell", None),
        ("onError", "explode"),
        ("onError", True),
        ("expect", "xml"),
        ("envPolicy", "dirty"),
        ("mode", "OBSERVE"),
        ("dialect", "klingon"),
        ("trustFiles", "a.txt"),
        ("pool", 0),
        ("pool", 1.5),
        ("pool", True),
        ("managed", "yes"),
        ("function", "no colon"),
    ],
)
def test_wrong_optional_field_is_dropped_and_the_hook_stays(
    key: str, value: Any
) -> None:
    """protocol.md#settings."""
    hook, (warning,) = parse_hook(**{key: value})
    assert hook == parse_hook()[0]
    assert warning.startswith(f"{FILE}: hooks.BeforeTool[0].hooks[0].{key}: ignored: ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("disabled", "secrets"),
        ("toolSelection", "both"),
        ("onError", 7),
        ("envPolicy", False),
        ("journal", 7),
        ("maxOutputBytes", 0),
        ("maxProcesses", "many"),
        ("breaker", 3),
        ("maxDepth", 0),
        ("workerIdleMs", 0),
        ("onAsk", "ask"),
        ("telemetry", True),
        ("telemetry", "jaeger"),
    ],
)
def test_wrong_option_is_dropped_with_a_warning(key: str, value: Any) -> None:
    options, (warning,) = parse_options(**{key: value})
    assert options == HooksOptions()
    assert warning.startswith(f"{FILE}: hooksConfig.{key}: ignored: ")


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ({"enableHooks": "false"}, "enableHooks"),
        ({"hooks": []}, "hooks"),
        ({"hooks": None}, "hooks"),
        ({"hooksConfig": "no"}, "hooksConfig"),
    ],
)
def test_wrong_top_level_value_is_ignored_with_a_warning(
    raw: dict[str, Any], key: str
) -> None:
    layer = parse(raw)
    assert (layer.enable_hooks, layer.groups) == (True, {})
    assert layer.options == HooksOptions()
    (warning,) = layer.warnings
    assert warning.startswith(f"{FILE}: {key}: ignored: ")


def test_group_keeps_its_matcher_and_order() -> None:
    hooks = [{"type": "command", "command": "x"}]
    group = {"matcher": "write_.*", "sequential": True, "hooks": hooks}
    (read,) = parse({"hooks": {"BeforeTool": [group]}}).groups[HookEventName.BeforeTool]
    assert (read.matcher, read.sequential) == ("write_.*", True)


def test_wrong_matcher_is_dropped_and_the_group_stays() -> None:
    hooks = [{"type": "command", "command": "x"}]
    layer = parse({"hooks": {"BeforeTool": [{"matcher": 7, "hooks": hooks}]}})
    (group,) = layer.groups[HookEventName.BeforeTool]
    assert group.matcher is None
    assert "hooks.BeforeTool[0].matcher: ignored" in layer.warnings[0]


def test_env_takes_numbers_as_text_and_drops_the_rest() -> None:
    env = {"A": "x", "B": 5, "C": 1.5, "D": "", "E": " "}
    wrong = {"F": True, "G": None, "H": [1], "I=J": "x", "K\0": "x", "L": "a\0b"}
    hook, warnings = parse_hook(env={**env, **wrong})
    assert hook.env == {"A": "x", "B": "5", "C": "1.5", "D": "", "E": " "}
    assert len(warnings) == len(wrong)


def test_lists_keep_their_good_entries() -> None:
    options, (warning,) = parse_options(disabled=["a", 7, "b"])
    assert options.disabled == {"a", "b"}
    assert "hooksConfig.disabled[1]: ignored" in warning


@pytest.mark.parametrize(
    ("value", "policy"),
    [
        ("allow", FailurePolicy(ALLOW, ALLOW, ALLOW, ALLOW, None)),
        ("block", FailurePolicy(BLOCK, BLOCK, BLOCK, BLOCK, BLOCK)),
        ({}, FailurePolicy()),
        ({"crash": "block"}, FailurePolicy(crash=BLOCK)),
        ({"changed": "allow"}, FailurePolicy(changed=ALLOW)),
    ],
)
def test_on_error_is_read_by_cause(value: Any, policy: FailurePolicy) -> None:
    """A general 'allow' says nothing of a hook that was tampered with."""
    hook, warnings = parse_hook(onError=value)
    assert (hook.on_error, warnings) == (policy, ())


def test_on_error_keeps_its_good_causes() -> None:
    hook, (warning,) = parse_hook(onError={"crash": "block", "timeout": "never"})
    assert hook.on_error == FailurePolicy(crash=BLOCK)
    assert "onError.timeout: ignored" in warning


@pytest.mark.parametrize(
    ("value", "breaker"),
    [(False, False), (True, Breaker()), ({"timeouts": 9}, Breaker(timeouts=9))],
)
def test_breaker_is_switched_off_or_set(value: Any, breaker: Any) -> None:
    assert parse_options(breaker=value) == (HooksOptions(breaker=breaker), ())


@pytest.mark.parametrize(
    ("value", "telemetry"),
    [
        (False, False),
        ("otel", TelemetryOptions()),
        ({}, TelemetryOptions()),
        ({"exporter": "otel", "content": True}, TelemetryOptions(content=True)),
    ],
)
def test_telemetry_is_switched_on_with_or_without_content(
    value: Any, telemetry: Any
) -> None:
    layer = parse_layer({"hooksConfig": {"telemetry": value}}, HookSource.USER, FILE)
    assert (layer.options.telemetry, layer.warnings) == (telemetry, ())


@pytest.mark.parametrize("source", [HookSource.PROJECT, HookSource.EXTENSIONS])
def test_content_is_exported_only_if_user_or_system_say_so(source: HookSource) -> None:
    raw = {"hooksConfig": {"telemetry": {"content": True}}}
    layer = parse_layer(raw, source, FILE)
    assert layer.options.telemetry == TelemetryOptions(content=False)
    (warning,) = layer.warnings
    assert "telemetry.content: ignored: only user and system settings" in warning


@pytest.mark.parametrize("source", [s for s in HookSource if s != HookSource.SYSTEM])
def test_managed_means_nothing_outside_system_settings(source: HookSource) -> None:
    hook = {"type": "command", "command": "x", "managed": True}
    (read,), (warning,) = parse_hooks(hook, source=source)
    assert not read.managed
    assert "managed: ignored: only system settings" in warning


def test_managed_holds_in_system_settings() -> None:
    hook = {"type": "command", "command": "x", "managed": True}
    (read,), warnings = parse_hooks(hook, source=HookSource.SYSTEM)
    assert (read.managed, warnings) == (True, ())


@pytest.mark.parametrize("path", ["/etc/passwd", "../up.db", "a/../../b", "~/x.db"])
def test_journal_of_a_project_stays_inside_it(path: str) -> None:
    options, (warning,) = parse_options(journal=path)
    assert options.journal is None
    assert "hooksConfig.journal: ignored" in warning
    user = parse({"hooksConfig": {"journal": path}}, HookSource.USER)
    assert (user.options.journal, user.warnings) == (path, ())


@pytest.mark.parametrize("journal", [True, "j.db", "a/b.db", "."])
def test_journal_inside_a_project_is_kept(journal: bool | str) -> None:
    assert parse_options(journal=journal) == (HooksOptions(journal=journal), ())


def test_unknown_keys_are_left_to_check() -> None:
    hook, warnings = parse_hook(colour="red")
    assert (hook, warnings) == parse_hook()


KEYS = sorted({*ROOT_FIELDS, *GROUP_FIELDS, *HOOK_FIELDS, *OPTION_FIELDS, "BeforeTool"})
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["command", "python", "block", "*", "\ud800", "a:b", 10**400]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
groups = st.lists(
    st.fixed_dictionaries({"hooks": st.lists(json_values, max_size=3)}), max_size=2
)


@settings(max_examples=300, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "enableHooks": json_values,
            "hooks": json_values | st.fixed_dictionaries({"BeforeTool": groups}),
            "hooksConfig": json_values,
            "more": json_values,
        },
    ),
    st.sampled_from(HookSource),
)
def test_parse_never_raises_whatever_the_json(
    raw: dict[str, Any], source: HookSource
) -> None:
    layer = parse_layer(raw, source, FILE)
    assert all(warning.startswith(FILE) for warning in layer.warnings)
    assert all(warning.encode() for warning in layer.warnings)
    for hooks in layer.groups.values():
        assert all(hook.name.strip() for group in hooks for hook in group.hooks)
