"""Values of any type, shown to hooks by what they mean: limits, and what is not read.

protocol.md#process; each type is in ``tests/pins/protocol/values.json``.
"""

from __future__ import annotations

import json
from collections import UserDict, UserString, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from hookline.errors import EncodingError
from hookline.protocol.values import (
    as_plain,
    decode,
    encode,
    encode_whole,
    is_read_back,
    same_json,
    text_of,
)
from tests.support import typed_values
from tests.support.odd_values import LyingDict, LyingText, Target, nested

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
    assert same_json(value, decode(written))


@given(plain)
def test_json_values_survive_encoding_and_decoding(value: Any) -> None:
    assert decode(encode(value)) == value
    assert decode(json.dumps(value)) == value
    assert same_json(value, json.loads(json.dumps(value, sort_keys=True, indent=1)))


@given(anything | plain)
def test_value_that_rules_read_itself_is_what_its_json_says(value: Any) -> None:
    if is_read_back(value):
        assert repr(decode(encode_whole(value))) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        b"a",
        (1,),
        "\ud800",
        {"\ud800": 1},
        {1: 2},
        float("nan"),
        nested(501),
        Target("a"),
    ],
    ids=repr,
)
def test_value_that_its_json_shows_otherwise_is_not_read_itself(value: Any) -> None:
    assert not is_read_back([value])
    assert is_read_back([{"a": [1, 2.5, None, True, "text"]}])


SECRET = "hunter2.env"
TEXTS: list[Callable[[str], Any]] = [
    str,
    str.encode,
    lambda text: bytearray(text.encode()),
    Path,
    LyingText,
    UserString,
]
WRAPPERS: list[Callable[[Any], Any]] = [
    lambda value: [value],
    lambda value: (1, value),
    lambda value: {"a\ud800": value},
    lambda value: {5: value, None: 10**5000},
    lambda value: {float("nan"): value, 1.5: float("inf")},
    lambda value: LyingDict(path=value),
    Target,
    typed_values.Record,
    typed_values.Attrs,
    lambda value: UserDict({"a": value}),
    lambda value: deque([value]),
    lambda value: {"a": value}.values(),
]


@given(st.data(), st.sampled_from(TEXTS), st.lists(st.sampled_from(WRAPPERS)))
def test_no_text_passes_a_guard_by_being_hard_to_encode(
    data: st.DataObject,
    text: Callable[[str], Any],
    wrappers: list[Callable[[Any], Any]],
) -> None:
    value = text(SECRET)
    for wrap in wrappers:
        value = wrap(value)
    try:
        shown = encode_whole({"x": value, "y": data.draw(anything)})
    except EncodingError:
        reject()  # two keys with one text: no guard is passed either
    assert SECRET.encode() in shown


def test_generator_is_not_consumed() -> None:
    numbers = (n for n in range(3))
    assert "generator" in decode(encode_whole({"n": numbers}))["n"]
    assert list(numbers) == [0, 1, 2]


@pytest.mark.parametrize("inner", ["x", Path("x")], ids=["plain", "path"])
def test_500_levels_are_shown_and_one_more_is_not(inner: Any) -> None:
    assert as_plain(nested(500, inner)) == nested(500, "x")
    assert encode_whole(nested(500, inner)) == b"[" * 500 + b'"x"' + b"]" * 500
    for refuse in (encode_whole, as_plain):
        with pytest.raises(EncodingError, match="deeper than 500 levels"):
            refuse(nested(501, inner))
    assert b"nested too deeply" in encode(nested(501, inner))


def test_text_of_a_lone_surrogate_can_be_written() -> None:
    assert text_of("\ud800") == "\ufffd"


def test_values_are_equal_as_json_values() -> None:
    assert same_json({"a": 1, "b": [1.0]}, {"b": (1,), "a": 1.0})
    assert same_json(Path("a"), "a")
    for first, second in (({"a": 1}, {"a": True}), ([0], [False]), ("1", 1), ({}, [])):
        assert not same_json(first, second)
