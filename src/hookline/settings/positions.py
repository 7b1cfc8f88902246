"""On which line of a settings file a key is, and which keys are there twice.

For JSON every line is known. For TOML those of tables and of keys at the start of a
line are; what is inside an inline value has the line of the key before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from msgspec import Struct

from .problems import Path

_JSON_LEXEME = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL
)
_TOML_KEY = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_TOML_KEYS = rf"{_TOML_KEY}(?:\s*\.\s*{_TOML_KEY})*"
_TOML_HEADER = re.compile(rf"\s*(\[\[?)\s*({_TOML_KEYS})\s*\]\]?\s*(?:#.*)?$")
_TOML_PAIR = re.compile(rf"\s*({_TOML_KEYS})\s*=")
_TOML_LONG_QUOTES = re.compile(r'"""|\'\'\'')


class Positions(Struct, frozen=True):
    """The lines of one file."""

    lines: dict[Path, int] = {}
    repeated: tuple[tuple[Path, int], ...] = ()
    """Keys that an object has twice: the first one is lost."""

    def line_of(self, path: Path) -> int | None:
        """The line of a value, or of the nearest thing around it."""
        for length in range(len(path), 0, -1):
            if line := self.lines.get(path[:length]):
                return line
        return self.lines.get(())


class _Container:
    """A JSON object or array that the scanner is inside of."""

    def __init__(self, path: Path, *, is_object: bool) -> None:
        self.path = path
        self.is_object = is_object
        self.key: str | None = None
        self.index = 0

    def child(self) -> Path:
        step = self.key if self.is_object and self.key is not None else self.index
        return (*self.path, step)

    def step_on(self) -> None:
        self.key = None
        self.index += 1


def scan_json(text: str) -> Positions:
    """Find the line of every value in valid JSON."""
    lines: dict[Path, int] = {}
    repeated: list[tuple[Path, int]] = []
    inside: list[_Container] = []
    for lexeme, line in _json_lexemes(text):
        top = inside[-1] if inside else None
        if lexeme in ("}", "]"):
            inside.pop()
        elif top and lexeme == ",":
            top.step_on()
        elif top and top.is_object and top.key is None:
            top.key = json.loads(lexeme)
            if top.child() in lines:
                repeated.append((top.child(), line))
            lines[top.child()] = line
        elif lexeme != ":":
            path = top.child() if top else ()
            if top is None or not top.is_object:
                lines[path] = line
            if lexeme in ("{", "["):
                inside.append(_Container(path, is_object=lexeme == "{"))
    return Positions(lines, tuple(_still_repeated(repeated)))


def _json_lexemes(text: str) -> Iterator[tuple[str, int]]:
    line, seen = 1, 0
    for match in _JSON_LEXEME.finditer(text):
        line += text.count("\n", seen, match.start())
        seen = match.start()
        yield match[0], line


def _still_repeated(found: list[tuple[Path, int]]) -> Iterator[tuple[Path, int]]:
    # Within a key that is there twice the same keys below it are no second mistake.
    reported: set[Path] = set()
    for path, line in found:
        if not any(path[:length] in reported for length in range(len(path))):
            reported.add(path)
            yield path, line


def scan_toml(text: str) -> Positions:
    """Find the lines of tables and plain keys in valid TOML."""
    lines: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    in_long_string = False
    for number, line in enumerate(text.split("\n"), start=1):
        opens = len(_TOML_LONG_QUOTES.findall(line)) % 2 == 1
        if not in_long_string:
            if header := _TOML_HEADER.match(line):
                table = _table_path(_keys(header[2]), len(header[1]) == 2, counts)
                lines.setdefault(table, number)
            elif pair := _TOML_PAIR.match(line):
                lines.setdefault((*table, *_keys(pair[1])), number)
        in_long_string ^= opens
    return Positions(lines)


def _keys(dotted: str) -> list[str]:
    return [key.strip("\"'") for key in re.findall(_TOML_KEY, dotted)]


def _table_path(keys: list[str], is_array: bool, counts: dict[Path, int]) -> Path:
    path: Path = ()
    for key in keys[:-1]:
        path = (*path, key)
        if path in counts:
            path = (*path, counts[path] - 1)
    path = (*path, keys[-1])
    if is_array:
        counts[path] = counts.get(path, 0) + 1
    return (*path, counts[path] - 1) if path in counts else path
