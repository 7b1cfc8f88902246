from __future__ import annotations

import time
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.cli.journal import format_utc, parse_since
from hookline.errors import HooklineError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("2h", 7200),
        ("3d", 259200),
        ("1w", 604800),
        ("2H", 7200),
    ],
)
def test_a_span_is_counted_back_from_now(text: str, seconds: int) -> None:
    assert parse_since(text) == pytest.approx(time.time() - seconds, abs=60)


def test_a_date_is_midnight_in_local_time() -> None:
    expected = datetime(2026, 11, 1).astimezone().timestamp()
    assert parse_since("2026-11-01") == expected
    assert parse_since("2026-11-01T00:00:00") == expected


def test_a_date_with_an_offset_is_that_moment() -> None:
    assert parse_since("1970-01-01T00:01:00Z") == 60.0


def test_today_is_before_now_and_after_yesterday() -> None:
    assert parse_since("yesterday") < parse_since("today") <= time.time()


@given(st.text(max_size=12))
def test_any_other_text_is_an_error_with_a_hint(text: str) -> None:
    hint = "2026-11-01"
    try:
        parse_since(text)
    except HooklineError as error:
        hint = str(error)
    assert "2026-11-01" in hint


@pytest.mark.parametrize("text", ["", "5", "h", "-2h", "2 hours", "2026-13-01"])
def test_an_invalid_time_is_an_error(text: str) -> None:
    with pytest.raises(HooklineError):
        parse_since(text)


def test_times_are_written_as_hooks_get_them() -> None:
    assert format_utc(0.5) == "1970-01-01T00:00:00.500Z"
