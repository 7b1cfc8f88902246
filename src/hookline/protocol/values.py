"""Values we do not control: as JSON text, as plain JSON values, and back.

Encoding shows every value by what it means and replaces what JSON cannot hold, so that
no input avoids a guard by being hard to encode: a path is its text, a dataclass or a
model an object, a subclass of ``str`` its base, whatever its methods say. An object of
no known type is shown as its ``repr``; nothing is consumed. Decoding keeps whole
numbers of any size and refuses ``NaN``.
"""

from __future__ import annotations

import math
import os
from collections import UserString
from collections.abc import Callable, Iterable, Mapping, Sequence, Set, ValuesView
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from operator import index
from types import SimpleNamespace
from typing import Any, NoReturn, TypeAlias
from uuid import UUID

import msgspec

from hookline.errors import EncodingError

MAX_DEPTH = 500
"""Deeper values are not shown: many parsers fail not far beyond this."""

_DIGITS_AT_ONCE = 4000  # CPython refuses to convert more than 4300 digits in one go.
_TOO_LONG = 10**_DIGITS_AT_ONCE
_PLAIN_SCALARS = frozenset({str, int, float, bool, type(None)})

Pairs: TypeAlias = Callable[[list[tuple[str, Any]]], dict[str, Any]]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def encode(value: Any, *, whole: bool = False) -> bytes:
    """Write any value as JSON, with markers for what cannot be shown."""
    try:
        # msgspec alone would write bytes as base64, past every guard against secrets,
        # and many a type otherwise than its text.
        if _is_plain(value, 0):
            return _encode(value)
    except (ValueError, RecursionError):
        pass  # a lone surrogate, or a huge number
    try:
        return _encode(_Copy(whole=whole, number=_raw_if_huge).of(value))
    except (EncodingError, KeyboardInterrupt):
        raise
    # Foreign objects may raise anything; what was not shown has not been seen.
    except BaseException as error:
        raise EncodingError(f"the input cannot be read: {error!r}") from error


def encode_whole(value: Any) -> bytes:
    """Write an event as JSON; raises ``EncodingError`` if a part cannot be shown.

    A guard that was not shown the whole event has not seen it.
    """
    return encode(value, whole=True)


def as_plain(value: Any) -> Any:
    """The value itself if it is plain JSON, else a copy that is.

    Raises ``EncodingError`` if a part cannot be shown.
    """
    try:
        return value if _is_plain(value, 0) else decode(encode_whole(value))
    except (TooDeepError, RecursionError) as error:
        raise EncodingError(f"the input cannot be copied: {error}") from error


def text_of(value: Any) -> str:
    """A value as text: a string as it is, any other by what it means, or as JSON."""
    if type(value) is str and value.isascii():
        return value
    text = encode(value)
    return str(decode(text)) if text.startswith(b'"') else text.decode()


def plain_text(value: Any) -> str | None:
    """A string by its real type, whatever its methods say; None for other values."""
    return str.__str__(value) if issubclass(type(value), str) else None


def same_json(first: Any, second: Any) -> bool:
    """Whether hooks see two values as equal JSON: 1 and 1.0 are, true and 1 are not."""
    if first is second:
        return True
    texts = encode(first), encode(second)
    if texts[0] == texts[1]:
        return True
    pairs = [(decode(texts[0]), decode(texts[1]))]
    while pairs:  # a loop: values may be deep
        a, b = pairs.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            pairs += ((item, b[key]) for key, item in a.items())
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pairs += zip(a, b, strict=True)
        elif a != b or isinstance(a, bool) is not isinstance(b, bool):
            return False
    return True


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
        value = json.loads(
            text,
            parse_constant=(lambda _: None) if nan_as_null else _reject_constant,
            parse_int=_whole_number,
            object_pairs_hook=pairs,
        )
        return _Copy(whole=False).of(value)
    except RecursionError:
        raise TooDeepError("JSON nested too deeply") from None


class TooDeepError(ValueError):
    """JSON that may be valid but is nested too deeply for the parser."""


