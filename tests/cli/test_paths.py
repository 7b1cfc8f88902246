"""``hookline paths`` names everything that Hookline writes."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support.command_project import CommandProject

EVENT = {
    "session_id": "s1",
    "transcript_path": "",
    "hook_event_name": "Stop",
    "stop_hook_active": False,
    "last_assistant_message": "done",
}
MISSING = {"settings", "settings, this machine"}
"""Of what is listed, the commands of the test write everything else."""
XDG = {
    "XDG_CONFIG_HOME": "config",
    "XDG_STATE_HOME": "state",
    "XDG_CACHE_HOME": "cache",
    "XDG_DATA_HOME": "data",
    "XDG_RUNTIME_DIR": "run",
}
COMMANDS = """
trust --yes
fire BeforeTool --tool write_file --record
fire AfterModel --record
fire Notification
install claude --all-events
install codex --user --all-events
bridge claude
bridge --stop
fire BeforeAgent --record
"""
SLOW_COMMANDS = ("demo", "stats", "replay", "check", "list")


def files(root: Path) -> dict[Path, int]:
    """Every file with the time of its last change."""
    every = (path for path in root.rglob("*") if not path.is_dir())
    return {path: path.lstat().st_mtime_ns for path in every}


def write_settings(project: CommandProject) -> None:
    """Add a hook that rejects answers, one that times out, and a journal."""
    again = {"type": "command", "command": "echo again >&2; exit 2"}
    slow = {"type": "command", "command": "sleep 60", "timeout": 100}
    file = project.path(".hookline/settings.json")
    settings = json.loads(file.read_text())
    settings["hooks"]["AfterAgent"] = [{"hooks": [again]}]
    settings["hooks"]["Notification"] = [{"hooks": [slow]}]
    settings["hooksConfig"] = {"journal": ".hookline/own.sqlite"}
    file.write_text(json.dumps(settings))


@pytest.mark.parametrize("has_xdg", [True, False], ids=["xdg", "no-xdg"])
def test_every_file_that_commands_write_is_below_a_path(
    has_xdg: bool, command_project: CommandProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an empty home, and a folder of its own for temporary files."""
    root = command_project.root
    for name in ("tmp", *XDG.values()):
        (root / name).mkdir(mode=0o700)
    places = {key: str(root / name) if has_xdg else "" for key, name in XDG.items()}
    command_project.env |= {
        **places,
        "TMPDIR": str(root / "tmp"),
        "HOOKLINE_NO_RESIDENT": "",
        "PYTHONDONTWRITEBYTECODE": "",
    }
    # In this process it was asked for before.
    monkeypatch.setattr(tempfile, "tempdir", str(root / "tmp"))

    def run(line: str) -> str:
        """Run one command; whatever its exit status, it must be no bug."""
        words, stdin = line.split(), json.dumps(EVENT)
        if words[0] == "bridge":  # only as a program does it start a resident helper
            with command_project.start(*words, stdin=subprocess.PIPE) as bridge:
                _, problems = bridge.communicate(stdin.encode())
            assert problems == b""
            return ""
        ended = command_project.run(*words, stdin=stdin)
        assert "Traceback" not in ended.stderr, ended.stderr
        return ended.stdout

    run("init --recipe cost-budget --recipe audit-log")
    write_settings(command_project)
    lines = (*COMMANDS.strip().splitlines(), *(SLOW_COMMANDS if has_xdg else ()))
    for line in lines:
        run(line)
    listed = json.loads(run("paths --json"))
    named = [Path(place["path"]) for place in listed if place["exists"]]
    unnamed = [
        file
        for file in files(root)
        if not any(file.is_relative_to(place) for place in named)
    ]
    assert unnamed == []
    missing = {place["what"] for place in listed if not place["exists"]}
    assert missing - {"journal"} == MISSING
    scopes = {place["scope"] for place in listed}
    assert scopes == {"project", "user", "system", "package"}
    before = files(root)
    assert run("paths").startswith("project\n")
    assert files(root) == before


def test_sizes_are_those_of_the_files(command_project: CommandProject) -> None:
    command_project.write(".hookline/settings.json", "{}")
    command_project.write(".hookline/big", "x" * 1_500_000)
    command_project.path(".hookline/link").symlink_to("/")
    folder = f"{command_project.project}/.hookline"
    by_path = {place["path"]: place for place in command_project.json("paths")}
    assert (by_path[folder]["bytes"], by_path[folder]["files"]) == (1_500_002, 2)
    assert f"1.5 MB  {folder}\n" in command_project.run("paths").stdout
