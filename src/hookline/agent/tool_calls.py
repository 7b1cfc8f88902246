"""The hooks around one tool call: before, run, after."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any

from msgspec import Struct, structs

from hookline.config import Config
from hookline.log import logger
from hookline.protocol.jsontext import encode
from hookline.protocol.outputs import HookOutput
from hookline.protocol.results import ProcessedHookResult
from hookline.settings.model import OnFailure

from .triggers import fire, fire_notification_hook

SYSTEM_MARK = "[System] "


class ToolResult(Struct, frozen=True, kw_only=True):
    """The outcome of one tool call; a refused call has one too."""

    llm_content: Any = ""
    return_display: Any = None
    """None where the person is shown what the model sees."""
    metadata: dict[str, Any] | None = None
    error: str | None = None
    suppress_display: bool = False
    stop_reason: str | None = None
    """Set where a hook stops the agent."""

    @property
    def text(self) -> str:
        """The model-facing content as text."""
        return as_text(self.llm_content)

    @property
    def display(self) -> str:
        """What to show a person; nothing where a hook suppresses it."""
        if self.suppress_display:
            return ""
        shown = self.llm_content if self.return_display is None else self.return_display
        return as_text(shown)

    def to_wire(self) -> dict[str, Any]:
        """Spell it as the ``tool_response`` that AfterTool hooks get."""
        shown = self.llm_content if self.return_display is None else self.return_display
        wire: dict[str, Any] = {
            "llmContent": self.llm_content,
            "returnDisplay": shown,
        }
        if self.metadata is not None:
            wire["metadata"] = self.metadata
        if self.error is not None:
            wire["error"] = {"message": self.error}
        return wire


def as_result(value: Any) -> ToolResult:
    """Take what a tool returned: a ToolResult, or the content itself."""
    return value if isinstance(value, ToolResult) else ToolResult(llm_content=value)


def refused(reason: str, **more: Any) -> ToolResult:
    """The result of a call that did not run: the model is told why."""
    return ToolResult(llm_content=reason, return_display=reason, error=reason, **more)


def failed(error: BaseException) -> ToolResult:
    """The result of a tool that raised."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ToolResult(llm_content=f"Error: {said}", error=said)


def with_additions(result: ToolResult, additions: list[str]) -> ToolResult:
    """Append texts to what the model sees, each after a blank line."""
    if not additions:
        return result
    content = result.llm_content
    if isinstance(content, list):
        grown: Any = [*content, *additions]
    else:
        grown = "\n\n".join([as_text(content), *additions])
    shown = content if result.return_display is None else result.return_display
    return structs.replace(result, llm_content=grown, return_display=shown)


def annotation(message: str) -> str:
    """Mark a text as the system's own word (seed 004 section 6.2)."""
    return SYSTEM_MARK + message


def as_text(value: Any) -> str:
    """Text as it is, anything else as JSON, nothing as nothing."""
    if isinstance(value, str):
        return value
    return "" if value is None else encode(value).decode()


ToolInput = dict[str, Any]
Execute = Callable[[ToolInput], Any]
"""Runs the tool with the input as the hooks left it; plain or async."""


