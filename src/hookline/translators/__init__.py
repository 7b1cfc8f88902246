"""Translate model calls of every SDK to one text-only shape for hooks, and back.

``pick_translator`` recognises a value without importing any SDK: an object by the
package of its class, a dict by its fields. A name overrides that. Text in ``messages``
from ``user``, ``model`` and ``system`` is the stable shape, unless a field beside it is
one that only OpenAI or Anthropic take.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from msgspec import Struct

from hookline.errors import TranslationError
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.inputs import checked_translator

from .shape import (
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
from .values import describe, get, is_list, is_mapping, items, string_of

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
_OPENAI_FIELDS = (
    "choices", "output", "input", "instructions", "previous_response_id",
    "conversation",
)  # fmt: skip
_STABLE_FIELDS = frozenset({"config", "toolConfig"})
_SDK_ROLES = frozenset({"assistant", "developer", "tool", "function"})
_OPENAI_ROLES = frozenset({"developer", "tool", "function", "system"})
_ANTHROPIC_FIELDS = frozenset(
    {"system", "stop_sequences", "top_k", "thinking", "mcp_servers"}
)
_SDK_FIELDS = _ANTHROPIC_FIELDS | {
    "temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "n", "seed",
    "stream", "tool_choice", "functions", "response_format", "web_search_options",
}  # fmt: skip
_TOOL_KEYS = ("type", "function", "input_schema")
_ANTHROPIC_BLOCKS = frozenset(
    {
        "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document",
        "search_result", "server_tool_use", "web_search_tool_result",
    }
)  # fmt: skip
_CLAUDE = re.compile(r"([\w-]+\.)*claude")  # also as other clouds name it
_DATED = re.compile(r"_\d{8}$")


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
            "or anthropic, or a dict that one of them takes or gives, got "
            f"{describe(value)}; set Config(translator=...) to name the SDK"
        )
    return _translator(checked_translator(found))


@cache
def _translator(name: str) -> HookTranslator:
    module = import_module(f".{name}", __name__)
    translator: HookTranslator = getattr(module, _CLASSES[name])()
    return translator


def stable_wire(field: str, value: object, name: str = "auto") -> dict[str, Any]:
    """Convert an input field, ``llm_request`` or ``llm_response``, for hooks.

    ``name`` is the translator's, as in ``Config``.
    """
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
    """Convert an event's model requests and responses for hooks (DELTA-HPAY-003).

    ``name`` is the translator's, as in ``Config``.
    """
    names = TRAITS[event].model_fields
    return fields | {key: stable_wire(key, fields.get(key), name) for key in names}


def _recognise(value: object) -> str | None:
    if not isinstance(value, Mapping):
        return _package_of(value)
    if "contents" in value:
        return "genai"
    if "messages" in value:
        messages = items(value["messages"])
        return _package_among(messages) or _sdk_of_messages(value, messages)
    return _sdk_of_fields(value)


def _sdk_of_fields(value: Mapping[str, Any]) -> str | None:
    """Tell the other requests and all responses."""
    if any(key in value for key in _OPENAI_FIELDS) or is_mapping(value.get("prompt")):
        return "openai"
    if value.get("type") == "message" or is_list(value.get("content")):
        return "anthropic"
    if _has_text_parts(value.get("candidates")):
        return "stable"
    if any(key in value for key in _GENAI_RESPONSE_KEYS):
        return "stable" if "text" in value else "genai"
    return "stable" if "text" in value else None


def _sdk_of_messages(request: Mapping[str, Any], messages: list[Any]) -> str:
    roles = {string_of(get(message, "role")) for message in messages}
    is_sdk = (
        not roles.isdisjoint(_SDK_ROLES)
        or any(map(_has_sdk_content, messages))
        or (_STABLE_FIELDS.isdisjoint(request) and _has_sdk_fields(request))
    )
    if not is_sdk or "model" in roles:
        return "stable"
    if not roles.isdisjoint(_OPENAI_ROLES) or any(map(_has_calls, messages)):
        return "openai"
    return "anthropic" if _is_for_anthropic(request, messages) else "openai"


def _has_sdk_content(message: Any) -> bool:
    content = get(message, "content")
    return is_list(content) or (content is None and _has_calls(message))


def _has_calls(message: Any) -> bool:
    return get(message, "tool_calls", "function_call") is not None


def _has_sdk_fields(request: Mapping[str, Any]) -> bool:
    tools = items(request.get("tools"))
    return not _SDK_FIELDS.isdisjoint(request) or any(
        key in tool for tool in tools if is_mapping(tool) for key in _TOOL_KEYS
    )


def _is_for_anthropic(request: Mapping[str, Any], messages: list[Any]) -> bool:
    blocks = (block for message in messages for block in items(get(message, "content")))
    return (
        not _ANTHROPIC_FIELDS.isdisjoint(request)
        or _CLAUDE.match(string_of(request.get("model")) or "") is not None
        or any(_is_anthropic_tool(tool) for tool in items(request.get("tools")))
        or any(string_of(get(block, "type")) in _ANTHROPIC_BLOCKS for block in blocks)
    )


def _is_anthropic_tool(tool: Any) -> bool:
    is_typed = _DATED.search(string_of(get(tool, "type")) or "") is not None
    return is_typed or get(tool, "input_schema") is not None


def _has_text_parts(candidates: Any) -> bool:
    """Tell stable candidates, with strings as parts, from those of google-genai."""
    for candidate in items(candidates):
        parts = get(get(candidate, "content"), "parts")
        if is_list(parts) and parts:
            return all(isinstance(part, str) for part in parts)
    return False


def _package_among(messages: list[Any]) -> str | None:
    """Name the SDK of the first message that is an object."""
    for message in messages:
        if not isinstance(message, Mapping | Struct):
            return _package_of(message)
    return None


def _package_of(value: object) -> str | None:
    for kind in type(value).__mro__:
        for package, name in _PACKAGES.items():
            if f"{kind.__module__}.".startswith(f"{package}."):
                return name
    return None