def _is_plain(value: Any, depth: int) -> bool:
    """Whether a value is made of the types that JSON is read into, and not too deep."""
    kind = type(value)
    if kind in _PLAIN_SCALARS:
        return True
    if depth >= MAX_DEPTH or (kind is not dict and kind is not list):
        return False
    # Loops, not generators: this runs for every event and every message.
    if kind is dict:
        for key in value:
            if type(key) is not str:
                return False
    for item in value.values() if kind is dict else value:
        if type(item) not in _PLAIN_SCALARS and not _is_plain(item, depth + 1):
            return False
    return True


def is_read_back(value: Any, depth: int = 0) -> bool:
    """Whether a value is just what would be read from its JSON, told by its types.

    False also for one that is rare: deeper than 100 levels, or with other letters.
    """
    kind = type(value)
    if kind is str:
        return bool(value.isascii())  # others may hold a lone surrogate
    if kind is float:
        return math.isfinite(value)
    if kind is dict:
        items = value.values()
        for key in value:
            if type(key) is not str or not key.isascii():
                return False
    elif kind is list:
        items = value
    else:
        return kind in _PLAIN_SCALARS
    return depth < 100 and all(is_read_back(it, depth + 1) for it in items)


class _Copy:
    """One copy of a value, made of what JSON can hold.

    With ``whole`` it raises ``EncodingError`` where something cannot be shown: nested
    too deeply, two keys that become one, an object that cannot be read. Otherwise
    markers stand in for that. ``number`` converts whole numbers.
    """

    def __init__(self, *, whole: bool, number: Callable[[int], Any] = int) -> None:
        self._whole = whole
        self._number = number
        self._open: set[int] = set()

    def of(self, value: Any, depth: int = 0) -> Any:
        """Copy a value; one frame for each level, the stack has to hold them all."""
        try:
            meaning = _meaning(value)
        # Foreign objects may raise anything from iteration and attribute access.
        except Exception as error:  # noqa: BLE001
            problem = f"{type(value).__name__}: {type(error).__name__}"
            return self._marker(f"<unreadable {problem}>", f"cannot read {problem}")
        if type(meaning) is int:
            return self._number(meaning)
        if not isinstance(meaning, list | tuple):
            return meaning
        if id(value) in self._open:
            return "<cycle>"
        if depth >= MAX_DEPTH:
            problem = f"it is nested deeper than {MAX_DEPTH} levels"
            return self._marker("<nested too deeply>", problem)
        self._open.add(id(value))
        copy: Any
        if isinstance(meaning, list):
            copy = []
            for item in meaning:
                copy.append(self.of(item, depth + 1))
        else:
            copy = {}
            for key, item in meaning:
                copy[key_text(key)] = self.of(item, depth + 1)
            if len(copy) != len(meaning):
                self._marker("", "two keys of an object have the same text")
        self._open.discard(id(value))
        return copy

    def _marker(self, marker: str, problem: str) -> str:
        if self._whole:
            raise EncodingError(
                f"the input cannot be shown to hooks as a whole: {problem}"
            )
        return marker


def key_text(key: Any) -> str:
    """The name that a key of a mapping has in JSON."""
    if issubclass(type(key), float):
        return float.__repr__(key)
    meaning = _meaning(key)
    if isinstance(meaning, list | tuple):
        return _repr(key)
    return meaning if isinstance(meaning, str) else encode(meaning).decode()


