"""First of a chained pair: write every path as the place it really leads to.

In a sequential group the next hook sees the changed input, and so does the tool: what
was judged is what is used. See ``confine_paths.py``.
"""

from __future__ import annotations

import re
from typing import Any

from hookline.recipes.toolinput import names_path, resolved
from hookline.script import Output, modify_input, run

# A target or a source need not be a file: only what says that it is gets rewritten.
SAYS_SO = re.compile(r"(path|file|file_?name|folder|dir|directory)s?$", re.IGNORECASE)


def check(event: dict[str, Any]) -> Output | None:
    """Replace paths by resolved ones, at the top of the input and in lists there."""
    changes: dict[str, Any] = {}
    for key, value in event["tool_input"].items():
        if not names_path(key) or not SAYS_SO.search(key):
            continue
        if isinstance(value, str):
            changes[key] = resolved(value, event["cwd"])
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            changes[key] = [resolved(item, event["cwd"]) for item in value]
    return modify_input(changes) if changes else None


if __name__ == "__main__":
    run(check)
