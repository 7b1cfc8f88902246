"""Text for the terminal."""

from __future__ import annotations

import pytest

from hookline.cli.terminal import format_duration, one_line, plural, printable, shorten


@pytest.mark.parametrize(
    ("duration", "text"),
    [(0.04, "0.0 ms"), (4.21, "4.2 ms"), (412.3, "412 ms"), (61000, "61.0 s")],
)
def test_durations_have_few_digits(duration: float, text: str) -> None:
    assert format_duration(duration) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 hooks"), (1, "1 hook"), (1200, "1,200 hooks")]
)
def test_counts_have_the_right_noun(number: int, text: str) -> None:
    assert plural(number, "hook") == text


def test_control_characters_are_replaced() -> None:
    assert printable("a\x1b[2Jb\n\tc") == "a\N{REPLACEMENT CHARACTER}[2Jb\n\tc"
    assert one_line(" a\n\tb ") == "a b"


def test_long_text_is_truncated_with_a_mark() -> None:
    assert shorten("12345", 5) == "12345"
    assert shorten("123456", 5) == "1234…"
