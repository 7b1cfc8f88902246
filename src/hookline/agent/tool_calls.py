"""The hooks around one tool call: before, run, after."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
)
from inspect import isawaitable
from typing import Any

from msgspec import Struct, structs

from hookline.config import Config
from hookline.log import logger
from hookline.protocol.events import HookEventName
from hookline.protocol.jsontext import encode
from hookline.protocol.outputs import HookOutput
from hookline.protocol.results import ProcessedHookResult
from hookline.settings.model import OnFailure

from .triggers import fire, fire_notification_hook


class ToolResult(Struct, frozen=True, kw_only=True):
    """What a tool call gave; a refused call has a result too."""

    llm_content: Any = ""
    return_display: Any = None
    """None: the person is shown what the model sees."""
    metadata: dict[str, Any] | None = None
    error: str | None = None
    suppress_display: bool = False
    stop_reason: str | None = None
    """Set if a hook stops the agent."""

    @property
    def text(self) -> str:
        """The model-facing content as text."""
        return content_text(self.llm_content)

    @property
    def display(self) -> str:
        """What to show a person; empty if a hook suppresses it."""
        return "" if self.suppress_display else content_text(self._display)

    @property
    def _display(self) -> Any:
        return self.llm_content if self.return_display is None else self.return_display

    def to_wire(self) -> dict[str, Any]:
        """The ``tool_response`` that AfterTool hooks get."""
        wire: dict[str, Any] = {
            "llmContent": self.llm_content,
            "returnDisplay": self._display,
        }
        if self.metadata is not None:
            wire["metadata"] = self.metadata
        if self.error is not None:
            wire["error"] = {"message": self.error}
        return wire

    def with_additions(self, additions: list[str]) -> ToolResult:
        """Append texts to what the model sees, each after a blank line."""
        content = self.llm_content
        if not additions:
            return self
        if isinstance(content, Iterator | AsyncIterator):
            # Reading it here would take the items away from its consumer.
            logger.warning("a stream cannot carry what hooks add: %s", additions)
            return self
        if isinstance(content, list):
            extended: Any = [*content, *additions]
        else:
            extended = "\n\n".join(filter(None, [content_text(content), *additions]))
        display = "" if self._display is None else self._display
        return structs.replace(self, llm_content=extended, return_display=display)


def as_result(value: Any) -> ToolResult:
    """Wrap what a tool returned, unless it is a ToolResult."""
    return value if isinstance(value, ToolResult) else ToolResult(llm_content=value)


def refused_result(reason: str, **more: Any) -> ToolResult:
    """The result of a call that did not run: its content is the reason."""
    return ToolResult(llm_content=reason, return_display=reason, error=reason, **more)


def not_run(reason: str) -> ToolResult:
    """The result of a call after the agent was stopped."""
    return refused_result(f"Not run: {reason}")


def failed(error: BaseException) -> ToolResult:
    """The result of a tool that raised."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ToolResult(llm_content=f"Error: {text}", error=text)


def not_allowed(name: str, allowed: Collection[str]) -> str:
    """Why a call outside the allowed names is refused."""
    names = ", ".join(sorted(allowed)) or "none"
    return f"Tool {name!r} is not allowed now (allowed: {names})"


def annotation(message: str) -> str:
    """Mark a text as a system message (seed 004 section 6.2)."""
    return f"[System] {message}"


