"""Read fields of SDK objects and dicts; import an SDK only to make its objects."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from types import ModuleType
from typing import Any

from hookline.errors import MissingExtraError, TranslationError

_ABSENT = frozenset({"NotGiven", "Omit"})
_SHOWN_LENGTH = 80


def is_mapping(value: Any) -> bool:
    """Tell dicts and their like from SDK objects; asked many times per message."""
    kind = type(value)
    # Asking an abstract class about an SDK's is slow, and needless.
    return kind is dict or (
        not hasattr(kind, "model_copy") and issubclass(kind, Mapping)
    )


def get(value: Any, *names: str) -> Any:
    """Read the first of the spellings that is there; None where none is."""
    for name in names:
        found = value.get(name) if is_mapping(value) else getattr(value, name, None)
        # The SDKs mark an argument that was not given with an object of their own.
        if found is not None and type(found).__name__ not in _ABSENT:
            return found
    return None


def put(value: Any, new: Any, *names: str) -> Any:
    """Copy a record with one field changed, in the spelling it uses; None removes."""
    if not is_mapping(value):
        return value.model_copy(update={names[0]: new})
    there = [n for n in names if get(value, n) is not None]
    name = next((n for n in (*there, *names) if n in value), _spelling(value, names))
    if new is None:
        return {key: item for key, item in value.items() if key != name}
    return {**value, name: new}


def is_record(value: Any) -> bool:
    """Tell whether it is a dict or an SDK object."""
    return is_mapping(value) or hasattr(type(value), "model_copy")


def record(value: Any, place: str) -> Any:
    """Insist on a dict or an SDK object."""
    if not is_record(value):
        raise wrong(place, "an object", value)
    return value


def items_of(value: Any, place: str) -> list[Any]:
    """Insist on a list; None is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise wrong(place, "a list", value)
    return list(value)


def text_or_none(value: Any, place: str) -> str | None:
    """Insist on a string or an enum's; None stays None."""
    if isinstance(value, Enum):
        value = value.value
    if value is not None and not isinstance(value, str):
        raise wrong(place, "a string", value)
    return value


def count_or_none(value: Any, place: str) -> int | None:
    """Insist on a whole number; None stays None."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise wrong(place, "a whole number", value)


def wrong(place: str, expected: str, value: Any) -> TranslationError:
    """Say which field is not what it should be."""
    return TranslationError(f"{place}: expected {expected}, got {shown(value)}")


def shown(value: Any) -> str:
    """Quote a value for a message, in short."""
    if isinstance(value, str):
        value = value[:_SHOWN_LENGTH]
    elif not isinstance(value, int | float | None):
        return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix(
            "builtins."
        )
    text = repr(value)
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 3] + "..."


def _spelling(value: Mapping[str, Any], names: tuple[str, ...]) -> str:
    camel = any(not key.islower() for key in value) and not any("_" in k for k in value)
    return names[-1] if camel and not names[-1].islower() else names[0]


def genai_types() -> ModuleType:
    """Give ``google.genai.types``; say which extra to install where it is missing."""
    try:
        from google.genai import types
    except ImportError as error:
        raise MissingExtraError("genai", "google-genai") from error
    return types


@contextmanager
def unknown_values_allowed() -> Iterator[None]:
    """Let the SDK take enum values that it does not know without a warning of each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def chat_types() -> ModuleType:
    """Give the types of Chat Completions."""
    try:
        from openai.types import chat
    except ImportError as error:
        raise MissingExtraError("openai", "openai") from error
    return chat


def responses_types() -> ModuleType:
    """Give the types of the Responses API."""
    try:
        from openai.types import responses
    except ImportError as error:
        raise MissingExtraError("openai", "openai") from error
    return responses


def anthropic_types() -> ModuleType:
    """Give ``anthropic.types``; say which extra to install where it is missing."""
    try:
        from anthropic import types
    except ImportError as error:
        raise MissingExtraError("anthropic", "anthropic") from error
    return types
