"""Encode and decode JSON for values we do not control.

Encoding shows every value by what it means (see ``values``) and replaces what JSON
cannot hold (a lone surrogate, ``NaN``, a cycle), so that no input avoids a guard by
being hard to encode. Decoding keeps whole numbers of any size and refuses ``NaN``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import msgspec

from hookline.errors import EncodingError

_MAX_DEPTH = 500  # as in ``values``, which is not loaded for plain events
_DIGITS_AT_ONCE = 4000  # CPython refuses to convert more than 4300 digits in one go.
_PLAIN_SCALARS = frozenset({str, int, float, bool, type(None)})
_PLAIN_CONTAINERS = frozenset({dict, list, tuple})
_INFINITE = (float("inf"), float("-inf"))
_CONSTANTS = {None: "null", True: "true", False: "false"}

Pairs: TypeAlias = Callable[[list[tuple[str, Any]]], dict[str, Any]]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def encode(value: Any) -> bytes:
    """Write any value as JSON, with markers for what cannot be shown."""
    return _encode_plain(value) or _encode_any(value, whole=False)


def encode_whole(value: Any) -> bytes:
    """Write an event as JSON; raises ``EncodingError`` if a part cannot be shown.

    A guard that was not shown the whole event has not seen it.
    """
    return _encode_plain(value) or _encode_any(value, whole=True)


def _encode_plain(value: Any) -> bytes | None:
    try:
        return _encode(value) if _is_plain(value, 0) else None
    except (UnicodeEncodeError, ValueError, RecursionError):
        return None  # a lone surrogate or a huge number: rare, so the slow way is fine


def _encode_any(value: Any, *, whole: bool) -> bytes:
    from .values import raw_if_huge  # most events are plain JSON already

    found = _plain(value, whole=whole, number=raw_if_huge)
    try:
        return _encode(found)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise EncodingError(f"the input cannot be encoded as JSON: {error}") from error


def _plain(value: Any, **how: Any) -> Any:
    from .values import plain

    try:
        return plain(value, **how)
    except (EncodingError, KeyboardInterrupt):
        raise
    # Foreign objects may raise anything; what was not shown has not been seen.
    except BaseException as error:
        raise EncodingError(f"the input cannot be read: {error!r}") from error


def is_plain(value: Any) -> bool:
    """Whether a value is made of the types that JSON is read into, and not too deep."""
    try:
        return _is_plain(value, 0)
    except RecursionError:
        return False


def is_showable(value: Any) -> bool:
    """Whether a value can certainly be shown whole, told by its types and names."""
    try:
        return _is_plain(value, 0, whole=True)
    except RecursionError:
        return False


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def copy_shown(value: Any) -> Any:
    """A copy of such a value, as it would be read from JSON."""
    # This runs for every hook: no call for a text or a number.
    if type(value) is dict:
        copy: Any = value.copy()
        pairs: Any = value.items()
    else:
        copy = list(value)
        pairs = enumerate(value)
    for key, item in pairs:
        kind = type(item)
        if kind is str:
            if not item.isascii():
                copy[key] = text_of(item)
        elif kind is float:
            if item != item or item in _INFINITE:
                copy[key] = None
        elif kind is dict or kind is list or kind is tuple:
            copy[key] = copy_shown(item)
    return copy


def as_plain(value: Any) -> Any:
    """The value itself if it is plain JSON, else a copy that is, with lists for tuples.

    Raises ``EncodingError`` if a part cannot be shown.
    """
    try:
        if _is_plain(value, 0) and not _has_tuple(value):
            return value
    except RecursionError:
        pass
    return _plain(value, whole=True)


def same_json(first: Any, second: Any) -> bool:
    """Whether hooks see two values as equal JSON: 1 and 1.0 are, true and 1 are not."""
    if first is second:
        return True
    texts = encode(first), encode(second)
    if texts[0] == texts[1]:
        return True
    pairs = [(decode(texts[0]), decode(texts[1]))]
    while pairs:  # a loop: values may be deep
        one, other = pairs.pop()
        are_lists = isinstance(one, list) and isinstance(other, list)
        are_objects = isinstance(one, dict) and isinstance(other, dict)
        if are_objects and one.keys() == other.keys():
            pairs += ((value, other[key]) for key, value in one.items())
        elif are_lists and len(one) == len(other):
            pairs += zip(one, other, strict=True)
        elif one != other or isinstance(one, bool) is not isinstance(other, bool):
            return False
    return True


def text_of(value: Any) -> str:
    """A value as text: a string as it is, any other by what it means, or as JSON."""
    if type(value) is str and value.isascii():
        return value
    found = _plain(value, whole=False)
    return found if isinstance(found, str) else encode(found).decode()


def decode(
    text: str | bytes, *, nan_as_null: bool = False, pairs: Pairs | None = None
) -> Any:
    """Decode JSON; raises ``ValueError`` for anything else, ``NaN`` included.

    ``pairs`` makes the dict of an object from its pairs, repeated keys among them.
    """
    try:
        if pairs is None:
            return _decode(text)
    except (msgspec.MsgspecError, RecursionError):
        pass  # huge numbers and lone surrogates are valid JSON all the same
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    import json  # rarely needed and slow to import

    try:
        constant = (lambda _: None) if nan_as_null else _reject_constant
        found = json.loads(
            text,
            parse_constant=constant,
            parse_int=_whole_number,
            object_pairs_hook=pairs,
        )
        return _plain(found, whole=False)
    except RecursionError:
        raise TooDeepError("JSON nested too deeply") from None


class TooDeepError(ValueError):
    """JSON that may be valid but is nested too deeply for the parser."""


def _is_plain(value: Any, depth: int, *, whole: bool = False) -> bool:
    """``whole``: also that no two names with lone surrogates are shown as one."""
    kind = type(value)
    if kind in _PLAIN_SCALARS:
        return True
    if depth >= _MAX_DEPTH or kind not in _PLAIN_CONTAINERS:
        return False
    # Loops, not generators: this runs for every event and every message.
    items = value
    if kind is dict:
        for key in value:
            if type(key) is not str:
                return False
            if whole and not key.isascii() and not _is_text(key):
                return False
        items = value.values()
    for item in items:
        if type(item) not in _PLAIN_SCALARS and not _is_plain(
            item, depth + 1, whole=whole
        ):
            return False
    return True


def _has_tuple(value: Any) -> bool:
    kind = type(value)
    if kind is tuple or kind in _PLAIN_SCALARS:
        return kind is tuple
    for item in value.values() if kind is dict else value:
        if type(item) not in _PLAIN_SCALARS and _has_tuple(item):
            return True
    return False


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


_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u2d7f\u3164\uffa0"
    "\U00016fe4\U0001d159"
).union(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Blanks, fillers and variation selectors, which count as printable."""


def printable(text: str, keep: str = "") -> str:
    """Escape line breaks, and what controls a terminal or cannot be seen."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c
        if c in keep or (c.isprintable() and c not in _INVISIBLE)
        else c.encode("unicode_escape").decode()
        for c in text
    )


def describe(value: Any) -> str:
    """Describe a decoded JSON value for a message, briefly even if it is large."""
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    if isinstance(value, str):
        return printable(repr(value[:80])) + ("..." if len(value) > 80 else "")
    if isinstance(value, int) and abs(value) >= 1 << 63:
        return "a huge number"  # CPython refuses to format more than 4300 digits
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else f"a {type(value).__name__}"
