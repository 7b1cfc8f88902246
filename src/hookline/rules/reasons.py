"""Why an expression is true, false or broken for an event: its parts and values."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from .program import (
    EvaluationError,
    ExpressionError,
    MissingFieldError,
    Program,
    Scope,
    compile_expression,
)
from .tree import Call, Node

TRUE, FALSE = "true", "false"
_JUNCTIONS = ("_&&_", "_||_")


class Part(Struct, frozen=True):
    """A part of an expression, between its ``&&`` or ``||``."""

    text: str
    outcome: str


class Explained(Struct, frozen=True, kw_only=True):
    """What an expression gives for an event, and why."""

    source: str
    outcome: str
    """``true``, ``false``, or a sentence."""
    missing: str | None = None
    """What the event does not have, where that makes it false."""
    parts: tuple[Part, ...] = ()
    values: dict[str, Any] = {}
    """The fields that it uses, by their paths."""


def explain(source: str, scope: Scope) -> Explained:
    """Evaluate an expression and its parts; never raises for what is wrong with it."""
    try:
        program = compile_expression(source)
    except ExpressionError as error:
        outcome = f"cannot be compiled: {error}"
        return Explained(source=source, outcome=outcome)
    outcome, missing = _outcome(program, scope)
    texts = _operands(program)
    parts = [Part(text, _outcome(compile_expression(text), scope)[0]) for text in texts]
    return Explained(
        source=source,
        outcome=outcome,
        missing=missing,
        parts=tuple(parts),
        values=program.used_values(scope.event),
    )


def _outcome(program: Program, scope: Scope) -> tuple[str, str | None]:
    try:
        return (TRUE if program.is_true(scope) else FALSE), None
    except MissingFieldError as missing:
        return f"{FALSE}: the event has no {missing}", str(missing)
    except EvaluationError as error:
        return f"failed: {error}", None


def _operands(program: Program) -> list[str]:
    """The texts between the outermost operators, if each is an expression."""
    root = program.tree
    if not isinstance(root, Call) or root.function not in _JUNCTIONS:
        return []
    source = program.source
    cuts = sorted(_places(root, root.function))
    starts = [0, *(cut + 2 for cut in cuts)]
    ends = [*cuts, len(source)]
    texts = [source[a:b].strip() for a, b in zip(starts, ends, strict=True)]
    try:
        for text in texts:
            compile_expression(text)
    except ExpressionError:
        return []  # parentheses around all of it
    return texts


def _places(node: Node, function: str) -> list[int]:
    if not isinstance(node, Call) or node.function != function:
        return []
    below = [place for arg in node.args for place in _places(arg, function)]
    return [node.at, *below]
