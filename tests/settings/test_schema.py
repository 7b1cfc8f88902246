"""The schema of settings: what it accepts is what ``hookline check`` accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.commandline import run_command

HOOK = {"type": "command", "command": "x"}
WELL_FORMED = ("looks like seconds", "is relative", "column 1")
"""Errors of a value that has the right form: a short timeout, an expression."""
HOOK_TYPES = ("command", "worker", "python", "rule", "cedar", "http", "plugin")
SCHEMA: dict[str, Any] = run_command("schema").json()
"""All of it is in ``tests/pins/commands/check.json``."""
HOOK_KEYS = sorted(SCHEMA["$defs"]["HookConfig"]["properties"])
OPTION_KEYS = sorted(SCHEMA["$defs"]["HooksOptions"]["properties"])
VALIDATOR = Draft202012Validator(SCHEMA)


def test_schema_is_one_that_validators_understand() -> None:
    Draft202012Validator.check_schema(SCHEMA)


hook_values = st.one_of(
    st.sampled_from(
        ["", " ", "x", "a:b", "json", "clean", "block", "observe", *HOOK_TYPES]
    ),
    st.sampled_from([None, True, False, 0, 1, 1.0, 150.5, -1, 2**53, 2**54, [], ["a"]]),
    st.sampled_from([{}, {"A": 1}, {"A=": "x"}, {"A": None}, {"crash": "block"}]),
    st.sampled_from([{"crash": 1}, {"crahs": "block"}, [1], ["a", ""], {"x": "y"}]),
    st.sampled_from([{"timeouts": 2}, {"cooldownMs": 150}, {"timeouts": 0}, "union"]),
)
hooks = st.dictionaries(st.sampled_from(HOOK_KEYS), hook_values, max_size=4).map(
    lambda more: {**HOOK, **more}
)
options = st.dictionaries(st.sampled_from(OPTION_KEYS), hook_values, max_size=4)


def findings(raw: dict[str, Any], file: Path) -> list[str]:
    """What ``check`` says of system settings, where no files are looked for."""
    file.write_text(json.dumps(raw))
    checked = run_command("check", "--system", "--json", file).json()
    return [it["message"] for it in checked if it["severity"] == "error"]


@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(hooks | hook_values, max_size=2),
    options | hook_values,
    st.dictionaries(
        st.sampled_from(["matcher", "sequential", "x"]), hook_values, max_size=2
    ),
)
def test_schema_accepts_exactly_what_has_no_findings(
    tmp_path: Path, entries: list[Any], config: Any, group: dict[str, Any]
) -> None:
    raw = {
        "hooks": {"AfterTool": [{**group, "hooks": entries}]},
        "hooksConfig": config,
    }
    problems = [
        text
        for text in findings(raw, tmp_path / "settings.json")
        if not any(words in text for words in WELL_FORMED)
    ]
    assert VALIDATOR.is_valid(raw) is (problems == [])


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"$schema": "./s.json", "enableHooks": False},
        {"hooks": {"BeforeTool": [{"hooks": [{**HOOK, "onError": {}}]}]}},
        {"hooks": {"BeforeTool": [{"hooks": [{"type": "rule", "when": "true"}]}]}},
        {"hooksConfig": {"telemetry": {"exporter": "otel", "content": True}}},
    ],
    ids=str,
)
def test_schema_accepts_what_the_manual_shows(
    raw: dict[str, Any], tmp_path: Path
) -> None:
    assert findings(raw, tmp_path / "settings.json") == []
    assert VALIDATOR.is_valid(raw)
