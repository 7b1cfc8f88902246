"""Translate model calls of every SDK to one text-only shape for hooks, and back.

``pick_translator`` recognises a value without importing any SDK: an object by the
package of its class, a dict with ``contents`` as google-genai, a dict with ``messages``
as the stable shape. A name overrides that.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from msgspec import Struct

from hookline.errors import TranslationError
from hookline.protocol.events import TRAITS, HookEventName

from .sdk_objects import describe, get
from .stable import (
    HookToolConfig,
    HookTranslator,
    LLMCandidate,
    LLMContent,
    LLMMessage,
    LLMRequest,
    LLMResponse,
    LLMSafetyRating,
    LLMUsage,
    to_wire,
    with_text,
)

__all__ = [
    "HookToolConfig",
    "HookTranslator",
    "LLMCandidate",
    "LLMContent",
    "LLMMessage",
    "LLMRequest",
    "LLMResponse",
    "LLMSafetyRating",
    "LLMUsage",
    "pick_translator",
    "stable_fields",
    "stable_wire",
    "to_wire",
]


_CLASSES = {
    "genai": "GenAITranslator",
    "openai": "OpenAITranslator",
    "anthropic": "AnthropicTranslator",
    "stable": "StableTranslator",
}
_MODULES = {"stable": "passthrough"}
_PACKAGES = {
    "google.genai": "genai",
    "hookline.translators.genai": "genai",
    "openai": "openai",
    "anthropic": "anthropic",
}
_GENAI_RESPONSE_KEYS = (
    "candidates", "usageMetadata", "usage_metadata",
    "promptFeedback", "prompt_feedback",
)  # fmt: skip


def pick_translator(value: object, name: str = "auto") -> HookTranslator:
    """Pick the translator for a request or a response, by name or by its type."""
    found: str | None = name
    if isinstance(value, LLMRequest | LLMResponse):
        found = "stable"
    elif name == "auto":
        found = _recognise(value)
    if found is None:
        raise TranslationError(
            f"unknown request or response: expected an object of google-genai, openai "
            "or anthropic, or a dict with 'contents' or 'messages', got "
            f"{describe(value)}; set Config(translator=...) to name the SDK"
        )
    if found not in _CLASSES:
        raise TranslationError(
            f"unknown translator {found!r}: expected auto, {', '.join(_CLASSES)}"
        )
    return _translator(found)


@cache
def _translator(name: str) -> HookTranslator:
    module = import_module(f".{_MODULES.get(name, name)}", __name__)
    translator: HookTranslator = getattr(module, _CLASSES[name])()
    return translator


def stable_wire(field: str, value: object, name: str = "auto") -> dict[str, Any]:
    """Convert an input field, ``llm_request`` or ``llm_response``, for hooks."""
    if isinstance(value, LLMRequest):
        return to_wire(value)
    if isinstance(value, LLMResponse):
        return to_wire(with_text(value))
    translator = pick_translator(value, name)
    if field == "llm_request":
        return to_wire(translator.to_hook_llm_request(value))
    return to_wire(translator.to_hook_llm_response(value))


def stable_fields(
    event: HookEventName, fields: dict[str, Any], name: str = "auto"
) -> dict[str, Any]:
    """Convert an event's model requests and responses for hooks (DELTA-HPAY-003)."""
    names = TRAITS[event].model_fields
    return fields | {key: stable_wire(key, fields.get(key), name) for key in names}


def _recognise(value: object) -> str | None:
    if not isinstance(value, Mapping):
        return _package_of(value)
    if "contents" in value:
        return "genai"
    if "messages" in value:
        return _package_among(value["messages"]) or "stable"
    if _has_text_parts(value.get("candidates")):
        return "stable"
    if any(key in value for key in _GENAI_RESPONSE_KEYS):
        return "stable" if "text" in value else "genai"
    return "stable" if "text" in value else None


def _has_text_parts(candidates: Any) -> bool:
    """Tell stable candidates, with strings as parts, from those of google-genai."""
    for candidate in candidates if isinstance(candidates, list) else ():
        parts = get(get(candidate, "content"), "parts")
        if isinstance(parts, list) and parts:
            return all(isinstance(part, str) for part in parts)
    return False


def _package_among(messages: Any) -> str | None:
    """Name the SDK of the first message that is an object."""
    for message in messages if isinstance(messages, list | tuple) else ():
        if not isinstance(message, Mapping | Struct):
            return _package_of(message)
    return None


def _package_of(value: object) -> str | None:
    for kind in type(value).__mro__:
        for package, name in _PACKAGES.items():
            if f"{kind.__module__}.".startswith(f"{package}."):
                return name
    return None
