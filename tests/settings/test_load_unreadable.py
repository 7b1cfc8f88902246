"""Settings and approvals that are there and cannot be read take no guard away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, Settings, SettingsError
from hookline.settings.places import SettingsPlaces
from tests.support.commandline import run_command
from tests.support.project import Project

RULE = {"hooks": {"BeforeTool": [{"hooks": [{"type": "rule", "when": "true"}]}]}}
OUT_OF_FILES = """
import os, sys
from hookline import Config
import hookline.trust.gate
files = []
try:
    while True:
        files.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
try:
    config = Config.load(sys.argv[1])
except Exception as error:
    print(type(error).__name__, error)
else:
    print("loaded", config)
"""


def make_unreadable(file: Path, how: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    if how == "directory":
        file.mkdir()
    elif how == "pipe":
        os.mkfifo(file)
    else:
        target = {"dangling": "nowhere", "loop": file.name}[how]
        file.symlink_to(target)


UNREADABLE = pytest.mark.parametrize("how", ["directory", "pipe", "dangling", "loop"])


@UNREADABLE
@pytest.mark.parametrize("name", ["settings.json", "settings.toml"])
def test_settings_of_the_user_that_cannot_be_read_raise(
    project: Project, tmp_path: Path, how: str, name: str
) -> None:
    """protocol.md#settings: nobody knows what they guard."""
    file = tmp_path / "config" / "hookline" / name
    make_unreadable(file, how)
    with pytest.raises(SettingsError, match="may be guards") as caught:
        Config.load(project.folder)
    assert caught.value.file == str(file)


@UNREADABLE
def test_settings_of_the_system_that_cannot_be_read_raise(
    tmp_path: Path, how: str
) -> None:
    """protocol.md#settings: managed hooks hold beside a file that is named, too."""
    make_unreadable(tmp_path / "system" / "settings.json", how)
    named = tmp_path / "named.json"
    named.write_text("{}")
    places = SettingsPlaces(user_dir=tmp_path, system_dir=tmp_path / "system")
    with pytest.raises(SettingsError, match="cannot be read"):
        Settings.load(places=places)
    with pytest.raises(SettingsError, match="cannot be read"):
        Settings.from_file(named, system_dir=tmp_path / "system")


@UNREADABLE
async def test_project_file_that_cannot_be_read_is_its_own_matter(
    project: Project, how: str
) -> None:
    """protocol.md#settings: approved it closes, otherwise the others still work."""
    file = project.folder / ".hookline" / "settings.json"
    make_unreadable(file, how)
    assert Config.load(project.folder).settings.errors
    if how == "directory":
        file.rmdir()
    else:
        file.unlink()
    file.write_text(json.dumps(RULE))
    assert project.trust() == 0
    make_unreadable(file, how)
    assert (await project.fire()).blocked


@pytest.mark.parametrize("whose", ["user", "project", "extension"])
def test_loading_without_descriptors_raises(
    project: Project, tmp_path: Path, whose: str
) -> None:
    """protocol.md#settings: no source is dropped because it cannot be opened."""
    path = tmp_path / "packages"
    if whose == "user":
        file = tmp_path / "config" / "hookline" / "settings.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(RULE))
    elif whose == "project":
        project.guarded()
        assert project.trust() == 0
    else:
        metadata = path / "guards-1.dist-info"
        metadata.mkdir(parents=True)
        points = "[hookline.extensions]\nguards = json:loads\n"
        (metadata / "entry_points.txt").write_text(points)
    command = [sys.executable, "-c", OUT_OF_FILES, str(project.folder)]
    limited = ["sh", "-c", 'ulimit -n 100; exec "$@"', "sh", *command]
    env = {**os.environ, "PYTHONPATH": str(path)}
    done = subprocess.run(limited, capture_output=True, text=True, env=env, check=True)
    assert done.stdout.startswith("SettingsError ")
    assert "Too many open files" in done.stdout
    assert "raise the limit of open files" in done.stdout


@UNREADABLE
@pytest.mark.parametrize("event", ["PreToolUse", "Stop", "not JSON"])
def test_bridge_refuses_tools_while_settings_cannot_be_read(
    project: Project, tmp_path: Path, how: str, event: str
) -> None:
    """protocol.md#settings: and it never rejects an answer for ever."""
    file = tmp_path / "config" / "hookline" / "settings.json"
    make_unreadable(file, how)
    call: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    sent = {"hook_event_name": event, "cwd": str(project.folder), "session_id": "s"}
    text = "{" if event == "not JSON" else json.dumps({**sent, **call})
    done = run_command("bridge", "claude", stdin=text)
    assert str(file) in done.stdout + done.stderr
    if event == "PreToolUse":
        answer = json.loads(done.stdout)["hookSpecificOutput"]
        assert answer["permissionDecision"] == "deny"
    else:
        assert (done.returncode, done.stdout.strip()) in {(0, "{}"), (2, "")}
        assert done.returncode == (2 if event == "not JSON" else 0)


def test_check_names_settings_that_cannot_be_read(
    project: Project, tmp_path: Path
) -> None:
    """protocol.md#settings: an error, as of every other command."""
    file = tmp_path / "config" / "hookline" / "settings.json"
    make_unreadable(file, "dangling")
    checked = run_command("check", "--cwd", project.folder)
    assert (checked.returncode, str(file) in checked.stderr) == (1, True)
