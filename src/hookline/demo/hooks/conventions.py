"""BeforeAgent: add a rule of this project to every prompt."""

from typing import Any

from hookline.script import Output, add_context, run


def conventions(event: dict[str, Any]) -> Output:
    """Add the rule."""
    return add_context("Read keys from the environment.")


run(conventions)
