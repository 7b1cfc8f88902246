"""Tell the model the git branch, the changed files, and the project's own notes.

The notes are ``CONTEXT.md`` or ``.hookline/context.md`` (``CONTEXT_FILE``). They are
truncated at ``MAX_TEXT`` characters and cleaned of control characters. Notes outside
the project are not read: a link must not leak a secret.
"""

import os
import subprocess
import unicodedata
from pathlib import Path
from typing import Any

from hookline.recipes.toolinput import project_path
from hookline.script import Output, add_context, run

FILES = ("CONTEXT.md", ".hookline/context.md")
MAX_TEXT = 4000
MAX_CHANGES = 20


def check(event: dict[str, Any]) -> Output | None:
    """Add branch, changes and notes to the context."""
    cwd = event["cwd"]
    parts = [*_git(cwd), *_notes(cwd)]
    return add_context("\n".join(parts)) if parts else None


def _git(cwd: str) -> list[str]:
    ended = subprocess.run(
        ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", "-bz"],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if not ended.stdout:
        return []
    lines = ended.stdout.decode(errors="replace").rstrip("\0").split("\0")
    branch = lines[0].removeprefix("## ").partition("...")[0]
    changed = [clean(line) for line in lines[1:] if line]
    parts = [f"git branch: {clean(branch)}"]
    if changed:
        more = len(changed) - MAX_CHANGES
        listed = changed[:MAX_CHANGES] + ([f"and {more} more"] if more > 0 else [])
        parts.append("changed files: " + ", ".join(listed))
    return parts


def _notes(cwd: str) -> list[str]:
    for name in filter(None, (os.environ.get("CONTEXT_FILE"), *FILES)):
        inside = project_path(name, cwd)
        place = Path(cwd, inside or "")
        if inside and place.is_file() and not _is_secret(place):
            with place.open(encoding="utf-8", errors="replace") as file:
                text = file.read(MAX_TEXT + 1)
            cut = "\n(truncated)" if len(text) > MAX_TEXT else ""
            return [clean(text[:MAX_TEXT], keep="\n\t") + cut]
    return []


def _is_secret(place: Path) -> bool:
    secret = (".env", ".git", ".ssh", "id_")
    return any(part.casefold().startswith(secret) for part in place.parts)


def clean(text: str, keep: str = "") -> str:
    """A text without control and invisible characters."""
    hidden = {one for one in text if unicodedata.category(one)[0] == "C"} - {*keep}
    return "".join(" " if char in hidden else char for char in text)


if __name__ == "__main__":
    run(check)