def _meaning(value: Any) -> Any:
    """What a value means: a scalar, the items of a list, or the pairs of an object."""
    # By the real type: ``isinstance`` would believe an object's ``__class__``.
    kind = type(value)
    for base, read in _READERS:
        if issubclass(kind, base):
            return read(value)
    if issubclass(kind, Enum):
        return _meaning(value.value)
    if hasattr(kind, "__fspath__"):
        return _path(value)
    bases: dict[str, Any] = {f"{b.__module__}.{b.__name__}": b for b in kind.__mro__}
    for name, base in bases.items():
        if name in _TEXTS:
            return clean_text(base.__str__(value))
    if issubclass(kind, Integral):
        return index(value)
    if issubclass(kind, Real):
        return _number(float(value))
    is_record = any(hasattr(kind, mark) for mark in _RECORD_MARKS)
    if not is_record and any(name.lower().endswith("url") for name in bases):
        return clean_text(str(value))  # of pydantic, yarl, httpx, ...
    # Anything that ``dict()`` takes, such as sqlite3.Row; tables have columns instead.
    has_keys = hasattr(kind, "keys") and hasattr(kind, "__getitem__")
    if issubclass(kind, Mapping) or (has_keys and not hasattr(kind, "__array__")):
        return tuple((key, value[key]) for key in value.keys())  # noqa: SIM118
    if getattr(kind, "__pydantic_root_model__", False):
        return _meaning(value.root)
    if is_record:
        return tuple(_fields(value).items())
    if issubclass(kind, Sequence | Set | ValuesView) and kind is not range:
        return list(value)
    if not bases.keys().isdisjoint(_NUMPY):
        return _meaning(value.tolist())
    return _repr(value)


def _number(value: float) -> float | None:
    value = float.__float__(value)
    return value if math.isfinite(value) else None


def _path(value: Any) -> str:
    try:
        path = os.fspath(value)
    # A path of a remote file system may have no local one.
    except Exception:  # noqa: BLE001
        return _repr(value)
    return str(_meaning(path))


def _duration(value: timedelta) -> str:
    exact = timedelta(value.days, value.seconds, value.microseconds)
    return str(msgspec.to_builtins(exact))


def _tuple(value: Any) -> list[Any] | tuple[tuple[Any, Any], ...]:
    names, items = getattr(value, "_fields", None), list(tuple.__iter__(value))
    if isinstance(names, tuple) and len(names) == len(items):
        return tuple(zip(names, items, strict=True))
    return items


_READERS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, lambda value: clean_text(str.__str__(value))),
    (UserString, lambda value: clean_text(str.__str__(value.data))),
    (bool, bool),
    (type(None), lambda value: value),
    (int, int.__int__),
    (float, _number),
    (bytes, lambda value: bytes.decode(value, "utf-8", "replace")),
    (bytearray, lambda value: bytearray.decode(value, "utf-8", "replace")),
    (memoryview, lambda value: value.tobytes().decode("utf-8", "replace")),
    (datetime, datetime.isoformat),
    (date, date.isoformat),
    (time, time.isoformat),
    (timedelta, _duration),
    (Decimal, lambda value: clean_text(Decimal.__str__(value))),
    (UUID, lambda value: clean_text(UUID.__str__(value))),
    (dict, lambda value: tuple(dict.items(value))),
    (tuple, _tuple),
    (list, lambda value: list(list.__iter__(value))),
    (set, lambda value: list(set.__iter__(value))),
    (frozenset, lambda value: list(frozenset.__iter__(value))),
    (SimpleNamespace, lambda value: tuple(vars(value).items())),
)
"""How to read values of these types and their subclasses, whatever their methods say.

Of an enum its value counts, unless its members are of such a type themselves.
"""
_TEXTS = frozenset(
    {
        *("fractions.Fraction", "zoneinfo.ZoneInfo"),
        *("ipaddress.IPv4Address", "ipaddress.IPv6Address"),
        *("ipaddress.IPv4Network", "ipaddress.IPv6Network"),
        *("ipaddress.IPv4Interface", "ipaddress.IPv6Interface"),
    }
)
"""Types whose text says what they mean, by name: their modules need not be loaded."""
_NUMPY = ("numpy.generic", "numpy.ndarray")
_RECORD_MARKS = (
    "__struct_fields__",
    "__dataclass_fields__",
    "__attrs_attrs__",
    "__pydantic_validator__",
    "__fields_set__",  # of pydantic's first version
)


