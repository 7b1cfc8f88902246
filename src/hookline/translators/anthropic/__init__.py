"""The anthropic package: Messages.

Requests are the keyword arguments of ``create`` as a dict; responses are the SDK's
``Message`` objects, or the same as dicts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from hookline.translators.fields import get, wrong
from hookline.translators.requests import change_request, show_request
from hookline.translators.responses import change_response, show_response
from hookline.translators.returned import tool_config_parts
from hookline.translators.stable import HookToolConfig, LLMRequest, LLMResponse

from .messages import MessageRequests, MessageResponses
from .stream import assemble
from .tools import (
    carries_names,
    limit_offered,
    offered_names,
    read_tool_choice,
    write_tool_choice,
)

_REQUESTS = MessageRequests()
_RESPONSES = MessageResponses()


class AnthropicTranslator:
    """The ``HookTranslator`` of the anthropic package."""

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        """Show the arguments of ``messages.create``."""
        return show_request(_REQUESTS, _arguments(request))

    def from_hook_llm_request(
        self,
        hook_request: LLMRequest | dict[str, Any],
        base_request: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply what a hook changed."""
        base = None if base_request is None else _arguments(base_request)
        return change_request(_REQUESTS, hook_request, base, hook_name)

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Show a Message."""
        return show_response(_RESPONSES, response)

    def from_hook_llm_response(
        self,
        hook_response: LLMResponse | dict[str, Any],
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Build the Message that a hook wants."""
        return change_response(_RESPONSES, hook_response, base_response, hook_name)

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Show a ``tool_choice``."""
        return read_tool_choice(tool_config)

    def from_hook_tool_config(
        self,
        hook_tool_config: HookToolConfig | dict[str, Any],
        base_request: Any = None,
    ) -> Any:
        """Write a ``tool_choice``, as parallel as that of the base."""
        found = tool_config_parts(hook_tool_config)
        return write_tool_choice(found, get(base_request, "tool_choice"))

    def carries_names(self, hook_tool_config: HookToolConfig | dict[str, Any]) -> bool:
        """Only one name, and only under ``ANY``."""
        return carries_names(tool_config_parts(hook_tool_config))

    def tool_names(self, request: Any) -> list[str]:
        """Name the tools that a request offers."""
        return offered_names(_arguments(request))

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """Leave all other tools out."""
        return limit_offered(_arguments(request), names)

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Make one Message of the events of a stream."""
        return assemble(chunks)


def _arguments(request: Any) -> Mapping[str, Any]:
    if not isinstance(request, Mapping) or "messages" not in request:
        raise wrong("request", "the arguments of messages.create() as a dict", request)
    return request


__all__ = ["AnthropicTranslator"]
