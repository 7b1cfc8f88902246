"""What works from the wheel, in an empty environment, folder and home."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from hookline.cli.main import COMMANDS
from hookline.protocol.events import HookEventName
from tests.docs.pages import Command, comparable, fits, steps_of

from .contents import ROOT

OK, BLOCKED = 0, 2
WRITE_ENV = "BeforeTool --tool write_file --tool-input"
CORE = tomllib.loads(Path(__file__).with_name("commands.toml").read_text())["command"]
EVENT = (
    '{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Write",'
    ' "tool_input": {"file_path": ".env", "content": ""}}'
)
THEIRS = (
    '{"hooks": {"PreToolUse": [{"matcher": "Bash",'
    ' "hooks": [{"type": "command", "command": "true"}]}]}}'
)


class Place:
    """An environment of its own, with an empty home and an empty folder."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self._wheel = wheel
        self._env = folder / "env"
        self.folder = folder / "project"
        self.folder.mkdir()
        self._home = folder / "home"
        self._home.mkdir()
        subprocess.run([sys.executable, "-m", "venv", str(self._env)], check=True)

    def install(self, extras: str = "") -> None:
        """Install the wheel, with or without extras."""
        pip = [str(self._env / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, f"{self._wheel}{extras}"], check=True)

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line of a shell."""
        return subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env={
                "PATH": f"{self._env / 'bin'}:{os.defpath}",
                "HOME": str(self._home),
                "LANG": "C.UTF-8",
                "COLUMNS": "100",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=100,
            check=False,
        )


def problems_of_core(place: Place) -> Iterator[str]:
    """Without any extra: every command works, or says what to install."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    (place.folder / "event.json").write_text(EVENT)
    (place.folder / "theirs.json").write_text(THEIRS)
    (place.folder / ".." / "other").mkdir()
    versions = ((f"{how} --version", OK, version) for how in _WAYS)
    helps = ((f"hookline {name} --help", OK, f"hookline {name}") for name in COMMANDS)
    commands = ((f"hookline {it['line']}", it["status"], it["says"]) for it in CORE)
    yield from _problems(place, [*versions, *helps, *commands])
    shown = place.run("hookline demo").stdout
    wanted = [*(event.value for event in HookEventName), "hookline log --everywhere"]
    missing = [words for words in wanted if words not in shown]
    yield from (f"hookline demo does not show {words}" for words in missing)


_WAYS = ("hookline", "python -m hookline")


def _problems(place: Place, lines: Sequence[tuple[str, int, str]]) -> Iterator[str]:
    for line, status, words in lines:
        done = place.run(line)
        if done.returncode != status or words not in done.stdout:
            yield f"$ {line}\n{done.stdout}[{done.returncode}, not {status} {words!r}]"


def problems_of_readme(place: Place) -> Iterator[str]:
    """The README's files and commands, which print what it shows."""
    for step in steps_of(ROOT / "README.md"):
        if step.file is not None:
            file = place.folder / step.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(step.text)
        for command in step.commands:
            yield from _differences(place, command)


def _differences(place: Place, command: Command) -> Iterator[str]:
    printed = place.run(command.line).stdout
    shown = comparable(command.output, place.folder)
    if not fits(shown, comparable(printed, place.folder)):
        yield f"$ {command.line}\n{printed}"


def problems_of_quick_start(place: Place) -> Iterator[str]:
    """A first rule holds."""
    place.run("rm -rf .hookline .claude agent.py")
    begun = place.run("hookline init --rule && hookline trust --yes")
    [tried] = re.findall(r"^ +(hookline fire .+)$", begun.stdout, re.MULTILINE)
    allowed = f'hookline fire {WRITE_ENV} \'{{"path": "a.py"}}\''
    yield from _problems(
        place,
        [
            ("hookline test .hookline", OK, "passed"),
            (tried, BLOCKED, "keep secrets out of .env"),
            (allowed, OK, "allowed"),
            ("hookline completion bash", OK, "complete"),
        ],
    )
