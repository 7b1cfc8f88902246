"""One tool call and its hooks: before, run, after."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from inspect import isawaitable, signature
from typing import Any, cast

from msgspec import Struct, structs

from hookline._internal.log import logger
from hookline.protocol.events import HookEventName
from hookline.protocol.outputs import BLOCKED_BY_HOOK
from hookline.protocol.results import ProcessedHookResult, blocking_reasons
from hookline.protocol.values import encode, key_text, restored, same_json
from hookline.settings.model import OnFailure

from .triggers import ConfigOrEvents, events_of

# On Python 3.11 finding a member in its enum costs more than a call.
_BEFORE_TOOL, _AFTER_TOOL = HookEventName.BeforeTool, HookEventName.AfterTool


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
    notices: tuple[str, ...] = ()
    """What hooks added for the model, where the content is not a text."""

    @property
    def text(self) -> str:
        """The model-facing content as text, with what hooks added."""
        texts = (content_text(self.llm_content), *self.notices)
        return "\n\n".join(filter(None, texts))

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
        """Append texts for the model, each after a blank line.

        Only a text takes them in: the value of a program keeps its type.
        """
        if not additions:
            return self
        if not isinstance(self.llm_content, str):
            return structs.replace(self, notices=(*self.notices, *additions))
        extended = "\n\n".join(filter(None, [self.llm_content, *additions]))
        display = "" if self._display is None else self._display
        return structs.replace(self, llm_content=extended, return_display=display)


def as_result(value: Any) -> ToolResult:
    """Wrap what a tool returned, unless it is a ToolResult."""
    return value if isinstance(value, ToolResult) else ToolResult(llm_content=value)


def refused_result(reason: str, **fields: Any) -> ToolResult:
    """The result of a call that did not run: its content is the reason."""
    return ToolResult(llm_content=reason, return_display=reason, error=reason, **fields)


def failed(error: BaseException) -> ToolResult:
    """The result of a tool that raised."""
    text = type(error).__name__
    with suppress(Exception):  # its class may be the tool's own
        text = f"{text}: {error}" if str(error) else text
    return ToolResult(llm_content=f"Error: {text}", error=text)


def annotation(message: str) -> str:
    """Mark a text as a system message (protocol.md#callers)."""
    return f"[System] {message}"


def content_text(value: Any) -> str:
    """A string as it is, None as an empty string, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else encode(value).decode()


class ToolOutcome(Struct, frozen=True, kw_only=True):
    """The result of a tool after its hooks, in parts."""

    content: Any
    """What the tool gave, or the reason in its place; without the additions."""
    additions: list[str]
    """What hooks added for the model, to follow the content."""
    withheld: bool = False
    """Whether a hook withholds what the tool gave."""
    result: ToolResult
    """The whole, additions included."""

    @property
    def suppress_display(self) -> bool:
        """Whether a hook wants nothing shown to the person."""
        return self.result.suppress_display

    @property
    def stop_reason(self) -> str | None:
        """Set if a hook stops the agent."""
        return self.result.stop_reason

    @property
    def error(self) -> str | None:
        """What the tool raised, or why its result is not given."""
        return self.result.error

    @property
    def text(self) -> str:
        """The content as text, with the additions."""
        return self.result.text

    @property
    def is_replaced(self) -> bool:
        """Whether the content is a reason in place of what the tool gave."""
        return self.withheld or self.stop_reason is not None

    @property
    def changed(self) -> bool:
        """Whether the model gets anything else than what the tool gave."""
        return bool(self.additions or self.is_replaced)


ToolInput = dict[str, Any]


class Confirmation(Struct, frozen=True, kw_only=True):
    """The question to a person."""

    tool_name: str
    tool_input: ToolInput
    reason: str


Confirm = Callable[[Confirmation], bool | Awaitable[bool]]
"""Asks a person whether a tool may run; plain or async."""


class HookedToolCall(Struct):
    """One tool call: run the tool with ``tool_input`` unless it is refused.

    ``begin_tool`` of a session or a turn makes it; ``finish`` shows hooks the result.
    """

    session: ConfigOrEvents
    tool_name: str
    tool_input: ToolInput
    """What the tool must run with."""
    context: dict[str, Any] = {}
    """``mcp_context`` and ``original_request_name``."""
    on_stop: Callable[[str], None] | None = None
    """Called with the reason if a hook stops the agent."""
    refused_as: ToolResult | None = None
    """The result of a call that must not run, without what hooks added."""
    question: str | None = None
    """What to ask a person before this call is made again."""
    changed_names: list[str] = []
    """The parameters that hooks changed, added or removed."""
    contexts: list[str] = []
    annotations: list[str] = []

    @property
    def refused(self) -> bool:
        """Whether the tool must not run."""
        return self.refused_as is not None

    @property
    def reason(self) -> str | None:
        """Why the tool must not run."""
        return None if self.refused_as is None else self.refused_as.text

    @property
    def stop_reason(self) -> str | None:
        """Set if a hook stops the agent."""
        return None if self.refused_as is None else self.refused_as.stop_reason

    @property
    def refusal(self) -> ToolResult | None:
        """The result of a call that must not run, with what hooks added."""
        refused_as = self.refused_as
        return None if refused_as is None else refused_as.with_additions(self.additions)

    @property
    def message(self) -> str:
        """For the model in place of a result: the reason, and what hooks added."""
        return "" if (refusal := self.refusal) is None else refusal.text

    @property
    def additions(self) -> list[str]:
        """What hooks added for the model so far."""
        return [*self.contexts, *self.annotations]

    async def begin(
        self,
        confirm: Confirm | bool | None = None,
        *,
        defer: bool = False,
        on_ask: Callable[[], None] | None = None,
    ) -> None:
        """Ask the hooks, and a person if they want one."""
        fields = self._fields()
        before = await events_of(self.session).fire_fields(_BEFORE_TOOL, fields)
        output = before.aggregated.final_output
        if output is None:
            return
        if output.modified_tool_input is not None:
            self.tool_input, self.changed_names = _changed(
                self.tool_input, output.modified_tool_input
            )
        if output.additional_context is not None:
            self.contexts.append(output.additional_context)
        self._annotate(before.system_message)
        if before.should_stop:
            self.refuse(_stopped(before))
        elif before.blocked:
            self.refuse(_blocked(before.reason or BLOCKED_BY_HOOK))
        elif before.ask:
            texts = (output.own_reason, before.system_message, before.user_message)
            question = Confirmation(
                tool_name=self.tool_name,
                tool_input=self.tool_input,
                reason=next(
                    (text for text in texts if text and text.strip()),
                    "a hook asks for a person's decision",
                ),
            )
            await self._ask(question, confirm, defer=defer, on_ask=on_ask)
        if not self.refused:
            self._annotate_changes()

    async def _ask(
        self,
        question: Confirmation,
        confirm: Confirm | bool | None,
        *,
        defer: bool,
        on_ask: Callable[[], None] | None,
    ) -> None:
        """Ask a person, and refuse the call unless they agree."""
        reason = question.reason
        declined = _blocked(f"Declined by the user: {reason}")
        if isinstance(confirm, bool):
            if not confirm:
                self.refuse(declined)
            return
        if on_ask is not None:
            on_ask()
        session = events_of(self.session)
        # Those of the verdict: telling of the question may load others.
        settings = session.config.settings
        notice = await session.fire_notification_event(
            f"Tool {self.tool_name} needs permission: {reason}",
            details=structs.asdict(question),
        )
        self._annotate(notice.system_message)
        unavailable = _blocked(f"{reason} (confirmation is not available)")
        if confirm is not None:
            try:
                answer = confirm(question)
                if (await answer if isawaitable(answer) else answer) is not True:
                    self.refuse(declined)
            # The host's own code: if asking fails, the user has not agreed.
            except Exception as error:  # noqa: BLE001
                logger.warning("confirm raised %r: the call is refused", error)
                self.refuse(unavailable)
        elif defer:
            self.question = reason
            self.refuse(_blocked(f"{reason} (waiting for a decision)"))
        elif settings.global_options.on_ask is not OnFailure.ALLOW:
            self.refuse(unavailable)

    def decide(
        self, approved: bool, message: str | None = None, *, earlier: str | None = None
    ) -> None:
        """Answer the ``question`` of this call; without one nothing is decided.

        ``message`` is what a person who declines tells the model. ``earlier`` is what
        they answered where hooks were fired again since: a no holds, asked or not.
        """
        question = self.question or (None if self.refused else earlier)
        if question is None:
            return
        if not approved:
            self.question = None
            reason = "\n".join(filter(None, [question, message]))
            self.refuse(_blocked(f"Declined by the user: {reason}"))
        elif self.question is not None:
            self.question = self.refused_as = None
            self._annotate_changes()

    def refuse(self, result: ToolResult) -> None:
        """Give this result in place of a run."""
        self.refused_as = result
        self._stop(result)

    async def finish(self, result: Any) -> ToolOutcome:
        """Show hooks what the tool returned or raised, and apply their output."""
        if self.refused_as is not None:
            return _outcome(self.refused_as, self.additions)
        is_error = isinstance(result, Exception)
        tool_result = failed(result) if is_error else as_result(result)
        fields = {**self._fields(), "tool_response": tool_result.to_wire()}
        after = await events_of(self.session).fire_fields(_AFTER_TOOL, fields)
        output = after.aggregated.final_output
        if output is None:
            return _outcome(tool_result, self.additions)
        if after.should_stop:
            stopped = _stopped(after)
            self._stop(stopped)
            return _outcome(stopped, [])
        withheld = output.withholds_result
        suppress_display = after.suppress_output or tool_result.suppress_display
        if withheld:
            reason = output.reason or output.additional_context
            tool_result = refused_result(
                reason or "The result was withheld", metadata={"hookline": "withheld"}
            )
        elif output.additional_context is not None:
            self.contexts.append(output.additional_context)
        if output.is_blocking:
            # The tool has run and nothing is undone, but the model gets the reason.
            self._annotate("\n".join(blocking_reasons(after.aggregated)))
        self._annotate(after.system_message)
        tool_result = structs.replace(tool_result, suppress_display=suppress_display)
        return _outcome(tool_result, self.additions, withheld=withheld)

    def _fields(self) -> dict[str, Any]:
        optional = {name: v for name, v in self.context.items() if v is not None}
        return {"tool_name": self.tool_name, "tool_input": self.tool_input, **optional}

    def _annotate(self, message: str | None) -> None:
        if message:
            self.annotations.append(annotation(message))

    def _annotate_changes(self) -> None:
        if self.changed_names:
            names = ", ".join(self.changed_names)
            self._annotate(f"A hook changed the tool's input: {names}")

    def _stop(self, result: ToolResult) -> None:
        if result.stop_reason is not None and self.on_stop is not None:
            self.on_stop(result.stop_reason)


def _blocked(reason: str) -> ToolResult:
    return refused_result(reason, metadata={"hookline": "blocked"})


def _stopped(result: ProcessedHookResult) -> ToolResult:
    reason = result.stop_reason or "Stopped by hook"
    return refused_result(reason, stop_reason=reason)


def _outcome(
    result: ToolResult, additions: list[str], *, withheld: bool = False
) -> ToolOutcome:
    return ToolOutcome(
        content=result.llm_content,
        additions=additions,
        withheld=withheld,
        result=result.with_additions(additions),
    )


def _changed(
    before: ToolInput, after: Mapping[Any, Any]
) -> tuple[ToolInput, list[str]]:
    """The input for the tool after the hooks, and the names of what changed.

    What hooks left as they were shown it stays the very object; a changed value has the
    type of the one that it replaces, where that is simple.
    """
    keys = {key_text(key): key for key in before}
    merged: ToolInput = {}
    changed_names: dict[str, None] = {}
    for hook_key, value in after.items():
        name = key_text(hook_key)
        key = keys.get(name, hook_key)
        if key in before and same_json(before[key], value):
            merged[key] = before[key]
            continue
        merged[key] = restored(before[key], value) if key in before else value
        changed_names[name] = None
    changed_names |= {name: None for name, key in keys.items() if key not in merged}
    return merged, list(changed_names)


Execute = Callable[[ToolInput], Any]
"""Runs the tool with the input after the hooks; plain or async."""


async def execute_tool_with_hooks(
    config: ConfigOrEvents,
    tool_name: str,
    tool_input: Mapping[str, Any],
    execute: Execute | Callable[[], Any],
    *,
    confirm: Confirm | None = None,
    mcp_context: Mapping[str, Any] | None = None,
    original_request_name: str | None = None,
) -> ToolResult:
    """Run a tool as its hooks allow.

    ``execute`` gets the input after the hooks and may be async; one without parameters
    does not run where hooks change the input. What it raises becomes a result, unless
    hooks are switched off. ``confirm`` asks a person where a hook wants one; without it
    ``hooksConfig.onAsk`` decides. ``mcp_context`` and ``original_request_name`` are
    fields of the events.
    """
    run, takes_input = cast("Execute", execute), True
    try:
        signature(execute).bind(tool_input)
    except TypeError:
        run, takes_input = lambda _: cast("Callable[[], Any]", execute)(), False
    except ValueError:
        pass  # a callable without a signature
    context = {
        "mcp_context": mcp_context,
        "original_request_name": original_request_name,
    }
    try:
        call = HookedToolCall(config, tool_name, dict(tool_input), context)
    # The mapping is the caller's own; no tool can run with one that cannot be read.
    except Exception as error:  # noqa: BLE001
        return failed(error)
    await call.begin(confirm)
    if call.changed_names and not takes_input:
        call.refuse(_blocked("Hooks changed the input, which the tool does not take"))
    if (refusal := call.refusal) is not None:
        return refusal
    if events_of(config).are_off():
        value = run(call.tool_input)
        return as_result(await value if isawaitable(value) else value)
    return (await call.finish(await call_tool(run, call.tool_input))).result


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
