"""The shell lines, patches and kinds of tools, whatever the host calls them."""

from __future__ import annotations

from typing import Any

import pytest

from hookline.recipes.toolinput import (
    is_shell,
    only_reads,
    patched_paths,
    shell_line,
    shell_line_of,
)


@pytest.mark.parametrize(
    ("tool_input", "line"),
    [
        ({"command": "ls"}, "ls"),
        ({"command": ["bash", "-lc", "ls a"]}, "bash -lc 'ls a'"),
        ({"commands": ["cd a", "ls"]}, "cd a\nls"),
        ({"command": "rm", "args": ["-rf", "/"]}, "rm -rf /"),
        ({"CommandLine": "ls", "Cwd": "/"}, "ls"),
        ({"action": {"type": "exec", "command": ["ls", "a b"]}}, "ls 'a b'"),
        ({"cli_command": "aws s3 ls"}, "aws s3 ls"),
        ({"content": "ls"}, ""),
        ("ls", ""),
        (None, ""),
    ],
)
def test_shell_line_is_found_in_any_shape(tool_input: Any, line: str) -> None:
    """Issue 13.7."""
    assert shell_line(tool_input) == line


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


@pytest.mark.parametrize(
    ("patch", "paths"),
    [
        ("*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@", ["a", "b"]),
        ("--- a/x\t2026\n+++ b/y\n@@ -1 +1 @@", ["x", "y"]),
        ("--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@", ["y"]),
        ("diff --git a/x b/y\nrename from x\nrename to y", ["x", "y", "x", "y"]),
        ("see --- a/x and +++ b/y", []),
    ],
)
def test_a_patch_names_its_files(patch: str, paths: list[str]) -> None:
    """Issue 13.7."""
    found = [path for path in patched_paths(patch) if path != "--git"]
    assert found == paths
