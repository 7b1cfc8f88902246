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
import sys
from collections import UserString
from collections.abc import Callable, Iterable, Mapping, Sequence, Set, ValuesView
from datetime import date, datetime, time, timedelta
from enum import Enum
from operator import index
from types import SimpleNamespace
from typing import Any, NoReturn, TypeAlias

import msgspec

from hookline.errors import EncodingError

MAX_DEPTH = 500
"""Deeper values are not shown: many parsers fail not far beyond this."""

_DIGITS_AT_ONCE = 4000  # CPython refuses to convert more than 4300 digits in one go.
_NO = object()
_CONSTANTS = {None: "null", True: "true", False: "false"}


def raw_if_huge(number: int) -> int | msgspec.Raw:
    """A whole number as the JSON encoder can write it."""
    return msgspec.Raw(digits(number).encode()) if abs(number) >= 1 << 63 else number


def plain(value: Any, *, whole: bool = True, number: Callable[[int], Any] = int) -> Any:
    """Copy a value into what JSON can hold.

    With ``whole`` it raises ``EncodingError`` where something cannot be shown: nested
    too deeply, two keys that become one, an object that cannot be read. Otherwise
    markers stand in for that. ``number`` converts whole numbers.
    """
    return _Copy(whole, number).run(value)


class _Inner:
    """A value that means another one."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Pairs:
    """The keys and values of an object."""

    def __init__(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        self.pairs = list(pairs)


class _Copy:
    """One copy; a loop and not a recursion, so that depth needs no stack."""

    def __init__(self, whole: bool, number: Callable[[int], Any]) -> None:
        self._whole = whole
        self._number = number
        self._open: set[int] = set()
        self._left: list[tuple[Any, Any, Any, int]] = []

    def run(self, value: Any) -> Any:
        result = [None]
        self._left.append((result, 0, value, 0))
        while self._left:
            target, key, item, depth = self._left.pop()
            if target is None:
                self._open.discard(key)
            else:
                target[key] = self._started(target, key, item, depth)
        return result[0]

    def _started(self, target: Any, key: Any, value: Any, depth: int) -> Any:
        """A scalar, or a container whose items are left to be copied."""
        try:
            found = _scalar(value)
            if found is not _NO:
                return self._number(found) if type(found) is int else found
            parts = _parts(value)
        # Foreign objects may raise anything from iteration and attribute access.
        except Exception as error:  # noqa: BLE001
            problem = f"{_name(value)}: {type(error).__name__}"
            return self._lost(f"<unreadable {problem}>", f"cannot read {problem}")
        if parts is _NO:
            return _repr(value)
        if id(value) in self._open:
            return "<cycle>"
        if depth >= MAX_DEPTH:
            problem = f"it is nested deeper than {MAX_DEPTH} levels"
            return self._lost("<nested too deeply>", problem)
        self._open.add(id(value))
        # The value is kept until then: a new object must not get its id.
        self._left.append((None, id(value), value, depth))
        return self._enter(target, key, parts, depth + 1)

    def _enter(self, target: Any, key: Any, parts: Any, depth: int) -> Any:
        if isinstance(parts, _Inner):
            self._left.append((target, key, parts.value, depth))
            return None
        if isinstance(parts, list):
            copied: Any = [None] * len(parts)
            items: Iterable[tuple[Any, Any]] = enumerate(parts)
        else:
            copied, items = {}, self._named(parts.pairs)
        for place, item in items:
            copied[place] = None  # keeps the order: the last of these is copied first
            self._left.append((copied, place, item, depth))
        return copied

    def _named(self, pairs: list[tuple[Any, Any]]) -> list[tuple[str, Any]]:
        named = {key_text(key): value for key, value in pairs}
        if self._whole and len(named) != len(pairs):
            raise _incomplete("two keys of an object have the same text")
        return list(named.items())

    def _lost(self, marker: str, problem: str) -> str:
        if self._whole:
            raise _incomplete(problem)
        return marker


def _incomplete(problem: str) -> EncodingError:
    return EncodingError(f"the input cannot be shown to hooks as a whole: {problem}")


def key_text(key: Any) -> str:
    """The name that a key of a mapping has in JSON."""
    if issubclass(type(key), float):
        return float.__repr__(key)
    found = _scalar(key)
    while found is _NO and issubclass(type(key), Enum):
        key = key.value
        found = _scalar(key)
    if found is None or found is True or found is False:
        return _CONSTANTS[found]
    if isinstance(found, str):
        return found
    return digits(found) if isinstance(found, int) else _repr(key)


def _scalar(value: Any) -> Any:
    """A value that needs no container; ``_NO`` for any other."""
    # By the real type: ``isinstance`` would believe an object's ``__class__``.
    kind = type(value)
    if value is None or kind is bool:
        return value
    for base, read in _BASES:
        if issubclass(kind, base):
            return read(value)
    if hasattr(kind, "__fspath__"):
        return _path(value)
    for module, name in _TEXTS:
        if base := _loaded(kind, module, name):
            return clean_text(base.__str__(value))
    if _loaded(kind, "numbers", "Integral"):
        return index(value)
    if _loaded(kind, "numbers", "Real"):
        return _number(float(value))
    is_url = any(base.__name__.lower().endswith("url") for base in kind.__mro__)
    if is_url and not _is_record(kind):
        return clean_text(str(value))  # of pydantic, yarl, httpx, ...
    return _NO


def _number(value: float) -> float | None:
    value = float.__float__(value)
    return value if math.isfinite(value) else None


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _path(value: Any) -> str:
    try:
        path = os.fspath(value)
    # A path of a remote file system may have no local one.
    except Exception:  # noqa: BLE001
        return _repr(value)
    return _decoded(path) if isinstance(path, bytes) else clean_text(str.__str__(path))


def _duration(value: timedelta) -> str:
    own = timedelta(value.days, value.seconds, value.microseconds)
    return str(msgspec.to_builtins(own))


_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, lambda value: clean_text(str.__str__(value))),
    (UserString, lambda value: clean_text(str.__str__(value.data))),
    (int, int.__int__),
    (float, _number),
    (bytes, lambda value: bytes.decode(value, "utf-8", "replace")),
    (bytearray, lambda value: bytearray.decode(value, "utf-8", "replace")),
    (memoryview, lambda value: _decoded(value.tobytes())),
    (datetime, datetime.isoformat),
    (date, date.isoformat),
    (time, time.isoformat),
    (timedelta, _duration),
)
_TEXTS = (
    ("decimal", "Decimal"),
    ("fractions", "Fraction"),
    ("uuid", "UUID"),
    ("zoneinfo", "ZoneInfo"),
    *(
        ("ipaddress", f"IPv{n}{what}")
        for what in ("Interface", "Address", "Network")
        for n in (4, 6)
    ),
)


def _loaded(kind: type, module: str, name: str) -> Any:
    """The class of this name if it is loaded and a base of ``kind``, else None."""
    base = getattr(sys.modules.get(module), name, None)
    return base if base is not None and issubclass(kind, base) else None


def _parts(value: Any) -> Any:
    """What a container holds; ``_NO`` for any other object."""
    kind = type(value)
    for base, read in _CONTAINERS:
        if issubclass(kind, base):
            return read(value)
    if _is_mapping(kind):
        return _Pairs((key, value[key]) for key in value.keys())  # noqa: SIM118
    if getattr(kind, "__pydantic_root_model__", False):
        return _Inner(value.root)
    if _is_record(kind):
        return _Pairs(_fields(value))
    if issubclass(kind, Sequence | Set | ValuesView) and kind is not range:
        return list(value)
    if _loaded(kind, "numpy", "generic") or _loaded(kind, "numpy", "ndarray"):
        return _Inner(value.tolist())
    return _NO


def _tuple(value: tuple[Any, ...]) -> Any:
    names = getattr(type(value), "_fields", None)
    items = list(tuple.__iter__(value))
    if isinstance(names, tuple) and len(names) == len(items):
        return _Pairs(zip(names, items, strict=True))
    return items


_CONTAINERS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (Enum, lambda value: _Inner(value.value)),
    (dict, lambda value: _Pairs(dict.items(value))),
    (tuple, _tuple),
    (list, lambda value: list(list.__iter__(value))),
    (set, lambda value: list(set.__iter__(value))),
    (frozenset, lambda value: list(frozenset.__iter__(value))),
    (SimpleNamespace, lambda value: _Pairs(vars(value).items())),
)


def _is_mapping(kind: type) -> bool:
    if issubclass(kind, Mapping):
        return True
    # Anything that ``dict()`` takes, such as sqlite3.Row; tables have columns instead.
    looks = hasattr(kind, "keys") and hasattr(kind, "__getitem__")
    return looks and not hasattr(kind, "__array__")


_RECORD_MARKS = (
    "__struct_fields__",
    "__dataclass_fields__",
    "__attrs_attrs__",
    "__pydantic_validator__",
)


def _is_record(kind: type) -> bool:
    return any(hasattr(kind, mark) for mark in _RECORD_MARKS) or _is_pydantic_v1(kind)


def _is_pydantic_v1(kind: type) -> bool:
    return hasattr(kind, "__fields_set__") and hasattr(kind, "__fields__")


def _fields(value: Any) -> Iterable[tuple[str, Any]]:
    """The declared fields of a record, and what was added to it."""
    own = getattr(value, "__dict__", {})
    added = (name for name in own if not name.startswith("_"))
    found = {}
    for name in dict.fromkeys((*_declared(type(value)), *added)):
        try:
            found[name] = getattr(value, name)
        except AttributeError:
            continue  # declared, never set: a tool has nothing to read either
    found |= getattr(value, "__pydantic_extra__", None) or {}
    return found.items()


def _declared(kind: Any) -> Iterable[str]:
    if hasattr(kind, "__struct_fields__"):
        return tuple(kind.__struct_fields__)
    if hasattr(kind, "__attrs_attrs__"):
        return [field.name for field in kind.__attrs_attrs__]
    if hasattr(kind, "__dataclass_fields__"):
        from dataclasses import fields

        return [field.name for field in fields(kind)]
    return () if hasattr(kind, "__pydantic_validator__") else tuple(kind.__fields__)


def clean_text(text: str) -> str:
    """A text with U+FFFD in place of lone surrogates."""
    # The utf-8 codec's "replace" would write "?"; U+FFFD is the protocol's choice.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def digits(number: int) -> str:
    """A whole number of any size as text."""
    if number < 0:
        return "-" + digits(-number)
    number, pieces = int(number), []
    base = 10**_DIGITS_AT_ONCE
    while number >= base:
        number, piece = divmod(number, base)
        pieces.append(str(piece).zfill(_DIGITS_AT_ONCE))
    return str(number) + "".join(reversed(pieces))


def _name(value: Any) -> str:
    return type(value).__name__


def _repr(value: Any) -> str:
    try:
        return clean_text(repr(value))
    # A foreign __repr__ may raise anything.
    except Exception:  # noqa: BLE001
        return f"<unprintable {_name(value)}>"


def restored(original: Any, value: Any) -> Any:
    """A JSON value as the type of the original, where that type is a simple one.

    Not where it would add anything: hooks have seen this value and nothing else.
    """
    kind = type(original)
    if value is None or type(value) is kind:
        return value
    try:
        made = _converted(kind, value)
        return made if _shows(made, value, original) else value
    # The type may not take this value: then a tool gets what the hook said.
    except Exception:  # noqa: BLE001
        return value


def _shows(made: Any, value: Any, original: Any) -> bool:
    """Whether hooks have seen this path, or all fields of this object."""
    shown = plain(made)
    if hasattr(type(made), "__fspath__"):
        return bool(os.path.normpath(shown) == os.path.normpath(value))
    if isinstance(shown, dict) and isinstance(value, dict):
        before, left_out = plain(original), shown.keys() - value.keys()
        # A default may be what hooks have seen before, or something else.
        if any(shown[key] != before.get(key, _NO) for key in left_out):
            return False
        shown = {key: shown[key] for key in shown if key in value}
    return bool(_shape(shown) == _shape(value))


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    return list(map(_shape, value)) if isinstance(value, list) else None


def _converted(kind: Any, value: Any) -> Any:
    if issubclass(kind, bytes | bytearray):
        return kind(value, "utf-8")
    if hasattr(kind, "__fspath__") and isinstance(value, str):
        return kind(value)
    if hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    if _is_pydantic_v1(kind):
        return kind.parse_obj(value)
    if issubclass(kind, tuple) and isinstance(value, dict):
        return kind(**value)
    return msgspec.convert(value, kind, dec_hook=lambda inner, given: inner(given))


_PLAIN_SCALARS = frozenset({str, int, float, bool, type(None)})
_PLAIN_CONTAINERS = frozenset({dict, list, tuple})
_INFINITE = (float("inf"), float("-inf"))

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
    found = _plain(value, whole=whole, number=raw_if_huge)
    try:
        return _encode(found)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise EncodingError(f"the input cannot be encoded as JSON: {error}") from error


def _plain(value: Any, **how: Any) -> Any:
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
    if depth >= MAX_DEPTH or kind not in _PLAIN_CONTAINERS:
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
