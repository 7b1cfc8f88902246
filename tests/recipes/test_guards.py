"""Guards against long lists of shell lines: what they block and what they allow."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

LINES = json.loads((Path(__file__).parent / "shell_lines.json").read_text())
"""The lines by guard and by verdict."""


def verdict(guard: str, line: str, project: Path) -> object:
    check = import_module(f"hookline.recipes.hooks.{guard}").check
    event = {
        "hook_event_name": "BeforeTool",
        "tool_name": "run_shell_command",
        "tool_input": {"command": line},
        "cwd": str(project),
        "session_id": "s",
    }
    return (check(event) or {}).get("decision", "allow")


@pytest.mark.parametrize("guard", LINES)
def test_guard_judges_shell_lines(
    guard: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    monkeypatch.setenv("CI", "true")
    (tmp_path / "src").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".env").write_text("x")
    (tmp_path / "n.txt").symlink_to(".env")
    assert LINES[guard].keys() == {"block", "allow"}
    for expected, lines in LINES[guard].items():
        for line in lines:
            with subtests.test(line):
                assert verdict(guard, line, tmp_path) == expected
