"""Kinds of values in settings: how each is read, named to people, and put in a schema.

``read`` gives the typed value, or ``UNSET`` where the raw one is wrong as a whole;
where only a part is wrong it reports that part and gives the rest. Nothing raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias, TypeGuard

from msgspec import UNSET, Struct

from .problems import Report, quote

Reader: TypeAlias = Callable[[Any, Report], Any]

MAX_NUMBER = 2**53
"""Larger numbers are taken for mistakes: clocks and selectors overflow on them."""

_DOTTED = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
_FUNCTION = f"^{_DOTTED}:{_DOTTED}$"


class Kind(Struct, frozen=True):
    """One kind of value."""

    expected: str
    """Completes the sentence "expected ..."."""
    read: Reader
    schema: dict[str, Any]
    members: dict[str, Any] = {}
    """The fields of the object that it may be."""


class Field(Struct, frozen=True):
    """One key that settings may hold."""

    attribute: str
    """Its name in the typed value; empty where it is accepted and ignored."""
    kind: Kind
    about: str
    """For people: what it does."""


def is_text(value: Any) -> TypeGuard[str]:
    """Whether a string can be handed to a process: some text, no NUL, no surrogate."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_number(value: Any) -> TypeGuard[float]:
    """Whether this is a number of sensible size; a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else True


def read_fields(
    raw: Mapping[str, Any], fields: Mapping[str, Field], report: Report
) -> dict[str, Any]:
    """Read the known keys of an object; wrong values are reported and left out."""
    found: dict[str, Any] = {}
    for key, field in fields.items():
        if key not in raw:
            continue
        value = field.kind.read(raw[key], report.at(key))
        if value is UNSET:
            expected, got = field.kind.expected, quote(raw[key])
            report.at(key).say(f"ignored: expected {expected}, got {got}")
        elif field.attribute:
            found[field.attribute] = value
    return found


def choice(options: type[StrEnum]) -> Kind:
    """One of a closed set of words."""
    words: dict[Any, StrEnum] = {option.value: option for option in options}

    def read(value: Any, _: Report) -> Any:
        return words.get(value, UNSET) if isinstance(value, str) else UNSET

    expected = " or ".join(repr(word) for word in words)
    if len(words) > 2:
        expected = f"one of {', '.join(repr(word) for word in words)}"
    return Kind(expected, read, {"enum": list(words)})


def whole_number(minimum: int) -> Kind:
    """An integer of at least this size; 5.0 is one, as in JSON Schema."""

    def read(value: Any, _: Report) -> Any:
        if not is_number(value) or not minimum <= value <= MAX_NUMBER:
            return UNSET
        return int(value) if value == int(value) else UNSET

    schema = {"type": "integer", "minimum": minimum, "maximum": MAX_NUMBER}
    return Kind(f"a whole number of at least {minimum}", read, schema)


def _read_text(value: Any, _: Report) -> Any:
    return str.__str__(value) if is_text(value) else UNSET


def _read_boolean(value: Any, _: Report) -> Any:
    return value if isinstance(value, bool) else UNSET


def _read_milliseconds(value: Any, _: Report) -> Any:
    return value if is_number(value) and 0 < value <= MAX_NUMBER else UNSET


def _read_any_text(value: Any, _: Report) -> Any:
    return str.__str__(value) if isinstance(value, str) else UNSET


def _read_function(value: Any, _: Report) -> Any:
    fits = isinstance(value, str) and re.fullmatch(_FUNCTION, value)
    return str.__str__(value) if fits and is_text(value) else UNSET


def _read_texts(value: Any, report: Report) -> Any:
    if not isinstance(value, list | tuple):
        return UNSET
    return tuple(_texts_in(value, report))


def _texts_in(values: Iterable[Any], report: Report) -> Iterable[str]:
    for index, value in enumerate(values):
        if is_text(value):
            yield str.__str__(value)
        else:
            report.at(index).say(f"ignored: expected some text, got {quote(value)}")


def _read_names(value: Any, report: Report) -> Any:
    names = _read_texts(value, report)
    return names if names is UNSET else frozenset(names)


def _read_environment(value: Any, report: Report) -> Any:
    if not isinstance(value, dict):
        return UNSET
    found: dict[str, str] = {}
    for name, item in value.items():
        text = _environment_text(item)
        if not is_text(name) or "=" in name:
            report.at(name).say("ignored: this is no name for an environment variable")
        elif text is None:
            got = quote(item)
            report.at(name).say(f"ignored: expected text or a number, got {got}")
        else:
            found[str.__str__(name)] = text
    return found


def _environment_text(value: Any) -> str | None:
    if isinstance(value, str):
        return str.__str__(value) if value == "" or is_text(value + ".") else None
    if is_number(value) and abs(value) <= MAX_NUMBER:
        return str(value)
    return None


def _read_switch_or_path(value: Any, report: Report) -> Any:
    return value if isinstance(value, bool) else _read_text(value, report)


def _read_anything(_: Any, __: Report) -> Any:
    return None


_TEXT_SCHEMA = {"type": "string", "pattern": r"\S"}
_TEXTS_SCHEMA = {"type": "array", "items": _TEXT_SCHEMA}
_ENV_SCHEMA = {
    "type": "object",
    "propertyNames": {"pattern": "^[^=]+$"},
    "additionalProperties": {"type": ["string", "number"]},
}
_MILLISECONDS_SCHEMA = {
    "type": "number",
    "exclusiveMinimum": 0,
    "maximum": MAX_NUMBER,
}

TEXT = Kind("some text", _read_text, _TEXT_SCHEMA)
ANY_TEXT = Kind("a string", _read_any_text, {"type": "string"})
BOOLEAN = Kind("true or false", _read_boolean, {"type": "boolean"})
MILLISECONDS = Kind(
    "a number of milliseconds above 0", _read_milliseconds, _MILLISECONDS_SCHEMA
)
FUNCTION = Kind(
    "'package.module:name'",
    _read_function,
    {"type": "string", "pattern": _FUNCTION},
)
TEXTS = Kind("a list of strings", _read_texts, _TEXTS_SCHEMA)
NAMES = Kind("a list of names", _read_names, _TEXTS_SCHEMA)
ENVIRONMENT = Kind("an object of names and values", _read_environment, _ENV_SCHEMA)
SWITCH_OR_PATH = Kind(
    "true, false or the path of a file",
    _read_switch_or_path,
    {"anyOf": [{"type": "boolean"}, _TEXT_SCHEMA]},
)
ANYTHING = Kind("anything", _read_anything, {})
