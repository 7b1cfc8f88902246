"""A model that replays a script: for tests and demos, without an SDK."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import count
from typing import Any

from msgspec import Struct, to_builtins

from hookline.agent.conversation import ModelReply, Role, ToolCall, ToolSpec, Turn
from hookline.translators.stable import StableTranslator


class ScriptedReply(Struct, frozen=True):
    """One answer of a script: text, calls as (name, input), or both."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


Says = ScriptedReply
"""The first name of ``ScriptedReply``, still public."""
Step = str | ScriptedReply | Callable[[dict[str, Any]], "str | ScriptedReply"]
"""An answer, or a function that makes one from the request."""


class ScriptedModel:
    """Replays a script, for tests and demos; ``requests`` holds all requests.

    ``steps`` are texts, ``ScriptedReply`` values or functions of the request; ``name``
    is the model that requests name.
    Requests and responses are in the stable shape, plus ``tools`` and ``turns`` in a
    request and ``calls`` in a response.
    """

    def __init__(self, steps: Iterable[Step], *, name: str = "scripted") -> None:
        self._steps = iter(steps)
        self._name = name
        self._numbers = count(1)
        self.translator = StableTranslator()
        self.requests: list[dict[str, Any]] = []

    def build(
        self, turns: Sequence[Turn], tools: Sequence[ToolSpec], system: str | None
    ) -> dict[str, Any]:
        """Build a request in the stable shape."""
        messages = [
            {"role": turn.role.value, "content": turn.marked_text}
            for turn in turns
            if turn.text and turn.role is not Role.TOOLS
        ]
        if system:
            messages.insert(0, {"role": "system", "content": system})
        return {
            "model": self._name,
            "messages": messages,
            "tools": [to_builtins(tool) for tool in tools],
            "turns": list(turns),
        }

    async def stream(self, request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Replay the next step, word by word."""
        self.requests.append(request)
        step = next(self._steps, "")
        answer = step(request) if callable(step) else step
        reply = ScriptedReply(answer) if isinstance(answer, str) else answer
        for word in re.findall(r"\S+\s*", reply.text):
            yield {"text": word}
        numbers = self._numbers
        calls = [ToolCall(f"call-{next(numbers)}", *call) for call in reply.calls]
        yield {"text": "", "calls": calls}

    def text_of(self, chunk: dict[str, Any]) -> str:
        """The text of a chunk or of a response."""
        return str(chunk.get("text") or "")

    def assemble(self, chunks: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Join the words and keep the calls."""
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
        stable = self.translator.to_hook_llm_response(response)
        return ModelReply(stable.text or "", tuple(response.get("calls", ())))
