"""Requests and responses that are in the stable shape already.

Fields beyond the shape are not shown to hooks, and are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from hookline.errors import TranslationError

from .formats import drafts_of
from .messages import align
from .sdk_objects import wrong
from .stable import (
    HookToolConfig,
    LLMRequest,
    LLMResponse,
    messages_of,
    request_parts,
    response_parts,
    to_wire,
    tool_config_parts,
)

_HINT = (
    "; for a request in an SDK's own shape name the SDK: "
    "Config(translator='genai'), 'openai' or 'anthropic'"
)


class StableTranslator:
    """The ``HookTranslator`` for hosts that speak the stable shape themselves."""

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        """Check a request and show it."""
        shown = {"model": "", **_without_nulls(request, "request")}
        try:
            return msgspec.convert(shown, LLMRequest)
        except msgspec.ValidationError as error:
            raise TranslationError(f"request: {error}{_HINT}") from error

    def from_hook_llm_request(
        self,
        hook_request: LLMRequest | dict[str, Any],
        base_request: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Lay what a hook changed over the base; a Struct stays a Struct."""
        del hook_name
        parts = request_parts(hook_request)
        base: dict[str, Any] = {}
        if base_request is not None:
            seen = self.to_hook_llm_request(base_request)
            base = _without_nulls(base_request, "request")
            if messages := messages_of(parts):
                origin = align(seen.messages, messages)
                parts["messages"] = [
                    {**({} if at is None else base["messages"][at]), **said}
                    for at, said in zip(origin, parts["messages"], strict=True)
                ]
        for key in ("config", "toolConfig"):
            if parts.get(key) is not None:
                parts[key] = {**(base.get(key) or {}), **parts[key]}
        return _changed(base_request, base, parts, LLMRequest)

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Check a response and show it, with the text of the first candidate."""
        given = _without_nulls(response, "response")
        if "text" not in given and "candidates" not in given:
            raise wrong("response", "an object with text or candidates", response)
        found = {"candidates": [], **given}
        found["candidates"] = _filled(found["candidates"])
        try:
            shown = msgspec.convert(found, LLMResponse)
        except msgspec.ValidationError as error:
            raise TranslationError(f"response: {error}{_HINT}") from error
        if (
            shown.text is None
            and shown.candidates
            and shown.candidates[0].content.parts
        ):
            text = "".join(shown.candidates[0].content.parts)
            return msgspec.structs.replace(shown, text=text)
        return shown

    def from_hook_llm_response(
        self,
        hook_response: LLMResponse | dict[str, Any],
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Lay what a hook changed over the base, text and candidates in step."""
        del hook_name
        parts = response_parts(hook_response)
        seen = LLMResponse([])
        base: dict[str, Any] = {}
        if base_response is not None:
            seen = self.to_hook_llm_response(base_response)
            base = _without_nulls(base_response, "response")
        drafts = drafts_of(parts, seen)
        given = parts.get("candidates") or base.get("candidates") or []
        if [draft.texts for draft in drafts] != [
            c.content.parts for c in seen.candidates
        ]:
            parts["candidates"] = [
                _with_texts(given[at] if at < len(given) else {}, draft.texts)
                for at, draft in enumerate(drafts)
            ]
        if drafts:
            parts["text"] = "".join(drafts[0].texts)
        return _changed(base_response, base, parts, LLMResponse)

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Check a restriction of tools."""
        return tool_config_parts(tool_config)

    def from_hook_tool_config(
        self,
        hook_tool_config: HookToolConfig | dict[str, Any],
        base_request: Any = None,
    ) -> Any:
        """Spell it as on the wire."""
        del base_request
        return to_wire(tool_config_parts(hook_tool_config))

    def carries_names(self, hook_tool_config: HookToolConfig | dict[str, Any]) -> bool:
        """The stable shape carries names under every mode."""
        return tool_config_parts(hook_tool_config) is not None

    def tool_names(self, request: Any) -> list[str]:
        """A stable request names no tools."""
        del request
        return []

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """There is nothing to leave out."""
        del names
        return request

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Join the texts of partial stable responses."""
        shown = [self.to_hook_llm_response(chunk) for chunk in chunks]
        if not shown:
            raise TranslationError("chunks: expected at least one, got none")
        text = "".join(chunk.text or "" for chunk in shown)
        whole = to_wire(shown[-1])
        first = whole["candidates"][0] if whole["candidates"] else {"index": 0}
        candidates = [_with_texts(first, [text]), *whole["candidates"][1:]]
        return {**whole, "text": text, "candidates": candidates}


def _without_nulls(value: Any, place: str) -> dict[str, Any]:
    if isinstance(value, Struct):
        return to_wire(value)
    if not isinstance(value, Mapping):
        raise wrong(place, "an object in the stable shape", value)
    return {key: item for key, item in value.items() if item is not None}


def _filled(candidates: Any) -> Any:
    if not isinstance(candidates, list):
        return candidates
    blank = {"content": {"role": "model", "parts": []}}
    return [{**blank, **one} if isinstance(one, Mapping) else one for one in candidates]


def _with_texts(candidate: Mapping[str, Any], texts: list[str]) -> dict[str, Any]:
    return {**candidate, "content": {"role": "model", "parts": texts}}


def _changed(given: Any, base: dict[str, Any], parts: dict[str, Any], kind: Any) -> Any:
    changes = {key: new for key, new in parts.items() if base.get(key) != new}
    if given is not None and not changes:
        return given
    merged = {**base, **changes}
    return msgspec.convert(merged, kind) if isinstance(given, Struct) else merged
