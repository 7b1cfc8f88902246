"""The verdict: what came of an event, or of one hook, in a word and with its reason.

Every report asks here: journal, log, figures, page, telemetry, tests and the command
line. They choose how to write a word, never which one it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, structs

from .events import TRAITS, Chain, HookEventName, Merge
from .outputs import HookOutput, read_output
from .results import HookExecutionResult, ProcessedHookResult


class Word(StrEnum):
    """A verdict in one word."""

    WOULD_BLOCK = "would-block"
    STOPPED = "stopped"
    BLOCKED = "blocked"
    FAILED = "failed"
    NOT_WAITED_FOR = "not-waited-for"
    ASK = "ask"
    CHANGED = "changed"
    ALLOWED = "allowed"
    CANCELLED = "cancelled"


EFFECT_LABELS = {
    "tool_input": "changed input",
    "llm_request": "changed request",
    "llm_response": "changed response",
    "tools": "restricted tools",
    "withheld": "withheld result",
}
"""The effects of a verdict, by the names of its fields."""
_EXPECTED = {Word.STOPPED: "stop", Word.BLOCKED: "block", Word.ASK: "ask"}


class Verdict(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of an event, or of one hook."""

    blocked: bool = False
    ask: bool = False
    stop: bool = False
    withheld: bool = False
    tool_input: Any = None
    """The new value; the journal has it as JSON text, masked and truncated."""
    llm_request: Any = None
    llm_response: Any = None
    tools: Any = None
    reason: str | None = None
    """Why it stops or blocks, or the question; of a failure the error."""
    failed: bool = False
    """Whether the hook failed; a policy may have made a block of it."""
    would_block: bool = False
    not_waited_for: bool = False

    @property
    def word(self) -> Word:
        """The verdict in one word, the strongest first."""
        if self.would_block:
            return Word.WOULD_BLOCK
        if self.stop or self.blocked:
            return Word.STOPPED if self.stop else Word.BLOCKED
        if self.failed:
            return Word.FAILED
        if self.not_waited_for:
            return Word.NOT_WAITED_FOR
        if self.ask:
            return Word.ASK
        return Word.CHANGED if self.effects else Word.ALLOWED

    @property
    def expected(self) -> str:
        """The verdict in the words of a test's ``expect``: allow, ask, block, stop."""
        return _EXPECTED.get(self.word, "allow")

    @property
    def ends(self) -> bool:
        """Whether the step does not happen."""
        return self.blocked or self.stop

    @property
    def decides(self) -> bool:
        """Whether it does anything but let the step happen as it is."""
        return self.ends or self.ask or bool(self.effects)

    @property
    def effects(self) -> dict[str, Any]:
        """What it changes, by the name of the field."""
        values = {name: getattr(self, name) for name in EFFECT_LABELS}
        values["withheld"] = True if self.withheld else None
        return {name: value for name, value in values.items() if value is not None}


def event_verdict(event: HookEventName | None, result: ProcessedHookResult) -> Verdict:
    """The verdict on an event; None for a name that no event has."""
    final = result.final_output or HookOutput()
    effects = _effects(event, final, final.modified_tool_input)
    if result.blocked or result.should_stop:  # nobody applies these
        effects = {**effects, "tool_input": None, "llm_request": None, "tools": None}
    question = _question(final) if result.ask else None
    return Verdict(
        blocked=result.blocked,
        ask=result.ask,
        stop=result.should_stop,
        reason=result.stop_reason or result.reason or question,
        **effects,
    )


def hook_verdict(result: HookExecutionResult) -> Verdict:
    """The verdict of one hook."""
    return _verdict_of_output(
        result.event_name,
        HookOutput() if result.observed else result.output or HookOutput(),
        result.error if result.failed else None,
        failed=result.failed,
        would_block=result.would_block,
        not_waited_for=result.is_async,
    )


def recorded_verdict(event: HookEventName | None, hook: Mapping[str, Any]) -> Verdict:
    """The verdict of one hook as ``--json`` and the journal have it."""
    output, wire = HookOutput(), hook["output"]
    if event is not None and isinstance(wire, dict) and hook["mode"] != "observe":
        output = read_output(wire, event)[0]
    verdict = _verdict_of_output(
        event,
        output,
        hook["error"],
        failed=hook.get("failed", hook["error"] is not None),
        would_block=hook["would_block"] is True,
        not_waited_for=hook["async"],
    )
    # The output itself may not be recorded as a whole.
    return structs.replace(verdict, blocked=hook.get("blocked", verdict.blocked))


def _verdict_of_output(
    event: HookEventName | None, output: HookOutput, error: str | None, **flags: bool
) -> Verdict:
    reason = error
    if output.stops:
        reason = output.effective_stop_reason
    elif output.is_blocking:
        reason = output.effective_reason
    elif output.asks:
        reason = error or _question(output)
    return Verdict(
        blocked=output.is_blocking,
        ask=output.asks,
        stop=output.stops,
        reason=reason,
        **flags,
        **_effects(event, output, output.tool_input),
    )


def _question(output: HookOutput) -> str | None:
    return output.own_reason or output.system_message


def _effects(
    event: HookEventName | None, output: HookOutput, tool_input: Any
) -> dict[str, Any]:
    if event is None:
        return {}
    traits = TRAITS[event]
    is_selection = traits.merge is Merge.TOOL_SELECTION
    return {
        "withheld": output.withholds_result and event is HookEventName.AfterTool,
        "tool_input": tool_input if traits.chain is Chain.TOOL_INPUT else None,
        "llm_request": output.llm_request
        if traits.chain is Chain.LLM_REQUEST
        else None,
        "llm_response": output.llm_response if traits.merge is Merge.FIELDS else None,
        "tools": output.tool_config if is_selection else None,
    }
