"""The one shape in which hooks see model calls, whatever SDK the agent uses.

Text only, and spelled on the wire as the Gemini CLI hooks know it. A part that is
absent is absent on the wire too. ``HookTranslator`` is the seam: one per SDK.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from hookline.errors import TranslationError
from hookline.protocol.outputs import request_problem, response_problem


class LLMMessage(Struct, frozen=True):
    """What one side said: the role is ``user``, ``model`` or ``system``."""

    role: str
    content: str


class HookToolConfig(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Whether tools may or must be called (``AUTO``, ``ANY``, ``NONE``), and which."""

    mode: str | None = None
    allowed_function_names: list[str] | None = None


class LLMRequest(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A model call that is about to be made."""

    model: str
    messages: list[LLMMessage]
    config: dict[str, Any] | None = None
    tool_config: HookToolConfig | None = None


class LLMContent(Struct, frozen=True):
    """The texts of one answer."""

    role: str
    parts: list[str]


class LLMSafetyRating(Struct, frozen=True, omit_defaults=True):
    """How likely a harm is; ``blocked`` is left out on purpose (HOOK-077)."""

    category: str | None = None
    probability: str | None = None


class LLMCandidate(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One of the answers that a model offers."""

    content: LLMContent
    finish_reason: str | None = None
    index: int | None = None
    safety_ratings: list[LLMSafetyRating] | None = None


class LLMUsage(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a model call cost, in tokens."""

    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    total_token_count: int | None = None


class LLMResponse(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a model answered; ``text`` is that of the first candidate."""

    candidates: list[LLMCandidate]
    text: str | None = None
    usage_metadata: LLMUsage | None = None


def to_wire(value: Struct) -> dict[str, Any]:
    """Spell a stable value as hooks read it: plain dicts, lists and strings."""
    wire: dict[str, Any] = msgspec.to_builtins(value)
    return wire


class HookTranslator(Protocol):
    """Between one SDK's own objects and the stable shape.

    Every method raises ``TranslationError``, naming the field, for what it cannot
    read; none changes what it is given. ``from_*`` take a stable value or any part of
    one as a dict in wire spelling, and ``hook_name`` says in warnings whose it was.
    """

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        """Show a request."""
        ...

    def from_hook_llm_request(
        self,
        hook_request: LLMRequest | dict[str, Any],
        base_request: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply what a hook changed; the base itself where that is nothing."""
        ...

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Show a response."""
        ...

    def from_hook_llm_response(
        self,
        hook_response: LLMResponse | dict[str, Any],
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Rebuild a response from text; the base itself where the text is the same."""
        ...

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Show which tools may be called."""
        ...

    def from_hook_tool_config(
        self,
        hook_tool_config: HookToolConfig | dict[str, Any],
        base_request: Any = None,
    ) -> Any:
        """Spell a restriction of tools as the SDK does."""
        ...

    def carries_names(self, hook_tool_config: HookToolConfig | dict[str, Any]) -> bool:
        """Whether the SDK itself can hold a call to the allowed names."""
        ...

    def tool_names(self, request: Any) -> list[str]:
        """Name the tools that a request offers."""
        ...

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """Leave all other tools out, for where the SDK cannot carry the names."""
        ...

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Make the whole response of what the SDK's streaming yields."""
        ...


logger = logging.getLogger("hookline")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_CONFIG_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "temperature": (_is_number, "a number"),
    "topP": (_is_number, "a number"),
    "topK": (_is_number, "a number"),
    "maxOutputTokens": (_is_whole, "a whole number"),
    "candidateCount": (_is_whole, "a whole number"),
    "stopSequences": (_is_texts, "a list of strings"),
}


def request_parts(value: Struct | Mapping[str, Any]) -> dict[str, Any]:
    """Check a request, or parts of one, that a hook returned."""
    parts = _as_dict(value)
    _refuse("llm_request", request_problem(parts))
    for key in ("config", "toolConfig"):
        if not isinstance(parts.get(key), dict | None):
            _refuse("llm_request", f"{key}: expected an object")
    for key, entry in (parts.get("config") or {}).items():
        fits, expected = _CONFIG_CHECKS.get(key, (None, ""))
        if fits and entry is not None and not fits(entry):
            _refuse("llm_request", f"config.{key}: expected {expected}")
    if parts.get("toolConfig") is not None:
        tool_config_parts(parts["toolConfig"])
    return parts


def response_parts(value: Struct | Mapping[str, Any]) -> dict[str, Any]:
    """Check a response, or parts of one, that a hook returned."""
    parts = _as_dict(value)
    _refuse("llm_response", response_problem(parts))
    if not _is_text_or_none(parts.get("text")):
        _refuse("llm_response", "text: expected a string")
    if not isinstance(parts.get("usageMetadata"), dict | None):
        _refuse("llm_response", "usageMetadata: expected an object")
    for key, count in (parts.get("usageMetadata") or {}).items():
        if count is not None and not _is_whole(count) and key.endswith("TokenCount"):
            _refuse("llm_response", f"usageMetadata.{key}: expected a whole number")
    for at, candidate in enumerate(parts.get("candidates") or []):
        _refuse("llm_response", _candidate_problem(candidate, f"candidates[{at}]"))
    return parts


def tool_config_parts(value: Struct | Mapping[str, Any]) -> HookToolConfig:
    """Check a restriction of tools that a hook returned."""
    parts = _as_dict(value)
    mode, names = parts.get("mode"), parts.get("allowedFunctionNames")
    if not _is_text_or_none(mode):
        _refuse("toolConfig", "mode: expected a string")
    if names is not None and not _is_texts(names):
        _refuse("toolConfig", "allowedFunctionNames: expected a list of strings")
    return HookToolConfig(mode or None, names)


def messages_of(parts: Mapping[str, Any]) -> list[LLMMessage] | None:
    """Take the messages out of checked parts."""
    found = parts.get("messages")
    if found is None:
        return None
    return [LLMMessage(message["role"], message["content"]) for message in found]


def whose(hook_name: str | None) -> str:
    """Name a hook in a warning."""
    return f"hook {hook_name!r}" if hook_name else "a hook"


def _as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, Struct):
        return to_wire(value)
    if not isinstance(value, Mapping):
        raise TranslationError(
            f"what a hook returned: expected an object, got {type(value).__name__}"
        )
    return dict(value)


def _candidate_problem(candidate: Mapping[str, Any], place: str) -> str | None:
    if not _is_text_or_none(candidate.get("finishReason")):
        return f"{place}.finishReason: expected a string"
    content = candidate.get("content") or {}
    if not isinstance(content.get("parts", []), list | None):
        return f"{place}.content.parts: expected a list of strings"
    index, ratings = candidate.get("index"), candidate.get("safetyRatings")
    if index is not None and not _is_whole(index):
        return f"{place}.index: expected a whole number"
    if ratings is None or (isinstance(ratings, list) and all(map(_is_rating, ratings))):
        return None
    return f"{place}.safetyRatings: expected a list of objects with strings"


def _is_rating(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        _is_text_or_none(value.get(key)) for key in ("category", "probability")
    )


def _refuse(what: str, problem: str | None) -> None:
    if problem:
        raise TranslationError(f"{what} from a hook: {problem}")
