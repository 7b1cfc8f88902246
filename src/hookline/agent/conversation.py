"""What is said between a person, a model and its tools, in no SDK's shape.

A model's turn keeps the SDK's own response (``raw``), so that what only the SDK knows
(thoughts, signatures, images) goes back to it unharmed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct, field

from hookline.translators.stable import HookTranslator

from .toolresults import ToolResult


class Role(StrEnum):
    """Who speaks in a turn."""

    USER = "user"
    MODEL = "model"
    TOOLS = "tools"
    SYSTEM = "system"


class ToolCall(Struct, frozen=True):
    """A tool that the model wants run."""

    id: str
    name: str
    input: dict[str, Any]
    problem: str | None = None
    """Why it cannot be run as the model wrote it."""


class ToolAnswer(Struct, frozen=True):
    """What the model is told of one of its calls."""

    call: ToolCall
    result: ToolResult


class Turn(Struct, frozen=True, kw_only=True):
    """One entry of the history."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    answers: tuple[ToolAnswer, ...] = ()
    raw: Any = None


class ToolSpec(Struct, frozen=True, kw_only=True):
    """A tool as a model is told of it; ``parameters`` is a JSON Schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )


class ModelReply(Struct, frozen=True):
    """What can be read off a whole response."""

    text: str
    calls: tuple[ToolCall, ...] = ()


class ModelClient(Protocol):
    """A model behind one SDK: stream a request, get chunks."""

    @property
    def translator(self) -> HookTranslator:
        """Between the SDK's objects and what hooks see."""
        ...

    def build(
        self, turns: Sequence[Turn], tools: Sequence[ToolSpec], system: str | None
    ) -> Any:
        """Make the SDK's request of a history."""
        ...

    def stream(self, request: Any) -> AsyncIterator[Any]:
        """Call the model, and give the SDK's chunks as they come."""
        ...

    def text_of(self, chunk: Any) -> str:
        """The text in a chunk, or in a whole response."""
        ...

    def assemble(self, chunks: Sequence[Any]) -> Any:
        """Make the SDK's whole response of its chunks."""
        ...

    def read(self, response: Any) -> ModelReply:
        """Read text and calls off a whole response."""
        ...


def user_turn(text: str) -> Turn:
    """What the person says."""
    return Turn(role=Role.USER, text=text)


def system_turn(text: str) -> Turn:
    """What the model is to know, from nobody in the conversation."""
    return Turn(role=Role.SYSTEM, text=text)


def tools_turn(answers: Sequence[ToolAnswer]) -> Turn:
    """What the tools gave back, in call order."""
    return Turn(role=Role.TOOLS, answers=tuple(answers))
