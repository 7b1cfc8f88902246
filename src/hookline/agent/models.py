"""Model calls that obey their hooks: ask, and give the answer in the SDK's own types.

Requests and responses are the caller's objects, of whichever SDK; hooks see the stable
shape. No trigger raises, but for cancellation: an answer that cannot be applied is left
out with a warning.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from hookline.config import Config
from hookline.translators.stable import HookTranslator

from .applying import (
    changed_request,
    changed_response,
    choose_translator,
    offered_names,
    select_tools,
    shown_request,
    shown_response,
    synthetic_response,
    tools_of,
)
from .firer import fire


class BeforeModelHookResult(Struct, frozen=True, kw_only=True):
    """What hooks say before a model call; a block or a stop gives ``blocked``."""

    blocked: bool = False
    reason: str | None = None
    synthetic_response: Any = None
    modified_request: Any = None
    """The request to send, additional context included; None where no hook spoke."""
    should_stop: bool = False
    stop_reason: str | None = None
    system_message: str | None = None
    suppress_output: bool = False
    ask: bool = False


class AfterModelHookResult(Struct, frozen=True, kw_only=True):
    """What hooks make of a response; the very object where they leave it alone."""

    response: Any
    should_stop: bool = False
    stop_reason: str | None = None
    system_message: str | None = None
    suppress_output: bool = False


class BeforeToolSelectionHookResult(Struct, frozen=True, kw_only=True):
    """Which tools hooks leave a model call."""

    tool_config: Any = None
    """As the SDK spells it; None where no hook restricts anything."""
    tools: Any = None
    """The tools to offer, without those that the SDK's own list cannot rule out."""
    modified_request: Any = None
    """The request with both of them; None where no hook spoke."""
    allowed_names: frozenset[str] | None = None
    """The only tools that may be called; None is: all of them."""
    should_stop: bool = False
    stop_reason: str | None = None
    system_message: str | None = None


async def fire_before_model_hook(
    config: Config, llm_request: Any, *, translator: HookTranslator | None = None
) -> BeforeModelHookResult:
    """Ask the hooks about a model call."""
    how = choose_translator(config, llm_request, translator)
    shown = shown_request(how, llm_request)
    verdict = await fire(config, lambda firer: firer.fire_before_model_event(shown))
    if verdict is None:
        return BeforeModelHookResult()
    ends = verdict.blocked or verdict.should_stop
    return BeforeModelHookResult(
        blocked=ends,
        reason=verdict.reason or verdict.stop_reason,
        synthetic_response=synthetic_response(how, verdict) if ends else None,
        modified_request=None if ends else changed_request(how, llm_request, verdict),
        should_stop=verdict.should_stop,
        stop_reason=verdict.stop_reason,
        system_message=verdict.system_message,
        suppress_output=verdict.suppress_output,
        ask=verdict.ask,
    )


async def fire_after_model_hook(
    config: Config,
    llm_request: Any,
    llm_response: Any,
    *,
    translator: HookTranslator | None = None,
) -> AfterModelHookResult:
    """Show the hooks a whole response, and take what they make of it."""
    how = choose_translator(config, llm_response, translator)
    request = shown_request(choose_translator(config, llm_request, how), llm_request)
    response = shown_response(how, llm_response)
    verdict = await fire(
        config, lambda firer: firer.fire_after_model_event(request, response)
    )
    if verdict is None:
        return AfterModelHookResult(response=llm_response)
    return AfterModelHookResult(
        response=changed_response(how, llm_response, verdict),
        should_stop=verdict.should_stop,
        stop_reason=verdict.stop_reason,
        system_message=verdict.system_message,
        suppress_output=verdict.suppress_output,
    )


async def fire_before_tool_selection_hook(
    config: Config,
    llm_request: Any,
    *,
    available_tools: list[Any] | None = None,
    translator: HookTranslator | None = None,
) -> BeforeToolSelectionHookResult:
    """Ask the hooks which tools a model call may use."""
    how = choose_translator(config, llm_request, translator)
    shown = shown_request(how, llm_request)
    if available_tools is None:
        available_tools = offered_names(how, llm_request)
    verdict = await fire(
        config,
        lambda firer: firer.fire_before_tool_selection_event(shown, available_tools),
    )
    if verdict is None:
        return BeforeToolSelectionHookResult()
    selection = select_tools(how, llm_request, verdict)
    return BeforeToolSelectionHookResult(
        tool_config=selection.tool_config,
        tools=tools_of(selection.request),
        modified_request=selection.request,
        allowed_names=selection.allowed_names,
        should_stop=verdict.should_stop,
        stop_reason=verdict.stop_reason,
        system_message=verdict.system_message,
    )
