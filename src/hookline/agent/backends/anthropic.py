"""Models behind the Anthropic client: Messages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from hookline.agent.conversation import (
    ModelReply,
    Role,
    ToolAnswer,
    ToolCall,
    ToolSpec,
    Turn,
)
from hookline.agent.tool_calls import annotation
from hookline.translators.anthropic import AnthropicTranslator
from hookline.translators.sdk_objects import get

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

DEFAULT_MAX_TOKENS = 4096


class AnthropicModel:
    """Streams ``client.messages.create``.

    ``options`` go into every request: ``thinking``, ``extra_body`` and so on.
    """

    def __init__(
        self,
        client: AsyncAnthropic,
        model: str,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        **options: Any,
    ) -> None:
        self._client = client
        self._options = {**options, "model": model, "max_tokens": max_tokens}
        self.translator = AnthropicTranslator()

    def build(
        self, turns: Sequence[Turn], tools: Sequence[ToolSpec], system: str | None
    ) -> dict[str, Any]:
        """Make the arguments of ``create``."""
        messages = [made for turn in turns if (made := _message(turn))]
        request: dict[str, Any] = {**self._options, "messages": messages}
        if system is not None:
            request["system"] = system
        if tools:
            offered = [_declared(tool) for tool in tools]
            request["tools"] = [*self._options.get("tools", ()), *offered]
        return request

    async def stream(self, request: dict[str, Any]) -> AsyncIterator[Any]:
        """Call the model."""
        stream = await self._client.messages.create(**request, stream=True)
        try:
            async for event in stream:
                yield event
        finally:
            await stream.close()

    def text_of(self, chunk: Any) -> str:
        """The text of an event, or of a whole message."""
        if get(chunk, "type") == "message":
            blocks = [get(block, "text") for block in _blocks(chunk, "text")]
            return "".join(text or "" for text in blocks)
        delta = get(chunk, "delta")
        return get(delta, "text") or "" if get(delta, "type") == "text_delta" else ""

    def assemble(self, chunks: Sequence[Any]) -> Any:
        """Make one Message of the events."""
        return self.translator.assemble_response(chunks)

    def read(self, response: Any) -> ModelReply:
        """Read text and tool uses."""
        calls = tuple(
            ToolCall(get(use, "id"), get(use, "name"), dict(get(use, "input") or {}))
            for use in _blocks(response, "tool_use")
        )
        return ModelReply(self.text_of(response), calls)


def _message(turn: Turn) -> dict[str, Any] | None:
    if turn.role is Role.TOOLS:
        answers = [_answer(answer) for answer in turn.answers]
        return {"role": "user", "content": answers}
    if turn.role is Role.SYSTEM:
        return {"role": "user", "content": annotation(turn.text)}
    if turn.role is Role.USER:
        return {"role": "user", "content": turn.text}
    blocks = [_plain(block) for block in get(turn.raw, "content") or []]
    if turn.raw is None and turn.text:
        blocks = [{"type": "text", "text": turn.text}]
    # The service refuses a block of text without text.
    kept = [b for b in blocks if b.get("type") != "text" or b.get("text")]
    return {"role": "assistant", "content": kept} if kept else None


def _answer(answer: ToolAnswer) -> dict[str, Any]:
    block = {
        "type": "tool_result",
        "tool_use_id": answer.call.id,
        "content": answer.result.text,
    }
    return block if answer.result.error is None else {**block, "is_error": True}


def _declared(tool: ToolSpec) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters,
    }


def _blocks(message: Any, kind: str) -> list[Any]:
    content = get(message, "content") or []
    return [block for block in content if get(block, "type") == kind]


def _plain(block: Any) -> dict[str, Any]:
    if isinstance(block, dict):
        return block
    plain: dict[str, Any] = block.model_dump(exclude_none=True)
    return plain
