"""Let no code be written before there is a test for it.

Writing ``src/pkg/name.py`` needs ``test_name.py`` or ``name_test.py`` somewhere under
``tests`` (``TEST_FOLDERS``), with something in it. Code is what lies under ``src`` or
``lib`` (``CODE_FOLDERS``) and ends like code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hookline.recipes.toolinput import (
    is_shell,
    only_reads,
    paths_in,
    placed_commands,
    project_path,
    resolved,
    shell_line,
)
from hookline.script import Output, block, run

ENDINGS = (".py", ".js", ".ts", ".go", ".rb", ".rs")
EXEMPT = ("__init__", "__main__", "conftest", "_version")
COPIERS = {"cp", "mv", "tee", "install", "ln"}


def check(event: dict[str, Any]) -> Output | None:
    """Block the first code file that has no test."""
    cwd = event["cwd"]
    for path in _written(event):
        place = Path(project_path(path, cwd) or "")
        if _is_code(place) and not _has_test(place.stem, cwd):
            return block(f"write a test first: tests/test_{place.name} for {place}")
    return None


def _written(event: dict[str, Any]) -> Iterator[str]:
    if not is_shell(event["tool_name"]):
        if not only_reads(event["tool_name"]):
            yield from paths_in(event["tool_input"])
        return
    line = shell_line(event["tool_input"])
    for command, cwd in placed_commands(line, event["cwd"]):
        names = command.operands if command.name in COPIERS else []
        for name in (*command.writes, *names):
            yield resolved(name, cwd)


def _is_code(place: Path) -> bool:
    folders = os.environ.get("CODE_FOLDERS", "src,lib").split(",")
    name, ending = place.stem.lower(), place.suffix.lower()
    tests = name.startswith("test_") or name.endswith(("_test", ".test"))
    inside = any(part.lower() in folders for part in place.parts[:1])
    return inside and ending in ENDINGS and not tests and name not in EXEMPT


def _has_test(name: str, cwd: str) -> bool:
    wanted = {f"test_{name}", f"{name}_test", f"{name}.test"}
    for folder in os.environ.get("TEST_FOLDERS", "tests,test,src").split(","):
        for file in Path(cwd, folder).rglob("*"):
            if file.stem in wanted and file.is_file() and file.stat().st_size > 0:
                return True
    return False


if __name__ == "__main__":
    run(check)
