"""Read JSON and TOML settings files, and find the line and column of a value."""

from __future__ import annotations

import os
import re
import stat
from os import PathLike, fspath
from typing import Any, NoReturn

import msgspec
from msgspec import Struct

from hookline.errors import SettingsError
from hookline.protocol.convert import KeyPath
from hookline.protocol.values import describe

MAX_SETTINGS_BYTES = 16 * 1024 * 1024
MAX_HOOKS = 10_000
"""In one file: whatever it holds, trusted or not, reading it takes little time."""
_MAX_BRACKETS = 50 * MAX_HOOKS
_TOO_MANY = (
    f"is too large: at most {MAX_HOOKS} hooks, and {_MAX_BRACKETS} lists and objects"
)
_TOML_DEEP_KEY = r"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){32}"""
"""The time that the parser takes grows with the square of a key's parts."""
_MAX_DIGITS = 4000  # CPython converts at most 4300 digits
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Patterns are compiled on first use: most processes read one file without mistakes.


def read_settings(file: str | PathLike[str]) -> dict[str, Any]:
    """Read a ``.toml`` file as TOML and any other as JSON."""
    return parse_text(read_text(file), file)


def read_text(file: str | PathLike[str]) -> str:
    """Read a file as UTF-8; refuse one that other users can change."""
    return decode_text(read_bytes(file), file)


def read_bytes(file: str | PathLike[str]) -> bytes:
    """Read a file without ever waiting; refuse one that other users can change."""
    try:
        return _read_bytes(fspath(file))
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise SettingsError(f"cannot be read: {problem}", file) from error


