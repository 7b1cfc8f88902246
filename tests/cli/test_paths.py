"""``hookline paths`` names everything that Hookline writes (issue 17)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EVENT = {
    "session_id": "s1",
    "transcript_path": "",
    "hook_event_name": "Stop",
    "stop_hook_active": False,
    "last_assistant_message": "done",
}
MISSING = {
    "settings",
    "settings, this machine",
    "stops to pass on",
}
"""Of what is listed, the commands of the test write everything else."""
XDG = {
    "XDG_CONFIG_HOME": "config",
    "XDG_STATE_HOME": "state",
    "XDG_CACHE_HOME": "cache",
    "XDG_DATA_HOME": "data",
    "XDG_RUNTIME_DIR": "run",
}


class Machine:
    """A user with an empty home, a project and a folder for temporary files."""

    def __init__(self, root: Path, *, has_xdg: bool) -> None:
        self.root, self.project = root, root / "project"
        for name in ("home", "project", "tmp", *XDG.values()):
            (root / name).mkdir(mode=0o700)
        self.env = {
            **dict.fromkeys(XDG, ""),
            **({key: str(root / name) for key, name in XDG.items()} if has_xdg else {}),
            "HOME": str(root / "home"),
            "TMPDIR": str(root / "tmp"),
            "HOOKLINE_NO_RESIDENT": "",
            "PYTHONDONTWRITEBYTECODE": "",
        }

    def run(self, line: str, stdin: str = "") -> str:
        """Run one command; whatever its exit status, it must be no bug."""
        done = subprocess.run(
            [sys.executable, "-m", "hookline", *line.split()],
            cwd=self.project,
            env={**os.environ, **self.env},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout

    def paths(self, *options: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            self.run(" ".join(("paths", "--json", *options)))
        )
        return found

    def files(self) -> dict[Path, int]:
        """Every file with the time of its last change."""
        every = (path for path in self.root.rglob("*") if not path.is_dir())
        return {path: path.lstat().st_mtime_ns for path in every}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, has_xdg=False)


def write_settings(project: Path) -> None:
    """Add a hook that rejects answers, one that times out, and an own journal."""
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
    machine.run("trust --yes")
    machine.run("fire BeforeTool --tool write_file --record")
    machine.run("fire AfterModel --record")
    machine.run("fire Notification")
    machine.run("install claude --all-events")
    machine.run("install codex --user --all-events")
    machine.run("bridge claude", stdin=json.dumps(EVENT))
    machine.run("bridge --stop")
    machine.run("fire BeforeAgent --record")
    for line in ("demo", "stats", "replay", "check", "list") if has_xdg else ():
        machine.run(line)
    listed = machine.paths()
    named = [Path(one["path"]) for one in listed if one["exists"]]
    unnamed = [
        path
        for path in machine.files()
        if not any(path.is_relative_to(one) for one in named)
    ]
    assert unnamed == []
    missing = {one["what"] for one in listed if not one["exists"]}
    assert missing - {"journal"} == MISSING
    assert {one["scope"] for one in listed} == {"project", "user", "system", "package"}
    before = machine.files()
    assert machine.run("paths").startswith("project\n")
    assert machine.files() == before


def test_sizes_are_those_of_the_files(machine: Machine) -> None:
    (machine.project / ".hookline").mkdir()
    (machine.project / ".hookline/settings.json").write_text("{}")
    (machine.project / ".hookline/big").write_bytes(b"x" * 1_500_000)
    (machine.project / ".hookline/link").symlink_to("/")
    by_path = {one["path"]: one for one in machine.paths()}
    own = by_path[f"{machine.project}/.hookline"]
    assert (own["bytes"], own["files"]) == (1_500_002, 2)
    shown = machine.run("paths")
    assert f"2 B  {machine.project}/.hookline/settings.json\n" in shown
    assert f"1.5 MB  {machine.project}/.hookline\n" in shown
    assert f"-  {machine.project}/.hookline/settings.local.json\n" in shown


def test_paths_of_another_project(machine: Machine) -> None:
    other = machine.root / "other"
    (other / "below/.git").mkdir(parents=True)
    listed = machine.paths("--cwd", str(other / "below"))
    assert f"{other}/below/.hookline/settings.json" in {one["path"] for one in listed}
    assert not (other / "below/.hookline").exists()


def test_broken_settings_are_listed_too(machine: Machine) -> None:
    (machine.project / ".hookline").mkdir()
    for name in ("settings.json", "settings.toml"):
        (machine.project / ".hookline" / name).write_text("[[[")
    named = {one["path"] for one in machine.paths() if one["exists"]}
    folder = f"{machine.project}/.hookline"
    assert {f"{folder}/settings.json", f"{folder}/settings.toml"} <= named


def test_without_a_home_only_files_of_others_are_listed(machine: Machine) -> None:
    machine.env |= {**dict.fromkeys(XDG, ""), "HOME": "nowhere"}
    scopes = {(one["scope"], one["what"]) for one in machine.paths()}
    assert ("user", "settings") not in scopes
    assert ("system", "settings") in scopes
