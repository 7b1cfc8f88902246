"""Encode and decode JSON for values we do not control.

Encoding replaces what JSON cannot hold (a lone surrogate, ``NaN``, bytes, a set, a
cycle, an object with a raising ``repr``), so that no input avoids a guard by being hard
to encode. Decoding keeps whole numbers of any size and refuses ``NaN``.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import msgspec

from hookline.errors import EncodingError

MAX_DEPTH = 200
"""Deeper values become a marker: many parsers fail not far beyond this."""

_DIGITS_AT_ONCE = 4000  # CPython refuses to convert more than 4300 digits in one go.
_PLAIN_SCALARS = frozenset({str, int, float, bool, type(None)})
_TEXT = frozenset({str})
_CONSTANTS = {None: "null", True: "true", False: "false"}

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def encode(value: Any) -> bytes:
    """Write any value as JSON, replacing what JSON cannot hold."""
    if _is_plain(value, 0):
        try:
            return _encode(value)
        except (UnicodeEncodeError, ValueError, RecursionError):
            pass  # a lone surrogate or a huge number: rare, so the slow way is fine
    try:
        return _encode(_Sanitizer().clean(value, 0))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise EncodingError(f"the input cannot be encoded as JSON: {error}") from error


def decode(text: str | bytes, *, nan_as_null: bool = False) -> Any:
    """Decode JSON; raises ``ValueError`` for anything else, ``NaN`` included."""
    try:
        return _decode(text)
    except (msgspec.MsgspecError, RecursionError):
        pass  # huge numbers and lone surrogates are valid JSON all the same
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    import json  # rarely needed and slow to import

    try:
        constant = (lambda _: None) if nan_as_null else _reject_constant
        found = json.loads(text, parse_constant=constant, parse_int=_whole_number)
        return _Sanitizer(raw_numbers=False).clean(found, 0)
    except RecursionError:
        raise TooDeepError("JSON nested too deeply") from None


class TooDeepError(ValueError):
    """JSON that may be valid but is nested too deeply for the parser."""


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
    # A loop, not a generator: this runs for every event and every message.
    for item in items:
        if type(item) in _PLAIN_SCALARS:
            continue
        if not _is_plain(item, depth + 1):
            return False
    return True


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


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
    number, pieces = int(number), []
    base = 10**_DIGITS_AT_ONCE
    while number >= base:
        number, piece = divmod(number, base)
        pieces.append(str(piece).zfill(_DIGITS_AT_ONCE))
    return str(number) + "".join(reversed(pieces))


class _Sanitizer:
    """Copy a value into what JSON can hold; tracks open containers to find cycles."""

    def __init__(self, *, raw_numbers: bool = True) -> None:
        self._open: set[int] = set()
        self._raw_numbers = raw_numbers

    def clean(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return _clean_text(str.__str__(value))
        if isinstance(value, int):
            is_huge = self._raw_numbers and abs(value) >= 1 << 63
            return msgspec.Raw(_digits(value).encode()) if is_huge else int(value)
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
        return _clean_repr(value)


def _clean_text(text: str) -> str:
    # The utf-8 codec's "replace" would write "?"; U+FFFD is the protocol's choice.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _clean_key(key: Any) -> str:
    if isinstance(key, str):
        return _clean_text(str.__str__(key))
    if isinstance(key, bytes):
        return key.decode("utf-8", "replace")
    if key is None or isinstance(key, bool):
        return _CONSTANTS[key]
    if isinstance(key, int):
        return _digits(key)
    return _clean_repr(key)


def _clean_repr(value: Any) -> str:
    try:
        return _clean_text(repr(value))
    # A foreign __repr__ may raise anything.
    except Exception:  # noqa: BLE001
        return f"<unprintable {type(value).__name__}>"


def describe(value: Any) -> str:
    """Describe a decoded JSON value for a message, briefly even if it is large."""
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    if isinstance(value, str):
        return repr(value[:80]) + ("..." if len(value) > 80 else "")
    if isinstance(value, int) and abs(value) >= 1 << 63:
        return "a huge number"  # CPython refuses to format more than 4300 digits
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else f"a {type(value).__name__}"
