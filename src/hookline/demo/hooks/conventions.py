"""BeforeAgent: tell the model about this project, whatever the prompt."""

from __future__ import annotations

from typing import Any

from hookline.script import Output, add_context, run


def conventions(event: dict[str, Any]) -> Output:
    """Remind the model of a rule."""
    return add_context("House rule: settings come from the environment.")


run(conventions)
