"""Encoding and decoding JSON, for values we do not control."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.protocol.values import (
    copy_shown,
    decode,
    encode,
    encode_whole,
    is_showable,
)

anything: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.complex_numbers()
    | st.dates(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.frozensets(st.integers() | st.binary())
        | st.dictionaries(
            st.text(st.characters()) | st.integers() | st.none() | st.binary(), inner
        )
    ),
    max_leaves=10,
)
plain: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(anything)
def test_any_value_is_encoded_as_valid_json(value: Any) -> None:
    written = encode(value)
    assert written.decode("utf-8") == written.decode("utf-8", "strict")
    json.loads(written, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@given(plain)
def test_json_values_survive_encoding_and_decoding(value: Any) -> None:
    assert decode(encode(value)) == value
    assert decode(json.dumps(value)) == value


showable: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters() | st.characters(categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), showable) | st.fixed_dictionaries({"a": anything}))
def test_copy_of_an_event_is_what_json_makes_of_it(event: dict[str, Any]) -> None:
    """Hooks see the same whether or not the event was encoded."""
    if is_showable(event):
        copy = copy_shown(event)
        assert copy == decode(encode_whole(event))
        assert encode(copy) == encode_whole(event)
        assert _is_private(copy, event)


def test_value_that_may_be_shown_as_something_else_is_left_to_the_encoder() -> None:
    surrogates = [{"a\ud800": 1, "b": 2}, {"deep": [{"a\udfff": 1}]}]
    for value in (*surrogates, {1: "x"}, b"bytes", {"set": {1}}, object()):
        assert not is_showable(value)
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    assert is_showable(deep)
    assert not is_showable([deep])


def _is_private(copy: Any, value: Any) -> bool:
    if isinstance(value, dict):
        return copy is not value and all(_is_private(copy[k], value[k]) for k in value)
    if isinstance(value, list | tuple):
        return copy is not value and all(map(_is_private, copy, value))
    return True
