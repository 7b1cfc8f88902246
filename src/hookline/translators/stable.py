"""The one shape in which hooks see model calls, whatever SDK the agent uses.

Text only, and spelled on the wire as the Gemini CLI hooks know it. A part that is
absent is absent on the wire too. ``HookTranslator`` is the seam: one per SDK.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Protocol

import msgspec
from msgspec import Struct


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
