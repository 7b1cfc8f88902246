"""Typed predicates at the bus (DELTA-HPAY-001, -005; rules V1 to V4)."""

from __future__ import annotations

from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline import types
from hookline.protocol.events import HookEventName
from hookline.protocol.validators import (
    FIELDS,
    PREDICATES,
    explain,
    is_before_tool_input,
    is_hook_input,
)

E = HookEventName
TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a"}}
REQUEST = {"model": "m", "messages": []}

BASE = {
    "session_id": "s",
    "cwd": "/",
    "hook_event_name": "e",
    "timestamp": "t",
    "transcript_path": "",
}
VALID: list[tuple[HookEventName, dict[str, Any]]] = [
    (E.BeforeTool, TOOL),
    (E.BeforeTool, TOOL | {"mcp_context": {"a": 1}, "original_request_name": "w"}),
    *(
        (E.AfterTool, TOOL | {"tool_response": value})
        for value in ({"llmContent": "x"}, ["x"], "x", 1.5, True, None)
    ),
    (E.BeforeAgent, {"prompt": ""}),
    (E.AfterAgent, {"prompt": "a", "prompt_response": "b", "stop_hook_active": True}),
    (E.BeforeModel, {"llm_request": REQUEST}),
    (E.AfterModel, {"llm_request": REQUEST, "llm_response": {"text": "x"}}),
    (E.BeforeToolSelection, {"llm_request": REQUEST}),
    (E.BeforeToolSelection, {"llm_request": REQUEST, "available_tools": ["a"]}),
    (
        E.Notification,
        {"message": "", "level": "info", "details": {}, "notification_type": "n"},
    ),
    (E.SessionStart, {"source": "startup"}),
    (E.SessionEnd, {"reason": "prompt_input_exit"}),
    (E.PreCompress, {"trigger": "auto"}),
    (E.SessionStart, {"source": "compress"}),
    (E.SubagentStart, {"agent_id": "", "agent_type": "t"}),
    (E.SubagentStart, {"agent_id": "a", "agent_type": "t", "prompt": "p"}),
    (
        E.SubagentStop,
        {"agent_id": "a", "agent_type": "t", "stop_hook_active": False},
    ),
    (
        E.SubagentStop,
        {
            "agent_id": "a",
            "agent_type": "t",
            "prompt": "p",
            "prompt_response": "r",
            "stop_hook_active": True,
        },
    ),
]

WRONG: list[tuple[HookEventName, Any, str]] = [
    (E.BeforeTool, 5, "expected an object, got 5"),
    (E.BeforeTool, [TOOL], "expected an object, got a list"),
    (E.BeforeTool, {}, "tool_name: expected a non-empty string, got nothing"),
    (
        E.BeforeTool,
        TOOL | {"tool_name": 5},
        "tool_name: expected a non-empty string, got 5",
    ),
    (
        E.BeforeTool,
        TOOL | {"tool_name": ""},
        "tool_name: expected a non-empty string, got ''",
    ),
    (
        E.BeforeTool,
        TOOL | {"tool_input": "x" * 100},
        f"tool_input: expected an object, got '{'x' * 80}'...",
    ),
    (
        E.BeforeTool,
        TOOL | {"tool_input": None},
        "tool_input: expected an object, got null",
    ),
    (
        E.BeforeTool,
        TOOL | {"mcp_context": []},
        "mcp_context: expected an object, got a list",
    ),
    (E.BeforeTool, TOOL | {"session_id": 7}, "session_id: expected a string, got 7"),
    (
        E.BeforeTool,
        TOOL | {"transcript_path": {}},
        "transcript_path: expected a string, got an object",
    ),
    (E.AfterTool, TOOL, "tool_response: expected any value, got nothing"),
    (
        E.BeforeTool,
        TOOL | {"mcp_context": None},
        "mcp_context: expected an object, got null",
    ),
    (E.BeforeAgent, {"prompt": 1.5}, "prompt: expected a string, got 1.5"),
    (E.AfterAgent, {"prompt": "a"}, "prompt_response: expected a string, got nothing"),
    (
        E.AfterAgent,
        {"prompt": "a", "prompt_response": "b", "stop_hook_active": "no"},
        "stop_hook_active: expected true or false, got 'no'",
    ),
    (
        E.BeforeModel,
        {},
        "llm_request: expected an object, got nothing",
    ),
    (
        E.AfterModel,
        {"llm_request": REQUEST},
        "llm_response: expected an object, got nothing",
    ),
    (
        E.BeforeToolSelection,
        {"llm_request": REQUEST, "available_tools": {}},
        "available_tools: expected a list, got an object",
    ),
    (E.Notification, {"message": None}, "message: expected a string, got null"),
    (
        E.Notification,
        {"message": "m", "notification_type": ""},
        "notification_type: expected a non-empty string, got ''",
    ),
    (
        E.SessionStart,
        {"source": "boot"},
        "source: expected one of startup, resume, clear, compress, got 'boot'",
    ),
    (
        E.SessionEnd,
        {"reason": 10**400},
        (
            "reason: expected one of exit, clear, logout, prompt_input_exit, other, "
            "got a huge number"
        ),
    ),
    (
        E.PreCompress,
        {"trigger": ["auto"]},
        "trigger: expected one of manual, auto, got a list",
    ),
    (
        E.SubagentStart,
        {"agent_id": "a"},
        "agent_type: expected a non-empty string, got nothing",
    ),
    (
        E.SubagentStop,
        {"agent_id": "a", "agent_type": "t", "stop_hook_active": 1},
        "stop_hook_active: expected true or false, got 1",
    ),
]

