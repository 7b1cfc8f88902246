"""Read a settings file into a mapping.

Raises ``SettingsError`` with file, line and column, and never anything else. A file
that anybody may write is refused: its hooks would run with the rights of the reader.
"""

from __future__ import annotations

import json
import os
import re
import stat
from os import PathLike, fspath
from typing import Any, NoReturn

import msgspec

from hookline.errors import SettingsError

from .problems import quote

MAX_SETTINGS_BYTES = 16 * 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_NUMBER = 4000  # CPython converts no more than 4300 digits.
_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_settings(file: str | PathLike[str]) -> dict[str, Any]:
    """Read a ``.toml`` file as TOML and any other as JSON."""
    return parse_text(read_text(file), file)


def read_text(file: str | PathLike[str]) -> str:
    """Read the file as UTF-8, provided that it is one to be relied on."""
    try:
        content = _read_bytes(fspath(file))
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise SettingsError(f"cannot be read: {problem}", file) from error
    try:
        return content.removeprefix(_BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        line, column = _place_of(content, error.start)
        raise SettingsError("is not UTF-8 text", file, line, column) from error


def parse_text(text: str, file: str | PathLike[str]) -> dict[str, Any]:
    """Parse what a settings file holds; the name says which language it is."""
    read = _parse_toml if fspath(file).endswith(".toml") else _parse_json
    try:
        found = read(text, file)
    except RecursionError as error:
        raise SettingsError("is nested too deeply to be read", file) from error
    if not isinstance(found, dict):
        raise SettingsError(f"expected an object, got {quote(found)}", file, 1, 1)
    return found


def _read_bytes(file: str) -> bytes:
    # Non-blocking, or a named pipe in the file's place would hold the agent up.
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
        raise SettingsError("is a directory, not a settings file", file)
    if not stat.S_ISREG(found.st_mode):
        raise SettingsError("is no regular file", file)
    if os.name == "nt":
        return  # the mode bits say nothing about access there
    if found.st_mode & stat.S_IWOTH:
        raise SettingsError(
            "anybody may write this file, so it is not used: run chmod o-w on it", file
        )
    for folder in {_folder_of(file), _folder_of(os.path.realpath(file))}:
        mode = os.stat(folder).st_mode  # noqa: PTH116 - a string
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise SettingsError(
                f"anybody may replace this file, so it is not used: "
                f"run chmod o-w on {folder}",
                file,
            )


def _folder_of(file: str) -> str:
    return os.path.dirname(file) or "."  # noqa: PTH120 - a string


def _parse_json(text: str, file: str | PathLike[str]) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        pass  # it says no line, and takes no number beyond 64 bits
    try:
        return json.loads(text, parse_int=_read_whole, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        problem = f"is not valid JSON: {error.msg}"
        raise SettingsError(problem, file, error.lineno, error.colno) from error
    except ValueError as error:
        raise SettingsError(f"is not valid JSON: {error}", file) from error


def _read_whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _parse_toml(text: str, file: str | PathLike[str]) -> Any:
    import tomllib

    try:
        return tomllib.loads(text)
    except ValueError as error:
        place = _TOML_PLACE.search(str(error))
        problem = f"is not valid TOML: {_TOML_PLACE.sub('', str(error))}"
        if place is None:
            raise SettingsError(problem, file) from error
        if place[1] is None:
            line, column = _place_of(text.encode(), len(text.encode()))
        else:
            line, column = int(place[1]), int(place[2])
        raise SettingsError(problem, file, line, column) from error


def _place_of(content: bytes, offset: int) -> tuple[int, int]:
    before = content[:offset]
    start = before.rfind(b"\n") + 1
    return before.count(b"\n") + 1, len(before[start:].decode("utf-8", "replace")) + 1
