"""The hooks around one model call: fire them and apply what they changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from hookline.config import Config
from hookline.log import logger
from hookline.protocol.results import ProcessedHookResult
from hookline.translators import pick_translator
from hookline.translators.passthrough import StableTranslator
from hookline.translators.sdk_objects import get
from hookline.translators.stable import HookTranslator, LLMMessage, to_wire

from .triggers import fire

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
