"""The hooks around one model call: fire them and apply their changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct

from hookline.config import Config
from hookline.log import logger
from hookline.protocol.events import HookEventName
from hookline.protocol.results import ProcessedHookResult
from hookline.translators import pick_translator
from hookline.translators.passthrough import StableTranslator
from hookline.translators.sdk_objects import get
from hookline.translators.stable import HookTranslator, LLMMessage, to_wire

from .triggers import fire

T = TypeVar("T")
R = TypeVar("R", bound=Struct)


class BeforeModelHookResult(Struct, frozen=True, kw_only=True):
    """What hooks decided before a model call; a block or a stop sets ``blocked``."""

    blocked: bool = False
    reason: str | None = None
    synthetic_response: Any = None
    modified_request: Any = None
    """The request to send, with additional context; None if no hook had an output."""
    should_stop: bool = False
    stop_reason: str | None = None
    system_message: str | None = None
    suppress_output: bool = False
    ask: bool = False


class AfterModelHookResult(Struct, frozen=True, kw_only=True):
    """The response after the hooks; the same object if they changed nothing."""

    response: Any
    should_stop: bool = False
    stop_reason: str | None = None
    system_message: str | None = None
    suppress_output: bool = False


class BeforeToolSelectionHookResult(Struct, frozen=True, kw_only=True):
    """The tools that hooks allow for a model call."""

    tool_config: Any = None
    """In the SDK's type; None if no hook restricts anything."""
    tools: Any = None
    """The tools to offer, without those that the SDK's own config cannot exclude."""
    modified_request: Any = None
    """The request with both of them; None if no hook had an output."""
    allowed_names: frozenset[str] | None = None
    """The only tools that may be called; None means all."""
    should_stop: bool = False
    stop_reason: str | None = None
    system_message: str | None = None


async def fire_before_model_hook(
    config: Config, llm_request: Any, *, translator: HookTranslator | None = None
) -> BeforeModelHookResult:
    """Fire BeforeModel and apply its output to the request."""
    chosen = _translator_for(config, translator, llm_request)
    stable = _stable_request(chosen, llm_request)
    result = await fire(config, HookEventName.BeforeModel, stable)
    if result is None:
        return BeforeModelHookResult()
    changes: dict[str, Any] = {"reason": result.reason or result.stop_reason}
    if result.blocked or result.should_stop:
        changes["blocked"] = True
        changes["synthetic_response"] = _changed_response(chosen, None, result)
    else:
        changes["modified_request"] = _changed_request(chosen, llm_request, result)
    return _made(BeforeModelHookResult, result, **changes)


async def fire_after_model_hook(
    config: Config,
    llm_request: Any,
    llm_response: Any,
    *,
    translator: HookTranslator | None = None,
) -> AfterModelHookResult:
    """Fire AfterModel for a complete response and apply its output."""
    chosen = _translator_for(config, translator, llm_response)
    of_request = _translator_for(config, translator, llm_response, llm_request)
    request = _stable_request(of_request, llm_request)
    response = _try(
        llm_response, lambda: chosen.to_hook_llm_response(llm_response), quiet=True
    )
    result = await fire(config, HookEventName.AfterModel, request, response)
    if result is None:
        return AfterModelHookResult(response=llm_response)
    changed = _changed_response(chosen, llm_response, result)
    return _made(AfterModelHookResult, result, response=changed)


async def fire_before_tool_selection_hook(
    config: Config,
    llm_request: Any,
    *,
    available_tools: list[Any] | None = None,
    translator: HookTranslator | None = None,
) -> BeforeToolSelectionHookResult:
    """Fire BeforeToolSelection and restrict the tools of the request."""
    chosen = _translator_for(config, translator, llm_request)
    stable = _stable_request(chosen, llm_request)
    if available_tools is None:
        available_tools = _try(
            None, lambda: chosen.tool_names(llm_request) or None, quiet=True
        )
    result = await fire(
        config, HookEventName.BeforeToolSelection, stable, available_tools
    )
    if result is None:
        return BeforeToolSelectionHookResult()
    wanted = (result.final_output and result.final_output.tool_config) or {}
    allowed = _allowed_names(wanted)
    request, tool_config = _try(
        (llm_request, None), lambda: _restricted(chosen, llm_request, wanted, allowed)
    )
    tools = get(request, "tools")
    return _made(
        BeforeToolSelectionHookResult,
        result,
        tool_config=tool_config,
        tools=get(get(request, "config"), "tools") if tools is None else tools,
        modified_request=request,
        allowed_names=allowed,
    )


