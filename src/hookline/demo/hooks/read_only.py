"""BeforeToolSelection: a review may only use tools that read."""

from typing import Any

from hookline.script import Output, restrict_tools, run

READING = ["list_files", "read_file"]


def read_only(event: dict[str, Any]) -> Output | None:
    """Restrict the tools of a review."""
    asked = [m for m in event["llm_request"]["messages"] if m["role"] == "user"]
    if asked and asked[-1]["content"].lower().startswith("review"):
        return restrict_tools(READING)
    return None


run(read_only)
