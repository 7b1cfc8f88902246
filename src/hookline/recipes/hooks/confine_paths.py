"""Second of a chained pair: allow only paths inside the project.

It compares text and follows no links: ``normalize_paths.py`` has resolved them. On its
own it blocks every relative path.
"""

import os
from pathlib import Path
from typing import Any

from hookline.recipes.toolinput import paths_in
from hookline.script import Output, block, run


def check(event: dict[str, Any]) -> Output | None:
    """Block the first path outside the project."""
    root = os.path.realpath(event["cwd"])
    for path in paths_in(event["tool_input"]):
        inside = path == root or path.startswith(root + os.sep)
        if not inside or os.pardir in Path(path).parts:
            return block(f"{path} is outside the project")
    return None


if __name__ == "__main__":
    run(check)
