"""What expressions and templates of rules come to on an event (protocol.md#rules)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.evaluated import evaluate, fire_rules
from tests.support.pins import PinTable

TOOL_INPUT: dict[str, Any] = {
    "prompt": "Grüße €5",
    "path": "a/.env",
    "content": "x",
    "lines": 3,
    "n": 5,
    "share": 2.5,
    "force": True,
    "none": None,
    "nil": None,
    "list": [1, 2],
    "words": ["rm", "-rf", "/"],
    "mixed": [1, "two", None, 3.0, {"deep": "yes"}],
    "env": {"HOME": "/root", "content-type": "text"},
    "empty": "",
    "hidden": "${tool_input.path}",
}
"""What an expression sees unless its row says otherwise."""


async def test_expression_has_a_value_or_a_reason_for_none(
    pin_table: Callable[[str], PinTable], tmp_path: Path
) -> None:
    """A row is named after its expression."""

    async def value(name: str, row: dict[str, Any]) -> object:
        expression = row.get("expression", name)
        return await evaluate(expression, row.get("input", TOOL_INPUT), tmp_path)

    await pin_table("expressions/values").check(value)


async def test_template_is_filled_in_and_keeps_what_cannot_be_evaluated(
    pin_table: Callable[[str], PinTable], tmp_path: Path
) -> None:
    """A row is named after its template; a text of one expression keeps its type."""

    async def filled(name: str, row: dict[str, Any]) -> object:
        change = {"tool_input": {"deep": [row.get("template", name)]}}
        then = {"hookSpecificOutput": change}
        rule = {"type": "rule", "when": "true", "then": then}
        result = await fire_rules([rule], TOOL_INPUT, tmp_path)
        assert result.final_output is not None
        assert result.final_output.modified_tool_input is not None
        return result.final_output.modified_tool_input["deep"][0]

    await pin_table("expressions/templates").check(filled)


async def test_path_is_judged_by_where_it_leads(
    pin_table: Callable[[str], PinTable], tmp_path: Path
) -> None:
    """``within`` and ``glob``, whatever a path is spelled like (protocol.md#process).

    Tools that take paths often take file URLs too, and one that removes blanks opens
    another file than one that does not.
    """
    project = tmp_path / "project"
    for folder in ("src/deep", "secrets", "build", "../outside"):
        (project / folder).mkdir(parents=True)
    (project / "link").symlink_to(project / "secrets")
    (project / "out").symlink_to(tmp_path / "outside")
    (project / "src" / "alias.txt").symlink_to(project / "secrets" / "key")
    places = {"<project>": str(project), "<home>": str(Path.home())}

    async def judged(_: str, row: dict[str, Any]) -> object:
        text = json.dumps(row)
        for mark, place in places.items():
            text = text.replace(mark, place)
        filled = json.loads(text)
        expression = f"tool_input.path.{filled['call']}"
        path = {"path": filled["path"]}
        return await evaluate(expression, path, project, filled.get("cwd", ""))

    await pin_table("expressions/paths").check(judged, at_once=1)