def _made(kind: type[R], result: ProcessedHookResult, **own: Any) -> R:
    """A result for the caller; fields of the same name are those of the event's."""
    names = [name for name in kind.__struct_fields__ if hasattr(result, name)]
    return kind(**{name: getattr(result, name) for name in names} | own)


def with_message(
    translator: HookTranslator, request: Any, text: str | None, role: str = "system"
) -> Any:
    """Append a message to a request, by default a system one (seed 004 section 6.2)."""
    if text is None:
        return request

    def appended() -> Any:
        messages = translator.to_hook_llm_request(request).messages
        parts = [to_wire(message) for message in (*messages, LLMMessage(role, text))]
        return translator.from_hook_llm_request({"messages": parts}, request)

    return _try(request, appended)


def empty_response(translator: HookTranslator) -> Any:
    """A response without text, in the SDK's own type."""
    return _try(None, lambda: translator.from_hook_llm_response({"text": ""}))


def _translator_for(
    config: Config, given: HookTranslator | None, *values: Any
) -> HookTranslator:
    """The given translator, or the one for the first value of a known SDK."""
    found = given
    for value in values:
        found = found or _try(
            None, partial(pick_translator, value, config.translator), quiet=True
        )
    # This one cannot read an unknown value either: the handler will report it.
    return found or StableTranslator()


def _stable_request(translator: HookTranslator, request: Any) -> Any:
    """The stable shape; an unreadable request as it is, for the handler to report."""
    return _try(request, lambda: translator.to_hook_llm_request(request), quiet=True)


def _changed_request(
    translator: HookTranslator, request: Any, result: ProcessedHookResult
) -> Any:
    output = result.final_output
    if output is None:
        return request
    parts = output.llm_request
    if parts is not None:
        name = _last_hook_with(result, "llm_request")
        request = _try(
            request,
            lambda: translator.from_hook_llm_request(parts, request, hook_name=name),
        )
    return with_message(translator, request, output.additional_context, "user")


def _changed_response(
    translator: HookTranslator, response: Any, result: ProcessedHookResult
) -> Any:
    parts = result.final_output and result.final_output.llm_response
    if not parts:
        return response
    name = _last_hook_with(result, "llm_response")
    unreadable = object()
    changed = _try(
        unreadable,
        lambda: translator.from_hook_llm_response(parts, response, hook_name=name),
        quiet=True,
    )
    if changed is not unreadable:
        return changed
    # A response that cannot be read must not escape its replacement.
    return _try(response, lambda: translator.from_hook_llm_response(parts))


def _restricted(
    translator: HookTranslator,
    request: Any,
    wanted: dict[str, Any],
    allowed: frozenset[str] | None,
) -> tuple[Any, Any]:
    """The request with only the allowed tools, and the SDK's tool config."""
    if not wanted:
        return request, None
    offered = translator.tool_names(request)
    if offered and allowed is not None and allowed.isdisjoint(offered):
        wanted = {"mode": "NONE", "allowedFunctionNames": []}
    elif allowed and not translator.carries_names(wanted):
        request = translator.limit_tools(request, allowed)
    tool_config = translator.from_hook_tool_config(wanted, request)
    # A service rejects a tool choice in a request without tools.
    if offered or isinstance(translator, StableTranslator):
        request = translator.from_hook_llm_request({"toolConfig": wanted}, request)
    return request, tool_config


def _allowed_names(wanted: dict[str, Any]) -> frozenset[str] | None:
    if wanted.get("mode") == "NONE":
        return frozenset()
    return frozenset(wanted.get("allowedFunctionNames") or ()) or None


def _last_hook_with(result: ProcessedHookResult, field: str) -> str | None:
    names = [
        hook.hook_name
        for hook in result.aggregated.hook_results
        if hook.output and field in hook.output.hook_specific_output
    ]
    return names[-1] if names else None


def _try(default: T, make: Callable[[], T], *, quiet: bool = False) -> T:
    try:
        return make()
    # Requests and responses are the SDK's objects, and may raise anything.
    except Exception as error:  # noqa: BLE001
        if not quiet:
            logger.warning("a hook's change to a model call was ignored: %s", error)
        return default
