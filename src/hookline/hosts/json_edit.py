"""Change a value in the text of a JSON file and leave the rest of the text as it is.

Comments, order, indentation, line endings and trailing commas stay. What is added is
written as the file is written, and ``removed`` takes out exactly what ``appended`` put
in, except that an object or array that was empty is written as ``{}`` or ``[]``.
Nothing is changed in a text that cannot be parsed: ``parse`` raises ``SettingsError``
with line and column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from hookline.errors import SettingsError
from hookline.protocol.convert import KeyPath
from hookline.settings.model import path_text
from hookline.settings.read import (
    JSON_LEXEME,
    Node,
    decode_text,
    json_tree,
    parse_text,
)


class JsonText(Struct, frozen=True):
    """The text of a JSON file, parsed."""

    text: str
    value: dict[str, Any]
    root: Node
    file: str

    def get(self, path: KeyPath) -> Any:
        """The value at a path; None where there is none."""
        found: Any = self.value
        for step in path:
            if isinstance(found, dict):
                found = found.get(step)
            elif isinstance(found, list) and isinstance(step, int):
                found = found[step] if step < len(found) else None
            else:
                return None
        return found

    def is_blank(self, path: KeyPath) -> bool:
        """Whether an object or array holds nothing, not even a comment."""
        node, missing = self._deepest(path)
        inner = self.text[node.start + 1 : node.end - 1]
        return not missing and bool(node.kind) and not inner.strip()

    def require(self, path: KeyPath, kind: type, expected: str) -> None:
        """Raise, with its place, if there is a value of another type or a second."""
        found: Any = self.value
        node = self.root
        for step in path:
            self._refuse_repeated(node, step, path)
            child = node.find(step)
            if child is None:
                return
            node, found = child.node, found[step]
        if not isinstance(found, kind):
            raise self._error(node.start, f"{path_text(path)}: expected {expected}")

    def _refuse_repeated(self, node: Node, step: str | int, path: KeyPath) -> None:
        same = [one for one in node.children if one.key == step]
        if len(same) > 1:
            problem = f"{path_text(path)}: there are two of {step!r}: keep one of them"
            raise self._error(same[1].start, problem)

    def _error(self, offset: int, problem: str) -> SettingsError:
        before = self.text[:offset]
        column = offset - (before.rfind("\n") + 1) + 1
        return SettingsError(problem, self.file, before.count("\n") + 1, column)

    def appended(self, path: KeyPath, item: Any) -> JsonText:
        """With one more item in the array at a path, made where it is missing."""
        node, missing = self._deepest(path)
        key: str | None = None
        value = item
        if missing:
            key = str(missing[0])
            value = [item]
            for step in reversed(missing[1:]):
                value = {step: value}
        return self._changed(_insert(self.text, node, key, value))

    def _deepest(self, path: KeyPath) -> tuple[Node, KeyPath]:
        node = self.root
        for depth, step in enumerate(path):
            child = node.find(step)
            if child is None:
                return node, path[depth:]
            node = child.node
        return node, ()

    def replaced(self, path: KeyPath, value: Any) -> JsonText:
        """With another value at a path that exists."""
        node, missing = self._deepest(path[:-1] if path else ())
        child = None if missing else node.find(path[-1])
        if child is None:
            return self._changed(_insert(self.text, node, str(path[-1]), value))
        start, end = child.node.start, child.node.end
        return self._changed(f"{self.text[:start]}{_dump(value)}{self.text[end:]}")

    def removed(self, path: KeyPath) -> JsonText:
        """Without the value at a path."""
        node, _ = self._deepest(path[:-1])
        child = node.find(path[-1])
        if child is None:
            return self
        return self._changed(_remove(self.text, node, node.children.index(child)))

    def _changed(self, text: str) -> JsonText:
        return parse(text, self.file)


def text_of(content: bytes, file: str) -> str:
    """The text of a file with its byte order mark: only what is ours is changed."""
    mark = "\ufeff" if content.startswith(b"\xef\xbb\xbf") else ""
    return mark + decode_text(content, file)


def parse(text: str, file: str) -> JsonText:
    """Parse the text of a JSON file; comments and trailing commas are fine."""
    body = text.removeprefix("\ufeff")
    value = parse_text(body, file)
    blank = " " * (len(text) - len(body)) + body
    return JsonText(text, value, json_tree(blank), file)


def _lexemes(text: str, offset: int = 0) -> Iterator[tuple[str, int, int]]:
    for match in re.finditer(JSON_LEXEME, text):
        yield match[0], match.start() + offset, match.end() + offset


def _commas(text: str, start: int, end: int) -> list[int]:
    """Where commas are between two values, outside of comments."""
    return [at for one, at, _ in _lexemes(text[start:end], start) if one == ","]


def _insert(text: str, node: Node, key: str | None, value: Any) -> str:
    """Add a value at the end of an object or array."""
    close = node.end - 1
    at = len(text[:close].rstrip())
    last = node.children[-1].node if node.children else None
    one_line = last is not None and "\n" not in text[node.start : node.end]
    trailing = last is not None and bool(_commas(text, last.end, close))
    indent = "" if one_line else _indent_of_children(text, node)
    unit = None if one_line else _unit(text)
    added = _dump(value, unit)
    added = added.replace("\n", f"\n{indent}") if unit else added
    added = added if key is None else f"{_dump(key)}: {added}"
    newline = "\r\n" if "\r\n" in text else "\n"
    added = added.replace("\n", newline)
    before = " " if one_line else f"{newline}{indent}"
    head = text[:at]
    if last is not None and not trailing:
        head = f"{text[: last.end]},{text[last.end : at]}"
    after = "," if trailing else ""
    rest = text[at:]
    if last is None and "\n" not in text[at:close]:
        rest = f"{newline}{_line_indent(text, node.start)}{text[close:]}"
    return f"{head}{before}{added}{after}{rest}"


def _dump(value: Any, indent: str | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _remove(text: str, node: Node, index: int) -> str:
    """Take a child out, with its comma and the white space before it."""
    child = node.children[index]
    close = node.end - 1
    start, end = len(text[: child.start].rstrip()), child.node.end
    if _ends_in_line_comment(text, node, index, start):
        start = child.start
    is_last = index == len(node.children) - 1
    following = close if is_last else node.children[index + 1].start
    own = _commas(text, end, following)
    if own:
        text = text[: own[0]] + text[own[0] + 1 :]
    elif index:
        comma = _commas(text, node.children[index - 1].node.end, start)[-1]
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    text = text[:start] + text[end:]
    inner = text[node.start + 1 :].lstrip()
    if len(node.children) == 1 and inner[:1] in ("}", "]"):
        return text[: node.start + 1] + inner  # empty, in its shortest form
    return text


def _ends_in_line_comment(text: str, node: Node, index: int, end: int) -> bool:
    """Whether what follows would become part of a comment without its line break."""
    start = node.children[index - 1].node.end if index else node.start + 1
    found = [one for one, _, _ in _lexemes(text[start:end])]
    rest = text[node.children[index].node.end :].lstrip(" \t,")
    return bool(found) and found[-1].startswith("//") and rest[:1] not in "\r\n"


def _unit(text: str) -> str:
    """The indentation of one level."""
    found = re.search(r'^([ \t]+)"', text, re.MULTILINE)
    return found[1] if found else "  "


def _indent_of_children(text: str, node: Node) -> str:
    if node.children:
        last = node.children[-1].start
        line = text.rfind("\n", 0, last) + 1
        if not text[line:last].strip():
            return text[line:last]
    return _line_indent(text, node.start) + _unit(text)


def _line_indent(text: str, at: int) -> str:
    line = text.rfind("\n", 0, at) + 1
    found = re.match(r"[ \t]*", text[line:])
    return found[0] if found else ""
