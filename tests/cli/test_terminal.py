"""Text for the terminal."""

from __future__ import annotations

import pytest

from hookline.cli.terminal import (
    display_width,
    format_duration,
    one_line,
    pad,
    plural,
    print_table,
    printable_text,
    short_path,
    shorten,
    table_width,
)


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


def test_control_characters_are_escaped() -> None:
    assert printable_text("a\x1b[2Jb\n\tc") == "a\\x1b[2Jb\n\tc"
    assert one_line(" a\n\tb ") == "a b"


def test_long_text_is_truncated_with_a_mark() -> None:
    assert shorten("12345", 5) == "12345"
    assert shorten("123456", 5) == "1234…"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/home/me", "~"),
        ("/home/me/src/app", "~/src/app"),
        ("/home/mean/app", "/home/mean/app"),
        ("/srv/a/very/long/path/to/one/project", "…/path/to/one/project"),
        ("/srv/a-name-that-is-longer-than-it-may-be", "…s-longer-than-it-may-be"),
        ("/evil\n\x1b[2J", "/evil \\x1b[2J"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_long_paths_keep_their_end(
    path: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 16: log and stats show the project, shortened for reading."""
    monkeypatch.setenv("HOME", "/home/me")
    assert short_path(path) == text
    assert len(text) <= 24


def test_wide_and_combining_characters_take_their_columns() -> None:
    assert [display_width(text) for text in ("ab", "目录", "e\u0301", "")] == [
        2,
        4,
        1,
        0,
    ]
    assert pad("目录", 6) + "|" == "目录  |"
    assert pad("目录", 6, ">") == "  目录"
    assert pad("longer", 2) == "longer"


def test_tables_with_wide_characters_are_aligned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [["目录", "1"], ["ab", "20"]]
    print_table(("name", "n"), rows, right=[1])
    assert capsys.readouterr().out == "name   n\n目录   1\nab    20\n"
    assert table_width([("name", "n"), *rows]) == 10