def decode_text(content: bytes, file: str | PathLike[str]) -> str:
    """Decode the content of a file as UTF-8."""
    try:
        return content.removeprefix(_BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        position = _position(content, error.start)
        raise SettingsError("is not UTF-8 text", file, *position) from error


def parse_text(text: str, file: str | PathLike[str]) -> dict[str, Any]:
    """Parse the text of a settings file: TOML if it is named so, else JSON."""
    parse = _parse_toml if fspath(file).endswith(".toml") else _parse_json
    if text.count("{") + text.count("[") > _MAX_BRACKETS:
        raise SettingsError(_TOO_MANY, file)
    try:
        settings = parse(text, file)
    except RecursionError as error:
        raise SettingsError("is nested too deeply", file) from error
    if not isinstance(settings, dict):
        raise SettingsError(f"expected an object, got {describe(settings)}", file, 1, 1)
    refuse_too_many(settings, file)
    return settings


def refuse_too_many(raw: dict[str, Any], file: str | PathLike[str]) -> None:
    """Raise if settings have too many hooks; entries that are no hooks count too."""
    events = raw.get("hooks")
    count = 0
    for groups in events.values() if isinstance(events, dict) else ():
        for group in groups if isinstance(groups, list | tuple) and groups else [None]:
            hooks = group.get("hooks") if isinstance(group, dict) else None
            count += len(hooks) if isinstance(hooks, list | tuple) and hooks else 1
    if count > MAX_HOOKS:
        raise SettingsError(_TOO_MANY, file)


def _read_bytes(file: str) -> bytes:
    # Non-blocking: a named pipe in the file's place must not block the agent.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError("it is a directory, not a file")
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        if status.st_mode & stat.S_IWOTH:
            problem = "is world-writable, so it is not used: run chmod o-w on it"
            raise SettingsError(problem, file)
        for path in {file, os.path.realpath(file)}:
            folder = os.path.dirname(path) or "."  # noqa: PTH120 - a string
            mode = os.stat(folder).st_mode  # noqa: PTH116 - a string
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                problem = "is in a world-writable folder, so it is not used"
                raise SettingsError(f"{problem}: run chmod o-w on {folder}", file)
        if status.st_size > MAX_SETTINGS_BYTES:
            raise SettingsError("is too large for a settings file", file)
        with open(descriptor, "rb", closefd=False) as opened:
            return opened.read(MAX_SETTINGS_BYTES)
    finally:
        os.close(descriptor)


_HINTS = {
    "#": "comments start with //; they and trailing commas are fine",
    "'": "texts stand in double quotes",
    **dict.fromkeys("\u2018\u2019\u201c\u201d", "texts stand in plain double quotes"),
    ",": "one comma too many (trailing commas and comments are fine)",
    **dict.fromkeys(("True", "False", "None"), "write true, false or null"),
    "}": "a value or a ']' is missing before this",
    "]": "a value or a '}' is missing before this",
    "Expecting ',' delimiter": "a comma is missing before this",
    "Extra data": "there is more text after the end of the object",
    "Invalid \\escape": "a backslash in a text is written twice",
    "Invalid control character at": "a text ends on the line where it starts",
}
"""By what stands there, or by the message of the parser."""


def _parse_json(text: str, file: str | PathLike[str]) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        pass  # it reports no line, and rejects comments and integers beyond 64 bits
    import json

    plain = without_comments(text)
    try:
        return json.loads(plain, parse_int=_parse_integer, parse_constant=_refuse)
    except ValueError as error:
        problem, offset = getattr(error, "msg", str(error)), getattr(error, "pos", 0)
        lexeme = re.match(r"\s*(\w+|\S)", plain[offset:])
        hint = _HINTS.get(problem)
        if not plain.strip():
            problem = "it is empty: write {} for no settings"
        elif lexeme is None or problem.startswith("Unterminated"):
            hint = "a bracket or a quote is not closed"
        elif problem.startswith("Expecting"):
            hint = _HINTS.get(lexeme[1], hint)
            problem = f"{problem}, found {lexeme[1]!r}"
        problem = f"{problem}: {hint}" if hint else problem
        position = getattr(error, "lineno", None), getattr(error, "colno", None)
        raise SettingsError(f"is not valid JSON: {problem}", file, *position) from error


def _parse_integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _parse_toml(text: str, file: str | PathLike[str]) -> Any:
    import tomllib

    if re.search(_TOML_DEEP_KEY, text):
        raise SettingsError("is nested too deeply", file)
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise SettingsError(f"is not valid TOML: {error}", file) from error


def _position(content: bytes, offset: int) -> tuple[int, int]:
    before = content[:offset]
    start = before.rfind(b"\n") + 1
    return before.count(b"\n") + 1, len(before[start:].decode("utf-8", "replace")) + 1


JSON_LEXEME = (
    r'(?s)"[^"\\]*(?:\\.[^"\\]*)*"|//[^\n]*|/\*.*?\*/'
    r'|[{}\[\],:]|[^\s{}\[\],:"/]+|["/]'
)


def without_comments(text: str) -> str:
    """Put spaces in place of comments and trailing commas: every position stays."""
    blank: list[tuple[int, int]] = []
    before, comma = "", None
    for match in re.finditer(JSON_LEXEME, text):
        lexeme = match[0]
        if lexeme in ('"', "/"):
            break  # not closed: the parser reports it
        if lexeme[0] == "/":
            blank.append(match.span())
            continue
        if comma is not None and lexeme in ("}", "]"):
            blank.append(comma)
        follows_value = before not in ("", "[", "{", ",", ":")
        comma = match.span() if lexeme == "," and follows_value else None
        before = lexeme
    pieces: list[str] = []
    copied = 0
    for start, end in sorted(blank):
        pieces += text[copied:start], re.sub(r"[^\n]", " ", text[start:end])
        copied = end
    return "".join((*pieces, text[copied:]))


class Node(Struct):
    """A value and where it is in the text of a JSON file."""

    start: int
    end: int = 0
    kind: str = ""
    """``{``, ``[``, or empty for a value that holds no others."""
    children: list[Child] = []
    members: dict[str, Child] = {}
    """Of an object: by their keys, of several with one key the last, which counts."""

    def find(self, step: str | int) -> Child | None:
        """The member of a key, or the item of an index."""
        if isinstance(step, int):
            return self.children[step] if step < len(self.children) else None
        return self.members.get(step)

    def offset_of(self, path: KeyPath) -> int:
        """Where the key or item at a path starts, or what is nearest around it."""
        node, offset = self, self.start
        for step in path:
            child = node.find(step)
            if child is None:
                break
            node, offset = child.node, child.start
        return offset


class Child(Struct):
    """A member of an object, or an item of an array."""

    key: str | None
    start: int
    """Where its key starts, or its value where it has none."""
    node: Node


def json_tree(text: str) -> Node:
    """Where each value of a valid JSON text is."""
    import json

    inside: list[Node] = []
    key: tuple[str, int] | None = None
    root = Node(0)
    for match in re.finditer(JSON_LEXEME, without_comments(text)):
        lexeme, start, end = match[0], match.start(), match.end()
        if lexeme in ("}", "]"):
            inside.pop().end = end
        elif lexeme in (":", ","):
            continue
        elif inside and inside[-1].kind == "{" and key is None:
            key = (json.loads(lexeme), start)
        else:
            node = Node(start, end, lexeme if lexeme in ("{", "[") else "")
            if inside:
                name, name_start = key or (None, start)
                child = Child(name, name_start, node)
                inside[-1].children.append(child)
                if name is not None:
                    inside[-1].members[name] = child
            else:
                root = node
            key = None
            if node.kind:
                inside.append(node)
    return root