class Confirmation(Struct, frozen=True, kw_only=True):
    """What a person is asked."""

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
    """Ask the hooks about a tool call; None where none of them has spoken."""
    return await fire(
        config,
        lambda firer: firer.fire_before_tool_event(
            tool_name,
            tool_input,
            mcp_context=mcp_context,
            original_request_name=original_request_name,
        ),
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
    """Show the hooks what a tool did; None where none of them has spoken."""
    return await fire(
        config,
        lambda firer: firer.fire_after_tool_event(
            tool_name,
            tool_input,
            tool_response,
            mcp_context=mcp_context,
            original_request_name=original_request_name,
        ),
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
    run = ToolRun(
        config,
        tool_name,
        confirm=confirm,
        mcp_context=mcp_context,
        original_request_name=original_request_name,
    )
    admission = await run.admit(dict(tool_input))
    if admission.refusal is not None:
        return admission.refusal
    result = await call_tool(execute, admission.tool_input)
    return await run.finish(admission, result)


class Admission(Struct, frozen=True, kw_only=True):
    """The verdict before a tool: the input to run with, or a result in its place."""

    tool_input: ToolInput
    refusal: ToolResult | None = None
    system_messages: tuple[str, ...] = ()


class ToolRun:
    """One tool call on its way through the hooks, in two steps.

    For callers that must run the tool themselves, in a thread of their own choice.
    """

    def __init__(
        self,
        config: Config,
        tool_name: str,
        *,
        confirm: Confirm | None = None,
        on_ask: Callable[[], None] = lambda: None,
        mcp_context: Mapping[str, Any] | None = None,
        original_request_name: str | None = None,
    ) -> None:
        self._config = config
        self._name = tool_name
        self._confirm = confirm
        self._on_ask = on_ask
        self._mcp_context = mcp_context
        self._original_name = original_request_name

    async def admit(self, tool_input: ToolInput) -> Admission:
        """Ask the hooks, and a person where they want one."""
        verdict = await fire_before_tool_hook(
            self._config,
            self._name,
            tool_input,
            mcp_context=self._mcp_context,
            original_request_name=self._original_name,
        )
        if verdict is None or verdict.final_output is None:
            return Admission(tool_input=tool_input)
        changed = verdict.final_output.modified_tool_input
        tool_input = tool_input if changed is None else changed
        refusal, notice = await self._refusal(verdict, tool_input)
        messages = tuple(m for m in (verdict.system_message, notice) if m)
        if refusal is not None:
            refusal = with_additions(refusal, [annotation(m) for m in messages])
        return Admission(
            tool_input=tool_input, refusal=refusal, system_messages=messages
        )

    async def finish(self, admission: Admission, result: ToolResult) -> ToolResult:
        """Show the hooks the result and apply what they say of it."""
        verdict = await fire_after_tool_hook(
            self._config,
            self._name,
            admission.tool_input,
            result.to_wire(),
            mcp_context=self._mcp_context,
            original_request_name=self._original_name,
        )
        before = [annotation(message) for message in admission.system_messages]
        if verdict is None or verdict.final_output is None:
            return with_additions(result, before)
        if verdict.should_stop:
            return _stopped(verdict)
        return _annotated(result, before, verdict, verdict.final_output)

    async def _refusal(
        self, verdict: ProcessedHookResult, tool_input: ToolInput
    ) -> tuple[ToolResult | None, str | None]:
        """A result in the tool's place, if any, and what asking brought up."""
        if verdict.should_stop:
            return _stopped(verdict), None
        if verdict.blocked:
            reason = verdict.reason or "Blocked by hook"
            return refused(reason, metadata=_BLOCKED), None
        if not verdict.ask:
            return None, None
        assert verdict.final_output is not None  # nobody asks without a word
        reason = verdict.final_output.own_reason or "a hook wants a person to decide"
        question = Confirmation(
            tool_name=self._name, tool_input=tool_input, reason=reason
        )
        self._on_ask()
        notice = await fire_notification_hook(
            self._config,
            f"Tool {self._name} needs permission: {reason}",
            details=structs.asdict(question),
        )
        told = None if notice is None else notice.system_message
        return await self._ask(question), told

    async def _ask(self, question: Confirmation) -> ToolResult | None:
        if self._confirm is None:
            if self._config.settings.global_options.on_ask is OnFailure.ALLOW:
                return None
            nobody = f"{question.reason} (nobody is there to ask, so it did not run)"
            return refused(nobody, metadata=_BLOCKED)
        if await _agreed(self._confirm, question):
            return None
        return refused(f"Declined by the user: {question.reason}", metadata=_BLOCKED)


_BLOCKED = {"hookline": "blocked"}


async def call_tool(execute: Execute, tool_input: ToolInput) -> ToolResult:
    """Run a tool; whatever it raises becomes a result."""
    try:
        value = execute(tool_input)
        if isawaitable(value):
            value = await value
    # A tool is foreign code: its failure is for the model to know.
    except Exception as error:  # noqa: BLE001
        return failed(error)
    return as_result(value)


async def _agreed(confirm: Confirm, question: Confirmation) -> bool:
    try:
        answer = confirm(question)
        return (await answer if isawaitable(answer) else answer) is True
    # The host's own code: where asking fails, nobody has agreed.
    except Exception as error:  # noqa: BLE001
        logger.warning("confirm raised %r: taken for a no", error)
        return False


def _stopped(verdict: ProcessedHookResult) -> ToolResult:
    reason = verdict.stop_reason or "Stopped by hook"
    return refused(reason, stop_reason=reason)


def _annotated(
    result: ToolResult,
    before: list[str],
    verdict: ProcessedHookResult,
    said: HookOutput,
) -> ToolResult:
    additions = [] if said.additional_context is None else [said.additional_context]
    if said.withholds_result:
        result = _withheld(result, said)
        additions = []
    additions += before
    if said.is_blocking:
        # The tool has run: nothing is undone, but the model hears of it.
        additions += _annotations(said.effective_reason)
    additions += _annotations(verdict.system_message)
    result = with_additions(result, additions)
    if not verdict.suppress_output:
        return result
    return structs.replace(result, suppress_display=True)


def _withheld(result: ToolResult, said: HookOutput) -> ToolResult:
    reason = said.reason or said.additional_context or "The result was withheld"
    withheld = refused(reason, metadata={"hookline": "withheld"})
    return structs.replace(withheld, suppress_display=result.suppress_display)


def _annotations(message: str | None) -> list[str]:
    return [] if message is None else [annotation(message)]
