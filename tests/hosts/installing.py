"""A project and a home folder with the files of coding agents in them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from hookline.hosts.file_changes import Change, apply
from hookline.hosts.host import HostName
from hookline.hosts.host_files import FILES, Layout, Scope
from hookline.hosts.install import Installer, Wanted
from hookline.settings.locations import find_workspace
from tests.support.commandline import hookline

PROGRAM = ("/opt/hook line/bin/hookline",)
EVENTS = {
    HostName.GEMINI: ("BeforeTool", "AfterTool"),
    HostName.LLXPRT: ("BeforeTool", "AfterTool"),
    HostName.COPILOT: ("preToolUse", "postToolUse"),
    HostName.OPENCODE: ("tool.execute.before", "tool.execute.after"),
    HostName.CURSOR: ("preToolUse", "postToolUse"),
    HostName.WINDSURF: ("pre_run_command", "post_run_command"),
}
"""Two of a host's events, where they are not Claude Code's."""


def events_of(host: HostName) -> tuple[str, ...]:
    return EVENTS.get(host, ("PreToolUse", "PostToolUse"))


class Workplace:
    """What a person has on disk, and runs ``install`` on."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        (self.project / ".git").mkdir(parents=True)
        self.home.mkdir()
        for files in FILES.values():
            for variable in files.homes:
                patch.delenv(variable, raising=False)
        patch.setenv("HOME", str(self.home))
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.setenv("XDG_CONFIG_HOME", str(self.home / ".config"))
        self.state = folder / "state" / "hookline" / "installed"

    def installer(self, host: HostName, scope: Scope = Scope.PROJECT) -> Installer:
        return Installer(host, scope, find_workspace(self.project))

    def install(
        self, host: HostName, *events: str, needs_ms: float = 0, closed: bool = False
    ) -> list[str]:
        """Install for the project; the files that were changed."""
        installer = self.installer(host)
        wanted = [Wanted(one, needs_ms, closed) for one in events or events_of(host)]
        changes = installer.install(wanted, events_of(host), PROGRAM)
        return self._apply([one for one in changes if one.is_needed])

    def uninstall(self, host: HostName, scope: Scope = Scope.PROJECT) -> list[str]:
        changes = self.installer(host, scope).uninstall(events_of(host))
        return self._apply(changes)

    def _apply(self, changes: list[Change]) -> list[str]:
        apply(changes)
        return [os.path.relpath(one.path, self.project) for one in changes]

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def read(self, host: HostName) -> dict[str, Any]:
        """The JSON of a host's file in the project."""
        found = json.loads((self.project / FILES[host].project).read_text())
        assert isinstance(found, dict)
        return found

    def contents(self) -> dict[str, bytes | None]:
        """Every file and folder of the project."""
        return {
            str(path.relative_to(self.project)): None
            if path.is_dir()
            else path.read_bytes()
            for path in self.project.rglob("*")
        }


JSON_HOSTS = [
    host
    for host, files in FILES.items()
    if files.layout not in {Layout.SCRIPT, Layout.PLUGIN}
]
SHARED_HOSTS = [host for host in JSON_HOSTS if not FILES[host].is_own]

SCRIPTS = str(Path(sys.executable).parent)
GUARD = {"type": "command", "command": "true", "name": "guard"}


class Shell:
    """A person at a shell, in a project with hooks."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        (self.project / ".hookline").mkdir(parents=True)
        (self.project / ".git").mkdir()
        self.home.mkdir()
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{SCRIPTS}:/usr/bin:/bin",
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_STATE_HOME": str(self.home / ".state"),
            **{name: "" for files in FILES.values() for name in files.homes},
        }
        self.env["XDG_CONFIG_HOME"] = str(self.home / ".config")
        self.hooks(BeforeTool=[GUARD])

    def hooks(self, **events: list[dict[str, Any]]) -> None:
        found = {event: [{"hooks": hooks}] for event, hooks in events.items()}
        self.write(".hookline/settings.json", json.dumps({"hooks": found}))

    def write(self, name: str, text: str) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(self, *words: str, **env: str) -> CompletedProcess[str]:
        return hookline(*words, cwd=self.project, env=self.env | env)

    def claude(self) -> dict[str, Any]:
        found = json.loads((self.project / ".claude/settings.json").read_text())
        assert isinstance(found, dict)
        return found
