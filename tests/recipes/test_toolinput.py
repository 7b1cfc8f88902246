"""The shell lines, patches and kinds of tools, whatever the host calls them."""

from __future__ import annotations

import json
from pathlib import Path

from hookline.recipes.toolinput import (
    is_shell,
    only_reads,
    patched_paths,
    shell_line,
    shell_line_of,
)

SHAPES = json.loads(Path(__file__).with_name("tool_inputs.json").read_text())


def test_shell_line_is_found_in_any_shape() -> None:
    for row in SHAPES["shell lines"]:
        assert shell_line(row["tool_input"]) == row["line"], row


def test_a_shell_tool_may_name_its_field_as_it_likes() -> None:
    event = {"tool_name": "terminal", "tool_input": {"input": "ls"}}
    assert shell_line_of(event) == "ls"
    assert shell_line_of({**event, "tool_name": "write"}) == ""


def test_shell_tools_are_known_in_any_case_and_others_are_none() -> None:
    assert all(map(is_shell, ["Bash", "BASH", "run_shell_command", "execute_command"]))
    assert not any(
        map(is_shell, ["execute_sql", "execute_python", "BashOutput", "Read"])
    )


def test_an_editor_that_views_only_reads() -> None:
    assert only_reads("str_replace_based_edit_tool", {"command": "view", "path": "a"})
    assert not only_reads("str_replace_based_edit_tool", {"command": "create"})
    assert not only_reads("search_and_replace", {"path": "a"})


def test_a_patch_names_its_files() -> None:
    for row in SHAPES["patches"]:
        paths = [path for path in patched_paths(row["patch"]) if path != "--git"]
        assert paths == row["paths"], row
