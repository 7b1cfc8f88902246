"""Run one program in a private home, and keep what its model was sent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from hookline.testing.modelapi import Answer, ModelServer

from .programs import PROMPT, Call, Program, filled

LIMIT_S = 90


class ScriptedServer(ModelServer):
    """Answers the agent in order; its side requests use up no answer."""

    def take(self, path: str, body: dict[str, Any]) -> Answer:
        """Titles, summaries and checks declare no tools."""
        if not body.get("tools"):
            return Answer("a title")
        answer = super().take(path, body)
        return answer if answer.text or answer.calls else Answer("done")


class Place(Struct, frozen=True):
    """The folder of one run: the home of its user, and a project."""

    folder: Path
    programs: Path

    @property
    def home(self) -> Path:
        """A private home."""
        return self.folder / "home"

    @property
    def project(self) -> Path:
        """Where the program works."""
        return self.folder / "project"

    @property
    def shown(self) -> Path:
        """What the hook was shown, one event on each line."""
        return self.folder / "shown.jsonl"

    @property
    def environ(self) -> dict[str, str]:
        """Nothing of the caller's environment but the way to programs."""
        ours = Path(sys.executable).parent
        search_path = os.pathsep.join(
            [str(ours), str(self.programs), os.environ["PATH"]]
        )
        runtime = self.folder / "runtime"
        return {
            "HOME": str(self.home),
            "PATH": search_path,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "XDG_RUNTIME_DIR": str(runtime),
        }


class Run(Struct, frozen=True):
    """What one run of a program did, and what its model was sent."""

    place: Place
    requests: list[dict[str, Any]]
    stdout: str
    stderr: str
    status: int | None
    """None: it did not end."""

    def sent(self, text: str) -> bool:
        """Whether any request to the model held this text."""
        return any(text in json.dumps(request) for request in self.requests)

    def has(self, path: str, text: str | None = None) -> bool:
        """Whether the project has this file (with this text)."""
        file = self.place.project / path
        return file.exists() and (text is None or file.read_text().strip() == text)


def run_program(program: Program, place: Place, turns: Sequence[Call | str]) -> Run:
    """Run it once, with a model that does this."""
    names = {"@HOME@": str(place.home), "@PROJECT@": str(place.project)}
    names["@PROMPT@"] = PROMPT
    with ScriptedServer([_answer(turn, names) for turn in turns]) as server:
        names["@URL@"] = server.url
        for path, content in program.files.items():
            target = Path(filled(path, names))
            target.parent.mkdir(parents=True, exist_ok=True)
            text = filled(content, names)
            target.write_text(text if isinstance(text, str) else json.dumps(text))
        environ = {key: filled(text, names) for key, text in program.environ.items()}
        arguments = [filled(word, names) for word in program.arguments.split()]
        status, stdout, stderr = _run(arguments, place, place.environ | environ)
        requests = [request.body for request in server.requests]
    return Run(place, requests, stdout, stderr, status)


def _run(
    arguments: Sequence[str], place: Place, environ: Mapping[str, str]
) -> tuple[int | None, str, str]:
    """Run to the end, or for as long as it may take, and leave nothing behind."""
    process = subprocess.Popen(
        arguments,
        cwd=place.project,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=LIMIT_S)
        return process.returncode, stdout, stderr
    except subprocess.TimeoutExpired:
        _kill(process.pid)
        return None, *process.communicate()
    finally:
        _kill(process.pid)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _answer(turn: Call | str, names: Mapping[str, str]) -> Answer:
    if isinstance(turn, str):
        return Answer(turn)
    name, fields = turn
    return Answer(calls=((name, filled(fields, names)),))
