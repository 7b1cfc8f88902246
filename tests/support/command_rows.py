"""Rows that run commands: a project in, what each command returns and leaves out.

A row has a project of its own. ``files`` are written first (text, or a JSON value),
``folders`` and ``links`` are made, and ``run`` lists the commands. A command is a line
of words, or an object with ``argv`` and

- ``stdin``, ``env`` and ``cwd`` (a folder in the project),
- ``write`` and ``remove``: files that change before it runs,
- ``shows``: texts to look for in what it prints for people,
- ``pick``: the keys that are compared of each object in its JSON.

``places`` makes the result hold what all of them changed on disk. Paths are those of
the project, ``~/`` is the home folder; ``<project>``, ``<home>``, ``<root>`` (around
both), ``<python>``, ``<scripts>`` and ``<venv>`` (around it) are filled in.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import hookline

from .command_project import SCRIPTS, CommandProject
from .pins import masked

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIMEOUT = re.compile(r'"timeout_ms": ([\d.]+)')
_DURATION = re.compile(r"(duration_ms='|: \d+ hooks?, )[\d.]+")
_DIGEST = re.compile(r"-[0-9a-f]{16}\b")
_INPUT_BYTES = re.compile(r'"input_bytes": \d+')
"""They count the path of the project, too."""
_ACCESS_KEY = re.compile(r"AKIA[0-9A-Z]{16}")
"""Secret scanners would report the file of the table."""
_LONG_TEXT = 600
_CONTROLS = {"\x1b", "\x07", "\u202e"}


class RowProject(CommandProject):
    """A project in which the commands of rows are run, and compared without paths."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._places: dict[str, object] = {
            "project": self.project,
            "home": self.home,
            "root": root,
            "python": sys.executable,
            "scripts": SCRIPTS,
            "venv": SCRIPTS.parent,
            "package": Path(hookline.__file__).parent,
        }

    def happen(self, row: dict[str, Any]) -> dict[str, Any]:
        """Run the commands of a row; what each of them came to."""
        filled = self._filled({key: row[key] for key in row if key != "then"})
        for name in filled.get("folders", ()):
            self.path(name).mkdir(parents=True, exist_ok=True)
        self._change(filled)
        for name, target in filled.get("links", {}).items():
            self.path(name).parent.mkdir(parents=True, exist_ok=True)
            self.path(name).symlink_to(target)
        before = self._contents()
        env = filled.get("env", {})
        steps = [
            {"argv": step} if isinstance(step, str) else step for step in row["run"]
        ]
        outcome: dict[str, Any] = {"commands": [self._run(step, env) for step in steps]}
        if filled.get("places"):
            after = self._contents()
            outcome["places"] = {
                name: after.get(name, "removed")
                for name in sorted(before.keys() | after.keys())
                if before.get(name) != after.get(name)
            }
        masked_outcome: dict[str, Any] = json.loads(self._masked(json_text(outcome)))
        return masked_outcome

    def _run(self, written: dict[str, Any], env: dict[str, str]) -> dict[str, Any]:
        step = self._filled(written)
        self._change({"files": step.get("write", {}), "remove": step.get("remove", ())})
        argv, stdin = step["argv"], step.get("stdin", "")
        ended = self.run(
            *(shlex.split(argv) if isinstance(argv, str) else argv),
            cwd=self.path(step.get("cwd", "")),
            env={**env, **step.get("env", {})},
            stdin=stdin if isinstance(stdin, str) else json.dumps(stdin),
        )
        assert "Traceback" not in ended.stderr, ended.stderr
        result: dict[str, Any] = {"run": written["argv"], "status": ended.returncode}
        values = _json_values(ended.stdout)
        if values is not None:
            result["stdout"] = _picked(values, step.get("pick"))
        else:
            assert not set(ended.stdout) & _CONTROLS, ended.stdout
        if "shows" in step:
            # A text is looked for as it is written down: with places masked.
            stdout = self._masked(ended.stdout)
            result["shows"] = [text for text in written["shows"] if text in stdout]
        if ended.stderr:
            lines = ended.stderr.splitlines()
            result["stderr"] = lines if len(lines) > 1 else lines[0]
        return result

    def _change(self, changes: dict[str, Any]) -> None:
        for name, content in changes.get("files", {}).items():
            self.write(name, content)
        for name in changes.get("remove", ()):
            self.path(name).unlink()

    def _contents(self) -> dict[str, Any]:
        """Every file of the project and around it, but for Hookline's own state."""
        return {
            str(file.relative_to(self.root)): _content(file)
            for file in sorted(self.root.rglob("*"))
            if not file.is_relative_to(self.home / "state")
            and (file.is_symlink() or file.is_file())
            and "__pycache__" not in file.parts
        }

    def _filled(self, value: Any) -> Any:
        text = json.dumps(value)
        for name, place in self._places.items():
            text = text.replace(f"<{name}>", str(place))
        return json.loads(text)

    def _masked(self, text: str) -> str:
        """Without what differs from run to run; limits in milliseconds stay."""
        text = _TIMEOUT.sub(r'"timeout_ms": "\1 milliseconds"', text)
        text = _DURATION.sub(r"\1<time>", _UUID.sub("<uuid>", text))
        text = _DIGEST.sub("-<digest>", text)
        text = _INPUT_BYTES.sub('"input_bytes": "<bytes>"', text)
        text = masked(_ACCESS_KEY.sub("<access key>", text), self._places)
        return text.replace(quote(str(self.root), safe=""), "<quoted root>")


def json_text(value: object) -> str:
    """JSON in which places can be found."""
    return json.dumps(value, ensure_ascii=False)


def _content(file: Path) -> Any:
    if file.is_symlink():
        return f"link to {file.readlink()}"
    try:
        text = file.read_text()
    except UnicodeDecodeError:
        return "not text"
    with contextlib.suppress(ValueError):
        if text.startswith(("{", "[")):
            return json.loads(text)
    return text if len(text) <= _LONG_TEXT else "a longer text"


def _json_values(text: str) -> Any:
    """What a command printed, where that is JSON: one value, or one on each line."""
    if not text.startswith(("{", "[")):
        return None
    with contextlib.suppress(ValueError):
        return json.loads(text)
    with contextlib.suppress(ValueError):
        return [json.loads(line) for line in text.splitlines()]
    return None


def _picked(value: Any, keys: list[str] | None) -> Any:
    """Only these keys of the objects; of a single key, its values."""
    if keys is None:
        return value
    if isinstance(value, list):
        return [_picked(entry, keys) for entry in value]
    if len(keys) == 1:
        return _at(value, keys[0])
    return {key: _at(value, key) for key in keys}


def _at(value: Any, key: str) -> Any:
    """The value at a path like ``hooks.name``, in each element of a list."""
    for name in key.split("."):
        if isinstance(value, list):
            value = [entry.get(name) for entry in value]
        else:
            value = value.get(name)
    return value
