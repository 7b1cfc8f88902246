"""Model calls of every SDK in one stable, text-only shape for hooks, and back.

``pick_translator`` decides whose a value is without importing any SDK: an object by
the package of its class; of dicts ``contents`` is google-genai's and ``messages`` the
stable shape. A name overrides that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from hookline.errors import TranslationError
from hookline.protocol.events import TRAITS, HookEventName

from .sdk_objects import shown
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


def pick_translator(value: object, name: str = "auto") -> HookTranslator:
    """Pick the translator for a request or a response, by name or by what it is."""
    is_stable = isinstance(value, LLMRequest | LLMResponse)
    found = _recognise(value) if name == "auto" or is_stable else name
    if found is None:
        raise TranslationError(
            f"{_described(value)} is no request or response that is known: expected "
            "an object of google-genai, openai or anthropic, a dict with 'contents' "
            "or 'messages', or Config(translator=...) to name the SDK"
        )
    if found not in _MAKERS:
        raise TranslationError(
            f"no translator {found!r}: expected auto, {', '.join(_MAKERS)}"
        )
    return _MAKERS[found]()


def stable_wire(field: str, value: object, name: str = "auto") -> dict[str, Any]:
    """What hooks see in an input field: ``llm_request`` or ``llm_response``."""
    if isinstance(value, LLMRequest | LLMResponse):
        return _stable_wire(value)
    translator = pick_translator(value, name)
    if field == "llm_request":
        return to_wire(translator.to_hook_llm_request(value))
    return to_wire(translator.to_hook_llm_response(value))


def stable_fields(
    event: HookEventName, fields: dict[str, Any], name: str = "auto"
) -> dict[str, Any]:
    """An event's fields with model payloads in the stable shape (DELTA-HPAY-003)."""
    names = TRAITS[event].model_fields
    return fields | {key: stable_wire(key, fields.get(key), name) for key in names}


def _genai() -> HookTranslator:
    from .genai import GenAITranslator

    return GenAITranslator()


def _openai() -> HookTranslator:
    from .openai import OpenAITranslator

    return OpenAITranslator()


def _anthropic() -> HookTranslator:
    from .anthropic import AnthropicTranslator

    return AnthropicTranslator()


def _stable() -> HookTranslator:
    from .passthrough import StableTranslator

    return StableTranslator()


_MAKERS: dict[str, Callable[[], HookTranslator]] = {
    "genai": _genai,
    "openai": _openai,
    "anthropic": _anthropic,
    "stable": _stable,
}
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


def _recognise(value: object) -> str | None:
    if isinstance(value, LLMRequest | LLMResponse):
        return "stable"
    if isinstance(value, Mapping):
        return _recognise_dict(value)
    return _package_of(value)


def _recognise_dict(value: Mapping[str, Any]) -> str | None:
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
    """Tell stable candidates, whose parts are strings, from google-genai's."""
    for candidate in candidates if isinstance(candidates, list) else ():
        content = candidate.get("content") if isinstance(candidate, Mapping) else None
        parts = content.get("parts") if isinstance(content, Mapping) else None
        if isinstance(parts, list) and parts:
            return all(isinstance(part, str) for part in parts)
    return False


def _package_among(messages: Any) -> str | None:
    """Find the SDK of the first message that is an object of one."""
    for message in messages if isinstance(messages, list | tuple) else ():
        if not isinstance(message, Mapping | Struct):
            return _package_of(message)
    return None


def _package_of(value: object) -> str | None:
    for kind in type(value).__mro__:
        for package, name in _PACKAGES.items():
            if kind.__module__ == package or kind.__module__.startswith(f"{package}."):
                return name
    return None


def _described(value: object) -> str:
    if isinstance(value, Mapping):
        keys = ", ".join(repr(key) for key in list(value)[:8])
        return f"a dict with {keys}" if keys else "an empty dict"
    return shown(value)


def _stable_wire(value: LLMRequest | LLMResponse) -> dict[str, Any]:
    """A value that a translator made already, with the text of its first candidate."""
    wire = to_wire(value)
    if isinstance(value, LLMResponse) and value.text is None and value.candidates:
        texts = value.candidates[0].content.parts
        return {**wire, "text": "".join(texts)} if texts else wire
    return wire
