"""Run one program in a private home, and keep what the model was sent."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from hookline.testing.modelapi import Answer, ModelServer

from .programs import Program

LIMIT_S = 180


class ScriptedServer(ModelServer):
    """Answers the agent's own requests in order; side requests get no tool calls."""

    def take(self, path: str, body: dict[str, Any]) -> Answer:
        """Titles, summaries and checks declare no tools and use up no answer."""
        if not body.get("tools"):
            return Answer("a title")
        return super().take(path, body)


class Run(Struct, frozen=True):
    """What one run of a program did, and what its model was sent."""

    requests: list[dict[str, Any]]
    stdout: str
    stderr: str
    status: int

    def sent(self, text: str) -> bool:
        """Whether any request held this text."""
        return any(text in json.dumps(one) for one in self.requests)


def run_program(
    program: Program, bin_dir: Path, place: Path, answers: Iterable[Answer | str]
) -> Run:
    """Run it once in ``place`` / project, with the home beside it."""
    home, project = place / "home", place / "project"
    with ScriptedServer(answers) as server:
        names = {"@URL@": server.url, "@HOME@": str(home), "@PROJECT@": str(project)}
        for path, text in program.files.items():
            target = Path(_filled(path, names))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_filled(text, names))
        environ = {key: _filled(text, names) for key, text in program.environ.items()}
        done = subprocess.run(
            [_filled(one, names) for one in program.arguments],
            cwd=project,
            env=environment(home, bin_dir) | environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        requests = [one.body for one in server.requests]
    return Run(requests, done.stdout, done.stderr, done.returncode)


def environment(home: Path, bin_dir: Path) -> dict[str, str]:
    """Nothing of the caller's environment but the way to programs."""
    path = os.pathsep.join([str(bin_dir), os.environ["PATH"]])
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb"}


def _filled(text: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(name, value)
    return text