def _fields(value: Any) -> dict[str, Any]:
    """The declared fields of a record, and what was added to it."""
    kind: Any = type(value)
    names: Iterable[str] = ()  # the others have theirs in ``__dict__``
    if hasattr(kind, "__struct_fields__"):
        names = kind.__struct_fields__
    elif hasattr(kind, "__attrs_attrs__"):
        names = [field.name for field in kind.__attrs_attrs__]
    elif hasattr(kind, "__dataclass_fields__"):
        import dataclasses

        names = [field.name for field in dataclasses.fields(kind)]
    added = [name for name in getattr(value, "__dict__", ()) if name[:1] != "_"]
    fields = {}
    for name in dict.fromkeys((*names, *added)):
        try:
            fields[name] = getattr(value, name)
        except AttributeError:
            continue  # declared, never set: a tool has nothing to read either
    return fields | (getattr(value, "__pydantic_extra__", None) or {})


def clean_text(text: str) -> str:
    """A text with U+FFFD in place of lone surrogates."""
    # The utf-8 codec's "replace" would write "?"; U+FFFD is the protocol's choice.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _repr(value: Any) -> str:
    try:
        return clean_text(repr(value))
    # A foreign __repr__ may raise anything.
    except Exception:  # noqa: BLE001
        return f"<unprintable {type(value).__name__}>"


def restored(original: Any, value: Any) -> Any:
    """A JSON value as the type of the original, where that type is a simple one.

    Not where it would add anything: hooks have seen this value and nothing else.
    """
    kind: Any = type(original)
    if value is None or type(value) is kind:
        return value
    try:
        if issubclass(kind, bytes | bytearray):
            typed = kind(value, "utf-8")
        elif hasattr(kind, "__fspath__") and isinstance(value, str):
            typed = kind(value)
            is_same_path = os.path.normpath(as_plain(typed)) == os.path.normpath(value)
            return typed if is_same_path else value
        elif hasattr(kind, "__pydantic_validator__") and hasattr(
            kind, "model_validate"
        ):
            typed = kind.model_validate(value)
        elif hasattr(kind, "__fields_set__"):
            typed = kind.parse_obj(value)
        elif issubclass(kind, tuple) and isinstance(value, dict):
            typed = kind(**value)
        else:
            typed = msgspec.convert(
                value, kind, dec_hook=lambda inner, item: inner(item)
            )
        plain = as_plain(typed)
        if isinstance(plain, dict) and isinstance(value, dict):
            # A default may be what hooks have seen before, or something else.
            before = as_plain(original)
            for key in plain.keys() - value.keys():
                if key not in before or not same_json(plain.pop(key), before[key]):
                    return value
        return typed if _shape(plain) == _shape(value) else value
    # The type may not take this value: then a tool gets what the hook said.
    except Exception:  # noqa: BLE001
        return value


def _shape(value: Any) -> Any:
    """The keys of a value, and the lengths of its lists."""
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    return list(map(_shape, value)) if isinstance(value, list) else None


def digits(number: int) -> str:
    """A whole number of any size as text."""
    if number < 0:
        return "-" + digits(-number)
    if number < _TOO_LONG:
        return str(int(number))
    half = number.bit_length() * 3 // 20  # of its digits
    head, tail = divmod(int(number), 10**half)
    return digits(head) + digits(tail).zfill(half)


def _raw_if_huge(number: int) -> int | msgspec.Raw:
    """A whole number as the JSON encoder can write it."""
    return msgspec.Raw(digits(number).encode()) if abs(number) >= 1 << 63 else number


def _whole_number(text: str) -> int:
    if text[0] == "-":
        return -_whole_number(text[1:])
    if len(text) <= _DIGITS_AT_ONCE:
        return int(text)
    half = len(text) // 2
    power: int = 10**half
    return _whole_number(text[:-half]) * power + _whole_number(text[-half:])


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


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
        return "null" if value is None else str(value).lower()
    if isinstance(value, str):
        return printable(repr(value[:80])) + ("..." if len(value) > 80 else "")
    if isinstance(value, int) and abs(value) >= 1 << 63:
        return "a huge number"  # CPython refuses to format more than 4300 digits
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else f"a {type(value).__name__}"
