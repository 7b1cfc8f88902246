"""Format a file after a tool has written it.

The formatter is chosen by the file's extension and skipped if it is not installed.
``FORMATTERS`` adds or replaces some: ``py=black -q;sql=pg_format -i``. Only files
inside the project are formatted, and a file name is never taken for an option.
"""

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hookline.recipes.toolinput import paths_in, project_paths
from hookline.script import Output, run, system_message

FORMATTERS = {
    "py": "ruff format --quiet",
    **dict.fromkeys(("js", "ts", "css"), "prettier --write --log-level warn"),
    "go": "gofmt -w",
    "rs": "rustfmt --quiet",
}


def check(event: dict[str, Any]) -> Output | None:
    """Format what was written; report errors of the formatter."""
    cwd = event["cwd"]
    paths = dict.fromkeys(project_paths(paths_in(event["tool_input"]), cwd))
    complaints = (_format(path, cwd) for path in paths if Path(cwd, path).is_file())
    text = "\n".join(filter(None, complaints))
    return system_message(text) if text else None


def _format(path: str, cwd: str) -> str:
    words = shlex.split(_formatters().get(path.rpartition(".")[2].lower(), ""))
    if not words or not shutil.which(words[0]):
        return ""
    ended = subprocess.run(
        # An absolute path cannot be taken for an option, and no shell reads it.
        [*words, str(Path(cwd, path))],
        cwd=cwd,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return "" if ended.returncode == 0 else f"{words[0]}: {ended.stderr.strip()[:2000]}"


def _formatters() -> dict[str, str]:
    added = os.environ.get("FORMATTERS", "").split(";")
    pairs = (entry.partition("=") for entry in added if "=" in entry)
    return FORMATTERS | {ending.strip(): command for ending, _, command in pairs}


if __name__ == "__main__":
    run(check)
