"""Block writing code that has no test yet.

Writing ``src/pkg/name.py`` needs a non-empty ``test_name.py`` or ``name_test.py`` under
``tests`` (``TEST_FOLDERS``). Code is a file under ``src`` or ``lib`` (``CODE_FOLDERS``)
with the extension of a programming language.
"""

from pathlib import Path
from typing import Any

from hookline.recipes.toolinput import env_list, project_paths, written_paths
from hookline.script import Output, block, run

ENDINGS = (".py", ".js", ".ts", ".go", ".rb", ".rs")
EXEMPT = ("__init__", "__main__", "conftest", "_version")
COPIERS = {"cp", "mv", "tee", "install", "ln"}


def check(event: dict[str, Any]) -> Output | None:
    """Block the first code file that has no test."""
    cwd = event["cwd"]
    for place in map(Path, project_paths(written_paths(event, COPIERS), cwd)):
        if _is_code(place) and not _has_test(place.stem, cwd):
            return block(f"write a test first: tests/test_{place.name} for {place}")
    return None


def _is_code(place: Path) -> bool:
    folders = env_list("CODE_FOLDERS", "src,lib")
    name, ending = place.stem.lower(), place.suffix.lower()
    tests = name.startswith("test_") or name.endswith(("_test", ".test"))
    inside = any(part.lower() in folders for part in place.parts[:1])
    return inside and ending in ENDINGS and not tests and name not in EXEMPT


def _has_test(name: str, cwd: str) -> bool:
    wanted = {f"test_{name}", f"{name}_test", f"{name}.test"}
    folders = (Path(cwd, one) for one in env_list("TEST_FOLDERS", "tests,test,src"))
    files = (file for folder in folders for file in folder.rglob("*"))
    named = (file for file in files if file.stem in wanted and file.is_file())
    return any(file.stat().st_size > 0 for file in named)


if __name__ == "__main__":
    run(check)
