"""Second of a chained pair: let tools use paths inside the project only.

It compares text with text and follows no links, since ``normalize_paths.py`` has
resolved them before; alone it blocks every relative path rather than guess.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hookline.recipes.toolinput import paths_in
from hookline.script import Output, block, run


def check(event: dict[str, Any]) -> Output | None:
    """Block the first path that is not inside."""
    root = os.path.realpath(event["cwd"])
    for path in paths_in(event["tool_input"]):
        inside = path == root or path.startswith(root + os.sep)
        if not inside or os.pardir in Path(path).parts:
            return block(f"{path} is outside the project")
    return None


if __name__ == "__main__":
    run(check)
