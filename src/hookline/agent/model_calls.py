"""The hooks around one model call: fire them and apply their changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct

from hookline._internal.log import logger
from hookline.protocol.events import HookEventName
from hookline.protocol.results import ProcessedHookResult
from hookline.translators import pick_translator
from hookline.translators.base import merged_tool_config
from hookline.translators.changes import RequestChanges, request_changes
from hookline.translators.shape import HookTranslator, LLMMessage, to_wire
from hookline.translators.stable import StableTranslator
from hookline.translators.values import get

from .triggers import ConfigOrEvents, SessionEvents, events_of, fire

T = TypeVar("T")
R = TypeVar("R", bound=Struct)


class BeforeModelHookResult(Struct, frozen=True, kw_only=True):
    """What hooks decided before a model call; a block or a stop sets ``blocked``."""

    blocked: bool = False
    reason: str | None = None
    synthetic_response: Any = None
    modified_request: Any = None
    """The request to send, with additional context; None if no hook had an output."""
    allowed_names: frozenset[str] | None = None
    """The only tools that may be called; None means all."""
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
    """The tools to offer, without those that the SDK's own config cannot exclude.

    None if the request offers none, an empty list if hooks left none of them.
    """
    modified_request: Any = None
    """The request with both of them; None if no hook had an output."""
    allowed_names: frozenset[str] | None = None
    """The only tools that may be called; None means all."""
    should_stop: bool = False
    stop_reason: str | None = None
    system_message: str | None = None


async def fire_before_model_hook(
    config: ConfigOrEvents,
    llm_request: Any,
    *,
    translator: HookTranslator | None = None,
) -> BeforeModelHookResult:
    """Fire BeforeModel and apply its output to the request."""
    chosen = _translator_for(config, translator, llm_request)
    stable = _stable_request(chosen, llm_request)
    result = await fire(config, HookEventName.BeforeModel, {"llm_request": stable})
    if result is None:
        return BeforeModelHookResult()
    changes: dict[str, Any] = {"reason": result.reason or result.stop_reason}
    if result.blocked or result.should_stop:
        changes["blocked"] = True
        api = _api_for(chosen, llm_request)
        changes["synthetic_response"] = _changed_response(api, None, result)
    elif (changed := _changed_request(chosen, llm_request, result)) is not None:
        changes["modified_request"], changes["allowed_names"] = changed
    else:
        # Sent as it was it could hold what the hook took out.
        changes = {"blocked": True, "reason": "A hook's change could not be applied"}
    return _result_of(BeforeModelHookResult, result, **changes)


async def fire_after_model_hook(
    config: ConfigOrEvents,
    llm_request: Any,
    llm_response: Any,
    *,
    translator: HookTranslator | None = None,
) -> AfterModelHookResult:
    """Fire AfterModel for a complete response and apply its output."""
    chosen = _translator_for(config, translator, llm_response, llm_request)
    request = _stable_request(chosen, llm_request)
    response = _try(
        llm_response, lambda: chosen.to_hook_llm_response(llm_response), quiet=True
    )
    fields = {"llm_request": request, "llm_response": response}
    result = await fire(config, HookEventName.AfterModel, fields)
    if result is None:
        return AfterModelHookResult(response=llm_response)
    is_unread = response is llm_response
    api = _api_for(chosen, llm_request) if is_unread else chosen
    changed = _changed_response(api, llm_response, result)
    return _result_of(AfterModelHookResult, result, response=changed)


async def fire_before_tool_selection_hook(
    config: ConfigOrEvents,
    llm_request: Any,
    *,
    available_tools: list[Any] | None = None,
    translator: HookTranslator | None = None,
) -> BeforeToolSelectionHookResult:
    """Fire BeforeToolSelection and restrict the tools of the request."""
    chosen = _translator_for(config, translator, llm_request)
    fields: dict[str, Any] = {"llm_request": _stable_request(chosen, llm_request)}
    if available_tools is None:
        available_tools = _try(
            None, lambda: chosen.tool_names(llm_request) or None, quiet=True
        )
    if available_tools is not None:
        fields["available_tools"] = available_tools
    result = await fire(config, HookEventName.BeforeToolSelection, fields)
    if result is None:
        return BeforeToolSelectionHookResult()
    hook_tool_config = (result.final_output and result.final_output.tool_config) or {}
    allowed = _allowed_names(hook_tool_config)
    request, tool_config = _try(
        (llm_request, None),
        lambda: _restricted(chosen, llm_request, hook_tool_config, allowed),
    )
    tools = _tools_of(request)
    if tools is None and _tools_of(llm_request) is not None:
        tools = []  # None would read as no change
    return _result_of(
        BeforeToolSelectionHookResult,
        result,
        tool_config=tool_config,
        tools=tools,
        modified_request=request,
        allowed_names=allowed,
    )


class ModelOutcome(Struct, frozen=True, kw_only=True):
    """The answer of a model after its hooks."""

    response: Any
    """The same object if hooks changed nothing."""
    text: str
    changed: bool
    suppress_display: bool = False
    stop_reason: str | None = None
    system_message: str | None = None


class HookedModelCall(Struct, kw_only=True):
    """One model call: send ``request`` unless the call is refused.

    ``begin_model`` of a session or a turn makes it; ``finish`` shows hooks the answer.
    """

    session: SessionEvents
    given: Any
    """The request before the hooks."""
    request: Any
    """The request to send."""
    translator: HookTranslator
    refused: bool = False
    """Whether the model must not be called."""
    reason: str | None = None
    """Why the model must not be called."""
    stop_reason: str | None = None
    """Set if a hook stops the agent."""
    response: Any = None
    """The answer that hooks give in the model's place; None if there is none."""
    allowed_names: frozenset[str] | None = None
    """The only tools to offer, and to accept calls of; None means all."""
    system_message: str | None = None
    """What hooks that refused the call say to the model."""
    suppress_display: bool = False
    on_finish: Callable[[ModelOutcome], None] | None = None

    @property
    def changes(self) -> RequestChanges:
        """What hooks changed in the request, for a framework that edits its own."""
        return changes(self.given, self.request, translator=self.translator)

    @property
    def text(self) -> str:
        """The text of the answer in the model's place."""
        return self._text_of(self.response)

    async def finish(self, response: Any) -> ModelOutcome:
        """Show hooks the complete answer, and apply their output."""
        after = await fire_after_model_hook(
            self.session, self.request, response, translator=self.translator
        )
        outcome = ModelOutcome(
            response=after.response,
            text=self._text_of(after.response),
            changed=after.response is not response,
            suppress_display=after.suppress_output,
            stop_reason=after.stop_reason,
            system_message=after.system_message,
        )
        if self.on_finish is not None:
            self.on_finish(outcome)
        return outcome

    def _text_of(self, response: Any) -> str:
        # Where its own API cannot hold what hooks answered, it is in the stable shape.
        for reader in () if response is None else (self.translator, StableTranslator()):
            read = partial(reader.to_hook_llm_response, response)
            if (stable := _try(None, read, quiet=True)) is not None:
                return stable.text or ""
        return ""


