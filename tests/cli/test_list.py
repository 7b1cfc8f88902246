"""``hookline list``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookline.cli import list as list_command
from hookline.cli.main import main
from hookline.config import Config
from hookline.settings.load import Settings
from tests.support.commandline import hookline


def test_list_shows_every_hook_and_runs_none(tmp_path: Path) -> None:
    hook = {"type": "command", "command": "touch ran", "name": "quiet"}
    group = {"matcher": "write", "hooks": [hook]}
    config = {"disabled": ["quiet"]}
    file = tmp_path / "s.json"
    file.write_text(
        json.dumps({"hooks": {"BeforeTool": [group]}, "hooksConfig": config})
    )
    table = hookline("list", "--settings", str(file), cwd=tmp_path)
    header, row = table.stdout.splitlines()
    assert header.split()[:6] == [
        *("event", "matcher", "name", "source", "type", "enabled")
    ]
    assert row.split()[:6] == [
        *("BeforeTool", "write", "quiet", "explicit", "command", "no")
    ]
    found = hookline("list", "--settings", str(file), "--json", cwd=tmp_path)
    (entry,) = json.loads(found.stdout)
    assert (entry["name"], entry["enabled"]) == ("quiet", False)
    assert not (tmp_path / "ran").exists()


def test_list_shows_for_which_host_a_hook_was_written(tmp_path: Path) -> None:
    hook = {"type": "command", "command": "true", "dialect": "claude", "async": True}
    settings = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    (tmp_path / "s.json").write_text(json.dumps(settings))
    table = hookline("list", "--settings", "s.json", cwd=tmp_path)
    assert "command, claude, async" in table.stdout
    found = hookline("list", "--settings", "s.json", "--json", cwd=tmp_path)
    assert json.loads(found.stdout)[0]["dialect"] == "claude"


def test_list_without_hooks_shows_the_next_step(tmp_path: Path) -> None:
    done = hookline("list", cwd=tmp_path)
    assert done.returncode == 0
    assert "no hooks are configured: 'hookline init'" in done.stdout


def project_with(folder: Path, text: str) -> dict[str, str]:
    (folder / ".hookline").mkdir()
    (folder / ".hookline" / "settings.json").write_text(text)
    return {"XDG_CONFIG_HOME": str(folder / "x"), "XDG_STATE_HOME": str(folder / "x")}


def test_list_warns_about_invalid_settings(tmp_path: Path) -> None:
    places = project_with(tmp_path, "{")
    done = hookline("list", cwd=tmp_path, env=places)
    assert "settings.json:1:2: is not valid JSON" in done.stderr


def test_list_shows_that_hooks_are_disabled(tmp_path: Path) -> None:
    group = {"hooks": [{"type": "command", "command": "true"}]}
    off = {"enableHooks": False, "hooks": {"BeforeTool": [group]}}
    (tmp_path / "off.json").write_text(json.dumps(off))
    done = hookline("list", "--settings", "off.json", cwd=tmp_path)
    assert done.stdout == "hooks are disabled: enableHooks is false in the settings\n"


def test_list_shows_which_hooks_are_managed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issue 17: only --json told what nobody can turn off."""
    rule = {"type": "rule", "name": "r", "when": "true"}
    hooks = [{"hooks": [rule, rule | {"name": "m", "managed": True}]}]
    (tmp_path / "settings.json").write_text(
        json.dumps({"hooks": {"AfterAgent": hooks}})
    )
    (tmp_path / "own.json").write_text("{}")
    settings = Settings.from_file(tmp_path / "own.json", system_dir=tmp_path)
    config = Config(working_dir=str(tmp_path), settings=settings)
    monkeypatch.setattr(list_command, "load_config", lambda _options: config)
    assert main(["list", "--settings", "own.json"]) == 0
    _, row = capsys.readouterr().out.splitlines()
    cells = ["AfterAgent", "*", "m", "system, managed", "rule", "yes", "enforce"]
    assert [cell.strip() for cell in row.split("  ") if cell] == cells


def test_list_shows_files_in_the_home_folder_from_there(tmp_path: Path) -> None:
    """Issue 17: long paths were cut, with the name of the file."""
    home = tmp_path / "home"
    (home / ".config" / "hookline").mkdir(parents=True)
    guard = {"type": "command", "command": "true", "name": "guard"}
    settings = {"hooks": {"BeforeTool": [{"hooks": [guard]}]}}
    file = home / ".config" / "hookline" / "settings.json"
    file.write_text(json.dumps(settings))
    env = {"HOME": str(home), "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": ""}
    project = tmp_path / "project"
    project.mkdir()
    done = hookline("install", "qwen", "--user", cwd=project, env=env)
    assert done.returncode == 0
    table = hookline("list", cwd=project, env=env).stdout
    assert "  ~/.qwen/settings.json  " in table
