"""First of a chained pair: replace every path by its real path.

In a sequential group the next hook sees the changed input, and so does the tool: the
path that was checked is the path that is used. See ``confine_paths.py``.
"""

import re
from typing import Any

from hookline.recipes.toolinput import names_path, resolved
from hookline.script import Output, modify_input, run

# A "target" or "source" may be something else: only fields named like a file change.
FILE_FIELD = re.compile(r"(?i)(path|file|file_?name|folder|dir|directory)s?$")


def check(event: dict[str, Any]) -> Output | None:
    """Replace paths in the top-level fields of the input, and in lists there."""
    changes: dict[str, Any] = {}
    for key, value in event["tool_input"].items():
        if not names_path(key) or not FILE_FIELD.search(key):
            continue
        if isinstance(value, str):
            changes[key] = resolved(value, event["cwd"])
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            changes[key] = [resolved(item, event["cwd"]) for item in value]
    return modify_input(changes) if changes else None


if __name__ == "__main__":
    run(check)
