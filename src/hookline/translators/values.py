"""Read and copy SDK objects and dicts alike; import an SDK only to make its objects."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from hookline.errors import MissingExtraError, TranslationError

from .shape import plain_text

_NOT_GIVEN_TYPES = frozenset({"NotGiven", "Omit"})
_MAX_LENGTH = 80


def is_mapping(value: Any) -> bool:
    """Tell dicts and other mappings from SDK objects."""
    kind = type(value)
    # Called many times per message, and an abstract class is slow to ask.
    return kind is dict or (
        not hasattr(kind, "model_copy") and issubclass(kind, Mapping)
    )


def is_record(value: Any) -> bool:
    """Whether a value has fields: a dict or an SDK object."""
    return is_mapping(value) or hasattr(type(value), "model_copy")


def get(value: Any, *names: str) -> Any:
    """Read the first field of these names that is set; None if none is."""
    for name in names:
        field = value.get(name) if is_mapping(value) else getattr(value, name, None)
        # The SDKs mark an argument that was not given with an object of their own.
        if field is not None and type(field).__name__ not in _NOT_GIVEN_TYPES:
            return field
    return None


def with_field(value: Any, new: Any, *names: str) -> Any:
    """Copy a record with one field changed, in the spelling it uses; None removes."""
    if not is_mapping(value):
        return value.model_copy(update={names[0]: new})
    set_names = [name for name in names if get(value, name) is not None]
    name = next((name for name in (*set_names, *names) if name in value), None)
    if name is None and new is None:
        return value
    if new is None:
        return {key: item for key, item in value.items() if key != name}
    if name is None:
        keys = [key for key in value if isinstance(key, str)]
        has_snake_case = any("_" in key for key in keys)
        is_camel = not has_snake_case and any(not key.islower() for key in keys)
        name = names[-1] if is_camel and not names[-1].islower() else names[0]
    return {**value, name: new}


def as_record(value: Any, place: str) -> Any:
    """Require a dict or an SDK object."""
    if not is_record(value):
        raise unexpected(place, "an object", value)
    return value


def is_list(value: Any) -> bool:
    """Tell lists, tuples and the like from strings, mappings and iterators."""
    kind = type(value)
    if kind is list or kind is tuple:
        return True
    return isinstance(value, Collection) and not isinstance(
        value, str | bytes | bytearray | Mapping
    )


def as_list(value: Any, place: str) -> list[Any]:
    """Require a list; None is an empty one."""
    if value is None:
        return []
    if not is_list(value):
        raise unexpected(place, "a list", value)
    return list(value)


def items(value: Any) -> list[Any]:
    """Return the items of a list; any other value has none."""
    return list(value) if is_list(value) else []


def string_of(value: Any) -> str | None:
    """Read a string or an enum of strings; None for any other value."""
    return plain_text(value.value if isinstance(value, Enum) else value)


def names_or_none(value: Any) -> list[str] | None:
    """Return the strings in a list; None for any other value."""
    names = [string_of(name) for name in items(value)]
    return [name for name in names if name is not None] if is_list(value) else None


def text_or_none(value: Any, place: str) -> str | None:
    """Require a string or an enum of strings; None stays None."""
    text = string_of(value)
    if text is None and value is not None:
        raise unexpected(place, "a string", value)
    return text


def text_at(value: Any, name: str, place: str) -> str:
    """Require a field with a string."""
    text = text_or_none(get(as_record(value, place), name), f"{place}.{name}")
    if text is None:
        raise unexpected(f"{place}.{name}", "a string", None)
    return text


def unexpected(place: str, expected: str, value: Any) -> TranslationError:
    """Make the error for a field of the wrong type."""
    return TranslationError(f"{place}: expected {expected}, got {describe(value)}")


def describe(value: Any) -> str:
    """Describe a value by its type.

    Never by its content: what is wrong with an answer that a guard could not read is
    told to the person whom the guard keeps the answer from.
    """
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a dict" if value else "an empty dict"
    if isinstance(value, str):
        return "a string"
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return name.removeprefix("builtins.")[:_MAX_LENGTH]


def rebuilt(
    make: Any, base: Any, changes: dict[str, Any], defaults: dict[str, Any]
) -> Any:
    """Copy a response with some fields changed; without one, make it from defaults."""
    if isinstance(base, Mapping):
        return {**(base or defaults), **changes}
    whole = make().model_construct(**{**defaults, **changes})
    if base is None:
        return whole
    return base.model_copy(update={key: getattr(whole, key) for key in changes})


def to_dict(value: Any) -> dict[str, Any]:
    """Copy a dict or an object of openai or anthropic into a dict."""
    return dict(value if is_mapping(value) else value.to_dict())


def _sdk_module(name: str, extra: str, package: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(extra, package) from error


genai_types = partial(_sdk_module, "google.genai.types", "genai", "google-genai")
chat_types = partial(_sdk_module, "openai.types.chat", "openai", "openai")
responses_types = partial(_sdk_module, "openai.types.responses", "openai", "openai")
anthropic_types = partial(_sdk_module, "anthropic.types", "anthropic", "anthropic")


@contextmanager
def unknown_values_allowed() -> Iterator[None]:
    """Silence the SDKs' warnings about values that they do not know."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
