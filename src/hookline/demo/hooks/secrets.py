"""BeforeTool: never write an access key to a file."""

import re
from typing import Any

from hookline.script import Output, block, run

ACCESS_KEY = re.compile(r"\bAKIA[0-9A-Z]{16}\b")


def secrets(event: dict[str, Any]) -> Output | None:
    """Block content with an access key."""
    if ACCESS_KEY.search(event["tool_input"].get("content", "")):
        return block("keep access keys out of files")
    return None


run(secrets)
