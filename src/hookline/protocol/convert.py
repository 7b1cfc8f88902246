"""Convert plain values to typed ones key by key, and keep what fits.

A Struct or a TypedDict says everything about an object: its keys, what each accepts
(``msgspec.Meta``), and by ``Expected`` what no constraint of msgspec can express. A
value that does not fit is left out and reported with its path; the rest is converted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NotRequired,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec
from msgspec import UNSET, Meta, Struct, structs

from .values import describe

T = TypeVar("T")

KeyPath: TypeAlias = tuple[str | int, ...]
"""The keys and indices that lead to a value."""

_MAX_MISTAKES = 10_000
# A text with a lone surrogate is no UTF-8, which msgspec needs to compare it.
_UNFIT = (msgspec.ValidationError, UnicodeEncodeError)
_COLLECTIONS = (list, tuple, frozenset)
_WORDS: dict[Any, str] = {
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    **dict.fromkeys(_COLLECTIONS, "a list"),
    Any: "any value",
    object: "any value",
}


class Mistake(Struct, frozen=True):
    """A value that does not fit."""

    path: KeyPath
    message: str

    def __str__(self) -> str:
        keys = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path)
        path = "".join(keys).removeprefix(".")
        return f"{path}: {self.message}" if path else self.message


class Expected(Struct, frozen=True):
    """What a message says of a type, as an annotation of it (``Annotated``)."""

    words: str
    """Completes the sentence "expected ..."; of a key of a mapping "not ..."."""
    accepts: Callable[[Any], bool] | None = None
    """What no constraint of msgspec can express."""
    is_private: bool = False
    """Its values may hold credentials and are not quoted."""

    def mismatch(self, value: object) -> str:
        """What was expected, and what it got."""
        actual = type(value).__name__ if self.is_private else describe(value)
        return f"expected {self.words}, got {actual}"


def one_of(choices: Iterable[str]) -> Expected:
    """These strings and nothing else."""
    words = tuple(map(str, choices))
    return Expected(f"one of {', '.join(words)}", words.__contains__)


class Key:
    """One key of an object."""

    def __init__(self, attribute: str, to: Any, *, is_required: bool) -> None:
        self.attribute = attribute
        """Its name in the typed value."""
        self.type = to
        self.is_required = is_required
        self.is_nullable = NoneType in get_args(to)
        """Whether null counts as absent, in a TypedDict."""

    @cached_property
    def plan(self) -> TypePlan:
        """How its values are converted, made for the first of them."""
        return TypePlan(self.type)


@cache
def keys_of(to: Any) -> dict[str, Key]:
    """The keys of a Struct or a TypedDict."""
    if issubclass(to, Struct):
        return {
            field.encode_name: Key(field.name, field.type, is_required=field.required)
            for field in structs.fields(to)
        }
    keys: dict[str, Key] = {}
    for name, hint in get_type_hints(to, include_extras=True).items():
        # Where annotations are strings, ``__required_keys__`` alone would have all.
        is_optional = get_origin(hint) is NotRequired
        value_type = get_args(hint)[0] if is_optional else hint
        is_required = name in to.__required_keys__ and not is_optional
        keys[name] = Key(name, value_type, is_required=is_required)
    return keys


@cache
def _required_keys(to: Any) -> tuple[tuple[str, Key], ...]:
    return tuple(item for item in keys_of(to).items() if item[1].is_required)


def convert(
    value: object, to: type[T], mistakes: list[Mistake], path: KeyPath = ()
) -> T | None:
    """Convert an object; None if it is none, or a required key is missing or wrong.

    A TypedDict keeps unknown keys, and its nullable keys are left out where null.
    """
    kind: Any = to  # for mypy, type[T] is not hashable
    if not isinstance(value, Mapping):
        _report(mistakes, path, TypePlan(kind).expected.mismatch(value))
        return None
    keys, values = keys_of(kind), {}
    keeps_unknown = not issubclass(kind, Struct)
    for name, item in value.items():
        key = keys.get(name)
        if key is None:
            if keeps_unknown and item is not None:
                values[name] = item
        elif item is not None or not key.is_nullable or not keeps_unknown:
            converted = key.plan.convert(item, mistakes, (*path, name))
            if converted is not UNSET:
                values[key.attribute] = converted
    is_complete = True
    for name, key in _required_keys(kind):
        if key.attribute not in values:
            is_complete = False
            if name not in value:
                words = key.plan.expected.words
                _report(mistakes, (*path, name), f"expected {words}, got nothing")
    return to(**values) if is_complete else None


class TypePlan:
    """A type, taken apart once: annotations are slow to hash and to inspect."""

    def __init__(self, to: Any) -> None:
        plain = get_args(to)[0] if get_origin(to) is Annotated else to
        self.declared = to
        self.kind: Any = get_origin(plain) or plain
        is_class = isinstance(self.kind, type)
        self.is_object = is_typeddict(self.kind) or (
            is_class and issubclass(self.kind, Struct)
        )
        self.choices: dict[Any, Any] = {}
        if is_class and issubclass(self.kind, Enum):
            self.choices = {choice.value: choice for choice in self.kind}
        arguments = get_args(plain)
        self.holds_any = bool(arguments) and arguments[-1] is Any
        inner = [TypePlan(it) for it in arguments if it not in (..., NoneType, Any)]
        is_union = self.kind in (Union, UnionType)
        self.members = inner if is_union else [self]
        self.items = [] if is_union or self.holds_any else inner
        self.expected = self._expected()
        """What a message says of the type."""
        limits = [it for it in getattr(to, "__metadata__", ()) if isinstance(it, Meta)]
        self.limited: Any = Annotated[self.kind, *limits] if limits else self.kind
        """The kind and its length, for a list whose items are converted."""
        self.is_bare = self.kind in (str, bool) and not any(
            it.pattern or it.min_length or it.max_length for it in limits
        )
        """Whether the type of a value says all."""
        self.is_exact = self.is_bare
        if self.kind is list:
            self.is_exact = bool(self.items) and self.items[0].is_exact
        elif is_typeddict(self.kind):
            self.is_exact = all(
                key.plan.is_exact and not key.is_nullable
                for key in keys_of(self.kind).values()
            )
        self.is_exact = self.is_exact and self.expected.accepts is None
        """Whether a value that is valid for msgspec stays as it is."""

    def _expected(self) -> Expected:
        """What the type says of itself, or words for it."""
        for annotation in getattr(self.declared, "__metadata__", ()):
            if isinstance(annotation, Expected):
                return annotation
        if self.members != [self]:
            if len(self.members) == 1:
                return self.members[0].expected
            words = [member.expected.words for member in self.members]
            return Expected(" or ".join(words))
        choices = list(map(repr, self.choices))
        if len(choices) > 2:
            return Expected(f"one of {', '.join(choices)}")
        return Expected(" or ".join(choices) or _WORDS.get(self.kind, "an object"))

    def convert(self, value: Any, mistakes: list[Mistake], path: KeyPath) -> Any:
        """Convert a value; UNSET if it does not fit, which is reported."""
        mistakes_before, accepts = len(mistakes), self.expected.accepts
        if accepts is None or accepts(value):
            if self.is_bare and type(value) is self.kind:
                return value
            for member in self.members:
                accepts = None if member is self else member.expected.accepts
                if accepts is None or accepts(value):
                    converted = member.convert_member(value, mistakes, path)
                    if converted is not UNSET:
                        return converted
        if len(mistakes) == mistakes_before:
            _report(mistakes, path, self.expected.mismatch(value))
        return UNSET

    def convert_member(self, value: Any, mistakes: list[Mistake], path: KeyPath) -> Any:
        """Convert a value that is accepted to one type of a union."""
        kind = self.kind
        if kind in (Any, object):
            return value
        if value is None or isinstance(value, Struct):  # typed already
            return value if type(value) is kind else UNSET
        if self.is_bare and isinstance(value, kind):
            # A member of an enum has another hash than its text.
            return value if type(value) is kind else str.__str__(value)
        if self.is_exact and self._is_valid(value):
            return value
        if self.choices and isinstance(value, str):
            return self.choices.get(value, UNSET)
        if self.holds_any:
            return value if isinstance(value, kind) else UNSET
        if self.is_object:
            if not isinstance(value, Mapping):
                return UNSET
            converted = convert(value, kind, mistakes, path)
            return UNSET if converted is None else converted
        to = self.declared
        if kind is dict and self.items and isinstance(value, dict):
            items: dict[Any, Any] = {}
            names, values = self.items
            for name, item in value.items():
                if names.convert(name, [], path) is UNSET:
                    _report(mistakes, (*path, name), f"not {names.expected.words}")
                else:
                    items[name] = values.convert(item, mistakes, (*path, name))
            return {name: item for name, item in items.items() if item is not UNSET}
        if kind in _COLLECTIONS and self.items and isinstance(value, list | tuple):
            converted_items = [
                self.items[0].convert(item, mistakes, (*path, index))
                for index, item in enumerate(value)
            ]
            value = [item for item in converted_items if item is not UNSET]
            to = self.limited
        if kind is int and isinstance(value, float) and value.is_integer():
            value = int(value)  # as in JSON Schema
        try:
            converted = msgspec.convert(value, to)
        except _UNFIT:
            return UNSET
        # 5 stays 5, for messages.
        return value if isinstance(converted, float) else converted

    def _is_valid(self, value: Any) -> bool:
        # Histories are long, and msgspec is many times as fast.
        try:
            return bool(msgspec.convert(value, self.declared) == value)
        except _UNFIT:
            return False


def _report(mistakes: list[Mistake], path: KeyPath, message: str) -> None:
    if len(mistakes) < _MAX_MISTAKES:
        mistakes.append(Mistake(path, message))
