"""The one place that imports google-genai, when one of its objects has to be made."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from hookline.errors import MissingExtraError


def types_of() -> ModuleType:
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
