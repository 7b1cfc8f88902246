"""Encoding and decoding JSON, for values we do not control."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.protocol.jsontext import (
    TooDeepError,
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


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", '{"a": -Infinity}', "", "{", "'x'"]
)
def test_invalid_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any ValueError will do
        decode(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"n": 1e999, "decision": "block"}', {"n": None, "decision": "block"}),
        (r'{"a": "\ud800", "decision": "block"}', {"a": "\ufffd", "decision": "block"}),
        (r'"\ud83d\ude00"', "\N{GRINNING FACE}"),
        ("-" + "9" * 9000, -(10**9000 - 1)),
        (b'{"a": 1}', {"a": 1}),
    ],
    ids=["float out of range", "lone surrogate", "pair", "huge number", "bytes"],
)
def test_unusual_json_is_decoded(text: str, value: Any) -> None:
    """A verdict must not be lost because of an unusual value beside it."""
    assert (decode(text) == value) is True


def test_json_nested_too_deeply_raises_its_own_error() -> None:
    with pytest.raises(TooDeepError):
        decode('{"a":' * 100_000 + "1" + "}" * 100_000)


class Point(msgspec.Struct):
    x: int


def test_structs_are_encoded_as_objects() -> None:
    assert decode(encode({"point": Point(1), "text": "\ud800"})) == {
        "point": {"x": 1},
        "text": "\ufffd",
    }


def test_subclasses_of_plain_types_are_encoded_as_their_base() -> None:
    class Word(str):
        __slots__ = ()

    class Count(int):
        pass

    assert decode(encode({Word("k"): [Word("v"), Count(5), True]})) == {
        "k": ["v", 5, True]
    }


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


@given(st.dictionaries(st.text(), showable))
def test_the_copy_of_an_event_is_what_json_makes_of_it(event: dict[str, Any]) -> None:
    """Issue 13.8: hooks see the same whether or not the event was encoded."""
    if is_showable(event):
        copy = copy_shown(event)
        assert copy == decode(encode_whole(event))
        assert encode(copy) == encode_whole(event)
        assert _is_private(copy, event)


def _is_private(copy: Any, value: Any) -> bool:
    if isinstance(value, dict):
        return copy is not value and all(_is_private(copy[k], value[k]) for k in value)
    if isinstance(value, list | tuple):
        return copy is not value and all(map(_is_private, copy, value))
    return True


@given(anything)
def test_what_counts_as_showable_can_be_shown_whole(value: Any) -> None:
    event = {"tool_input": value}
    if is_showable(event):
        assert decode(encode_whole(event)) == copy_shown(event)


@pytest.mark.parametrize(
    "value",
    [
        {"a\ud800": 1, "b": 2},
        {1: "x"},
        {"deep": [{"a\udfff": 1}]},
        b"bytes",
        {"set": {1}},
        object(),
    ],
)
def test_what_may_be_shown_as_something_else_is_left_to_the_encoder(value: Any) -> None:
    assert not is_showable(value)


def test_deep_values_are_left_to_the_encoder() -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    assert is_showable(deep)
    assert not is_showable([deep])
