"""Comments and trailing commas in JSON settings (protocol.md#settings)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.errors import SettingsError
from hookline.settings.lint import check_file
from hookline.settings.read import parse_text, scan_json


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1} // end', {"a": 1}),
        ('// first\n{"a": 1}', {"a": 1}),
        ('{/* in */"a"/* x */:/**/1/* y\n */}', {"a": 1}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{"a": [1, // why\n /* because */ ], // end\n}', {"a": [1]}),
        ('{"a": {"b": 1,},}', {"a": {"b": 1}}),
        (
            '{"a": "http://x//y", "b": "/* no */",}',
            {"a": "http://x//y", "b": "/* no */"},
        ),
        (r'{"a": "\"// in", "b": "\\", /* out */}', {"a": '"// in', "b": "\\"}),
        ('{"a": ",]", "b": "[1,]",}', {"a": ",]", "b": "[1,]"}),
        ('{"a": 123456789012345678901, // big\n}', {"a": 123456789012345678901}),
        ("{// a\r\n}", {}),
        ('{"a": "é"/* ü */,}', {"a": "é"}),
    ],
)
def test_comments_and_trailing_commas_are_ignored(text: str, expected: Any) -> None:
    assert parse_text(text, "settings.json") == expected


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": 1 /* x\n y */ 2}', 2, 7),
        ("{// a\n  nope: 1}", 2, 3),
        ("[,]", 1, 2),
        ('{"a": [1,,]}', 1, 10),
        ('{"a":,}', 1, 6),
        ("{,}", 1, 2),
        ('{"a": 1} /* open', 1, 10),
        ('{"a": 1 / 2}', 1, 9),
        ('{"a": "open\n}', 1, 12),
        ('{"a": 1 # no\n}', 1, 9),
        (",", 1, 1),
    ],
)
def test_position_of_a_mistake_stays_right(text: str, line: int, column: int) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_text(text, "settings.json")
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize("text", ['"\\"' * 200_000, "/*" * 500_000, "a" * 1_000_000])
def test_hostile_text_is_refused_in_linear_time(text: str) -> None:
    """A quadratic scan of these takes minutes, which the suite's limit ends."""
    with pytest.raises(SettingsError):
        parse_text(text, "settings.json")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_plain_json_means_the_same_with_comments(value: Any) -> None:
    plain = json.dumps({"v": value}, indent=1)
    commented = f"/* a */ {plain} // b"
    assert parse_text(commented, "x.json") == parse_text(plain, "x.json")


def test_findings_have_the_right_line_in_a_file_with_comments(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{\n// one: {\n/* two\n */ "hoks": {},\n}')
    (finding,) = check_file(file).findings
    assert (finding.line, finding.where) == (4, "hoks")
    assert scan_json('{/*\n*/"a": 1,}').lines[("a",)] == 2