async def begin_model(
    session: SessionEvents,
    request: Any,
    available_tools: list[Any] | None = None,
    translator: HookTranslator | None = None,
    *,
    notes: Iterable[str] = (),
    ended: str | None = None,
) -> HookedModelCall:
    """Fire BeforeToolSelection and BeforeModel, and apply their outputs.

    ``notes`` are system messages to add; ``ended`` says why hooks ended the run.
    """
    chosen = _translator_for(session, translator, request)
    call = HookedModelCall(
        session=session, given=request, request=request, translator=chosen
    )
    if ended is not None:
        call.refused, call.reason, call.stop_reason = True, ended, ended
        return call
    for note in notes:
        request = call.request = with_message(chosen, request, note)
    selected = await fire_before_tool_selection_hook(
        session, request, available_tools=available_tools, translator=chosen
    )
    if selected.should_stop:
        call.refused = True
        call.reason = call.stop_reason = selected.stop_reason
        call.system_message = selected.system_message
        return call
    if selected.modified_request is not None:
        request = selected.modified_request
    before = await fire_before_model_hook(session, request, translator=chosen)
    call.refused, call.reason = before.blocked, before.reason
    call.stop_reason, call.response = before.stop_reason, before.synthetic_response
    call.suppress_display = before.suppress_output
    if call.refused:
        call.system_message = before.system_message
        return call

    if before.modified_request is not None:
        request = before.modified_request
    names = [n for n in (selected.allowed_names, before.allowed_names) if n is not None]
    allowed = call.allowed_names = frozenset.intersection(*names) if names else None
    if allowed is not None and before.allowed_names not in (None, allowed):
        # BeforeModel chose tools that the selection had left out.
        present = chosen.to_hook_llm_request(request).tool_config
        hook_tool_config = {} if present is None else to_wire(present)
        hook_tool_config |= {"allowedFunctionNames": sorted(allowed)}
        request, _ = _restricted(chosen, request, hook_tool_config, allowed)
    for message in (selected.system_message, before.system_message):
        request = with_message(chosen, request, message)
    call.request = request
    return call


def changes(
    request: Any, modified: Any, *, translator: HookTranslator | None = None
) -> RequestChanges:
    """What differs between a request and ``modified``, which hooks made of it.

    Both may be an SDK's own or in the stable shape; indexes count stable messages.
    """
    if modified is request:
        return RequestChanges()
    chosen = translator or pick_translator(request)
    before = chosen.to_hook_llm_request(request)
    return request_changes(before, chosen.to_hook_llm_request(modified))


def with_message(
    translator: HookTranslator, request: Any, text: str | None, role: str = "system"
) -> Any:
    """Append a message to a request, by default a system one (protocol.md#callers)."""
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
    config: ConfigOrEvents, translator: HookTranslator | None, *values: Any
) -> HookTranslator:
    """The given translator, or the one for the first value of a known SDK."""
    name = events_of(config).config.translator
    for value in values:
        pick = partial(pick_translator, value, name)
        translator = translator or _try(None, pick, quiet=True)
    # This one cannot read an unknown value either: the handler will report it.
    return translator or StableTranslator()


