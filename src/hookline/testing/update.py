"""Present answers as the expectations of a case, and their place in a hooktest file.

Only answers are written: what a hook decides, says and changes. The text of the file
stays as it is around them.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from hookline.errors import HooklineError
from hookline.protocol.results import ProcessedHookResult
from hookline.protocol.values import same_json
from hookline.settings.toml_text import toml_pattern, toml_value

from .cases import HookTestCase
from .tester import change_of, context_of, decision_of, is_like, message_of, part_like

Update = dict[str, Any]
"""New values of a case's keys; None takes a key out."""

_PATTERNS = ("message", "context")
_SPECIAL = re.compile(r"([\\.^$*+?{}\[\]|()])")
_CASE_HEADER = re.compile(r"\s*\[\[\s*case\s*\]\]")


def present_answer(case: HookTestCase, result: ProcessedHookResult) -> Update:
    """What has to change in a case for it to expect this result.

    A case that expects nothing yet gets all that the hooks said.
    """
    update: Update = {}
    if decision_of(result) != case.expect:
        update["expect"] = decision_of(result)
    is_new = _expects_nothing(case)
    texts = {"message": message_of(result), "context": context_of(result)}
    for key, text in texts.items():
        pattern = getattr(case, key)
        if (text and is_new) if pattern is None else not is_like(pattern, text):
            update[key] = _SPECIAL.sub(r"\\\1", text)
    return update | _change(case, result, is_new=is_new) | _output(case, result)


def _expects_nothing(case: HookTestCase) -> bool:
    expectations = (
        case.message,
        case.context,
        case.changed,
        case.output,
        case.received,
    )
    is_open = case.expect == "allow" and not (case.unchanged or case.fails)
    return is_open and expectations == (None,) * 5 and not (case.wrote or case.absent)


def _change(case: HookTestCase, result: ProcessedHookResult, *, is_new: bool) -> Update:
    changed = change_of(result)
    if changed is None:
        lost = case.changed is not None
        return {"changed": None, "unchanged": True} if lost else {}
    if case.unchanged:
        return {"unchanged": None, "changed": changed}
    if case.changed is None:
        return {"changed": changed} if is_new else {}
    final = result.final_output
    is_whole = final is not None and final.modified_tool_input is not None
    change = changed if is_whole else part_like(case.changed, changed) or changed
    return {} if same_json(change, case.changed) else {"changed": change}


def _output(case: HookTestCase, result: ProcessedHookResult) -> Update:
    if case.output is None:
        return {}
    wire = result.final_output.to_wire() if result.final_output else {}
    output = part_like(case.output, wire)
    return {} if same_json(output, case.output) else {"output": output or wire}


def placed(update: Update, values: Mapping[str, str]) -> Update:
    """An update with ``{cwd}`` and ``{server}`` in place of what they stand for."""
    names = {text: name for name, text in values.items() if text}
    escaped = {_SPECIAL.sub(r"\\\1", text): name for text, name in names.items()}
    return {
        key: _put(value, escaped if key in _PATTERNS else names)
        for key, value in update.items()
    }


def _put(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for text, name in names.items():
            value = value.replace(text, name)
        return value
    if isinstance(value, dict):
        return {key: _put(item, names) for key, item in value.items()}
    return (
        [_put(element, names) for element in value]
        if isinstance(value, list)
        else value
    )


class CannotEditError(HooklineError):
    """A file that is written in a way that cannot be kept; says what to write."""


class _Statement(Struct):
    start: int
    end: int
    key: str = ""
    """Empty for a header."""


def edited(text: str, index: int, update: Update) -> str:
    """The text of a file with other expectations in one case."""
    expected = tomllib.loads(text)
    case = expected["case"][index]
    for key, value in update.items():
        case[key] = copy.deepcopy(value)
    expected["case"][index] = {k: v for k, v in case.items() if v is not None}
    try:
        new = text
        for key, value in update.items():
            new = _with_key(new, index, key, value)
        if tomllib.loads(new) == expected:
            return new
    except (tomllib.TOMLDecodeError, IndexError):
        pass
    lines = "; ".join(_pair(key, value) for key, value in update.items())
    raise CannotEditError(f"write it yourself: {lines}")


def _pair(key: str, value: Any) -> str:
    return f"no {key}" if value is None else f"{key} = {_value(key, value)}"


def _value(key: str, value: Any) -> str:
    return toml_pattern(value) if key in _PATTERNS else toml_value(value)


def _with_key(text: str, index: int, key: str, value: Any) -> str:
    header, *pairs = _section(text, index)
    present = next((pair for pair in pairs if pair.key == key), None)
    if value is None:
        return text if present is None else text[: present.start] + text[present.end :]
    if present is not None:
        start, end = _value_span(text, present)
        return f"{text[:start]}{_value(key, value)}{text[end:]}"
    last = pairs[-1] if pairs else header
    newline = "\r\n" if "\r\n" in text else "\n"
    indent = re.match(r"[ \t]*", text[last.start :])
    head = text[: last.end] if text[: last.end].endswith("\n") else f"{text}{newline}"
    line = f"{indent[0] if indent else ''}{key} = {_value(key, value)}{newline}"
    return f"{head}{line}{text[last.end :]}"


def _section(text: str, index: int) -> list[_Statement]:
    """The header of a case, and the pairs below it up to the next header."""
    statements = list(_statements(text))
    headers = [n for n, statement in enumerate(statements) if not statement.key]
    cases = [n for n in headers if _CASE_HEADER.match(text[statements[n].start :])]
    first = cases[index]
    following = next((n for n in headers if n > first), len(statements))
    return statements[first:following]


def _statements(text: str) -> Iterator[_Statement]:
    lines = text.splitlines(keepends=True)
    at, number = 0, 0
    while number < len(lines):
        stripped = lines[number].strip()
        count, key = 1, ""
        if stripped and stripped[0] not in "#[":
            count, key = _read_pair(lines, number)
        end = at + sum(map(len, lines[number : number + count]))
        if stripped and stripped[0] != "#":
            yield _Statement(at, end, key)
        at, number = end, number + count


def _read_pair(lines: list[str], number: int) -> tuple[int, str]:
    """How many lines a pair takes, and its key."""
    for count in range(1, len(lines) - number + 1):
        try:
            parsed = tomllib.loads("".join(lines[number : number + count]))
        except tomllib.TOMLDecodeError:
            continue  # a value can go on in the next line
        return count, next(iter(parsed))
    return 1, "?"


def _value_span(text: str, pair: _Statement) -> tuple[int, int]:
    """Where the value of a pair is, without a comment behind it."""
    whole = text[pair.start : pair.end]
    start = whole.index("=") + 1
    start += len(whole[start:]) - len(whole[start:].lstrip())
    value = tomllib.loads(whole)
    for mark in re.finditer("#", whole[start:]):
        end = start + mark.start()
        try:
            if tomllib.loads(whole[:end]) == value:
                return pair.start + start, pair.start + len(whole[:end].rstrip())
        except tomllib.TOMLDecodeError:
            continue  # inside a text
    return pair.start + start, pair.start + len(whole.rstrip())
