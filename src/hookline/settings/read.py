"""Read JSON and TOML settings files, and find the line and column of a value."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from os import PathLike, fspath
from typing import Any, NoReturn

import msgspec
from msgspec import Struct

from hookline.errors import SettingsError
from hookline.protocol.values import describe

from .fields import KeyPath

MAX_SETTINGS_BYTES = 16 * 1024 * 1024
MAX_HOOKS = 10_000
"""In one file: whatever it holds, trusted or not, reading it takes little time."""
_MAX_BRACKETS = 50 * MAX_HOOKS
_TOO_MANY = (
    f"is too large: at most {MAX_HOOKS} hooks, and {_MAX_BRACKETS} lists and objects"
)
_TOML_DEEP_KEY = r"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){32}"""
"""The time that the parser takes grows with the square of a key's parts."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MAX_DIGITS = 4000  # CPython converts at most 4300 digits
# Patterns are compiled on first use: most processes read one file without mistakes.
_TOML_POSITION = r" \(at (?:line (\d+), column (\d+)|end of document)\)$"


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
        found = parse(text, file)
    except RecursionError as error:
        raise SettingsError("is nested too deeply", file) from error
    if not isinstance(found, dict):
        raise SettingsError(f"expected an object, got {describe(found)}", file, 1, 1)
    refuse_too_many(found, file)
    return found


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
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(file, flags)
    try:
        found = os.fstat(descriptor)
        _refuse_unsafe(file, found)
        if found.st_size > MAX_SETTINGS_BYTES:
            raise SettingsError("is too large for a settings file", file)
        with open(descriptor, "rb", closefd=False) as opened:
            return opened.read(MAX_SETTINGS_BYTES)
    finally:
        os.close(descriptor)


def _refuse_unsafe(file: str, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError("it is a directory, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise OSError("it is not a regular file")
    if os.name == "nt":
        return  # its mode bits do not reflect who has access
    if found.st_mode & stat.S_IWOTH:
        problem = "is world-writable, so it is not used: run chmod o-w on it"
        raise SettingsError(problem, file)
    for path in {file, os.path.realpath(file)}:
        folder = os.path.dirname(path) or "."  # noqa: PTH120 - a string
        mode = os.stat(folder).st_mode  # noqa: PTH116 - a string
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            problem = "is in a world-writable folder, so it is not used"
            raise SettingsError(f"{problem}: run chmod o-w on {folder}", file)


def _parse_json(text: str, file: str | PathLike[str]) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        pass  # it reports no line, and rejects comments and integers beyond 64 bits
    import json

    plain = without_comments(text)
    try:
        return json.loads(plain, parse_int=_parse_integer, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        problem = f"is not valid JSON: {_explain(error, plain)}"
        raise SettingsError(problem, file, error.lineno, error.colno) from error
    except ValueError as error:
        raise SettingsError(f"is not valid JSON: {error}", file) from error


_MISTAKES = (
    (r"#", "comments start with //; they and trailing commas are fine"),
    (r"'", "texts stand in double quotes"),
    ("[\u2018-\u201f]", "texts stand in plain double quotes"),
    (r"(?:True|False|None)\b", "write true, false or null"),
    (r",", "one comma too many (trailing commas and comments are fine)"),
    (r"[A-Za-z_]\w*\s*:", "names stand in double quotes"),
    (r"\}", "a value or a ']' is missing before this"),
    (r"\]", "a value or a '}' is missing before this"),
)
"""What is found where something else was expected, and what to do."""
_MESSAGES = {
    "Expecting ',' delimiter": "a comma is missing before this",
    "Extra data": "there is more text after the end of the object",
    "Invalid \\escape": "a backslash in a text is written twice",
    "Invalid control character at": "a text ends on the line where it starts",
}


def _explain(error: Any, text: str) -> str:
    """What the JSON parser found, and what to write instead."""
    if not text.strip():
        return "it is empty: write {} for no settings"
    if not text[error.pos :].strip() or error.msg.startswith("Unterminated"):
        return f"{error.msg}: a bracket or a quote is not closed"
    for pattern, hint in _MISTAKES:
        if found := re.match(pattern, text[error.pos : error.pos + 80]):
            return f"{error.msg}, found {found[0]!r}: {hint}"
    return ": ".join(filter(None, (error.msg, _MESSAGES.get(error.msg))))


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
        found = re.search(_TOML_POSITION, str(error))
        position: tuple[int, ...] = ()
        if found is not None:
            end = _position(text.encode(), len(text.encode()))
            position = (int(found[1]), int(found[2])) if found[1] else end
        problem = f"is not valid TOML: {re.sub(_TOML_POSITION, '', str(error))}"
        raise SettingsError(problem, file, *position) from error


def _position(content: bytes, offset: int) -> tuple[int, int]:
    before = content[:offset]
    start = before.rfind(b"\n") + 1
    return before.count(b"\n") + 1, len(before[start:].decode("utf-8", "replace")) + 1


JSON_LEXEME = (
    r'(?s)"[^"\\]*(?:\\.[^"\\]*)*"|//[^\n]*|/\*.*?\*/'
    r'|[{}\[\],:]|[^\s{}\[\],:"/]+|["/]'
)
_TOML_KEY = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_TOML_KEYS = rf"{_TOML_KEY}(?:\s*\.\s*{_TOML_KEY})*"
_TOML_HEADER = rf"\s*(\[\[?)\s*({_TOML_KEYS})\s*\]\]?\s*(?:#.*)?$"
_TOML_PAIR = rf"\s*({_TOML_KEYS})\s*="
_TOML_LONG_QUOTES = r'"""|\'\'\''


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
    return _blanked(text, sorted(blank))


