"""Keep secrets out of .env files: a first hook for you to change."""

from pathlib import Path
from typing import Any

from hookline.script import Output, block, run


def check(event: dict[str, Any]) -> Output | None:
    """Block writing to a .env file; None allows everything else."""
    tool_input = event["tool_input"]
    path = tool_input.get("file_path") or tool_input.get("path") or ""
    if Path(event["cwd"], path).resolve().name == ".env":
        return block("keep secrets out of .env files")
    return None


if __name__ == "__main__":
    run(check)
