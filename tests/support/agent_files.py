"""A home folder and a project with files of coding agents, and commands on them.

A row of a table is a list of ``steps``: a command (a list of words, run in this
process), or an object that says what a person does in between.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.support.bridged import lines
from tests.support.commandline import Finished, run_command
from tests.support.pins import masked

PROGRAMS = str(Path(sys.executable).parent)
HOME_VARIABLES = (
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME"),
    "LLXPRT_CONFIG_HOME",
)
GUARD = {"type": "command", "command": "true", "name": "guard"}
_LONGEST = 4000


class AgentFiles:
    """The folders of a person, with hooks in a project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home, self.project = folder / "home", folder / "project"
        (self.project / ".hookline").mkdir(parents=True)
        (self.project / ".git").mkdir()
        self.home.mkdir()
        self.places = {
            "project": self.project,
            "home": self.home,
            "bin": PROGRAMS,
            "python": sys.executable,
            "folder": folder,
        }
        self.env = {
            **dict.fromkeys(HOME_VARIABLES, ""),
            "HOME": str(self.home),
            "PATH": f"{PROGRAMS}:/usr/bin:/bin",
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_STATE_HOME": str(self.home / ".state"),
        }
        self.hooks(BeforeTool=[GUARD])

    def hooks(self, **events: list[dict[str, Any]]) -> None:
        """Have these hooks in the project."""
        groups = {event: [{"hooks": hooks}] for event, hooks in events.items()}
        self.write(".hookline/settings.json", json.dumps({"hooks": groups}))

    def path(self, name: str) -> Path:
        """A file of the project, or of the home folder if it starts with ``~/``."""
        if name.startswith("~/"):
            return self.home / name[2:]
        return self.project / name

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file, in folders that may not exist."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def run(self, *words: str, **env: str) -> Finished:
        """Run a command in the project."""
        return run_command(*words, cwd=self.project, env=self.env | env)

    def claude(self) -> dict[str, Any]:
        """The project's settings of Claude Code."""
        text = (self.project / ".claude/settings.json").read_text()
        settings: dict[str, Any] = json.loads(text)
        return settings

    def contents(self) -> dict[str, tuple[int, bytes] | None]:
        """Every file with its mode and folder, but what Hookline keeps for itself."""
        of_hookline = (".git/", ".hookline/", "~/.state/", "~/.config/hookline/")
        contents: dict[str, tuple[int, bytes] | None] = {}
        for folder, shown in ((self.project, ""), (self.home, "~/")):
            for path in sorted(folder.rglob("*")):
                name = f"{shown}{path.relative_to(folder)}"
                if f"{name}/".startswith(of_hookline):
                    continue
                mode = path.stat().st_mode & 0o777 if path.is_file() else 0
                contents[name] = (mode, path.read_bytes()) if path.is_file() else None
        return contents

    def filled(self, text: str) -> str:
        """Text with the folders of this test in place of ``<project>`` and others."""
        for name, place in self.places.items():
            text = text.replace(f"<{name}>", str(place))
        return text

    def take(self, steps: list[Any]) -> list[object]:
        """Take every step; what each command printed."""
        printed: list[object] = []
        for step in json.loads(self.filled(json.dumps(steps))):
            if isinstance(step, list):
                printed.append(self._shown(self.run(*step)))
                continue
            for name, text in step.get("write", {}).items():
                content = text if isinstance(text, str) else "\n".join(text)
                is_program = content.startswith("#!")
                self.write(name, content).chmod(0o755 if is_program else 0o640)
            if "hooks" in step:
                self.hooks(**step["hooks"])
            for name in step.get("remove", ()):
                self.path(name).unlink()
            for name, (old, new) in step.get("replace", {}).items():
                text = self.path(name).read_text()
                assert old in text, text
                self.path(name).write_text(text.replace(old, new, 1))
            for name, target in step.get("link", {}).items():
                self.path(name).parent.mkdir(parents=True, exist_ok=True)
                self.path(name).symlink_to(target)
            self.env |= step.get("env", {})
        return printed

    def _shown(self, ended: Finished) -> object:
        shown: dict[str, Any] = {"status": ended.returncode} if ended.returncode else {}
        for name in ("stdout", "stderr"):
            if text := masked(getattr(ended, name), self.places):
                shown[name] = lines(text)
        return shown

    def changed(self, before: dict[str, tuple[int, bytes] | None]) -> dict[str, object]:
        """The files that are not as they were; None for one that is gone."""
        after = self.contents()
        return {
            name: self._content(after.get(name))
            for name in {**before, **after}
            if before.get(name, "") != after.get(name, "") and after.get(name, True)
        }

    def _content(self, file: tuple[int, bytes] | None) -> object:
        if file is None:
            return None
        mode, content = file
        text = masked(content.decode(), self.places)
        shown: object = lines(text)
        if len(text) > _LONGEST:  # a program: what is written into it
            shown = [line for line in text.split("\n") if "const SETUP" in line]
        return {"program": shown} if mode & 0o111 else shown
