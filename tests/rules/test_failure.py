"""Whether a tool failed, decided without an engine (decision 0125)."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from hookline.rules.failure import FAILURE_CONDITIONS, is_failure_met
from hookline.rules.program import (
    EvaluationError,
    MissingFieldError,
    Scope,
    compile_expression,
)

EVENTS: dict[str, dict[str, Any]] = {
    "success": {"tool_response": {"llmContent": "x"}},
    "null": {"tool_response": {"error": None}},
    "object": {"tool_response": {"error": {"message": "no"}}},
    "text": {"tool_response": {"error": "no"}},
    "empty": {"tool_response": {"error": ""}},
    "no object": {"tool_response": "text"},
    "no response": {"tool_name": "x"},
}


def by_engine(source: str, event: dict[str, Any]) -> bool:
    try:
        return compile_expression(source).is_true(Scope(event, "/", "/"))
    except MissingFieldError:
        return False
    except EvaluationError:
        return True


@pytest.mark.parametrize("condition", FAILURE_CONDITIONS)
@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_the_answer_is_that_of_the_engine(
    condition: str, event: dict[str, Any]
) -> None:
    assert is_failure_met(condition, event) is by_engine(condition, event)


def test_it_needs_no_engine() -> None:
    """protocol.md#planning would let the hook run on every event without one."""
    code = (
        "import sys; sys.modules['cel_expr_python'] = None\n"
        "from hookline.rules.failure import *\n"
        "failed = {'tool_response': {'error': 'x'}}\n"
        "print([is_failure_met(one, failed) for one in FAILURE_CONDITIONS])"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout == "[False, True]\n"
