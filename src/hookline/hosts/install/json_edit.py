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

    def require(self, path: KeyPath, kind: type, expected: str) -> None:
        """Raise, with its place, if there is a value of another type or a second."""
        value: Any = self.value
        node = self.root
        for key in path:
            members = [child for child in node.children if child.key == key]
            if not members:
                return
            if len(members) > 1:
                problem = f"there are two of {key!r}: keep one of them"
                raise self._error(members[1].start, path, problem)
            node, value = members[0].node, value[key]
        if not isinstance(value, kind):
            raise self._error(node.start, path, f"expected {expected}")

    def _error(self, offset: int, path: KeyPath, problem: str) -> SettingsError:
        before = self.text[:offset]
        column = offset - before.rfind("\n")
        message = f"{path_text(path)}: {problem}"
        return SettingsError(message, self.file, before.count("\n") + 1, column)

    def is_blank(self, path: KeyPath) -> bool:
        """Whether an object or array holds nothing, not even a comment."""
        node, missing = self._deepest(path)
        inner = self.text[node.start + 1 : node.end - 1]
        return not missing and bool(node.kind) and not inner.strip()

    def appended(self, path: KeyPath, item: Any) -> JsonText:
        """With one more item in the array at a path, made where it is missing."""
        node, missing = self._deepest(path)
        if not missing:
            return self._inserted(node, None, item)
        value: Any = [item]
        for key in reversed(missing[1:]):
            value = {key: value}
        return self._inserted(node, str(missing[0]), value)

    def replaced(self, path: KeyPath, value: Any) -> JsonText:
        """With another value at a path; one that is missing is added."""
        node, _ = self._deepest(path[:-1])
        child = node.find(path[-1])
        if child is None:
            return self._inserted(node, str(path[-1]), value)
        head, tail = self.text[: child.node.start], self.text[child.node.end :]
        return parse(f"{head}{_dump(value)}{tail}", self.file)

    def removed(self, path: KeyPath) -> JsonText:
        """Without the value at a path, its comma and the white space before it."""
        node, _ = self._deepest(path[:-1])
        child = node.find(path[-1])
        if child is None:
            return self
        text, index = self.text, node.children.index(child)
        is_only = len(node.children) == 1
        start, end = len(text[: child.start].rstrip()), child.node.end
        previous_end = node.children[index - 1].node.end if index else node.start + 1
        before = _lexemes(text, previous_end, start)
        ends_line = text[end:].lstrip(" \t,")[:1] in ("\r", "\n", "")
        if before and before[-1][0].startswith("//") and not ends_line:
            start = child.start  # or what follows became part of the comment
        siblings = node.children[index + 1 :]
        next_start = siblings[0].start if siblings else node.end - 1
        commas = _commas(text, end, next_start)
        if commas:
            text = text[: commas[0]] + text[commas[0] + 1 :]
        elif index:
            comma = _commas(text, previous_end, start)[-1]
            text = text[:comma] + text[comma + 1 :]
            start, end = start - 1, end - 1
        text = text[:start] + text[end:]
        inner = text[node.start + 1 :].lstrip()
        if is_only and inner[:1] in ("}", "]"):
            text = text[: node.start + 1] + inner  # empty, in its shortest form
        return parse(text, self.file)

    def _deepest(self, path: KeyPath) -> tuple[Node, KeyPath]:
        """The value that a path leads to, as far as there is one, and what is not."""
        node = self.root
        for depth, step in enumerate(path):
            child = node.find(step)
            if child is None:
                return node, path[depth:]
            node = child.node
        return node, ()

    def _inserted(self, node: Node, key: str | None, value: Any) -> JsonText:
        """With a value at the end of an object or array."""
        text, close = self.text, node.end - 1
        content_end = len(text[:close].rstrip())
        head, tail = text[:content_end], text[content_end:]
        last = node.children[-1] if node.children else None
        newline = "\r\n" if "\r\n" in text else "\n"
        line_indent = _line_indent(text, node.start)
        if last is not None and "\n" not in text[node.start : node.end]:
            separator, added = " ", _dump(value)
        else:
            first_indent = re.search(r'^([ \t]+)"', text, re.MULTILINE)
            unit = first_indent[1] if first_indent else "  "
            indent = line_indent + unit
            if last is not None:
                before_last = text[text.rfind("\n", 0, last.start) + 1 : last.start]
                indent = indent if before_last.strip() else before_last
            separator = f"{newline}{indent}"
            added = _dump(value, unit).replace("\n", separator)
        if key is not None:
            added = f"{_dump(key)}: {added}"
        if last is None:
            if "\n" not in tail[: close - content_end]:
                tail = f"{newline}{line_indent}{text[close:]}"
        elif _commas(text, last.node.end, close):
            added += ","
        else:
            comma = last.node.end
            head = f"{text[:comma]},{text[comma:content_end]}"
        return parse(f"{head}{separator}{added}{tail}", self.file)


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


def _lexemes(text: str, start: int, end: int) -> list[re.Match[str]]:
    return list(re.compile(JSON_LEXEME).finditer(text, start, end))


def _commas(text: str, start: int, end: int) -> list[int]:
    """Where commas are between two values, outside of comments."""
    return [match.start() for match in _lexemes(text, start, end) if match[0] == ","]


def _dump(value: Any, indent: str | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _line_indent(text: str, offset: int) -> str:
    """The white space that a line starts with."""
    line = text[text.rfind("\n", 0, offset) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]