def content_text(value: Any) -> str:
    """A string as it is, None as an empty string, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else encode(value).decode()


ToolInput = dict[str, Any]
_NO_QUESTION = "a hook asks for a person's decision"
Execute = Callable[[ToolInput], Any]
"""Runs the tool with the input after the hooks; plain or async."""


class Confirmation(Struct, frozen=True, kw_only=True):
    """The question to a person."""

    tool_name: str
    tool_input: ToolInput
    reason: str


Confirm = Callable[[Confirmation], bool | Awaitable[bool]]
"""Asks a person whether a tool may run; plain or async."""


async def fire_before_tool_hook(
    config: Config,
    tool_name: str,
    tool_input: Mapping[str, Any],
    *,
    mcp_context: Mapping[str, Any] | None = None,
    original_request_name: str | None = None,
) -> ProcessedHookResult | None:
    """Fire BeforeTool; None if no hook returned an output."""
    return await fire(
        config,
        HookEventName.BeforeTool,
        tool_name,
        tool_input,
        mcp_context=mcp_context,
        original_request_name=original_request_name,
    )


async def fire_after_tool_hook(
    config: Config,
    tool_name: str,
    tool_input: Mapping[str, Any],
    tool_response: Mapping[str, Any],
    *,
    mcp_context: Mapping[str, Any] | None = None,
    original_request_name: str | None = None,
) -> ProcessedHookResult | None:
    """Fire AfterTool; None if no hook returned an output."""
    return await fire(
        config,
        HookEventName.AfterTool,
        tool_name,
        tool_input,
        tool_response,
        mcp_context=mcp_context,
        original_request_name=original_request_name,
    )


async def execute_tool_with_hooks(
    config: Config,
    tool_name: str,
    tool_input: Mapping[str, Any],
    execute: Execute,
    *,
    confirm: Confirm | None = None,
    mcp_context: Mapping[str, Any] | None = None,
    original_request_name: str | None = None,
) -> ToolResult:
    """Run a tool as its hooks allow (PROTOCOL section 10)."""
    context: dict[str, Any] = {
        "mcp_context": mcp_context,
        "original_request_name": original_request_name,
    }
    run = ToolRun(config, tool_name, dict(tool_input), confirm, context=context)
    refusal = await run.begin()
    if refusal is not None:
        return refusal
    return await run.finish(await call_tool(execute, run.tool_input))


class ToolRun(Struct):
    """One tool call: ``begin``, run the tool with ``tool_input``, ``finish``.

    For callers that run the tool themselves, in a thread of their own choice.
    """

    config: Config
    tool_name: str
    tool_input: ToolInput
    confirm: Confirm | None = None
    on_ask: Callable[[], None] = lambda: None
    context: dict[str, Any] = {}
    """``mcp_context`` and ``original_request_name``."""
    contexts: list[str] = []
    annotations: list[str] = []

    async def begin(self) -> ToolResult | None:
        """Ask the hooks, and a person if they want one; a result is a refusal."""
        before = await fire_before_tool_hook(
            self.config, self.tool_name, self.tool_input, **self.context
        )
        output = None if before is None else before.aggregated.final_output
        if before is None or output is None:
            return None
        changes = ""
        if output.modified_tool_input is not None:
            self.tool_input, changes = _changed(
                self.tool_input, output.modified_tool_input
            )
        if output.additional_context is not None:
            self.contexts.append(output.additional_context)
        self._annotate(before.system_message)
        refusal = await self._refusal(before, output)
        if refusal is not None:
            return refusal.with_additions([*self.contexts, *self.annotations])
        self._annotate(changes)
        return None

    async def finish(self, result: ToolResult) -> ToolResult:
        """Show the hooks the result and apply their output."""
        after = await fire_after_tool_hook(
            self.config,
            self.tool_name,
            self.tool_input,
            result.to_wire(),
            **self.context,
        )
        if after is None or after.final_output is None:
            return result.with_additions([*self.contexts, *self.annotations])
        if after.should_stop:
            return _stopped(after)
        return self._applied(result, after, after.final_output)

    async def _refusal(
        self, before: ProcessedHookResult, output: HookOutput
    ) -> ToolResult | None:
        if before.should_stop:
            return _stopped(before)
        if before.blocked:
            return _blocked(before.reason or "Blocked by hook")
        if not before.ask:
            return None
        said = (output.own_reason, before.system_message)
        reason = next((text for text in said if text and text.strip()), _NO_QUESTION)
        question = Confirmation(
            tool_name=self.tool_name, tool_input=self.tool_input, reason=reason
        )
        self.on_ask()
        notice = await fire_notification_hook(
            self.config,
            f"Tool {self.tool_name} needs permission: {reason}",
            details=structs.asdict(question),
        )
        if notice is not None:
            self._annotate(notice.system_message)
        return await self._ask(question)

    async def _ask(self, question: Confirmation) -> ToolResult | None:
        if self.confirm is None:
            if self.config.settings.global_options.on_ask is OnFailure.ALLOW:
                return None
            return _blocked(f"{question.reason} (confirmation is not available)")
        if await _is_confirmed(self.confirm, question):
            return None
        return _blocked(f"Declined by the user: {question.reason}")

    def _annotate(self, message: str | None) -> None:
        if message:
            self.annotations.append(annotation(message))

    def _applied(
        self, result: ToolResult, after: ProcessedHookResult, output: HookOutput
    ) -> ToolResult:
        if output.withholds_result:
            result = _withheld(result, output)
        elif output.additional_context is not None:
            self.contexts.append(output.additional_context)
        if output.is_blocking:
            # The tool has run and nothing is undone, but the model gets the reason.
            self._annotate(output.effective_reason)
        self._annotate(after.system_message)
        result = result.with_additions([*self.contexts, *self.annotations])
        suppress = after.suppress_output or result.suppress_display
        return structs.replace(result, suppress_display=suppress)


def _changed(before: ToolInput, after: Mapping[Any, Any]) -> tuple[ToolInput, str]:
    """The input for the tool after the hooks, and what to tell the model.

    What hooks left as they were shown it stays the very object; a changed value has the
    type of the one that it replaces, where that is simple.
    """
    from hookline.protocol.values import key_text, restored

    keys = {key_text(key): key for key in before}
    merged: ToolInput = {}
    names: dict[str, None] = {}
    for given, value in after.items():
        name = key_text(given)
        key = keys.get(name, given)
        if key in before and _is_shown_as(before[key], value):
            merged[key] = before[key]
            continue
        merged[key] = restored(before[key], value) if key in before else value
        names[name] = None
    names |= {name: None for name, key in keys.items() if key not in merged}
    told = f"A hook changed the tool's input: {', '.join(names)}" if names else ""
    return merged, told


def _is_shown_as(value: Any, seen: Any) -> bool:
    return value is seen or encode(value) == encode(seen)


async def call_tool(execute: Execute, tool_input: ToolInput) -> ToolResult:
    """Run a tool; an exception becomes a result."""
    try:
        value = execute(tool_input)
        if isawaitable(value):
            value = await value
    # A tool is foreign code: its failure is for the model to know.
    except Exception as error:  # noqa: BLE001
        return failed(error)
    return as_result(value)


async def _is_confirmed(confirm: Confirm, question: Confirmation) -> bool:
    try:
        answer = confirm(question)
        return (await answer if isawaitable(answer) else answer) is True
    # The host's own code: if asking fails, the user has not agreed.
    except Exception as error:  # noqa: BLE001
        logger.warning("confirm raised %r: treated as declined", error)
        return False


def _blocked(reason: str) -> ToolResult:
    return refused_result(reason, metadata={"hookline": "blocked"})


def _stopped(result: ProcessedHookResult) -> ToolResult:
    reason = result.stop_reason or "Stopped by hook"
    return refused_result(reason, stop_reason=reason)


def _withheld(result: ToolResult, output: HookOutput) -> ToolResult:
    reason = output.reason or output.additional_context or "The result was withheld"
    withheld = refused_result(reason, metadata={"hookline": "withheld"})
    return structs.replace(withheld, suppress_display=result.suppress_display)
