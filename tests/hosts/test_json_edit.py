"""Changing one value in a JSON text leaves the rest as it is (issue 15.4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.errors import SettingsError
from hookline.hosts.json_edit import JsonText, parse
from hookline.settings.fields import KeyPath
from hookline.settings.read import parse_text

ITEM = {"hooks": [{"type": "command", "command": "hookline bridge claude"}]}
PATH = ("hooks", "PreToolUse")


def undone(before: JsonText, after: JsonText, path: KeyPath) -> str:
    """The text without the item that was appended, and what was made for it."""
    after = after.removed((*path, len(after.get(path)) - 1))
    while path and before.get(path) is None:
        after = after.removed(path)
        path = path[:-1]
    return after.text


TEXTS = {
    "empty": "{}",
    "empty with a line break": "{}\n",
    "one line": '{"a": 1}',
    "minified": '{"a":1,"hooks":{"PreToolUse":[1]}}',
    "one line with a trailing comma": '{"a": 1, }',
    "indented by four": '{\n    "a": {\n        "b": 1\n    }\n}\n',
    "tabs and carriage returns": '{\r\n\t"a": 1, // c\r\n\t/* x */\r\n}\r\n',
    "byte order mark": '\ufeff{\n  "a": 1\n}',
    "comment after the last value": '{\n  "a": 1 // c\n}\n',
    "comments only": "// top\n{\n  // c\n}\n// end",
    "hooks of others": '{\n  "hooks": {\n    "PreToolUse": [\n      {"x": 1} // mine\n'
    "      // tail\n    ],\n  },\n}",
    "no line break before the end": '{"hooks":\n{"PreToolUse":\n[1]}}',
    "comment before the end": '{"hooks": {"PreToolUse": [1, // c\n 2]}}',
    "comment signs in strings": '{"a": "// no */ comment", "b": "\\"/*"}',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_appended_item_is_added_and_nothing_else_changes(text: str) -> None:
    before = parse(text, "f")
    after = before.appended(PATH, ITEM)
    expected = json.loads(json.dumps(before.value))
    expected.setdefault("hooks", {}).setdefault("PreToolUse", []).append(ITEM)
    assert after.value == expected
    assert list(after.value)[: len(before.value)] == list(before.value)
    assert undone(before, after, PATH) == text


def test_appended_item_is_written_as_the_file_is_written() -> None:
    text = '{\r\n\t"hooks": {\r\n\t\t"PreToolUse": [\r\n\t\t\t1\r\n\t\t]\r\n\t}\r\n}'
    after = parse(text, "f").appended(PATH, {"a": 2})
    assert after.text == text.replace(
        "1\r\n", '1,\r\n\t\t\t{\r\n\t\t\t\t"a": 2\r\n\t\t\t}\r\n'
    )


@pytest.mark.parametrize(
    ("text", "path", "left"),
    [
        ("[1, 2, 3]", 0, "[ 2, 3]"),
        ("[1, 2, 3]", 1, "[1, 3]"),
        ("[1, 2, 3]", 2, "[1, 2]"),
        ("[1, 2, 3, ]", 2, "[1, 2, ]"),
        ("[\n 1, // one\n 2 // two\n]", 0, "[ // one\n 2 // two\n]"),
        ("[\n 1, // one\n 2 // two\n]", 1, "[\n 1 // one\n  // two\n]"),
        ("[1, // one\n 2]", 1, "[1 // one\n ]"),
        ("[1]", 0, "[]"),
        ("[ // c\n1]", 0, "[ // c\n]"),
    ],
)
def test_removed_item_takes_its_comma_along(text: str, path: int, left: str) -> None:
    whole = parse(f'{{"a": {text}}}', "f")
    assert whole.removed(("a", path)).text == f'{{"a": {left}}}'


def test_replaced_value_leaves_its_surroundings() -> None:
    text = '{"a": [{"t" : 1 /* s */, "c": "x"}]} // e'
    parsed = parse(text, "f")
    assert parsed.replaced(("a", 0, "t"), 25).text == text.replace(": 1", ": 25")
    assert parsed.replaced(("a", 0, "n"), 2).value["a"][0]["n"] == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{\n  "hooks": [],\n}', "f:2:12: hooks: expected an object"),
        ('{"hooks": {"PreToolUse": 1}}', "f:1:26: hooks.PreToolUse: expected a list"),
        ('{"hooks": {},\n"hooks": {}}', "f:2:1: hooks: there are two of 'hooks'"),
        ("[]", "f:1:1: expected an object"),
        ("", "f:1:1: is not valid JSON"),
        ('{"a": \x00}', "f:1:7: is not valid JSON"),
        ('{"a": 1', "f:1:8: is not valid JSON"),
        ("{a: 1}", "f:1:2: is not valid JSON"),
        ("[" * 100_000, "f: is nested too deeply"),
    ],
)
def test_what_cannot_be_edited_is_refused_with_its_place(
    text: str, problem: str
) -> None:
    with pytest.raises(SettingsError) as error:
        require(parse(text, "f"))
    assert str(error.value).startswith(problem)


def require(parsed: JsonText) -> None:
    parsed.require(("hooks",), dict, "an object")
    parsed.require(PATH, list, "a list")


def test_deep_values_of_others_are_no_obstacle() -> None:
    text = f'{{"a": {"[" * 400}{"]" * 400}}}'
    before = parse(text, "f")
    assert undone(before, before.appended(PATH, ITEM), PATH) == text


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"/*\\\n{,', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab/", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
spaces = st.sampled_from(["", " ", "\n", "\n  ", " // c\n", "/* c */", "\n\t/* [ */ "])


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """A text for a value, with white space, comments and trailing commas."""
    if isinstance(value, dict):
        parts = [
            f"{draw(spaces)}{json.dumps(key)}{draw(spaces)}:{draw(spaces)}{draw(written(item))}"
            for key, item in value.items()
        ]
    elif isinstance(value, list):
        parts = [draw(spaces) + draw(written(item)) for item in value]
    else:
        return json.dumps(value)
    comma = draw(st.sampled_from(["", ","])) if parts else ""
    inside = f"{draw(spaces)},".join(parts) + comma + draw(spaces)
    return f"{{{inside}}}" if isinstance(value, dict) else f"[{inside}]"


@given(st.data())
def test_any_text_survives_an_item_that_comes_and_goes(data: st.DataObject) -> None:
    others = data.draw(st.dictionaries(st.text("ab", max_size=2), values, max_size=3))
    items: list[Any] = data.draw(st.lists(values, min_size=1, max_size=3))
    text = data.draw(written({**others, "list": items}))
    before = parse(text, "f")
    after = before.appended(("list",), ITEM)
    assert after.value == {**others, "list": [*items, ITEM]}
    assert after.removed(("list", len(items))).text == text
    for index in range(len(items)):
        left = before.removed(("list", index))
        expected = items[:index] + items[index + 1 :]
        assert parse_text(left.text, "f") == {**others, "list": expected}
