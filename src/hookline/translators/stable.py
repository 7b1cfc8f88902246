"""The one shape in which hooks see model calls, whatever SDK the agent uses.

Text only, with the field names of Gemini CLI hooks. Unset fields are left out on the
wire. ``HookTranslator`` is the interface of a translator; each SDK has one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
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


_EXPECTED: dict[Any, str] = {
    str: "a string",
    dict: "an object",
    int | float: "a number",
    int: "an integer",
    list[str]: "a list of strings",
    list[LLMSafetyRating]: "a list of objects with strings",
}
_CONFIG_TYPES: dict[str, Any] = {
    **dict.fromkeys(("temperature", "topP", "topK"), int | float),
    **dict.fromkeys(("maxOutputTokens", "candidateCount"), int),
    "stopSequences": list[str],
}
_CANDIDATE_TYPES: dict[str, Any] = {
    "finishReason": str,
    "index": int,
    "safetyRatings": list[LLMSafetyRating],
}


def request_parts(value: Struct | Mapping[str, Any]) -> dict[str, Any]:
    """Check a request, or parts of one, that a hook returned."""
    parts = _as_dict(value)
    _fail_for("llm_request", request_problem(parts))
    _require({"config": dict, "toolConfig": dict}, parts, "llm_request")
    _require(_CONFIG_TYPES, parts.get("config") or {}, "llm_request", "config.")
    if parts.get("toolConfig") is not None:
        tool_config_parts(parts["toolConfig"])
    return parts


def response_parts(value: Struct | Mapping[str, Any]) -> dict[str, Any]:
    """Check a response, or parts of one, that a hook returned."""
    parts = _as_dict(value)
    _fail_for("llm_response", response_problem(parts))
    _require({"text": str, "usageMetadata": dict}, parts, "llm_response")
    counts = parts.get("usageMetadata") or {}
    types = {key: int for key in counts if str(key).endswith("TokenCount")}
    _require(types, counts, "llm_response", "usageMetadata.")
    for at, candidate in enumerate(parts.get("candidates") or []):
        place, content = f"candidates[{at}].", candidate.get("content") or {}
        _require(_CANDIDATE_TYPES, candidate, "llm_response", place)
        _require({"parts": list[str]}, content, "llm_response", f"{place}content.")
    return parts


def tool_config_parts(value: Struct | Mapping[str, Any]) -> HookToolConfig:
    """Check a choice of tools that a hook returned."""
    parts = _as_dict(value)
    _require({"mode": str, "allowedFunctionNames": list[str]}, parts, "toolConfig")
    return HookToolConfig(parts.get("mode") or None, parts.get("allowedFunctionNames"))


def messages_of(parts: Mapping[str, Any]) -> list[LLMMessage] | None:
    """Take the messages out of checked parts."""
    return msgspec.convert(parts.get("messages"), list[LLMMessage] | None)


def with_text(response: LLMResponse) -> LLMResponse:
    """Fill in the text of the first candidate."""
    parts = response.candidates[0].content.parts if response.candidates else []
    if response.text is None and parts:
        return msgspec.structs.replace(response, text="".join(parts))
    return response


def _as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, Struct):
        return to_wire(value)
    if not isinstance(value, Mapping):
        raise TranslationError(
            f"hook output: expected an object, got {type(value).__name__}"
        )
    return dict(value)


def _require(
    types: Mapping[str, Any], values: Mapping[str, Any], what: str, place: str = ""
) -> None:
    for key, kind in types.items():
        try:
            if (value := values.get(key)) is not None:
                msgspec.convert(value, kind)
        except msgspec.ValidationError:
            _fail_for(what, f"{place}{key}: expected {_EXPECTED[kind]}")


def _fail_for(what: str, problem: str | None) -> None:
    if problem:
        raise TranslationError(f"{what} from a hook: {problem}")
