"""google-genai: its own objects or the same as dicts, to the stable shape and back.

Dicts are read and changed without the SDK being installed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from hookline.translators.requests import change_request, show_request
from hookline.translators.responses import change_response, show_response
from hookline.translators.returned import tool_config_parts
from hookline.translators.stable import HookToolConfig, LLMRequest, LLMResponse

from .request import GenAIRequests, GenerateContentRequest
from .response import GenAIResponses
from .stream import assemble
from .tools import (
    carries_names,
    function_names,
    limit_functions,
    read_tool_config,
    write_tool_config,
)

_REQUESTS = GenAIRequests()
_RESPONSES = GenAIResponses()


class GenAITranslator:
    """The ``HookTranslator`` of google-genai."""

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        """Show a ``GenerateContentRequest`` or the same as a dict."""
        return show_request(_REQUESTS, request)

    def from_hook_llm_request(
        self,
        hook_request: LLMRequest | dict[str, Any],
        base_request: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply what a hook changed."""
        return change_request(_REQUESTS, hook_request, base_request, hook_name)

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Show a ``GenerateContentResponse`` or the same as a dict."""
        return show_response(_RESPONSES, response)

    def from_hook_llm_response(
        self,
        hook_response: LLMResponse | dict[str, Any],
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Build the response that a hook wants."""
        return change_response(_RESPONSES, hook_response, base_response, hook_name)

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Show a ``ToolConfig``."""
        return read_tool_config(tool_config)

    def from_hook_tool_config(
        self,
        hook_tool_config: HookToolConfig | dict[str, Any],
        base_request: Any = None,
    ) -> Any:
        """Write a ``ToolConfig``; names go in only where the service heeds them."""
        found = tool_config_parts(hook_tool_config)
        return write_tool_config(found, None, isinstance(base_request, dict))

    def carries_names(self, hook_tool_config: HookToolConfig | dict[str, Any]) -> bool:
        """Only under ``ANY`` does the service heed allowed names."""
        return carries_names(tool_config_parts(hook_tool_config).mode)

    def tool_names(self, request: Any) -> list[str]:
        """Name the functions that a request offers."""
        return function_names(request)

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """Leave all other functions out."""
        return limit_functions(request, names)

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Make one response of the chunks of ``generate_content_stream``."""
        return assemble(chunks)


__all__ = ["GenAITranslator", "GenerateContentRequest"]
