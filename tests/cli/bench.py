"""Commands run for real, in a project of their own."""

from __future__ import annotations

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

PATIENCE_S = 100.0


class Bench:
    """A project, a home without settings, and the command line."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.home = folder / "home"
        for made in (self.project, self.home):
            made.mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "LANG": "C.UTF-8",
            "COLUMNS": "200",
        }

    @property
    def journal(self) -> Path:
        """Where events are recorded by default."""
        return self.home / "state" / "hookline" / "journal.sqlite"

    def settings(self, name: str, settings: dict[str, Any]) -> str:
        """Write a settings file and return its path."""
        path = self.project / name
        path.write_text(json.dumps(settings))
        return str(path)

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "hookline.cli.main", *words]

    def run(
        self, *words: str, cwd: Path | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self.argv(*words),
            cwd=cwd or self.project,
            env=self.env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def json(self, *words: str) -> Any:
        """Run a command with ``--json`` and read what it prints."""
        done = self.run(*words, "--json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def fire(self, settings: str, tool: str, **tool_input: Any) -> None:
        """Record one BeforeTool event."""
        done = self.run(
            *("fire", "BeforeTool", "--settings", settings, "--record"),
            *("--tool", tool, "--tool-input", json.dumps(tool_input)),
        )
        assert done.returncode in (0, 2), done.stderr


def on_terminal(
    bench: Bench, *words: str, stream: str = "stderr", columns: int = 80
) -> str:
    """What a command writes to standard error, or output, where that is a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    with subprocess.Popen(
        bench.argv(*words),
        cwd=bench.project,
        env=bench.env,
        stdin=subprocess.DEVNULL,
        stdout=theirs if stream == "stdout" else subprocess.DEVNULL,
        stderr=theirs if stream == "stderr" else subprocess.DEVNULL,
    ):
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:
            pass  # how a terminal says that the other side has gone
        finally:
            os.close(ours)
    return shown.decode()


def command(text: str, name: str = "hook", **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": text, "name": name, **more}


def says(output: dict[str, Any], name: str) -> dict[str, Any]:
    return command(f"cat >/dev/null; echo '{json.dumps(output)}'", name)


def group(*hooks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"hooks": list(hooks), **more}


def before_tool(*groups: dict[str, Any], **config: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"hooks": {"BeforeTool": list(groups)}}
    return found | ({"hooksConfig": config} if config else {})


GUARD = command(
    "grep -q forbidden && { echo 'not this one' >&2; exit 2; }; true", "guard"
)
CRASH = command("exit 7", "crash")
