"""Apply what hooks said of a model call to the SDK's own objects.

Translators read foreign objects, which may raise anything: then the answer is left out
with a warning, and the request or response stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from hookline.config import Config
from hookline.log import logger
from hookline.results import ProcessedHookResult
from hookline.translators import pick_translator
from hookline.translators.fields import get
from hookline.translators.passthrough import StableTranslator
from hookline.translators.stable import HookTranslator, LLMMessage, to_wire

T = TypeVar("T")


class ToolSelectionOutcome(Struct, frozen=True):
    """A restriction of tools, on a request and as names."""

    request: Any
    tool_config: Any = None
    allowed_names: frozenset[str] | None = None


def choose_translator(
    config: Config, value: Any, given: HookTranslator | None
) -> HookTranslator | None:
    """The caller's, else the one whose SDK the value is of; None for neither."""
    if given is not None:
        return given
    return _or_else(None, lambda: pick_translator(value, config.translator))


def shown_request(how: HookTranslator | None, request: Any) -> Any:
    """The stable shape; what cannot be shown stays, for the handler to judge."""
    return _or_else(request, lambda: _sure(how).to_hook_llm_request(request))


def shown_response(how: HookTranslator | None, response: Any) -> Any:
    """The stable shape; what cannot be shown stays, for the handler to judge."""
    return _or_else(response, lambda: _sure(how).to_hook_llm_response(response))


def offered_names(how: HookTranslator | None, request: Any) -> list[str] | None:
    """The tools that a request offers; None where it is not known."""
    return _or_else(None, lambda: _sure(how).tool_names(request) or None)


def tools_of(request: Any) -> Any:
    """The tools of a request as they stand there."""
    found = get(request, "tools")
    return get(get(request, "config"), "tools") if found is None else found


def append_message(
    translator: HookTranslator, request: Any, text: str, role: str = "system"
) -> Any:
    """Add a message at the end of a request, as its SDK spells that role."""
    shown = translator.to_hook_llm_request(request)
    messages = [*shown.messages, LLMMessage(role, text)]
    parts = {"messages": [to_wire(message) for message in messages]}
    return translator.from_hook_llm_request(parts, request)


def with_system_message(
    how: HookTranslator | None, request: Any, text: str | None
) -> Any:
    """Hand a hook's system message to the model (seed 004 section 6.2)."""
    if text is None:
        return request
    return _applied(request, lambda: append_message(_sure(how), request, text))


def changed_request(
    how: HookTranslator | None, request: Any, verdict: ProcessedHookResult
) -> Any:
    """The request as hooks want it, with their context as its last message."""
    said = verdict.final_output
    if said is None:
        return request
    parts, context = said.llm_request, said.additional_context
    if parts is not None:
        name = _whose(verdict, "llm_request")
        request = _applied(
            request,
            lambda: _sure(how).from_hook_llm_request(parts, request, hook_name=name),
        )
    if context is None:
        return request
    return _applied(
        request, lambda: append_message(_sure(how), request, context, "user")
    )


def changed_response(
    how: HookTranslator | None, response: Any, verdict: ProcessedHookResult
) -> Any:
    """The response as hooks want it."""
    parts = verdict.final_output and verdict.final_output.llm_response
    if not parts:
        return response
    name = _whose(verdict, "llm_response")
    return _applied(
        response,
        lambda: _sure(how).from_hook_llm_response(parts, response, hook_name=name),
    )


def synthetic_response(
    how: HookTranslator | None, verdict: ProcessedHookResult
) -> Any | None:
    """The response that a hook gives in the model's place, if it gives one."""
    parts = verdict.final_output and verdict.final_output.llm_response
    if not parts:
        return None
    return _applied(None, lambda: _sure(how).from_hook_llm_response(parts))


def empty_response(how: HookTranslator | None) -> Any:
    """A response without a word, in the SDK's own type."""
    return _applied(None, lambda: _sure(how).from_hook_llm_response({"text": ""}))


def select_tools(
    how: HookTranslator | None, request: Any, verdict: ProcessedHookResult
) -> ToolSelectionOutcome:
    """Restrict a request's tools on the wire; the names hold in any case."""
    wanted = verdict.final_output and verdict.final_output.tool_config
    if not wanted:
        return ToolSelectionOutcome(request)
    allowed = _allowed(wanted)
    outcome = ToolSelectionOutcome(request, None, allowed)
    return _applied(outcome, lambda: _restricted(_sure(how), request, wanted, allowed))


def _restricted(
    how: HookTranslator,
    request: Any,
    wanted: dict[str, Any],
    allowed: frozenset[str] | None,
) -> ToolSelectionOutcome:
    offered = how.tool_names(request)
    if offered and allowed is not None and allowed.isdisjoint(offered):
        wanted = {"mode": "NONE", "allowedFunctionNames": []}
    elif allowed and not how.carries_names(wanted):
        request = how.limit_tools(request, allowed)
    tool_config = how.from_hook_tool_config(wanted, request)
    # A service refuses to choose among tools that it is not offered.
    if offered or isinstance(how, StableTranslator):
        request = how.from_hook_llm_request({"toolConfig": wanted}, request)
    return ToolSelectionOutcome(request, tool_config, allowed)


def _allowed(wanted: dict[str, Any]) -> frozenset[str] | None:
    if wanted.get("mode") == "NONE":
        return frozenset()
    return frozenset(wanted.get("allowedFunctionNames") or ()) or None


def _whose(verdict: ProcessedHookResult, field: str) -> str | None:
    """Name the hook that spoke last of a field."""
    names = [
        result.hook_name
        for result in verdict.aggregated.hook_results
        if result.output and field in result.output.hook_specific_output
    ]
    return names[-1] if names else None


def _sure(how: HookTranslator | None) -> HookTranslator:
    if how is None:
        raise LookupError("no translator knows this request or response")
    return how


def _or_else(default: T, make: Callable[[], T]) -> T:
    try:
        return make()
    # See above.
    except Exception:  # noqa: BLE001
        return default


def _applied(unchanged: T, make: Callable[[], T]) -> T:
    try:
        return make()
    # See above.
    except Exception as error:  # noqa: BLE001
        logger.warning("what a hook said of a model call was left out: %s", error)
        return unchanged
