"""What ``hookline trust`` shows of hooks that a person is asked to approve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .commandline import run_command
from .pins import masked

NOTHING_NAMED = (
    "note no file of the project is named: only the command itself is pinned, "
    "not the programs it runs"
)
ABSENT = "does not exist; creating it is a change"


def review_of(hook: dict[str, Any], project: Path) -> list[str]:
    """What a review shows of one hook: pinned files, files to come, and notes."""
    settings = {"hooks": {"BeforeTool": [{"hooks": [{"name": "hook", **hook}]}]}}
    file = project / ".hookline" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(settings))
    review = run_command("trust", "--cwd", project)
    text = masked(review.stdout, {"project": project, "above": project.parent})
    lines = []
    for line in text.splitlines():
        kind, *words = line.split() or [""]
        if kind in {"pins", "note", "caution"}:
            lines.append(" ".join((kind, *words)))
        elif kind == "new" and line.endswith(ABSENT):
            path = line.removesuffix(ABSENT).strip().removeprefix("new").strip()
            lines.append(f"if it appears: {path}")
    assert "new      hook " in text, review.stderr
    return ["nothing named" if line == NOTHING_NAMED else line for line in lines]
