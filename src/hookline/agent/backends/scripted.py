"""A model that follows a script, for tests and demonstrations: no SDK, no network.

It speaks the stable shape. Beside it a request holds ``tools`` and ``turns``, and a
response its ``calls``.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from hookline.agent.conversation import ModelReply, Role, ToolCall, ToolSpec, Turn
from hookline.agent.tool_calls import annotation
from hookline.translators.passthrough import StableTranslator

_WORDS = re.compile(r"\S+\s*")


class Says(Struct, frozen=True):
    """One answer of the script: text, calls as (name, input), or both."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


Step = str | Says | Callable[[dict[str, Any]], "str | Says"]
"""An answer, or a function that makes one of the request."""


class ScriptedModel:
    """Gives one answer after the other; ``requests`` holds what it was asked."""

    def __init__(self, steps: Iterable[Step], *, name: str = "scripted") -> None:
        self._steps = iter(steps)
        self._name = name
        self._calls = 0
        self.translator = StableTranslator()
        self.requests: list[dict[str, Any]] = []

    def build(
        self, turns: Sequence[Turn], tools: Sequence[ToolSpec], system: str | None
    ) -> dict[str, Any]:
        """Make a request in the stable shape."""
        messages = [message for turn in turns for message in _messages(turn)]
        if system:
            messages.insert(0, {"role": "system", "content": system})
        return {
            "model": self._name,
            "messages": messages,
            "tools": [to_builtins(tool) for tool in tools],
            "turns": list(turns),
        }

    async def stream(self, request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Play the next step, word by word."""
        self.requests.append(request)
        step = next(self._steps, "")
        made = step(request) if callable(step) else step
        says = Says(made) if isinstance(made, str) else made
        for word in _WORDS.findall(says.text):
            yield {"text": word}
        yield {"text": "", "calls": [self._numbered(*call) for call in says.calls]}

    def text_of(self, chunk: dict[str, Any]) -> str:
        """The text of a chunk or of a response."""
        return str(chunk.get("text") or "")

    def assemble(self, chunks: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Join the words, keep the calls."""
        text = "".join(self.text_of(chunk) for chunk in chunks)
        candidate = {
            "content": {"role": "model", "parts": [text] if text else []},
            "finishReason": "STOP",
            "index": 0,
        }
        calls = [call for chunk in chunks for call in chunk.get("calls", ())]
        return {"text": text, "candidates": [candidate], "calls": calls}

    def read(self, response: dict[str, Any]) -> ModelReply:
        """Read text and calls."""
        shown = self.translator.to_hook_llm_response(response)
        return ModelReply(shown.text or "", tuple(response.get("calls", ())))

    def _numbered(self, name: str, tool_input: dict[str, Any]) -> ToolCall:
        self._calls += 1
        return ToolCall(f"call-{self._calls}", name, tool_input)


def _messages(turn: Turn) -> list[dict[str, str]]:
    if turn.role is Role.TOOLS or not turn.text:
        return []
    if turn.role is Role.SYSTEM:
        return [{"role": "system", "content": annotation(turn.text)}]
    return [{"role": turn.role.value, "content": turn.text}]
