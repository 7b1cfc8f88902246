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
    sdk: str | None = name
    if isinstance(value, LLMRequest | LLMResponse):
        sdk = "stable"
    elif name == "auto":
        sdk = _recognise(value)
    if sdk is None:
        raise TranslationError(
            f"unknown request or response: expected an object of google-genai, openai "
            "or anthropic, or a dict that one of them takes or gives, got "
            f"{describe(value)}; set Config(translator=...) to name the SDK"
        )
    return _translator(checked_translator(sdk))


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
    """Convert an event's model requests and responses for hooks.

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
        return _sdk_of_messages(value, items(value["messages"]))
    if any(key in value for key in _OPENAI_FIELDS) or is_mapping(value.get("prompt")):
        return "openai"
    if value.get("type") == "message" or is_list(value.get("content")):
        return "anthropic"
    contents = (
        get(candidate, "content") for candidate in items(value.get("candidates"))
    )
    all_parts = (items(get(content, "parts")) for content in contents)
    first_parts = next(filter(None, all_parts), [])
    has_text_parts = all(isinstance(part, str) for part in first_parts)
    if "text" in value or (first_parts and has_text_parts):
        return "stable"
    return "genai" if any(key in value for key in _GENAI_RESPONSE_KEYS) else None


def _sdk_of_messages(request: Mapping[str, Any], messages: list[Any]) -> str:
    objects = (m for m in messages if not isinstance(m, Mapping | Struct))
    if (package := _package_of(next(objects, None))) is not None:
        return package
    roles = {string_of(get(message, "role")) for message in messages}
    contents = [get(message, "content") for message in messages]
    calls = [get(message, "tool_calls", "function_call") for message in messages]
    tools = items(request.get("tools"))
    is_sdk = (
        not roles.isdisjoint(_SDK_ROLES)
        or any(map(is_list, contents))
        or any(
            content is None and call is not None
            for content, call in zip(contents, calls, strict=True)
        )
    )
    if not is_sdk and _STABLE_FIELDS.isdisjoint(request):
        is_sdk = not _SDK_FIELDS.isdisjoint(request) or any(
            key in tool for tool in tools if is_mapping(tool) for key in _TOOL_KEYS
        )
    if not is_sdk or "model" in roles:
        return "stable"
    has_calls = any(call is not None for call in calls)
    if has_calls or not roles.isdisjoint(_OPENAI_ROLES):
        return "openai"
    blocks = (block for content in contents for block in items(content))
    is_for_anthropic = (
        not _ANTHROPIC_FIELDS.isdisjoint(request)
        or _CLAUDE.match(string_of(request.get("model")) or "") is not None
        or any(get(tool, "input_schema") is not None for tool in tools)
        or any(_DATED.search(string_of(get(tool, "type")) or "") for tool in tools)
        or any(string_of(get(block, "type")) in _ANTHROPIC_BLOCKS for block in blocks)
    )
    return "anthropic" if is_for_anthropic else "openai"


def _package_of(value: object) -> str | None:
    for kind in type(value).__mro__:
        for package, name in _PACKAGES.items():
            if f"{kind.__module__}.".startswith(f"{package}."):
                return name
    return None