def _blanked(text: str, spans: list[tuple[int, int]]) -> str:
    pieces: list[str] = []
    copied = 0
    for start, end in spans:
        pieces += text[copied:start], re.sub(r"[^\n]", " ", text[start:end])
        copied = end
    return "".join((*pieces, text[copied:]))


class Positions(Struct, frozen=True):
    """The line and column of each value in one file, or of its key."""

    lines: dict[KeyPath, int]
    columns: dict[KeyPath, int]
    """In characters."""
    repeated: tuple[KeyPath, ...] = ()
    """Keys that an object has more than once: only the last value counts."""

    def line_of(self, path: KeyPath) -> int | None:
        """The line of a value, or of the nearest value around it."""
        return _nearest(self.lines, path)

    def column_of(self, path: KeyPath) -> int | None:
        """The column of what ``line_of`` finds."""
        return _nearest(self.columns, path)


def _nearest(numbers: dict[KeyPath, int], path: KeyPath) -> int | None:
    around = (path[:length] for length in range(len(path), -1, -1))
    return next((numbers[one] for one in around if one in numbers), None)


class _Container(Struct):
    """A JSON object or array that is being scanned."""

    path: KeyPath
    is_object: bool
    key: str | None = None
    index: int = 0

    def child(self) -> KeyPath:
        step = self.key if self.is_object and self.key is not None else self.index
        return (*self.path, step)


def scan_json(text: str) -> Positions:
    """Find the position of every value in a valid JSON file."""
    import json

    found = Positions({}, {})
    repeated: list[KeyPath] = []
    inside: list[_Container] = []
    for lexeme, line, column in _json_lexemes(without_comments(text)):
        top = inside[-1] if inside else None
        if lexeme in ("}", "]"):
            inside.pop()
        elif top and lexeme == ",":
            top.key, top.index = None, top.index + 1
        elif top and top.is_object and top.key is None:
            top.key = json.loads(lexeme)
            if top.child() in found.lines:
                repeated.append(top.child())
            found.lines[top.child()], found.columns[top.child()] = line, column
        elif lexeme != ":":
            path = top.child() if top else ()
            if top is None or not top.is_object:
                found.lines[path], found.columns[path] = line, column
            if lexeme in ("{", "["):
                inside.append(_Container(path, is_object=lexeme == "{"))
    return Positions(found.lines, found.columns, tuple(_outermost(repeated)))


def _json_lexemes(text: str) -> Iterator[tuple[str, int, int]]:
    line, seen, line_start = 1, 0, 0
    for match in re.finditer(JSON_LEXEME, text):
        start = match.start()
        if breaks := text.count("\n", seen, start):
            line, line_start = line + breaks, text.rindex("\n", seen, start) + 1
        seen = start
        yield match[0], line, start - line_start + 1


def _outermost(repeated: list[KeyPath]) -> Iterator[KeyPath]:
    # The keys below a repeated key repeat with it: they are not further mistakes.
    found: set[KeyPath] = set()
    for path in repeated:
        if not any(path[:length] in found for length in range(len(path) + 1)):
            found.add(path)
            yield path


def scan_toml(text: str) -> Positions:
    """Find the positions of tables and plain keys in valid TOML."""
    found = Positions({}, {})
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    in_long_string = False
    for number, line in enumerate(text.split("\n"), start=1):
        opens = len(re.findall(_TOML_LONG_QUOTES, line)) % 2 == 1
        if not in_long_string:
            if header := re.match(_TOML_HEADER, line):
                table = _table_path(_keys(header[2]), len(header[1]) == 2, counts)
                found.lines.setdefault(table, number)
                found.columns.setdefault(table, header.start(1) + 1)
            elif pair := re.match(_TOML_PAIR, line):
                path = (*table, *_keys(pair[1]))
                found.lines.setdefault(path, number)
                found.columns.setdefault(path, pair.start(1) + 1)
        in_long_string ^= opens
    return found


def _keys(dotted: str) -> list[str]:
    return [key.strip("\"'") for key in re.findall(_TOML_KEY, dotted)]


def _table_path(keys: list[str], is_array: bool, counts: dict[KeyPath, int]) -> KeyPath:
    path: KeyPath = ()
    for key in keys[:-1]:
        path = (*path, key)
        if path in counts:
            path = (*path, counts[path] - 1)
    path = (*path, keys[-1])
    if is_array:
        counts[path] = counts.get(path, 0) + 1
    return (*path, counts[path] - 1) if path in counts else path
