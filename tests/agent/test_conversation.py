"""Functions as tools: their calls as tool inputs, and their descriptions."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from hookline.agent.conversation import arguments_of, as_tool, input_of


def shapes(a: int, /, b: int = 2, *rest: int, c: int = 3, **more: int) -> Any:
    return a, b, rest, c, more


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((1,), {}),
        ((1, 5), {"c": 6}),
        ((1, 5, 8, 9), {"c": 6, "z": 7}),
        ((1,), {"b": 4, "z": 7}),
        ((1,), {"more": 7}),
    ],
)
def test_a_call_survives_the_way_into_a_tool_input_and_back(
    args: tuple[int, ...], kwargs: dict[str, int]
) -> None:
    signature = inspect.signature(shapes)
    back, named = arguments_of(signature, input_of(signature, args, kwargs))
    assert shapes(*back, **named) == shapes(*args, **kwargs)


def test_a_function_describes_itself_to_the_model() -> None:
    def search(words: list[str], limit: int = 5, *, exact: bool, what: object) -> None:
        """Search for words."""

    spec = as_tool(search).spec
    assert (spec.name, spec.description) == ("search", "Search for words.")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "words": {"type": "array", "items": {"type": "string"}},
            "limit": {"type": "integer"},
            "exact": {"type": "boolean"},
            "what": {},
        },
        "required": ["words", "exact", "what"],
    }
