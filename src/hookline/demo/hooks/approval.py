"""BeforeTool: a person decides what is published."""

from typing import Any

from hookline.script import Output, ask, run


def approval(event: dict[str, Any]) -> Output:
    """Ask."""
    return ask(f"publish {event['tool_input']['version']}?")


run(approval)
