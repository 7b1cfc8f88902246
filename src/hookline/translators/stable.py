"""The one shape in which hooks see model calls, whatever SDK the agent uses.

Text only, with the field names of Gemini CLI hooks. Unset fields are left out on the
wire. ``HookTranslator`` is the interface of a translator; each SDK has one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from hookline.errors import TranslationError
from hookline.protocol.outputs import request_problem, response_problem


class LLMMessage(Struct, frozen=True):
    """One message; the role is ``user``, ``model`` or ``system``."""

    role: str
    content: str


class HookToolConfig(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Whether tools may or must be called (``AUTO``, ``ANY``, ``NONE``), and which."""

    mode: str | None = None
    allowed_function_names: list[str] | None = None


class LLMRequest(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The request of a model call."""

    model: str
    messages: list[LLMMessage]
    config: dict[str, Any] | None = None
    tool_config: HookToolConfig | None = None


class LLMContent(Struct, frozen=True):
    """The text parts of one candidate."""

    role: str
    parts: list[str]


class LLMSafetyRating(Struct, frozen=True, omit_defaults=True):
    """How likely a harm is; without ``blocked``, on purpose (HOOK-077)."""

    category: str | None = None
    probability: str | None = None


class LLMCandidate(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One of the answers in a response."""

    content: LLMContent
    finish_reason: str | None = None
    index: int | None = None
    safety_ratings: list[LLMSafetyRating] | None = None


class LLMUsage(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Token counts of a model call."""

    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    total_token_count: int | None = None


class LLMResponse(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The response of a model call; ``text`` is that of the first candidate."""

    candidates: list[LLMCandidate]
    text: str | None = None
    usage_metadata: LLMUsage | None = None


# What ``from_*`` take: a stable value, or any part of one in wire spelling.
RequestParts = LLMRequest | dict[str, Any]
ResponseParts = LLMResponse | dict[str, Any]
ToolConfigParts = HookToolConfig | dict[str, Any]


def to_wire(value: Struct) -> dict[str, Any]:
    """Convert a stable value to the JSON data that hooks read."""
    wire: dict[str, Any] = msgspec.to_builtins(value)
    return wire


class HookTranslator(Protocol):
    """Translates between one SDK's own objects and the stable shape.

    Every method raises ``TranslationError``, naming the field, for a value it cannot
    read; none changes its arguments. ``hook_name`` is the hook to name in warnings.
    """

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        """Convert a request for hooks."""

    def from_hook_llm_request(
        self,
        hook_request: RequestParts,
        base_request: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply a hook's changes; the base itself if there are none."""

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Convert a response for hooks."""

    def from_hook_llm_response(
        self,
        hook_response: ResponseParts,
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Rebuild a response from text; the base itself if the text is the same."""

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Convert the SDK's choice of tools for hooks."""

    def from_hook_tool_config(
        self, hook_tool_config: ToolConfigParts, base_request: Any = None
    ) -> Any:
        """Convert a hook's choice of tools for the SDK."""

    def carries_names(self, hook_tool_config: ToolConfigParts) -> bool:
        """Whether the SDK can restrict a call to the allowed names."""

    def tool_names(self, request: Any) -> list[str]:
        """List the names of the tools that a request offers."""

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """Remove all other tools, for SDKs that cannot carry the names."""

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Assemble the whole response from the chunks of a stream."""


Check = tuple[Callable[[Any], bool], str]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _are_ratings(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_rating, value))


def _is_rating(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(value.get(key), str | None) for key in ("category", "probability")
    )


_TEXT: Check = (lambda value: isinstance(value, str)), "a string"
_OBJECT: Check = (lambda value: isinstance(value, dict)), "an object"
_NUMBER: Check = _is_number, "a number"
_INTEGER: Check = _is_integer, "an integer"
_TEXTS: Check = _is_texts, "a list of strings"
_RATINGS: Check = _are_ratings, "a list of objects with strings"
_CONFIG_CHECKS = {
    "temperature": _NUMBER,
    "topP": _NUMBER,
    "topK": _NUMBER,
    "maxOutputTokens": _INTEGER,
    "candidateCount": _INTEGER,
    "stopSequences": _TEXTS,
}


def request_parts(value: Struct | Mapping[str, Any]) -> dict[str, Any]:
    """Check a request, or parts of one, that a hook returned."""
    parts = _as_dict(value)
    _fail_for("llm_request", request_problem(parts))
    for key in ("config", "toolConfig"):
        _require(_OBJECT, parts.get(key), "llm_request", key)
    for key, setting in (parts.get("config") or {}).items():
        if key in _CONFIG_CHECKS:
            _require(_CONFIG_CHECKS[key], setting, "llm_request", f"config.{key}")
    if parts.get("toolConfig") is not None:
        tool_config_parts(parts["toolConfig"])
    return parts


def response_parts(value: Struct | Mapping[str, Any]) -> dict[str, Any]:
    """Check a response, or parts of one, that a hook returned."""
    parts = _as_dict(value)
    _fail_for("llm_response", response_problem(parts))
    _require(_TEXT, parts.get("text"), "llm_response", "text")
    _require(_OBJECT, parts.get("usageMetadata"), "llm_response", "usageMetadata")
    for key, count in (parts.get("usageMetadata") or {}).items():
        if str(key).endswith("TokenCount"):
            _require(_INTEGER, count, "llm_response", f"usageMetadata.{key}")
    for at, candidate in enumerate(parts.get("candidates") or []):
        content = candidate.get("content") or {}
        for check, name, found in (
            (_TEXT, "finishReason", candidate.get("finishReason")),
            (_TEXTS, "content.parts", content.get("parts")),
            (_INTEGER, "index", candidate.get("index")),
            (_RATINGS, "safetyRatings", candidate.get("safetyRatings")),
        ):
            _require(check, found, "llm_response", f"candidates[{at}].{name}")
    return parts


def tool_config_parts(value: Struct | Mapping[str, Any]) -> HookToolConfig:
    """Check a choice of tools that a hook returned."""
    parts = _as_dict(value)
    mode, names = parts.get("mode"), parts.get("allowedFunctionNames")
    _require(_TEXT, mode, "toolConfig", "mode")
    _require(_TEXTS, names, "toolConfig", "allowedFunctionNames")
    return HookToolConfig(mode or None, names)


def messages_of(parts: Mapping[str, Any]) -> list[LLMMessage] | None:
    """Take the messages out of checked parts."""
    found = parts.get("messages")
    if found is None:
        return None
    return [LLMMessage(message["role"], message["content"]) for message in found]


def _as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, Struct):
        return to_wire(value)
    if not isinstance(value, Mapping):
        raise TranslationError(
            f"hook output: expected an object, got {type(value).__name__}"
        )
    return dict(value)


def _require(check: Check, value: Any, what: str, place: str) -> None:
    fits, expected = check
    if value is not None and not fits(value):
        _fail_for(what, f"{place}: expected {expected}")


def _fail_for(what: str, problem: str | None) -> None:
    if problem:
        raise TranslationError(f"{what} from a hook: {problem}")
