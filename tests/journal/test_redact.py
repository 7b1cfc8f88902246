"""Whatever is recorded: no credential survives, and long values are cut as JSON.

Which keys and texts are masked is in ``tests/pins/journal/redaction.json``; any value
at all is reached from inside only.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hookline.journal.redact import (
    MASK,
    Masker,
    truncate_json,
    truncate_text,
    truncate_with_digest,
)
from hookline.protocol.values import decode, encode

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=20)
        | st.dictionaries(st.text(max_size=30), inner, max_size=20)
    ),
    max_leaves=30,
)


def test_a_long_text_without_an_end_is_masked_in_reasonable_time() -> None:
    """The search must not be quadratic."""
    assert Masker(texts=True).mask_text("password" * 50_000)


@given(values)
def test_masking_changes_nothing_without_a_credential(value: Any) -> None:
    masker = Masker(texts=True)
    masked = masker.mask(value)
    if not masker.masked:
        assert encode(masked) == encode(value)


@given(values.filter(lambda value: bool(value) and not isinstance(value, int)))
def test_no_part_of_a_credential_survives_masking(value: Any) -> None:
    assert Masker().mask({"in": [{"api_key": value}]}) == {"in": [{"api_key": MASK}]}


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
