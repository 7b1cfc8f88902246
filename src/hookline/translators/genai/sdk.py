"""The one place that imports google-genai, when one of its objects has to be made."""

from __future__ import annotations

from types import ModuleType

from hookline.errors import MissingExtraError


def types_of() -> ModuleType:
    """Give ``google.genai.types``; say which extra to install where it is missing."""
    try:
        from google.genai import types
    except ImportError as error:
        raise MissingExtraError("genai", "google-genai") from error
    return types
