"""The translator of requests and responses that are in the stable shape already.

Hooks do not see fields that the shape does not have, and these are kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import chain, repeat
from typing import Any

import msgspec
from msgspec import Struct

from hookline.errors import TranslationError
from hookline.protocol.values import same_json

from .base import new_candidates, read_ratings
from .changes import align
from .shape import (
    HookToolConfig,
    HookTranslator,
    LLMCandidate,
    LLMContent,
    LLMMessage,
    LLMRequest,
    LLMResponse,
    LLMUsage,
    MessageWithExtra,
    RequestParts,
    ResponseParts,
    ToolConfigParts,
    messages_of,
    request_parts,
    response_parts,
    to_wire,
    tool_config_parts,
    whole_number,
    with_text,
)
from .values import (
    as_list,
    as_record,
    get,
    is_list,
    is_mapping,
    names_or_none,
    string_of,
    text_at,
    text_or_none,
    unexpected,
)

_OTHER_SDK = (
    "for a value in an SDK's own shape, set Config(translator='genai'), 'openai' or "
    "'anthropic'"
)
_COUNTS = ("promptTokenCount", "candidatesTokenCount", "totalTokenCount")


class StableTranslator(HookTranslator):
    """The ``HookTranslator`` for hosts that use the stable shape themselves."""

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        """Read a request; keys that its messages have beside the shape are shown."""
        fields = _fields(request, "request")
        if not is_list(fields.get("messages")):
            raise unexpected(
                "request.messages", f"a list ({_OTHER_SDK})", fields.get("messages")
            )
        messages: list[LLMMessage] = []
        for at, message in enumerate(fields["messages"]):
            place = f"request.messages[{at}]"
            if isinstance(message, LLMMessage):
                messages.append(message)
                continue
            if not is_mapping(message):
                raise unexpected(place, f"an object ({_OTHER_SDK})", message)
            role = text_at(message, "role", place)
            content = string_of(message.get("content"))
            if content is None:
                raise unexpected(
                    f"{place}.content",
                    f"a string ({_OTHER_SDK})",
                    message.get("content"),
                )
            extra = {k: v for k, v in message.items() if k not in ("role", "content")}
            messages.append(
                MessageWithExtra(role, content, extra)
                if extra
                else LLMMessage(role, content)
            )
        config, tools = fields.get("config"), fields.get("toolConfig")
        return LLMRequest(
            string_of(fields.get("model")) or "",
            messages,
            dict(config) if isinstance(config, Mapping) else None,
            self.to_hook_tool_config(tools) if is_mapping(tools) else None,
        )

    def from_hook_llm_request(
        self,
        hook_request: RequestParts,
        base_request: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply a hook's changes, fields beyond the shape included."""
        parts = request_parts(hook_request, hook_name)
        base: dict[str, Any] = {}
        if base_request is not None:
            before = self.to_hook_llm_request(base_request)
            base = _fields(base_request, "request")
            if messages := messages_of(parts):
                origins = align(before.messages, messages)
                old_messages = [to_wire(message) for message in before.messages]
                parts["messages"] = [
                    {**({} if at is None else old_messages[at]), **message}
                    for at, message in zip(origins, parts["messages"], strict=True)
                ]
        for key in ("config", "toolConfig"):
            if key in parts and is_mapping(base.get(key)):
                parts[key] = {**base[key], **parts[key]}
        return _changed(base_request, base, parts, LLMRequest)

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Read a response, and fill in the text of its first candidate."""
        fields = _fields(response, "response")
        if "text" not in fields and "candidates" not in fields:
            raise unexpected("response", "an object with text or candidates", response)
        candidates: list[LLMCandidate] = []
        listed = as_list(fields.get("candidates"), "response.candidates")
        for at, candidate in enumerate(listed):
            place = f"response.candidates[{at}]"
            content = get(as_record(candidate, place), "content") or {}
            parts = as_list(get(as_record(content, place), "parts"), f"{place}.parts")
            texts = [text_or_none(part, f"{place}.parts") or "" for part in parts]
            candidates.append(
                LLMCandidate(
                    LLMContent(string_of(get(content, "role")) or "model", texts),
                    string_of(get(candidate, "finishReason")),
                    whole_number(get(candidate, "index")),
                    read_ratings(get(candidate, "safetyRatings")),
                )
            )
        text = text_or_none(fields.get("text"), "response.text")
        counts, usage = fields.get("usageMetadata"), None
        if isinstance(counts, Mapping):
            usage = LLMUsage(*(whole_number(counts.get(name)) for name in _COUNTS))
        return with_text(LLMResponse(candidates, text, usage))

    def from_hook_llm_response(
        self,
        hook_response: ResponseParts,
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply a hook's changes; text and candidates stay the same text."""
        parts = response_parts(hook_response, hook_name)
        before, base = LLMResponse([]), dict[str, Any]()
        if base_response is not None:
            before = self.to_hook_llm_response(base_response)
            base = _fields(base_response, "response")
            if before.text and not before.candidates:
                candidate = LLMCandidate(LLMContent("model", [before.text]))
                before = LLMResponse([candidate], before.text)
        candidates = new_candidates(parts, before)
        texts = [candidate.content.parts for candidate in candidates]
        if texts != [candidate.content.parts for candidate in before.candidates]:
            old_candidates = parts.get("candidates") or base.get("candidates") or []
            pairs = zip(texts, chain(old_candidates, repeat({})), strict=False)
            parts["candidates"] = [
                _with_texts(old, new_texts) for new_texts, old in pairs
            ]
        if texts:
            parts["text"] = "".join(texts[0])
        return _changed(base_response, base, parts, LLMResponse)

    def replaced_response(self, hook_response: ResponseParts, base: Any) -> Any:
        """Build a response from nothing, a Struct if the base is one."""
        empty = LLMResponse([]) if isinstance(base, Struct) else None
        return self.from_hook_llm_response(hook_response, empty)

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Read a choice of tools."""
        fields = _fields(tool_config, "toolConfig")
        names = names_or_none(fields.get("allowedFunctionNames"))
        return HookToolConfig(string_of(fields.get("mode")), names)

    def from_hook_tool_config(
        self, hook_tool_config: ToolConfigParts, base_request: Any = None
    ) -> Any:
        """Convert a choice of tools to JSON data."""
        return to_wire(tool_config_parts(hook_tool_config))

    def carries_names(self, hook_tool_config: ToolConfigParts) -> bool:
        """The stable shape has names in every mode."""
        return True

    def tool_names(self, request: Any) -> list[str]:
        """A stable request has no tools."""
        return []

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """There are no tools to remove."""
        return request

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Join the texts of partial stable responses, those of each candidate."""
        responses = [self.to_hook_llm_response(chunk) for chunk in chunks]
        if not responses:
            raise TranslationError("chunks: expected at least one, got none")
        candidates: dict[int, dict[str, Any]] = {}
        texts: dict[int, str] = defaultdict(str)
        for response in responses:
            partial_candidates = to_wire(response)["candidates"] or [{"index": 0}]
            for at, candidate in enumerate(partial_candidates):
                index = candidate.get("index", at)
                candidates[index] = {**candidates.get(index, {}), **candidate}
                if at == 0:
                    texts[index] += response.text or ""
                else:
                    texts[index] += "".join(candidate["content"]["parts"])
        indexes = sorted(candidates)
        return {
            **to_wire(responses[-1]),
            "text": texts[indexes[0]],
            "candidates": [_with_texts(candidates[at], [texts[at]]) for at in indexes],
        }


def _fields(value: Any, place: str) -> dict[str, Any]:
    """Return the fields that are set."""
    if isinstance(value, Struct):
        return to_wire(value)
    if not isinstance(value, Mapping):
        raise unexpected(place, "an object in the stable shape", value)
    return {key: item for key, item in value.items() if item is not None}


def _with_texts(candidate: Mapping[str, Any], texts: list[str]) -> dict[str, Any]:
    return {**candidate, "content": {"role": "model", "parts": texts}}


def _changed(
    original: Any, base: dict[str, Any], parts: dict[str, Any], kind: Any
) -> Any:
    changes = {k: new for k, new in parts.items() if not same_json(base.get(k), new)}
    if original is not None and not changes:
        return original
    merged = {**base, **changes}
    return msgspec.convert(merged, kind) if isinstance(original, Struct) else merged
