"""``hookline list``."""

from __future__ import annotations

import json
from pathlib import Path

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
        *("BeforeTool", "write", "quiet", "project", "command", "no")
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
