"""The translator of requests and responses that are in the stable shape already.

Hooks do not see fields that the shape does not have, and these are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
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
        found = enumerate(fields["messages"])
        config, tools = fields.get("config"), fields.get("toolConfig")
        return LLMRequest(
            string_of(fields.get("model")) or "",
            [_message(one, f"request.messages[{at}]") for at, one in found],
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
            seen = self.to_hook_llm_request(base_request)
            base = _fields(base_request, "request")
            if messages := messages_of(parts):
                origins = align(seen.messages, messages)
                olds = [to_wire(message) for message in seen.messages]
                parts["messages"] = [
                    {**({} if at is None else olds[at]), **new}
                    for at, new in zip(origins, parts["messages"], strict=True)
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
        found = as_list(fields.get("candidates"), "response.candidates")
        candidates = [
            _candidate(one, f"response.candidates[{at}]")
            for at, one in enumerate(found)
        ]
        text = text_or_none(fields.get("text"), "response.text")
        return with_text(LLMResponse(candidates, text, _usage(fields)))

    def from_hook_llm_response(
        self,
        hook_response: ResponseParts,
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply a hook's changes; text and candidates stay the same text."""
        parts = response_parts(hook_response, hook_name)
        seen, base = LLMResponse([]), dict[str, Any]()
        if base_response is not None:
            seen = _with_candidate(self.to_hook_llm_response(base_response))
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


def _message(value: Any, place: str) -> LLMMessage:
    if isinstance(value, LLMMessage):
        return value
    if not is_mapping(value):
        raise unexpected(place, f"an object ({_OTHER_SDK})", value)
    role, content = text_at(value, "role", place), string_of(value.get("content"))
    if content is None:
        given = value.get("content")
        raise unexpected(f"{place}.content", f"a string ({_OTHER_SDK})", given)
    extra = {key: one for key, one in value.items() if key not in ("role", "content")}
    return (
        MessageWithExtra(role, content, extra) if extra else LLMMessage(role, content)
    )


def _usage(fields: dict[str, Any]) -> LLMUsage | None:
    usage = fields.get("usageMetadata")
    if not isinstance(usage, Mapping):
        return None
    return LLMUsage(*(whole_number(usage.get(name)) for name in _COUNTS))


def _candidate(value: Any, place: str) -> LLMCandidate:
    content = as_record(get(as_record(value, place), "content") or {}, place)
    parts = as_list(get(content, "parts"), f"{place}.parts")
    texts = [text_or_none(part, f"{place}.parts") or "" for part in parts]
    return LLMCandidate(
        LLMContent(string_of(get(content, "role")) or "model", texts),
        string_of(get(value, "finishReason")),
        whole_number(get(value, "index")),
        read_ratings(get(value, "safetyRatings")),
    )


def _with_candidate(response: LLMResponse) -> LLMResponse:
    """Make one of the text, in a response that has nothing else."""
    if response.candidates or not response.text:
        return response
    candidate = LLMCandidate(LLMContent("model", [response.text]))
    return msgspec.structs.replace(response, candidates=[candidate])


def _with_texts(candidate: Mapping[str, Any], texts: list[str]) -> dict[str, Any]:
    return {**candidate, "content": {"role": "model", "parts": texts}}


def _changed(given: Any, base: dict[str, Any], parts: dict[str, Any], kind: Any) -> Any:
    changes = {k: new for k, new in parts.items() if not same_json(base.get(k), new)}
    if given is not None and not changes:
        return given
    merged = {**base, **changes}
    return msgspec.convert(merged, kind) if isinstance(given, Struct) else merged
