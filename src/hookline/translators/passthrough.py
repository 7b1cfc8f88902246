"""The translator of requests and responses that are in the stable shape already.

Hooks do not see fields that the shape does not have, and these are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from hookline.errors import TranslationError

from .messages import align
from .sdk_objects import unexpected
from .stable import (
    HookToolConfig,
    HookTranslator,
    LLMRequest,
    LLMResponse,
    RequestParts,
    ResponseParts,
    ToolConfigParts,
    messages_of,
    request_parts,
    response_parts,
    to_wire,
    tool_config_parts,
    with_text,
)
from .translator import new_candidates

T = TypeVar("T", LLMRequest, LLMResponse)


class StableTranslator(HookTranslator):
    """The ``HookTranslator`` for hosts that use the stable shape themselves."""

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        """Check a request."""
        fields = {"model": "", **_fields(request, "request")}
        return _converted(fields, LLMRequest, "request")

    def from_hook_llm_request(
        self,
        hook_request: RequestParts,
        base_request: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply a hook's changes, fields beyond the shape included."""
        parts = request_parts(hook_request)
        base: dict[str, Any] = {}
        if base_request is not None:
            seen = self.to_hook_llm_request(base_request)
            base = _fields(base_request, "request")
            if messages := messages_of(parts):
                origins = align(seen.messages, messages)
                parts["messages"] = [
                    {**({} if at is None else base["messages"][at]), **new}
                    for at, new in zip(origins, parts["messages"], strict=True)
                ]
        for key in ("config", "toolConfig"):
            if parts.get(key) is not None:
                parts[key] = {**(base.get(key) or {}), **parts[key]}
        return _changed(base_request, base, parts, LLMRequest)

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Check a response, and fill in the text of its first candidate."""
        fields = _fields(response, "response")
        if "text" not in fields and "candidates" not in fields:
            raise unexpected("response", "an object with text or candidates", response)
        candidates = fields.get("candidates", [])
        if isinstance(candidates, list):
            blank = {"content": {"role": "model", "parts": []}}
            candidates = [
                {**blank, **one} if isinstance(one, Mapping) else one
                for one in candidates
            ]
        fields["candidates"] = candidates
        return with_text(_converted(fields, LLMResponse, "response"))

    def from_hook_llm_response(
        self,
        hook_response: ResponseParts,
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply a hook's changes; text and candidates stay the same text."""
        parts = response_parts(hook_response)
        seen, base = LLMResponse([]), dict[str, Any]()
        if base_response is not None:
            seen = self.to_hook_llm_response(base_response)
            base = _fields(base_response, "response")
        texts = [one.content.parts for one in new_candidates(parts, seen)]
        given = parts.get("candidates") or base.get("candidates") or []
        if texts != [one.content.parts for one in seen.candidates]:
            parts["candidates"] = [
                _with_texts(given[at] if at < len(given) else {}, found)
                for at, found in enumerate(texts)
            ]
        if texts:
            parts["text"] = "".join(texts[0])
        return _changed(base_response, base, parts, LLMResponse)

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Check a choice of tools."""
        return tool_config_parts(tool_config)

    def from_hook_tool_config(
        self, hook_tool_config: ToolConfigParts, base_request: Any = None
    ) -> Any:
        """Convert a choice of tools to JSON data."""
        return to_wire(tool_config_parts(hook_tool_config))

    def carries_names(self, hook_tool_config: ToolConfigParts) -> bool:
        """The stable shape has names in every mode."""
        return tool_config_parts(hook_tool_config) is not None

    def tool_names(self, request: Any) -> list[str]:
        """A stable request has no tools."""
        return []

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """There are no tools to remove."""
        return request

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Join the texts of partial stable responses."""
        found = [self.to_hook_llm_response(chunk) for chunk in chunks]
        if not found:
            raise TranslationError("chunks: expected at least one, got none")
        text = "".join(chunk.text or "" for chunk in found)
        whole = to_wire(found[-1])
        first = whole["candidates"][0] if whole["candidates"] else {"index": 0}
        candidates = [_with_texts(first, [text]), *whole["candidates"][1:]]
        return {**whole, "text": text, "candidates": candidates}


def _fields(value: Any, place: str) -> dict[str, Any]:
    """Return the fields that are set."""
    if isinstance(value, Struct):
        return to_wire(value)
    if not isinstance(value, Mapping):
        raise unexpected(place, "an object in the stable shape", value)
    return {key: item for key, item in value.items() if item is not None}


def _converted(fields: dict[str, Any], kind: type[T], place: str) -> T:
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise TranslationError(
            f"{place}: {error}; for a {place} in an SDK's own shape, set "
            "Config(translator='genai'), 'openai' or 'anthropic'"
        ) from error


def _with_texts(candidate: Mapping[str, Any], texts: list[str]) -> dict[str, Any]:
    return {**candidate, "content": {"role": "model", "parts": texts}}


def _changed(given: Any, base: dict[str, Any], parts: dict[str, Any], kind: Any) -> Any:
    changes = {key: new for key, new in parts.items() if base.get(key) != new}
    if given is not None and not changes:
        return given
    merged = {**base, **changes}
    return msgspec.convert(merged, kind) if isinstance(given, Struct) else merged
