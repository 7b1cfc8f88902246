"""The two spellings of google-genai's fields: ``snake_case`` and ``camelCase``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hookline.translators.fields import get, is_mapping


@lru_cache(maxsize=256)
def camel(name: str) -> str:
    """Spell a field as on the wire."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def snake(name: str) -> str:
    """Spell a field as in Python."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def spellings(name: str) -> tuple[str, str]:
    """Give both spellings of a field."""
    return name, camel(name)


def field(value: Any, name: str) -> Any:
    """Read a field in either spelling."""
    # An object has the one spelling only, and asking it for another is slow.
    return get(value, name, camel(name)) if is_mapping(value) else get(value, name)
