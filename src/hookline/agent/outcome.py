"""How a turn of the agent ended, and what its hooks leave of prompts and answers."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from hookline.results import ProcessedHookResult

from .chat import ChatReply
from .conversation import ToolAnswer, Turn, tools_turn
from .toolresults import refused


class Ending(StrEnum):
    """How a turn of the agent ended."""

    ANSWERED = "answered"
    BLOCKED = "blocked"
    STOPPED = "stopped"
    OUT_OF_TURNS = "out of turns"


class AgentResult(Struct, frozen=True, kw_only=True):
    """What came of a prompt."""

    ending: Ending = Ending.ANSWERED
    text: str = ""
    reason: str | None = None
    suppress_display: bool = False


def with_context(prompt: str, verdict: ProcessedHookResult | None) -> str:
    """The prompt with what hooks add to it, after a blank line."""
    if verdict is None or verdict.final_output is None:
        return prompt
    context = verdict.final_output.additional_context
    return prompt if context is None else f"{prompt}\n\n{context}"


def words_for_model(verdict: ProcessedHookResult | None) -> list[str]:
    """The context and the system message of an event that has no prompt."""
    if verdict is None or verdict.final_output is None:
        return []
    said = (verdict.final_output.additional_context, verdict.system_message)
    return [text for text in said if text]


def refused_by(verdict: ProcessedHookResult, text: str = "") -> AgentResult:
    """The end that a hook on the agent's turn made."""
    if verdict.should_stop:
        return AgentResult(ending=Ending.STOPPED, text=text, reason=verdict.stop_reason)
    return AgentResult(ending=Ending.BLOCKED, text=text, reason=verdict.reason)


def ended_by(reply: ChatReply) -> AgentResult:
    """The end that a model call made: an answer, a block or a stop."""
    ending = Ending.ANSWERED
    if reply.should_stop:
        ending = Ending.STOPPED
    elif reply.blocked and not reply.text:
        # With a response in the model's place a block is an answer.
        ending = Ending.BLOCKED
    return AgentResult(
        ending=ending,
        text=reply.text,
        reason=reply.stop_reason or reply.reason,
        suppress_display=reply.suppress_display,
    )


def unanswered(reply: ChatReply) -> Turn:
    """Answers for calls that will not be run: a history without them is refused."""
    result = refused(f"Not run: {reply.stop_reason or reply.reason or 'stopped'}")
    return tools_turn([ToolAnswer(call, result) for call in reply.calls])