INPUT_TYPES: dict[HookEventName, Any] = {
    E.BeforeTool: types.BeforeToolInput,
    E.AfterTool: types.AfterToolInput,
    E.BeforeAgent: types.BeforeAgentInput,
    E.AfterAgent: types.AfterAgentInput,
    E.BeforeModel: types.BeforeModelInput,
    E.AfterModel: types.AfterModelInput,
    E.BeforeToolSelection: types.BeforeToolSelectionInput,
    E.Notification: types.NotificationInput,
    E.SessionStart: types.SessionStartInput,
    E.SessionEnd: types.SessionEndInput,
    E.PreCompress: types.PreCompressInput,
    E.SubagentStart: types.SubagentStartInput,
    E.SubagentStop: types.SubagentStopInput,
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
valid_inputs = st.sampled_from(VALID)


@pytest.mark.parametrize(("event", "value"), VALID, ids=str)
def test_validator_accepts_a_valid_input(
    event: HookEventName, value: dict[str, Any]
) -> None:
    assert explain(event, BASE | value) == ""
    assert is_hook_input(BASE | value, event)


@pytest.mark.parametrize(
    ("event", "value", "problem"), WRONG, ids=lambda v: str(v)[:40]
)
def test_validator_says_which_field_is_wrong_and_what_it_expected(
    event: HookEventName, value: Any, problem: str
) -> None:
    value = BASE | value if isinstance(value, dict) else value
    assert explain(event, value) == f"{event.value} input: {problem}"
    assert not is_hook_input(value, event)


@pytest.mark.parametrize(("event", "fields"), VALID, ids=str)
def test_what_a_predicate_accepts_has_every_required_key_of_its_type(
    event: HookEventName, fields: dict[str, Any]
) -> None:
    """DELTA-HPAY-005: ``TypeIs`` is a promise about keys and types."""
    hints = get_type_hints(INPUT_TYPES[event], include_extras=True)
    for name, hint in hints.items():
        value = BASE | fields
        is_required = get_origin(hint) is not NotRequired
        assert (name in INPUT_TYPES[event].__required_keys__) is is_required
        without = {key: given for key, given in value.items() if key != name}
        assert PREDICATES[event](without) is (not is_required)
        kind = hint if is_required else get_args(hint)[0]
        if kind is not Any:
            assert not PREDICATES[event](value | {name: None})
            assert not PREDICATES[event](value | {name: 5})


def test_every_event_has_a_predicate_and_a_type() -> None:
    assert set(FIELDS) == set(PREDICATES) == set(INPUT_TYPES) == set(HookEventName)


@pytest.mark.parametrize("event", list(HookEventName))
def test_validator_and_type_of_an_input_have_the_same_fields(
    event: HookEventName,
) -> None:
    """DELTA-HPAY-005: a predicate checks the fields of the type that it asserts."""
    fields = {field.name for field in FIELDS[event]}
    assert fields == set(get_type_hints(INPUT_TYPES[event]))


def test_predicate_narrows_the_type_of_an_input() -> None:
    """DELTA-HPAY-005: mypy accepts the last two lines because of the predicate."""
    value: object = BASE | TOOL
    assert is_before_tool_input(value)
    narrowed: types.BeforeToolInput = value
    assert narrowed["tool_input"] == {"path": "a"}


@given(event=st.sampled_from(HookEventName), value=json_values)
@settings(max_examples=200)
def test_validator_never_raises_and_agrees_with_its_explanation(
    event: HookEventName, value: Any
) -> None:
    problem = explain(event, value)
    assert PREDICATES[event](value) is (problem == "")
    assert not problem or problem.startswith(f"{event.value} input: ")


@given(case=valid_inputs, extra=st.dictionaries(st.text(), json_values, max_size=4))
@settings(max_examples=100)
def test_validator_tolerates_unknown_fields(
    case: tuple[HookEventName, dict[str, Any]], extra: dict[str, Any]
) -> None:
    """Rule V4."""
    event, value = case
    known = {field.name for field in FIELDS[event]}
    unknown = {key: value for key, value in extra.items() if key not in known}
    assert not explain(event, unknown | BASE | value)


@given(case=valid_inputs, data=st.data())
@settings(max_examples=150)
def test_validator_rejects_a_required_field_of_another_type(
    case: tuple[HookEventName, dict[str, Any]], data: st.DataObject
) -> None:
    """DELTA-HPAY-002: what is rejected here never reaches the planner."""
    event, value = case
    required = [field for field in FIELDS[event] if field.required]
    field = data.draw(
        st.sampled_from([f for f in required if f.type.kind is not object])
    )
    wrong = data.draw(json_values.filter(lambda v: field.type.problem(v) is not None))
    problem = explain(event, BASE | value | {field.name: wrong})
    assert f"expected {field.type.description}" in problem
