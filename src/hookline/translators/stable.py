"""The one shape in which hooks see model calls, whatever SDK the agent uses.

Text only, with the field names of Gemini CLI hooks. Unset fields are left out on the
wire. ``HookTranslator`` is the interface of a translator; each SDK has one.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from hookline.errors import TranslationError
from hookline.protocol.jsontext import decode, describe, encode

logger = logging.getLogger("hookline")


class LLMMessage(Struct, frozen=True):
    """One message; the role is ``user``, ``model`` or ``system``."""

    role: str
    content: str


class MessageWithExtra(LLMMessage, frozen=True, eq=False):
    """A message with further keys of the caller; they do not count in comparisons."""

    extra: dict[str, Any]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LLMMessage):
            return NotImplemented
        return (self.role, self.content) == (other.role, other.content)

    def __hash__(self) -> int:
        return hash(LLMMessage(self.role, self.content))


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
    wire: dict[str, Any] = msgspec.to_builtins(value, enc_hook=_plain)
    if isinstance(value, LLMRequest):
        wire["messages"] = [_flat(message) for message in wire["messages"]]
    return _flat(wire) if isinstance(value, LLMMessage) else wire


def _flat(message: dict[str, Any]) -> dict[str, Any]:
    extra = message.pop("extra", None)
    return message if extra is None else {**extra, **message}


def _plain(value: Any) -> Any:
    """Convert what msgspec does not know, such as subclasses of str, as JSON does."""
    return decode(encode(value))


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

    def replaced_response(self, hook_response: ResponseParts, base: Any) -> Any:
        """Build a response from nothing; of the base only the kind counts."""
        return self.from_hook_llm_response(hook_response)

    def api_for(self, request: Any) -> HookTranslator:
        """Choose the API that a request belongs to, where an SDK has several."""
        return self

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
        """Remove all other tools, those that the service runs itself included."""

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Assemble the whole response from the chunks of a stream."""


_Read = Callable[[Any], Any]
"""Returns a valid value, converted if need be, or None."""


def plain_text(value: Any) -> str | None:
    """Read a string of any class as ``str``; None for any other value."""
    return str.__str__(value) if isinstance(value, str) else None


def whole_number(value: Any) -> int | None:
    """Read an integer, or a float without a fraction; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if isinstance(value, int) or value.is_integer() else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def _strings(value: Any) -> list[str] | None:
    found = [plain_text(one) for one in value] if isinstance(value, list) else [None]
    return None if None in found else [text for text in found if text is not None]


def _object(value: Any) -> dict[str, Any] | None:
    return dict(value) if isinstance(value, Mapping) else None


def _list(value: Any) -> list[Any] | None:
    return list(value) if isinstance(value, list | tuple) else None


_EXPECTED: dict[_Read, str] = {
    plain_text: "a string",
    whole_number: "a whole number",
    _number: "a number",
    _strings: "a list of strings",
    _object: "an object",
    _list: "a list",
}
_CONFIG: dict[str, _Read] = {
    **dict.fromkeys(("temperature", "topP"), _number),
    **dict.fromkeys(("frequencyPenalty", "presencePenalty"), _number),
    "topK": lambda value: whole_number(value) or _number(value),
    **dict.fromkeys(("maxOutputTokens", "candidateCount", "seed"), whole_number),
    "stopSequences": _strings,
}
_EXPECTED[_CONFIG["topK"]] = "a number"
_REQUEST = {
    "model": plain_text,
    "messages": _list,
    "config": _object,
    "toolConfig": _object,
}
_RESPONSE = {"text": plain_text, "candidates": _list, "usageMetadata": _object}
_CANDIDATE = {
    "finishReason": plain_text,
    "index": whole_number,
    "safetyRatings": _list,
}
_RATING = dict.fromkeys(("category", "probability"), plain_text)
_COUNTS = dict.fromkeys(
    ("promptTokenCount", "candidatesTokenCount", "totalTokenCount"), whole_number
)


class _HookParts:
    """Reads what a hook returned: an invalid value is ignored by itself.

    Each one is logged with its hook, so that a change that was only partly applied can
    be noticed.
    """

    def __init__(self, hook_name: str | None) -> None:
        self._hook = f"hook {hook_name!r}" if hook_name else "a hook"

    def ignore(self, place: str, expected: str, value: Any) -> None:
        """Log that a value is ignored."""
        problem = f"{place}: expected {expected}, got {describe(value)}"
        logger.warning("%s returned %s; ignored", self._hook, problem)

    def take(
        self, values: Mapping[str, Any], types: Mapping[str, _Read], place: str
    ) -> dict[str, Any]:
        """Keep valid values, and those without a type."""
        found: dict[str, Any] = {}
        for key, value in values.items():
            read = types.get(key)
            new = value if read is None else read(value)
            if read is None or new is not None:
                found[key] = new
            else:
                self.ignore(f"{place}.{key}", _EXPECTED[read], value)
        return found

    def config(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Read settings; null removes one."""
        removed = {key: None for key, value in values.items() if value is None}
        given = {key: values[key] for key in values.keys() - removed.keys()}
        return removed | self.take(given, _CONFIG, "llm_request.config")

    def messages(self, values: list[Any]) -> list[dict[str, Any]]:
        """Read messages; an invalid one is removed, the original does not return."""
        kept = []
        for at, value in enumerate(values):
            message = _object(value) or {}
            role, content = map(plain_text, map(message.get, ("role", "content")))
            if role is not None and content is not None:
                message["role"], message["content"] = role, content
                kept.append(message)
            else:
                expected = "an object with role and content as text"
                self.ignore(f"llm_request.messages[{at}]", expected, value)
        return kept

    def tool_config(self, values: Mapping[str, Any], place: str) -> HookToolConfig:
        """Read a choice of tools; of a list the valid names count."""
        given = {key: value for key, value in values.items() if value is not None}
        found = self.take(given, {"mode": plain_text, _NAMES: _list}, place)
        mode, names = found.get("mode") or None, found.get(_NAMES)
        if names is None:
            return HookToolConfig(mode)
        names = self.texts(names, f"{place}.{_NAMES}")
        # A list restricts even when it is empty (PROTOCOL 6).
        return HookToolConfig(mode if names else "NONE", names)

    def texts(self, values: list[Any], place: str) -> list[str]:
        """Keep the strings of a list."""
        kept = []
        for at, value in enumerate(values):
            text = plain_text(value)
            if text is None:
                self.ignore(f"{place}[{at}]", "a string", value)
            else:
                kept.append(text)
        return kept

    def candidate(self, value: Any, place: str) -> dict[str, Any]:
        """Read a candidate: without valid text it is an empty one."""
        given = _object(value)
        if given is None:
            self.ignore(place, "an object", value)
            return {"content": _content([])}
        found = self.take(
            {key: one for key, one in given.items() if one is not None},
            _CANDIDATE,
            place,
        )
        if "safetyRatings" in found:
            found["safetyRatings"] = self.ratings(found["safetyRatings"], place)
        found["content"] = self.content(given.get("content"), f"{place}.content")
        return found

    def content(self, value: Any, place: str) -> dict[str, Any]:
        given = _object(value)
        if given is None and value is not None:
            self.ignore(place, "an object", value)
        parts = (given or {}).get("parts")
        if parts is not None and _list(parts) is None:
            self.ignore(f"{place}.parts", "a list of strings", parts)
        return _content(self.texts(_list(parts) or [], f"{place}.parts"))

    def ratings(self, values: list[Any], place: str) -> list[dict[str, Any]]:
        kept = []
        for at, value in enumerate(values):
            where, rating = f"{place}.safetyRatings[{at}]", _object(value)
            if rating is None:
                self.ignore(where, "an object", value)
            else:
                kept.append(self.take(rating, _RATING, where))
        return kept


