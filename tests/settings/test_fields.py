from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from hookline.cli.main import main
from hookline.protocol.events import HookEventName
from hookline.settings.fields import Report, settings_schema
from hookline.settings.lint import lint
from hookline.settings.model import HookSource, HookType
from hookline.settings.parse import parse_layer

SCHEMA = settings_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
HOOK = {"type": "command", "command": "x"}
HOOK_KEYS = {
    *("type", "command", "function", "name", "description", "timeout", "env", "shell"),
    *("onError", "expect", "envPolicy", "mode", "dialect", "trustFiles", "pool"),
    *("managed", "recheck", "if", "async", "standby", "when", "then", "policies"),
    *("entities", "schema", "principal", "url", "headers", "allowedEnv"),
}
OPTION_KEYS = {
    *("disabled", "toolSelection", "onError", "envPolicy", "journal", "maxDepth"),
    *("maxOutputBytes", "maxProcesses", "breaker", "workerIdleMs", "onAsk"),
    *("notifications", "untrusted", "telemetry"),
}


def properties(*steps: str) -> dict[str, Any]:
    found: Any = SCHEMA
    for step in steps:
        found = found[step]
    keys: dict[str, Any] = found["properties"]
    return keys


def with_hook(**fields: Any) -> dict[str, Any]:
    return {"hooks": {"BeforeTool": [{"hooks": [{**HOOK, **fields}]}]}}


def of_type(hook_type: str, **fields: Any) -> dict[str, Any]:
    return {"hooks": {"BeforeTool": [{"hooks": [{"type": hook_type, **fields}]}]}}


def problems_in(raw: dict[str, Any]) -> list[str]:
    """What parse and lint report, without the checks of files."""
    report = Report()
    parse_layer(raw, HookSource.SYSTEM, report=report)
    lint(raw, None, report)
    return [str(problem) for problem in report.problems]


def test_schema_is_valid() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_schema_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == SCHEMA
    assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_schema_has_the_keys_of_the_protocol_and_no_others() -> None:
    """protocol.md#settings: all keys, so that nothing is invented twice."""
    assert set(properties("$defs", "hook")) == HOOK_KEYS
    assert set(properties("$defs", "group")) == {"matcher", "sequential", "hooks"}
    assert set(properties("properties", "hooksConfig")) == OPTION_KEYS
    assert set(properties()) == {"$schema", "enableHooks", "hooks", "hooksConfig"}
    assert set(properties("properties", "hooks")) == set(HookEventName)


def test_schema_describes_every_key() -> None:
    for table in (
        properties(),
        properties("properties", "hooks"),
        properties("properties", "hooksConfig"),
        properties("$defs", "group"),
        properties("$defs", "hook"),
    ):
        assert all(entry["description"] for entry in table.values())


@pytest.mark.parametrize("key", sorted(HOOK_KEYS))
def test_parse_reads_every_hook_key_of_the_schema(key: str) -> None:
    """A wrong value is noticed, so the key is read."""
    assert any(key in problem for problem in problems_in(with_hook(**{key: [[]]})))


@pytest.mark.parametrize("key", sorted(OPTION_KEYS - {"notifications"}))
def test_parse_reads_every_option_of_the_schema(key: str) -> None:
    (problem, *_) = problems_in({"hooksConfig": {key: 0.5j}})
    assert problem.startswith(f"hooksConfig.{key}: ignored: expected ")


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param({}, id="empty"),
        pytest.param({"$schema": "./s.json", "enableHooks": False}, id="top level"),
        pytest.param(with_hook(), id="hook"),
        pytest.param(with_hook(type="worker", timeout=1500.5, pool=2.0), id="numbers"),
        pytest.param(with_hook(onError={"crash": "block"}), id="policy"),
        pytest.param(with_hook(type="plugin"), id="plugin"),
        pytest.param(with_hook(env={"A": 5}), id="environment"),
        pytest.param(of_type("python", function="a.b:c"), id="python"),
        pytest.param(of_type("rule", when="true", then={}), id="rule"),
        pytest.param(of_type("http", url="http://127.0.0.1/"), id="http"),
        pytest.param({"hooksConfig": {"breaker": False}}, id="breaker off"),
        pytest.param({"hooksConfig": {"journal": "j.db"}}, id="journal"),
        pytest.param({"hooksConfig": {"telemetry": False}}, id="telemetry off"),
        pytest.param({"hooksConfig": {"telemetry": "otel"}}, id="telemetry"),
        pytest.param(
            {"hooksConfig": {"telemetry": {"exporter": "otel", "content": True}}},
            id="telemetry with content",
        ),
    ],
)
def test_schema_and_parse_accept_the_same(raw: dict[str, Any]) -> None:
    assert problems_in(raw) == []
    assert VALIDATOR.is_valid(raw)


hook_values = st.one_of(
    st.sampled_from(
        ["", " ", "x", "a:b", "json", "clean", "block", "observe", *HookType]
    ),
    st.sampled_from([None, True, False, 0, 1, 1.0, 150.5, -1, 2**53, 2**54, [], ["a"]]),
    st.sampled_from([{}, {"A": 1}, {"A=": "x"}, {"A": None}, {"crash": "block"}]),
    st.sampled_from([{"crash": 1}, {"crahs": "block"}, [1], ["a", ""], {"x": "y"}]),
    st.sampled_from([{"timeouts": 2}, {"cooldownMs": 150}, {"timeouts": 0}, "union"]),
)
hooks = st.dictionaries(
    st.sampled_from(sorted(HOOK_KEYS)), hook_values, max_size=4
).map(lambda more: {**HOOK, **more})
options = st.dictionaries(st.sampled_from(sorted(OPTION_KEYS)), hook_values, max_size=4)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(hooks | hook_values, max_size=2),
    options | hook_values,
    st.dictionaries(
        st.sampled_from(["matcher", "sequential", "x"]), hook_values, max_size=2
    ),
)
def test_schema_accepts_exactly_what_has_no_problems(
    entries: list[Any], config: Any, group: dict[str, Any]
) -> None:
    raw = {
        "hooks": {"AfterTool": [{**group, "hooks": entries}]},
        "hooksConfig": config,
    }
    # A timeout that looks like seconds is well-formed: only lint reports it.
    problems = [text for text in problems_in(raw) if "looks like seconds" not in text]
    assert VALIDATOR.is_valid(raw) is (problems == [])
