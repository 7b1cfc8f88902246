"""Typed predicates at the bus (DELTA-HPAY-001, -005; rules V1 to V4)."""

from __future__ import annotations

import json
from itertools import product
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline import types
from hookline.protocol.events import HookEventName
from hookline.protocol.validators import (
    PREDICATES,
    explain,
    is_before_tool_input,
)
from tests.support.pins import FOLDER

TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a"}}

BASE = {
    "session_id": "s",
    "cwd": "/",
    "hook_event_name": "e",
    "timestamp": "t",
    "transcript_path": "",
}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_predicate_and_type_of_an_input_agree(subtests: pytest.Subtests) -> None:
    """DELTA-HPAY-005: ``TypeIs`` is a promise about keys and types.

    Which values are wrong is in ``tests/pins/protocol/inputs.json``.
    """
    assert set(PREDICATES) == set(HookEventName)
    table = json.loads((FOLDER / "protocol" / "inputs.json").read_text())
    for event in HookEventName:
        with subtests.test(event.value):
            input_type = getattr(types, f"{event.value}Input")
            hints = get_type_hints(input_type, include_extras=True)
            valid = [
                BASE | row["input"]
                for row in table.values()
                if row["event"] == event and row["then"] == ""
            ]
            for value, (name, hint) in product(valid, hints.items()):
                is_required = get_origin(hint) is not NotRequired
                assert (name in input_type.__required_keys__) is is_required
                rest = {key: content for key, content in value.items() if key != name}
                assert PREDICATES[event](rest) is (not is_required)
                kind = hint if is_required else get_args(hint)[0]
                if kind is not Any:
                    assert not PREDICATES[event](value | {name: None})
                    assert not PREDICATES[event](value | {name: 5})


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
