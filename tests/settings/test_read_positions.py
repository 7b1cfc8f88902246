from __future__ import annotations

import json
import tomllib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.settings.fields import KeyPath
from hookline.settings.read import scan_json, scan_toml

JSON = """{
  "a": 1,
  "b": [
    {"c": "x, \\"]}", "d": [[], {}]},
    {
      "c":
        true}
  ]
}
"""


def test_json_lines_are_those_of_keys_and_items() -> None:
    positions = scan_json(JSON)
    assert positions.line_of(()) == 1
    assert positions.line_of(("a",)) == 2
    assert positions.line_of(("b",)) == 3
    assert positions.line_of(("b", 0, "d", 1)) == 4
    assert positions.line_of(("b", 1)) == 5
    assert positions.line_of(("b", 1, "c")) == 6
    assert positions.repeated == ()


def test_line_of_an_absent_key_is_that_of_what_is_around_it() -> None:
    positions = scan_json(JSON)
    assert positions.line_of(("b", 1, "absent", 7)) == 5
    assert positions.line_of(("absent",)) == 1


def test_repeated_json_keys_are_found() -> None:
    text = (
        '{"a": {"x": 1},\n "a": {"x": 1,\n "y": 2, "y": 3},\n "b": [{"c": 1, "c": 2}]}'
    )
    positions = scan_json(text)
    assert positions.repeated == (("a",), ("b", 0, "c"))
    assert positions.line_of(("a",)) == 2
    assert positions.line_of(("b", 0, "c")) == 4


def paths_in(value: Any, path: KeyPath = ()) -> set[KeyPath]:
    found = {path}
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for step, inner in items:
        found |= paths_in(inner, (*path, step))
    return found


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(values, st.sampled_from([None, 1]), st.booleans())
def test_json_scan_finds_every_path(
    value: Any, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    positions = scan_json(text)
    assert set(positions.lines) == paths_in(value)
    assert positions.repeated == ()
    assert max(positions.lines.values()) <= text.count("\n") + 1


TOML = """# settings
enableHooks = true
[hooksConfig]
"disabled" = ["a"]
[[hooks.BeforeTool]]
matcher = '''
[not.a.table]
also = "not a key"
'''
hooks = [
  {type = "command", command = "x"},
]
[[hooks.BeforeTool]]
[[hooks.BeforeTool.hooks]] # first
type = "command"
[[hooks.BeforeTool.hooks]]
type = "worker"
env.LEVEL = "x"
"""


def test_toml_lines_are_those_of_tables_and_keys() -> None:
    tomllib.loads(TOML)
    positions = scan_toml(TOML)
    assert positions.line_of(("enableHooks",)) == 2
    assert positions.line_of(("hooksConfig", "disabled", 0)) == 4
    assert positions.line_of(("hooks", "BeforeTool", 0)) == 5
    assert positions.line_of(("hooks", "BeforeTool", 0, "hooks", 0, "type")) == 10
    assert positions.line_of(("hooks", "BeforeTool", 1)) == 13
    assert positions.line_of(("hooks", "BeforeTool", 1, "hooks", 0, "type")) == 15
    assert positions.line_of(("hooks", "BeforeTool", 1, "hooks", 1)) == 16
    assert (
        positions.line_of(("hooks", "BeforeTool", 1, "hooks", 1, "env", "LEVEL")) == 18
    )
    assert ("not", "a", "table") not in positions.lines


def test_toml_line_is_unknown_rather_than_wrong() -> None:
    assert scan_toml("a = 1").line_of(("b",)) is None
