"""The one place that imports openai, when one of its objects has to be made."""

from __future__ import annotations

from types import ModuleType

from hookline.errors import MissingExtraError


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
