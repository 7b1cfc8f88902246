"""JSON in both directions, for values we do not control.

Outward nothing raises for being hard to encode: no input slips past a guard by
holding a lone surrogate, a ``NaN``, bytes, a set, a cycle or an object with a
raising ``repr``. Inward, whole numbers of any size survive and ``NaN`` is no JSON.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import msgspec

from hookline.errors import EncodingError

MAX_DEPTH = 200
"""Deeper nesting is cut with a marker: parsers in hooks give up not far beyond."""

_DIGITS_AT_ONCE = 4000  # CPython refuses to convert more than 4300 digits in one go.
_PLAIN_SCALARS = frozenset({str, int, float, bool, type(None)})
_TEXT = frozenset({str})

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def encode(value: Any) -> bytes:
    """Write any value as JSON, replacing what JSON cannot hold."""
    if _is_plain(value, 0):
        try:
            return _encode(value)
        except (UnicodeEncodeError, ValueError, RecursionError):
            pass  # a lone surrogate or a huge number: rare enough for the slow way
    try:
        return _encode(_Sanitizer().clean(value, 0))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise EncodingError(f"the input cannot be written as JSON: {error}") from error


def decode(text: str | bytes, *, nan_as_null: bool = False) -> Any:
    """Read JSON; raises ``ValueError`` for anything else, mostly also for ``NaN``."""
    try:
        return _decode(text)
    except (msgspec.MsgspecError, RecursionError):
        pass  # numbers out of its range and lone surrogates are still JSON
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    import json  # rarely needed, and slow to load

    try:
        constant = _null if nan_as_null else _no_constant
        found = json.loads(text, parse_constant=constant, parse_int=_whole_number)
        return _Sanitizer(raw_numbers=False).clean(found, 0)
    except RecursionError:
        raise TooDeepError("JSON nested too deeply to be read") from None


class TooDeepError(ValueError):
    """JSON text that may well be valid, but is nested beyond what can be read."""


def _is_plain(value: Any, depth: int) -> bool:
    kind = type(value)
    if kind in _PLAIN_SCALARS:
        return True
    if depth >= MAX_DEPTH:
        return False
    if kind is dict:
        items = value.values()
        if not _TEXT.issuperset(map(type, value)):
            return False
    elif kind is list or kind is tuple:
        items = value
    else:
        return False
    # A loop and no generator: this runs for every event and every message.
    for item in items:
        if type(item) in _PLAIN_SCALARS:
            continue
        if not _is_plain(item, depth + 1):
            return False
    return True


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _null(_name: str) -> None:
    return None


def _whole_number(digits: str) -> int:
    if len(digits) <= _DIGITS_AT_ONCE:
        return int(digits)
    negative, digits = digits.startswith("-"), digits.lstrip("-")
    number = 0
    for start in range(0, len(digits), _DIGITS_AT_ONCE):
        piece = digits[start : start + _DIGITS_AT_ONCE]
        number = number * 10 ** len(piece) + int(piece)
    return -number if negative else number


def _digits(number: int) -> str:
    if number < 0:
        return "-" + _digits(-number)
    pieces: list[str] = []
    base = 10**_DIGITS_AT_ONCE
    while number >= base:
        number, piece = divmod(number, base)
        pieces.append(str(piece).zfill(_DIGITS_AT_ONCE))
    return str(number) + "".join(reversed(pieces))


class _Sanitizer:
    """Copy a value into what JSON can hold; knows the containers it is inside of."""

    def __init__(self, *, raw_numbers: bool = True) -> None:
        self._open: set[int] = set()
        self._raw_numbers = raw_numbers

    def clean(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return _clean_text(str.__str__(value))
        if isinstance(value, int):
            return _clean_whole(int(value)) if self._raw_numbers else value
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else None
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value).decode("utf-8", "replace")
        return self._clean_container(value, depth)

    def _clean_container(self, value: Any, depth: int) -> Any:
        if id(value) in self._open:
            return "<cycle>"
        if depth >= MAX_DEPTH:
            return "<nested too deeply>"
        self._open.add(id(value))
        try:
            return self._clean_items(value, depth + 1)
        # Foreign objects may raise from iteration and attribute access.
        except Exception as error:  # noqa: BLE001
            return f"<unreadable {type(value).__name__}: {type(error).__name__}>"
        finally:
            self._open.discard(id(value))

    def _clean_items(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return {
                _clean_key(key): self.clean(item, depth) for key, item in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self.clean(item, depth) for item in value]
        if isinstance(value, msgspec.Struct):
            return self.clean(msgspec.to_builtins(value), depth)
        return _describe(value)


def _clean_text(text: str) -> str:
    # The utf-8 codec's own "replace" writes "?" when encoding; U+FFFD says more.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _clean_whole(number: int) -> Any:
    if abs(number) < 1 << 63:
        return number
    return msgspec.Raw(_digits(number).encode())


def _clean_key(key: Any) -> str:
    if isinstance(key, str):
        return _clean_text(str.__str__(key))
    if isinstance(key, bytes):
        return key.decode("utf-8", "replace")
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, int):
        return _digits(int(key))
    return str(_describe(key))


def _describe(value: Any) -> str:
    try:
        return _clean_text(repr(value))
    # A foreign __repr__ may raise anything.
    except Exception:  # noqa: BLE001
        return f"<unprintable {type(value).__name__}>"
