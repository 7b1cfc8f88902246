"""``hookline paths`` names everything that Hookline writes (issue 17)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.command_project import PROGRAM, CommandProject

EVENT = {
    "session_id": "s1",
    "transcript_path": "",
    "hook_event_name": "Stop",
    "stop_hook_active": False,
    "last_assistant_message": "done",
}
MISSING = {"settings", "settings, this machine", "stops to pass on"}
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


class Machine:
    """A user with an empty home, a project and a folder for temporary files."""

    def __init__(self, root: Path, *, has_xdg: bool) -> None:
        self.root, self.project = root, root / "project"
        for name in ("home", "project", "tmp", *XDG.values()):
            (root / name).mkdir(mode=0o700)
        self._env = {
            **dict.fromkeys(XDG, ""),
            **({key: str(root / name) for key, name in XDG.items()} if has_xdg else {}),
            "HOME": str(root / "home"),
            "TMPDIR": str(root / "tmp"),
            "HOOKLINE_NO_RESIDENT": "",
            "PYTHONDONTWRITEBYTECODE": "",
        }

    def run(self, line: str) -> str:
        """Run one command; whatever its exit status, it must be no bug."""
        ended = subprocess.run(
            [*PROGRAM, *line.split()],
            cwd=self.project,
            env={**os.environ, **self._env},
            input=json.dumps(EVENT),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert "Traceback" not in ended.stderr, ended.stderr
        return ended.stdout

    def files(self) -> dict[Path, int]:
        """Every file with the time of its last change."""
        every = (path for path in self.root.rglob("*") if not path.is_dir())
        return {path: path.lstat().st_mtime_ns for path in every}


def write_settings(project: Path) -> None:
    """Add a hook that rejects answers, one that times out, and a journal."""
    again = {"type": "command", "command": "echo again >&2; exit 2"}
    slow = {"type": "command", "command": "sleep 60", "timeout": 100}
    file = project / ".hookline/settings.json"
    settings = json.loads(file.read_text())
    settings["hooks"]["AfterAgent"] = [{"hooks": [again]}]
    settings["hooks"]["Notification"] = [{"hooks": [slow]}]
    settings["hooksConfig"] = {"journal": ".hookline/own.sqlite"}
    file.write_text(json.dumps(settings))


@pytest.mark.parametrize("has_xdg", [True, False], ids=["xdg", "no-xdg"])
def test_every_file_that_commands_write_is_below_a_path(
    has_xdg: bool, tmp_path: Path
) -> None:
    machine = Machine(tmp_path, has_xdg=has_xdg)
    machine.run("init --recipe cost-budget --recipe audit-log")
    write_settings(machine.project)
    for line in COMMANDS.strip().splitlines():
        machine.run(line)
    for line in ("demo", "stats", "replay", "check", "list") if has_xdg else ():
        machine.run(line)
    listed = json.loads(machine.run("paths --json"))
    named = [Path(place["path"]) for place in listed if place["exists"]]
    unnamed = [
        file
        for file in machine.files()
        if not any(file.is_relative_to(place) for place in named)
    ]
    assert unnamed == []
    missing = {place["what"] for place in listed if not place["exists"]}
    assert missing - {"journal"} == MISSING
    scopes = {place["scope"] for place in listed}
    assert scopes == {"project", "user", "system", "package"}
    before = machine.files()
    assert machine.run("paths").startswith("project\n")
    assert machine.files() == before


def test_sizes_are_those_of_the_files(command_project: CommandProject) -> None:
    command_project.write(".hookline/settings.json", "{}")
    command_project.write(".hookline/big", "x" * 1_500_000)
    command_project.path(".hookline/link").symlink_to("/")
    folder = f"{command_project.project}/.hookline"
    by_path = {place["path"]: place for place in command_project.json("paths")}
    assert (by_path[folder]["bytes"], by_path[folder]["files"]) == (1_500_002, 2)
    assert f"1.5 MB  {folder}\n" in command_project.run("paths").stdout
