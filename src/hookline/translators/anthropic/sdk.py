"""The one place that imports anthropic, when one of its objects has to be made."""

from __future__ import annotations

from types import ModuleType

from hookline.errors import MissingExtraError


def types_of() -> ModuleType:
    """Give ``anthropic.types``; say which extra to install where it is missing."""
    try:
        from anthropic import types
    except ImportError as error:
        raise MissingExtraError("anthropic", "anthropic") from error
    return types
