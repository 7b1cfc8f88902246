"""Models behind the OpenAI client: Chat Completions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from hookline.agent.conversation import ModelReply, Role, ToolCall, ToolSpec, Turn
from hookline.protocol.jsontext import decode, encode
from hookline.translators.openai import OpenAITranslator
from hookline.translators.sdk_objects import get

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIModel:
    """Streams ``client.chat.completions.create``.

    ``options`` go into every request: ``temperature`` and so on.
    """

    def __init__(self, client: AsyncOpenAI, model: str, **options: Any) -> None:
        self._client = client
        self._name = model
        self._options = options
        self.translator = OpenAITranslator()

    def build(
        self, turns: Sequence[Turn], tools: Sequence[ToolSpec], system: str | None
    ) -> dict[str, Any]:
        """Make the arguments of ``create``."""
        messages = [message for turn in turns for message in _messages(turn)]
        if system is not None:
            messages.insert(0, {"role": "system", "content": system})
        request = {**self._options, "model": self._name, "messages": messages}
        if tools:
            offered = [_declared(tool) for tool in tools]
            request["tools"] = [*self._options.get("tools", ()), *offered]
        return request

    async def stream(self, request: dict[str, Any]) -> AsyncIterator[Any]:
        """Call the model."""
        stream = await self._client.chat.completions.create(**request, stream=True)
        try:
            async for chunk in stream:
                yield chunk
        finally:
            await stream.close()

    def text_of(self, chunk: Any) -> str:
        """The text of the first choice."""
        choices = get(chunk, "choices") or []
        said = get(choices[0], "delta", "message") if choices else None
        return get(said, "content") or ""

    def assemble(self, chunks: Sequence[Any]) -> Any:
        """Make one ChatCompletion of the chunks."""
        return self.translator.assemble_response(chunks)

    def read(self, response: Any) -> ModelReply:
        """Read text and tool calls of the first choice."""
        calls = [_call(call) for call in _tool_calls(response)]
        return ModelReply(self.text_of(response), tuple(calls))


def _messages(turn: Turn) -> list[dict[str, Any]]:
    if turn.role is Role.TOOLS:
        return [
            {
                "role": "tool",
                "tool_call_id": answer.call.id,
                "content": answer.result.text,
            }
            for answer in turn.answers
        ]
    if turn.role is not Role.MODEL:
        return [{"role": turn.role.value, "content": turn.text}]
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": get(call, "id"),
                "type": "function",
                "function": {
                    "name": get(get(call, "function"), "name"),
                    "arguments": get(get(call, "function"), "arguments") or "{}",
                },
            }
            for call in _tool_calls(turn.raw) or map(_written, turn.calls)
        ]
    return [message] if turn.text or turn.calls else []


def _declared(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    }


def _tool_calls(response: Any) -> list[Any]:
    choices = get(response, "choices") or []
    message = get(choices[0], "message") if choices else None
    found = get(message, "tool_calls") or []
    return [call for call in found if get(call, "function") is not None]


def _call(call: Any) -> ToolCall:
    function = get(call, "function")
    name, text = get(function, "name") or "", get(function, "arguments") or "{}"
    try:
        arguments = decode(text)
    except ValueError as error:
        return ToolCall(get(call, "id"), name, {}, f"arguments are no JSON: {error}")
    if not isinstance(arguments, dict):
        return ToolCall(get(call, "id"), name, {}, "arguments are no JSON object")
    return ToolCall(get(call, "id"), name, arguments)


def _written(call: ToolCall) -> dict[str, Any]:
    arguments = encode(call.input).decode()
    return {"id": call.id, "function": {"name": call.name, "arguments": arguments}}