def _api_for(translator: HookTranslator, request: Any) -> HookTranslator:
    """The API of a request, whose responses have a type of their own."""
    return _try(translator, lambda: translator.api_for(request), quiet=True)


def _stable_request(translator: HookTranslator, request: Any) -> Any:
    """The stable shape; an unreadable request as it is, for the handler to report."""
    return _try(request, lambda: translator.to_hook_llm_request(request), quiet=True)


def _changed_request(
    translator: HookTranslator, request: Any, result: ProcessedHookResult
) -> tuple[Any, frozenset[str] | None] | None:
    """The request to send and the only tools that may be called; None if it fails."""
    output = result.final_output
    if output is None:
        return request, None
    parts = output.llm_request or {}

    def changed() -> tuple[Any, frozenset[str] | None]:
        if not parts:
            return request, None
        others = {key: part for key, part in parts.items() if key != "toolConfig"}
        name = _last_hook_with(result, "llm_request")
        present = translator.to_hook_llm_request(request).tool_config
        modified = translator.from_hook_llm_request(others, request, hook_name=name)
        tool_config = merged_tool_config(present, parts.get("toolConfig"))
        if tool_config is None:
            return modified, None
        hook_tool_config = to_wire(tool_config)
        allowed = _allowed_names(hook_tool_config)
        return _restricted(translator, modified, hook_tool_config, allowed)[0], allowed

    if (applied := _try(None, changed)) is None:
        return None
    modified, allowed = applied
    context = output.additional_context
    return with_message(translator, modified, context, "user"), allowed


def _changed_response(
    translator: HookTranslator, response: Any, result: ProcessedHookResult
) -> Any:
    """The response that hooks want; their answer never gives way to the original."""
    parts = result.final_output and result.final_output.llm_response
    if not parts:
        return response
    changed = None
    hooks = result.aggregated.hook_results
    # Where a failure policy answered, nothing of the original may stay.
    is_closed = any(hook.closed for hook in hooks)
    if not is_closed and (hooks or result.aggregated.success):
        name = _last_hook_with(result, "llm_response")
        apply = partial(translator.from_hook_llm_response, hook_name=name)
        changed = _try(None, partial(apply, parts, response), quiet=True)
    if changed is None:
        changed = _try(None, partial(translator.replaced_response, parts, response))
    if changed is None:
        changed = StableTranslator().replaced_response(parts, response)
    return changed


def _restricted(
    translator: HookTranslator,
    request: Any,
    hook_tool_config: dict[str, Any],
    allowed: frozenset[str] | None,
) -> tuple[Any, Any]:
    """The request with only the allowed tools, and the SDK's tool config."""
    if not hook_tool_config:
        return request, None
    offered = translator.tool_names(request)
    if allowed is not None:
        if offered and allowed.isdisjoint(offered):
            allowed, hook_tool_config = (
                frozenset(),
                {"mode": "NONE", "allowedFunctionNames": []},
            )
        is_carried = not allowed or translator.carries_names(hook_tool_config)
        # What a service runs itself goes in any case: no tool config excludes it.
        remaining = {*offered, *allowed} if is_carried else allowed
        request = translator.limit_tools(request, remaining)
    tool_config = translator.from_hook_tool_config(hook_tool_config, request)
    # A service rejects a tool choice in a request without tools.
    if offered or isinstance(translator, StableTranslator):
        change = partial(
            translator.from_hook_llm_request, {"toolConfig": hook_tool_config}
        )
        changed = _try(None, partial(change, request))
        # Without a choice of tools there must be none to choose from.
        request = translator.limit_tools(request, ()) if changed is None else changed
    return request, tool_config


def _allowed_names(hook_tool_config: dict[str, Any]) -> frozenset[str] | None:
    if hook_tool_config.get("mode") == "NONE":
        return frozenset()
    names = hook_tool_config.get("allowedFunctionNames")
    return None if names is None else frozenset(names)


def _tools_of(request: Any) -> Any:
    tools = get(request, "tools")
    return get(get(request, "config"), "tools") if tools is None else tools


def _last_hook_with(result: ProcessedHookResult, field: str) -> str | None:
    names = [
        hook.hook_name
        for hook in result.aggregated.hook_results
        if hook.output and field in hook.output.hook_specific_output
    ]
    return names[-1] if names else None


def _result_of(kind: type[R], result: ProcessedHookResult, **fields: Any) -> R:
    """A result for the caller; fields of the same name are those of the event's."""
    names = [name for name in kind.__struct_fields__ if hasattr(result, name)]
    return kind(**{name: getattr(result, name) for name in names} | fields)


def _try(default: T, make: Callable[[], T], *, quiet: bool = False) -> T:
    try:
        return make()
    # Requests and responses are the SDK's objects, and may raise anything.
    except Exception as error:  # noqa: BLE001
        if not quiet:
            logger.warning("a hook's change to a model call was ignored: %s", error)
        return default
