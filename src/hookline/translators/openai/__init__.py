"""The openai package: Chat Completions and the Responses API.

Requests are the keyword arguments of ``create`` as a dict; ``messages`` or ``input``
tells the two APIs apart. Responses are the SDK's objects, or the same as dicts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from hookline.translators.fields import get, wrong
from hookline.translators.requests import RequestFormat, change_request, show_request
from hookline.translators.responses import (
    ResponseFormat,
    change_response,
    show_response,
)
from hookline.translators.returned import tool_config_parts
from hookline.translators.stable import HookToolConfig, LLMRequest, LLMResponse

from .chat import ChatRequests, ChatResponses, is_completion
from .items import ItemRequests, ItemResponses, is_response
from .stream import assemble
from .tools import limit_offered, offered_names, read_tool_choice, write_tool_choice

_ITEM_KEYS = frozenset(
    {"input", "instructions", "previous_response_id", "conversation", "prompt"}
)


class OpenAITranslator:
    """The ``HookTranslator`` of the openai package."""

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        """Show the arguments of either ``create``."""
        return show_request(_request_format(request), request)

    def from_hook_llm_request(
        self,
        hook_request: LLMRequest | dict[str, Any],
        base_request: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply what a hook changed; without a base it is Chat Completions."""
        form = ChatRequests() if base_request is None else _request_format(base_request)
        return change_request(form, hook_request, base_request, hook_name)

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Show a ChatCompletion or a Response."""
        return show_response(_response_format(response), response)

    def from_hook_llm_response(
        self,
        hook_response: LLMResponse | dict[str, Any],
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Build the response that a hook wants; the base decides between the APIs."""
        form: ResponseFormat = ChatResponses()
        if base_response is not None:
            form = _response_format(base_response)
        return change_response(form, hook_response, base_response, hook_name)

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Show a ``tool_choice`` of either API."""
        return read_tool_choice(tool_config)

    def from_hook_tool_config(
        self,
        hook_tool_config: HookToolConfig | dict[str, Any],
        base_request: Any = None,
    ) -> Any:
        """Write a ``tool_choice``, for Chat Completions unless the base says else."""
        flat = base_request is not None and _is_items(base_request)
        found = tool_config_parts(hook_tool_config)
        return write_tool_choice(found, get(base_request, "tools"), flat=flat)

    def carries_names(self, hook_tool_config: HookToolConfig | dict[str, Any]) -> bool:
        """``allowed_tools`` holds names under every mode."""
        return tool_config_parts(hook_tool_config).mode != "NONE"

    def tool_names(self, request: Any) -> list[str]:
        """Name the functions and custom tools that a request offers."""
        return offered_names(_arguments(request))

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """Leave all other functions and custom tools out."""
        return limit_offered(_arguments(request), names)

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Make one ChatCompletion of chunks, or one Response of events."""
        return assemble(chunks)


def _arguments(request: Any) -> Mapping[str, Any]:
    if not isinstance(request, Mapping):
        raise wrong("request", "the arguments of create() as a dict", request)
    return request


def _is_items(request: Any) -> bool:
    arguments = _arguments(request)
    return "messages" not in arguments and not _ITEM_KEYS.isdisjoint(arguments)


def _request_format(request: Any) -> RequestFormat:
    if _is_items(request):
        return ItemRequests()
    if "messages" not in request:
        raise wrong("request", "a dict with messages or input", request)
    return ChatRequests()


def _response_format(response: Any) -> ResponseFormat:
    if is_completion(response):
        return ChatResponses()
    if is_response(response):
        return ItemResponses()
    raise wrong("response", "a ChatCompletion or a Response", response)


__all__ = ["OpenAITranslator"]
