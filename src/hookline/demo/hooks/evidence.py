"""AfterAgent, SubagentStop: send back a review that names no file."""

import re
from typing import Any

from hookline.script import Output, block, run

FILE = re.compile(r"\w+/[\w.]+")


def evidence(event: dict[str, Any]) -> Output | None:
    """Block the answer, but only once."""
    is_review = event["prompt"].startswith("Review")
    if not is_review or event["stop_hook_active"]:
        return None
    if FILE.search(event["prompt_response"]):
        return None
    return block("name the files you looked at")


run(evidence)
