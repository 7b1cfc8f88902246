"""``hookline init`` with all recipes at once, and the mode of the settings file.

What it writes otherwise is in ``tests/pins/commands/init.json``.
"""

from __future__ import annotations

import subprocess

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


BLOCKED = [
    ("run_shell_command", {"command": "rm -r -f ~"}, "deletes too much"),
    ("write_file", {"file_path": ".env", "content": ""}, "secrets"),
    ("write_file", {"file_path": "../x", "content": ""}, "outside"),
    ("write_file", {"file_path": "src/new.py", "content": ""}, "test first"),
]


@pytest.fixture
def repository(command_project: CommandProject) -> CommandProject:
    subprocess.run(["git", "init", "-q", str(command_project.project)], check=True)
    return command_project


async def test_all_recipes_at_once_let_innocent_work_pass_and_still_block(
    repository: CommandProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every recipe but the one that allows nothing."""
    folder, books = repository.project, repository.root / "books"
    monkeypatch.setenv("HOOK_STATE_DIR", str(books))
    recipes = (name for name in RECIPES if name != "read-only")
    words = [word for name in recipes for word in ("--recipe", name)]
    assert repository.run("init", *words).returncode == 0
    repository.write("tests/test_app.py", "def test(): ...")
    settings = Settings.from_file(folder / ".hookline/settings.json")
    async with HookSystem(Config("s-1", folder, settings)) as hooks:
        fire = hooks.event_handler
        tool = ("write_file", {"file_path": "src/app.py", "content": "x = 1"})
        response = {"llmContent": "ok", "returnDisplay": "ok"}
        results = [
            await fire.fire_before_tool_event(*tool),
            await fire.fire_after_tool_event(*tool, response),
            await fire.fire_before_model_event({"model": "m", "messages": []}),
        ]
        audit = (books / "audit/audit.jsonl").read_text()
        assert len(audit.splitlines()) == 2
        for blocked_tool, tool_input, reason in BLOCKED:
            result = await fire.fire_before_tool_event(blocked_tool, tool_input)
            assert result.blocked
            assert reason in (result.reason or "")
    for result in results:
        assert not result.blocked
        assert not result.should_stop
        assert result.aggregated.errors == []
    assert (folder / ".git/refs/hookline/s-1").is_file()
