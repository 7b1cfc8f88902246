"""SessionStart, SubagentStart: tell the model what is in the project."""

from pathlib import Path
from typing import Any

from hookline.script import Output, add_context, run


def briefing(event: dict[str, Any]) -> Output:
    """Add the number of files, and where they are."""
    files = [*Path(event["cwd"]).glob("[!.]*/*")]
    folders = sorted({file.parent.name for file in files})
    return add_context(f"{len(files)} files in {', '.join(folders)}")


run(briefing)
