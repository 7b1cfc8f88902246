"""Whether a tool failed: two conditions that need no engine (decision 0125).

Claude Code has two events where we have AfterTool. Which of them a hook was written for
must not depend on an extra: without it every condition would be true.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CLAUDE_ONLY_SUCCESS = (
    "!has(event.tool_response) || !has(tool_response.error) || "
    "tool_response.error == null"
)
CLAUDE_ONLY_FAILURE = "has(tool_response.error) && tool_response.error != null"
FAILURE_CONDITIONS = {CLAUDE_ONLY_SUCCESS: False, CLAUDE_ONLY_FAILURE: True}
"""Each ``if`` as ``migrate`` writes it, and whether it asks for a failure."""


def is_failure_met(condition: str, event: Mapping[str, Any]) -> bool:
    """Whether one of these holds, as the engine would say."""
    response = event.get("tool_response", {})
    if not isinstance(response, Mapping):
        return True  # one that cannot be evaluated counts as true
    failed = response.get("error") is not None
    return failed is FAILURE_CONDITIONS[condition]
