"""Texts with expressions in them: protocol.md#rules."""

from __future__ import annotations

from typing import Any

import pytest

from hookline.expressions.program import Scope
from hookline.expressions.template import expressions_in, render

EVENT: dict[str, Any] = {
    "timestamp": "2026-11-13T12:00:00.000Z",
    "tool_name": "write_file",
    "tool_input": {"path": "a/.env", "n": 3, "list": ["x", 1], "map": {"k": None}},
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("keep ${tool_input.path} out", "keep a/.env out"),
        ("${tool_name}: ${ tool_input.n + 1 }", "write_file: 4"),
        ("${tool_input.n}", 3),
        ("${tool_input.n > 2}", True),
        ("${tool_input.list}", ["x", 1]),
        ("${tool_input.map}", {"k": None}),
        ("list ${tool_input.list}", 'list ["x",1]'),
        ("${tool_input.nothing}", "${tool_input.nothing}"),
        ("a ${tool_input.nothing} b", "a ${tool_input.nothing} b"),
        ("a ${not an expression} b", "a ${not an expression} b"),
        ("${tool_input.path + '}'}", "a/.env}"),
        ("${ {'a': tool_name}['a'] }", "write_file"),
        (r"${r'\}'}!", "\\}!"),
        (r"${br'\}' == b'x'}", False),
        ('${"""a"}"""}!', 'a"}!'),
        ("${'''it's }'''}!", "it's }!"),
        ("${tool_name // not }\n}!", "write_file!"),
        ("${tool_name", "${tool_name"),
        ("it's ${tool_name}, don't", "it's write_file, don't"),
        ("$tool_name $ {x} $$", "$tool_name $ {x} $$"),
        ("${''}", ""),
        ("at ${now}", "at 2026-11-13T12:00:00Z"),
        ("${b'ab'}", "ab"),
        ("${duration('90s')}", "90s"),
        (5, 5),
    ],
)
def test_expressions_are_filled_in(template: Any, expected: Any) -> None:
    """What cannot be evaluated stays as written; a text of one keeps its type."""
    found = render({"deep": [template]}, Scope(EVENT, "/", "/"))
    assert found == {"deep": [expected]}


def test_what_a_value_holds_is_not_evaluated_again() -> None:
    event = {**EVENT, "tool_name": "${tool_input.path}"}
    assert render("x ${tool_name}", Scope(event, "/", "/")) == "x ${tool_input.path}"


def test_expressions_are_found_with_their_places() -> None:
    text = "a ${tool_name} b ${now}"
    found = list(expressions_in(text))
    assert found == [(4, "tool_name"), (19, "now")]
    assert all(text[at:].startswith(source) for at, source in found)