_NAMES = "allowedFunctionNames"


def _content(parts: list[str]) -> dict[str, Any]:
    return {"role": "model", "parts": parts}


def request_parts(
    value: Struct | Mapping[str, Any], hook_name: str | None = None
) -> dict[str, Any]:
    """Read a request, or parts of one, that a hook returned."""
    read = _HookParts(hook_name)
    parts = read.take(_as_dict(value), _REQUEST, "llm_request")
    if "messages" in parts:
        parts["messages"] = read.messages(parts["messages"])
    if "config" in parts:
        parts["config"] = read.config(parts["config"])
    if "toolConfig" in parts:
        place = "llm_request.toolConfig"
        parts["toolConfig"] |= to_wire(read.tool_config(parts["toolConfig"], place))
    return parts


def response_parts(
    value: Struct | Mapping[str, Any], hook_name: str | None = None
) -> dict[str, Any]:
    """Read a response, or parts of one, that a hook returned; null empties it."""
    read, given = _HookParts(hook_name), _as_dict(value)
    empty = {key: new for key, new in _EMPTY.items() if given.get(key, new) is None}
    parts = read.take(given | empty, _RESPONSE, "llm_response")
    if "candidates" in parts:
        parts["candidates"] = [
            read.candidate(one, f"llm_response.candidates[{at}]")
            for at, one in enumerate(parts["candidates"])
        ]
    if "usageMetadata" in parts:
        counts = {k: v for k, v in parts["usageMetadata"].items() if v is not None}
        place = "llm_response.usageMetadata"
        parts["usageMetadata"] = read.take(counts, _COUNTS, place)
    return parts


_EMPTY: dict[str, Any] = {"text": "", "candidates": [], "usageMetadata": {}}


def tool_config_parts(
    value: Struct | Mapping[str, Any], hook_name: str | None = None
) -> HookToolConfig:
    """Read a choice of tools that a hook returned."""
    return _HookParts(hook_name).tool_config(_as_dict(value), "toolConfig")


def messages_of(parts: Mapping[str, Any]) -> list[LLMMessage] | None:
    """Take the messages out of parts that were read."""
    messages = parts.get("messages")
    if messages is None:
        return None
    return [LLMMessage(message["role"], message["content"]) for message in messages]


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
