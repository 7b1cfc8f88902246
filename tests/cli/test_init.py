"""``hookline init`` with all recipes at once, and the mode of the settings file.

What it writes otherwise is in ``tests/pins/commands/init.json``.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hookline import Config, HookSystem, Settings
from hookline.recipes.catalog import RECIPES
from tests.support.command_project import CommandProject


def test_settings_that_are_extended_keep_their_mode(
    command_project: CommandProject,
) -> None:
    file = command_project.write(".hookline/settings.json", {"hooks": {}})
    file.chmod(0o600)
    command_project.run("init", "--recipe", "read-only")
    assert "read-only" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.fixture
def crowded(command_project: CommandProject, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with every recipe but the one that allows nothing."""
    folder = command_project.project
    monkeypatch.setenv("HOOK_STATE_DIR", str(command_project.root / "books"))
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    recipes = (name for name in RECIPES if name != "read-only")
    words = [word for name in recipes for word in ("--recipe", name)]
    assert command_project.run("init", *words).returncode == 0
    command_project.write("tests/test_app.py", "def test(): ...")
    return folder


async def test_all_recipes_at_once_let_innocent_work_pass(crowded: Path) -> None:
    settings = Settings.from_file(crowded / ".hookline/settings.json")
    async with HookSystem(Config("s-1", crowded, settings)) as hooks:
        fire = hooks.event_handler
        tool = ("write_file", {"file_path": "src/app.py", "content": "x = 1"})
        response = {"llmContent": "ok", "returnDisplay": "ok"}
        results = [
            await fire.fire_before_tool_event(*tool),
            await fire.fire_after_tool_event(*tool, response),
            await fire.fire_before_model_event({"model": "m", "messages": []}),
        ]
    for result in results:
        assert not result.blocked
        assert not result.should_stop
        assert result.aggregated.errors == []
    audit = (crowded.parent / "books/audit/audit.jsonl").read_text()
    assert len(audit.splitlines()) == 2
    assert (crowded / ".git/refs/hookline/s-1").is_file()


BLOCKED = [
    ("run_shell_command", {"command": "rm -r -f ~"}, "deletes too much"),
    ("write_file", {"file_path": ".env", "content": ""}, "secrets"),
    ("write_file", {"file_path": "../x", "content": ""}, "outside"),
    ("write_file", {"file_path": "src/new.py", "content": ""}, "test first"),
]


async def test_all_recipes_at_once_still_block(crowded: Path) -> None:
    settings = Settings.from_file(crowded / ".hookline/settings.json")
    async with HookSystem(Config("s-1", crowded, settings)) as hooks:
        for tool, tool_input, reason in BLOCKED:
            result = await hooks.event_handler.fire_before_tool_event(tool, tool_input)
            assert result.blocked
            assert reason in (result.reason or "")
