"""Texts with expressions in them: ``keep ${tool_input.path} out``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from hookline.protocol.values import text_of

from .program import (
    EvaluationError,
    ExpressionError,
    Program,
    Scope,
    compile_expression,
)

_OPEN = "${"


def render(template: Any, scope: Scope) -> Any:
    """Fill in all texts of an object; what cannot be evaluated stays as written."""
    if isinstance(template, str):
        return _render_text(template, scope) if _OPEN in template else template
    if isinstance(template, dict):
        return {key: render(item, scope) for key, item in template.items()}
    if isinstance(template, list):
        return [render(item, scope) for item in template]
    return template


def expressions_in(text: str) -> Iterator[tuple[int, str]]:
    """The expressions in a text, each with the place where it starts."""
    at = 0
    for piece, source in pieces(text):
        if source is not None:
            yield at + len(_OPEN), source
        at += len(piece)


def pieces(text: str) -> Iterator[tuple[str, str | None]]:
    """The parts of a text as written, each with its expression if it is one."""
    at = 0
    while (start := text.find(_OPEN, at)) >= 0:
        end = _closing(text, start + len(_OPEN))
        if end is None:
            break
        if start > at:
            yield text[at:start], None
        yield text[start : end + 1], text[start + len(_OPEN) : end]
        at = end + 1
    if at < len(text):
        yield text[at:], None


_TOKEN = re.compile(
    r"""
    //[^\n]*                                          # a comment
    | [rR]\w?(?:\'{3}.*?\'{3}|"{3}.*?"{3}|'[^']*'|"[^"]*")  # a raw text
    | \'{3}(?:\\.|.)*?\'{3} | "{3}(?:\\.|.)*?"{3}
    | '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*"
    | \w+ | .
    """,
    re.DOTALL | re.VERBOSE,
)


def _closing(text: str, at: int) -> int | None:
    """Where an expression ends: at its ``}``, not at one in a text or a map."""
    depth = 0
    for token in _TOKEN.finditer(text, at):
        if token[0] == "{":
            depth += 1
        elif token[0] == "}":
            if not depth:
                return token.start()
            depth -= 1
    return None


def _render_text(text: str, scope: Scope) -> Any:
    values = [_value(piece, source, scope) for piece, source in pieces(text)]
    if len(values) == 1:
        return values[0]
    return "".join(map(text_of, values))


def _value(piece: str, source: str | None, scope: Scope) -> Any:
    if source is None:
        return piece
    try:
        return _as_json(_compiled(source).evaluate(scope))
    except (ExpressionError, EvaluationError):
        return piece


def _compiled(source: str) -> Program:
    return compile_expression(source.strip())


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if isinstance(value, dict):
        return {text_of(key): _as_json(item) for key, item in value.items()}
    return value if isinstance(value, str | int | float | None) else str(value)
