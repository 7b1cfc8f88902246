"""The one shape in which hooks see model calls, whatever SDK the agent uses.

Text only, with the field names of Gemini CLI hooks. Unset fields are left out on the
wire. ``HookTranslator`` is the interface of a translator; each SDK has one.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from hookline.errors import EncodingError, TranslationError
from hookline.protocol.outputs import read_part
from hookline.protocol.values import as_plain, decode, encode

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
    """How likely a harm is; without ``blocked``, on purpose."""

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
        """Apply the parts of a request that a hook changed to ``base_request``.

        That itself if there are none; ``hook_name`` is for warnings.
        """

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Convert a response for hooks."""

    def from_hook_llm_response(
        self,
        hook_response: ResponseParts,
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Rebuild a response from text; ``base_response`` if the text is the same.

        ``hook_name`` is for warnings.
        """

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
        """Convert a hook's tool config for the SDK, for the API of ``base_request``."""

    def carries_names(self, hook_tool_config: ToolConfigParts) -> bool:
        """Whether the SDK can restrict a call to the names in a hook's tool config."""

    def tool_names(self, request: Any) -> list[str]:
        """List the names of the tools that a request offers."""

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """Remove all other tools, those that the service runs itself included."""

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Assemble the whole response from the chunks of a stream."""


def plain_text(value: Any) -> str | None:
    """Read a string of any class as ``str``; None for any other value."""
    return str.__str__(value) if isinstance(value, str) else None


def whole_number(value: Any) -> int | None:
    """Read an integer, or a float without a fraction; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if isinstance(value, int) or value.is_integer() else None


def request_parts(
    value: Struct | Mapping[str, Any], hook_name: str | None = None
) -> dict[str, Any]:
    """Read a request, or parts of one, that a hook returned."""
    parts = _read("llm_request", value, hook_name)
    if "toolConfig" in parts:
        parts["toolConfig"] = to_wire(tool_config_parts(parts["toolConfig"]))
    return parts


def response_parts(
    value: Struct | Mapping[str, Any], hook_name: str | None = None
) -> dict[str, Any]:
    """Read a response, or parts of one, that a hook returned; null empties it."""
    parts = _read("llm_response", value, hook_name)
    empty: dict[str, Any] = {"text": "", "candidates": []}
    return parts | {key: empty[key] for key in empty if parts.get(key, "") is None}


def tool_config_parts(value: Struct | Mapping[str, Any]) -> HookToolConfig:
    """Read a choice of tools that a hook returned."""
    parts = _read("toolConfig", value, None)
    mode, names = parts.get("mode") or None, parts.get("allowedFunctionNames")
    # A list restricts even when it is empty (protocol.md#merging).
    return HookToolConfig("NONE" if names == [] else mode, names)


def _read(name: str, value: Any, hook_name: str | None) -> dict[str, Any]:
    """Read a part of an output: an invalid value is ignored by itself, and logged."""
    if not isinstance(value, Struct | Mapping):
        kind = type(value).__name__
        raise TranslationError(f"hook output: expected an object, got {kind}")
    try:
        wire = as_plain(to_wire(value) if isinstance(value, Struct) else dict(value))
    except EncodingError as error:
        raise TranslationError(f"{name}: {error}") from error
    parts, warnings = read_part(name, wire)
    hook = f"hook {hook_name!r}" if hook_name else "a hook"
    for warning in warnings:
        logger.warning("%s returned %s", hook, warning)
    return parts


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
