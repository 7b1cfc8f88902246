"""The demonstration's project: a directory with hooks, and tools that work on it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


class Project:
    """A directory of its own, and the tools of the agent that works there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings_file = folder / ".hookline" / "settings.json"

    def lay_out(self) -> None:
        """Put files, settings and hooks into the directory."""
        _copy(_HERE / "files", self.folder)
        _copy(_HERE / "hooks", self.settings_file.parent / "hooks")
        shutil.copy(_HERE / "settings.json", self.settings_file)

    def tools(self) -> list[Callable[..., Any]]:
        """What the model may call."""
        return [
            self.list_files,
            self.read_file,
            self.write_file,
            self.delete_file,
            self.run_tests,
        ]

    def list_files(self) -> str:
        """List the project's files."""
        found = (p.relative_to(self.folder) for p in self.folder.rglob("*.*"))
        return "\n".join(sorted(str(p) for p in found if p.parts[0] != ".hookline"))

    def read_file(self, path: str) -> str:
        """Read a file."""
        return (self.folder / path).read_text()

    def write_file(self, path: str, content: str) -> str:
        """Write a file."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        return f"wrote {path}"

    def delete_file(self, path: str) -> str:
        """Delete a file."""
        (self.folder / path).unlink()
        return f"deleted {path}"

    def run_tests(self) -> str:
        """Run the tests."""
        return "1 failed: test_midnight"


def _copy(source: Path, target: Path) -> None:
    # Installing the package compiles its files, these among them.
    compiled = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, target, dirs_exist_ok=True, ignore=compiled)
