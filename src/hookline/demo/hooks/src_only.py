"""BeforeTool: write Python files to src/, wherever the model wanted them."""

from typing import Any

from hookline.script import Output, modify_input, run


def src_only(event: dict[str, Any]) -> Output | None:
    """Correct the path."""
    path = event["tool_input"].get("path", "")
    if path.endswith(".py") and not path.startswith("src/"):
        return modify_input(path=f"src/{path}")
    return None


run(src_only)
