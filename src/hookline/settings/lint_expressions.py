"""The findings of ``hookline check`` in rules and conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hookline.errors import nearest
from hookline.protocol.events import HookEventName
from hookline.protocol.inputs import EVENT_FIELDS
from hookline.protocol.outputs import read_output
from hookline.protocol.values import describe
from hookline.rules.failure import FAILURE_CONDITIONS
from hookline.rules.program import (
    EVENT,
    EngineMissingError,
    ExpressionError,
    Program,
    Uses,
    compile_expression,
)
from hookline.rules.template import expressions_in

from .fields import Report, Severity, is_text
from .model import HookType

_SHAPES = {
    "tool_response": "llmContent returnDisplay metadata error",
    "llm_request": "model messages config toolConfig",
    "llm_response": "text candidates usageMetadata",
}
"""The fields that these always have."""
_TOOL_INPUTS = """
path paths file_path filePath absolute_path notebook_path target_file file files dir
dir_path directory folder cwd workdir content contents text new_string old_string
new_str old_str edits patch diff replacement instruction command cmd script args argv
commands description timeout url urls uri prompt query sql pattern glob include exclude
recursive offset limit start_line end_line source destination name id data body headers
method todos message subject language code replace_all is_background case_sensitive
"""
"""What the tools of coding agents call their inputs: to name the nearest one."""


def check_expressions(
    hook: dict[str, Any], event: HookEventName, report: Report
) -> None:
    """Report mistakes in ``if``, ``when`` and ``then`` of one hook."""
    is_rule = hook.get("type") == HookType.RULE
    for key in ("if", "when") if is_rule else ("if",):
        if is_text(hook.get(key)) and hook[key] not in FAILURE_CONDITIONS:
            _check(hook[key], event, report.at(key))
    then = hook.get("then")
    if is_rule and isinstance(then, dict):
        for path, text in _texts(then):
            for _, source in expressions_in(text):
                _check(source.strip(), event, report.at("then", *path), where=source)
        output, warnings = read_output(_literal(then), event)
        if output.unreadable is not None:
            report.at("then").add(output.unreadable)
        for warning in warnings:
            report.at("then").add(warning, Severity.WARNING)


def _check(
    source: str, event: HookEventName, report: Report, where: str | None = None
) -> None:
    inside = "" if where is None else f"in {describe('${' + where + '}')}: "
    try:
        program = compile_expression(source)
    except EngineMissingError as error:
        if where is None:  # once for a rule, not for each of its texts
            report.add(str(error), of_machine=True)
        return
    except ExpressionError as error:
        report.add(f"{inside}{error}")
        return
    for path, problem in _doubts(program, event):
        place = ExpressionError(problem, *program.place_of(*path))
        report.add(f"{inside}{place}", Severity.WARNING)


Doubt = tuple[tuple[str, ...], str]
"""The keys that lead to a field, and what is doubtful about it."""


def _doubts(program: Program, event: HookEventName) -> Iterator[Doubt]:
    for name, below in program.uses.items():
        if name == EVENT and below:
            found = _doubtful_keys(below, event)
            yield from (((EVENT, *path), problem) for path, problem in found)
        elif any(name in fields for fields in EVENT_FIELDS.values()):
            # Any other name that compiles is one of CEL's: a type, or the time.
            yield from _doubtful_keys(Uses({name: below}), event)


def _doubtful_keys(uses: Uses, event: HookEventName) -> Iterator[Doubt]:
    for name, below in uses.items():
        if name not in EVENT_FIELDS[event]:
            owners = [one.value for one in HookEventName if name in EVENT_FIELDS[one]]
            hint = f", unlike {', '.join(owners)}" if owners else ""
            yield (name,), f"{event.value} has no field {name!r}{hint}"
        for key in below or ():
            if (problem := _doubtful(name, key)) is not None:
                yield (name, key), problem


def _doubtful(name: str, key: str) -> str | None:
    if name == "tool_input":
        known = _TOOL_INPUTS.split()
        near = None if key in known else nearest(key, known, 0.75)
        if near is None:
            return None  # every tool has inputs of its own
        return f"no known tool has an input {key!r}: did you mean {near!r}?"
    known = _SHAPES.get(name, key).split()
    if key in known:
        return None
    near = nearest(key, known)
    hint = f"did you mean {near!r}?" if near else f"one of {', '.join(known)}"
    return f"{name} has no field {key!r}: {hint}"


def _texts(value: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """All texts in an object, with their paths."""
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        if isinstance(item, str):
            yield (key,), item
        else:
            yield from (((key, *path), text) for path, text in _texts(item))


def _literal(value: Any) -> Any:
    """An object without the values that an expression gives."""
    if isinstance(value, dict):
        given = {key: _literal(item) for key, item in value.items()}
        return {key: item for key, item in given.items() if not _is_given(item)}
    return value


def _is_given(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("${") and value.endswith("}")
