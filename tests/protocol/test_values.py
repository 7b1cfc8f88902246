"""Values of any type, shown to hooks by what they mean: limits, and what is not read.

protocol.md#process; each type is in ``tests/pins/protocol/values.json``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline.errors import EncodingError
from hookline.protocol.values import as_plain, decode, encode, encode_whole, text_of
from tests.support.odd_values import nested


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
