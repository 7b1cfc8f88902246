"""A project and a home without settings, in which commands are run."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

from .commandline import Finished, run_command

PATIENCE_S = 100.0
"""A guard against hanging, not a claim about speed."""
PROGRAM = (sys.executable, "-m", "hookline")
SCRIPTS = Path(sys.executable).parent
_AGENT_FOLDERS = (
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME"),
    *("LLXPRT_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
)


def command_hook(command: str, name: str = "hook", **more: Any) -> dict[str, Any]:
    """A hook that runs a shell command."""
    return {"type": "command", "command": command, "name": name, **more}


def settings_of(
    *hooks: dict[str, Any], event: str = "BeforeTool", **config: Any
) -> dict[str, Any]:
    """Settings with one group of hooks."""
    return {"hooks": {event: [{"hooks": list(hooks)}]}, "hooksConfig": config}


GUARD = command_hook(
    "grep -q forbidden && { echo 'not this one' >&2; exit 2; }; true", "guard"
)
ALLOW = command_hook("true", "allow")


class CommandProject:
    """Files, and the environment in which commands find them and nothing else."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project, self.home = root / "project", root / "home"
        self.project.mkdir(parents=True)
        # Private, or Hookline would use a folder that all of this machine share.
        self.home.mkdir(mode=0o700)
        (self.home / "runtime").mkdir(mode=0o700)
        self.env = {
            **dict.fromkeys(_AGENT_FOLDERS, ""),
            "PATH": f"{SCRIPTS}:/usr/bin:/bin",
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_RUNTIME_DIR": str(self.home / "runtime"),
            "VIRTUAL_ENV": "",
            "CI": "",
            "COLUMNS": "200",
            "HOOKLINE_TRUST": "",
        }

    @property
    def journal(self) -> Path:
        """Where events are recorded by default."""
        return self.home / "state" / "hookline" / "journal.sqlite"

    def path(self, name: str) -> Path:
        """A file of the project, or of the home folder after ``~/``."""
        return self.home / name[2:] if name.startswith("~/") else self.project / name

    def write(self, name: str, content: Any) -> Path:
        """Write a file that may be run: text, or a value as JSON."""
        file = self.path(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        file.write_bytes(text.encode())
        file.chmod(0o755)
        return file

    def run(
        self,
        *words: str | Path,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        stdin: str | bytes = b"",
    ) -> Finished:
        """Run a command in this process."""
        return run_command(
            *words,
            cwd=cwd or self.project,
            env={**self.env, **(env or {})},
            stdin=stdin,
        )

    def json(self, *words: str, **more: Any) -> Any:
        """What a command prints with ``--json``."""
        return self.run(*words, "--json", **more).json()

    def fire(self, settings: str, tool: str, **tool_input: Any) -> None:
        """Record one BeforeTool event."""
        ended = self.run(
            *("fire", "BeforeTool", "--settings", settings, "--record"),
            *("--tool", tool, "--tool-input", json.dumps(tool_input)),
        )
        assert ended.returncode in (0, 2), ended.stderr

    def start(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        """Start a command as a program, with pipes for what it prints."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
        return subprocess.Popen(
            [*PROGRAM, *words],
            **{
                "cwd": self.project,
                "env": {**os.environ, **self.env},
                **streams,
                "stderr": subprocess.PIPE,
                **more,
            },
        )

    def on_terminal(
        self, *words: str, stream: str = "stderr", columns: int = 80
    ) -> str:
        """What a program writes to one of its streams where that is a terminal."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        streams = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        with self.start(*words, **{**streams, stream: theirs}):
            os.close(theirs)
            shown = read_terminal(ours)
        os.close(ours)
        return shown


def read_terminal(terminal: int) -> str:
    """All that is written to a terminal, until the other side has gone."""
    shown = b""
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 65536):
            shown += piece
    return shown.decode()
