"""New expectations are put into a hooktest file whose text stays."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.testing.update import CannotEditError, edited, placed

FILE = '''# mine
event = "BeforeTool"
[[case]] # first
name = "a"
text = """
[[case]]
expect = "no"
"""
  expect = "allow" # why # twice
[case.tool_input]
path = "x"

  # between
[[case]]
changed = [
  1, # inside
]
'''
EDITS: list[tuple[int, dict[str, Any], str, str]] = [
    (0, {"expect": "block"}, '"allow" # why', '"block" # why'),
    (0, {"message": r"a\.b"}, "twice\n", "twice\n  message = 'a\\.b'\n"),
    (0, {"expect": None}, '  expect = "allow" # why # twice\n', ""),
    (1, {"changed": {"a b": 1}}, "[\n  1, # inside\n]", '{ "a b" = 1 }'),
    (1, {"expect": "ask"}, "]\n", ']\nexpect = "ask"\n'),
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("index", "update", "old", "new"), EDITS)
def test_only_the_value_changes(
    index: int, update: dict[str, Any], old: str, new: str, newline: str
) -> None:
    head, tail = FILE.rsplit(old, 1) if index else FILE.split(old, 1)
    text, wanted = FILE, f"{head}{new}{tail}"
    text, wanted = text.replace("\n", newline), wanted.replace("\n", newline)
    assert edited(text, index, update) == wanted
    assert edited(wanted, index, update) == wanted


def test_a_file_without_a_final_newline_gets_its_line() -> None:
    text = "[[case]]\nname = 'x'"
    assert edited(text, 0, {"expect": "stop"}) == f'{text}\nexpect = "stop"\n'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("case = [{ name = 'x' }]", {"expect": "block"}),
        ("[[case]]\nname = 'x'\n[case.changed]\na = 1\n", {"changed": {"a": 2}}),
        ("[[case]]\nchanged.a = 1\n", {"changed": {"a": 2}}),
        ("[[case]]\n", {"changed": {"a": None}}),
    ],
    ids=["inline", "table", "dotted", "null"],
)
def test_what_cannot_be_kept_is_not_written(text: str, value: dict[str, Any]) -> None:
    with pytest.raises(CannotEditError, match="write it yourself: "):
        edited(text, 0, value)


@given(st.text(st.characters(codec="utf-8")), st.integers(0, 1))
def test_any_text_can_be_expected(text: str, index: int) -> None:
    update = {"message": text, "changed": {text: [text]}, "expect": "block"}
    document = tomllib.loads(edited(FILE, index, update))
    assert document["case"][index].items() >= update.items()


def test_paths_of_the_scratch_project_become_placeholders() -> None:
    update = {
        "message": r"in /t\.x/p",
        "changed": {"path": ["/t.x/p/a"]},
        "expect": "x",
    }
    replaced = placed(update, {"{cwd}": "/t.x/p", "{server}": ""})
    assert replaced == {
        "message": "in {cwd}",
        "changed": {"path": ["{cwd}/a"]},
        "expect": "x",
    }
