from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hookline.journal.redact import truncate_json, truncate_text, truncate_with_digest
from hookline.protocol.jsontext import decode, encode

values = st.recursive(
    st.none() | st.integers() | st.text(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=20)
        | st.dictionaries(st.text(max_size=30), inner, max_size=20)
    ),
    max_leaves=40,
)


@given(values, st.integers(min_value=100, max_value=2000))
def test_truncate_json_fits_and_is_still_json(value: Any, limit: int) -> None:
    text = truncate_json(value, limit)
    decode(text)
    assert len(text) <= max(limit, len(encode(value)))
    if len(encode(value)) > limit:
        assert len(text) <= limit


def test_truncate_json_keeps_short_fields_whole_beside_a_long_one() -> None:
    cut = decode(truncate_json({"tool_name": "t", "content": "x" * 100_000}, 20_000))
    assert cut["tool_name"] == "t"
    assert cut["content"].endswith("[cut: 100000 characters]")


def test_truncate_json_marks_lists_and_objects_that_lose_their_ends() -> None:
    many = {str(number): number for number in range(5000)}
    cut = decode(truncate_json({"list": list(range(5000)), "object": many}, 5000))
    assert cut["list"][-1] == "…[cut: 5000 items]"
    assert cut["object"]["…"] == "[cut: 5000 keys]"


def test_truncate_text_says_how_long_the_text_was() -> None:
    assert truncate_text("abc", 3) == ("abc", False)
    assert truncate_text("abcd", 3) == ("abc…[cut: 4 characters]", True)


@given(st.text(max_size=50), st.text(max_size=50), st.integers(1, 20))
def test_texts_truncated_with_a_digest_are_equal_only_if_the_whole_ones_are(
    one: str, other: str, limit: int
) -> None:
    assert (truncate_with_digest(one, limit) == truncate_with_digest(other, limit)) is (
        one == other
    )
