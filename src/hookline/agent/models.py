"""Models for the agent: one class per SDK (a scripted one is in ``testing``).

SDKs and translators are imported by the class that needs them.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Mapping,
    Sequence,
)
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import structs, to_builtins

from hookline.protocol.values import decode, encode
from hookline.translators.values import (
    genai_types,
    get,
    is_mapping,
    items,
    string_of,
)

from .conversation import ModelReply, Role, ToolCall, ToolSpec, Turn

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from google.genai import Client, types
    from google.genai.client import AsyncClient
    from openai import AsyncOpenAI, OpenAI

    from hookline.translators.genai import GenerateContentRequest
    from hookline.translators.shape import HookTranslator


class _CreateModel:
    """A model whose SDK streams with ``create(**request, stream=True)``."""

    def __init__(
        self,
        client: Any,
        create: Any,
        translator: HookTranslator,
        options: dict[str, Any],
    ) -> None:
        self._is_async = hasattr(type(client), "__aenter__")
        self._create = create
        self._options = options
        self.translator = translator

    async def stream(self, request: dict[str, Any]) -> AsyncIterator[Any]:
        """Call the model."""
        create = partial(self._create, **request, stream=True)
        if self._is_async:
            async with await create() as stream:
                async for chunk in stream:
                    yield chunk
            return
        # A plain client must not block the event loop.
        stream = await asyncio.to_thread(create)
        try:
            chunks, end = iter(stream), object()
            while (chunk := await asyncio.to_thread(next, chunks, end)) is not end:
                yield chunk
        finally:
            await asyncio.to_thread(stream.close)

    def assemble(self, chunks: Sequence[Any]) -> Any:
        """Build the SDK's complete response from the chunks."""
        return self.translator.assemble_response(chunks)

    def _request(self, messages: list[Any], tools: list[Any]) -> dict[str, Any]:
        request = {**self._options, "messages": messages}
        if tools:
            request["tools"] = [*self._options.get("tools", ()), *tools]
        return request


def _described(tools: Sequence[ToolSpec], key: str) -> list[dict[str, Any]]:
    return [
        {"name": tool.name, "description": tool.description, key: tool.parameters}
        for tool in tools
    ]


class OpenAIModel(_CreateModel):
    """Chat Completions of OpenAI, streamed with ``client.chat.completions.create``.

    ``options`` go into every request: ``temperature`` and so on.
    """

    def __init__(
        self, client: OpenAI | AsyncOpenAI, model: str, **options: Any
    ) -> None:
        from hookline.translators.openai import OpenAITranslator

        super().__init__(
            client,
            client.chat.completions.create,
            OpenAITranslator(),
            {**options, "model": model},
        )

    def build(
        self, turns: Sequence[Turn], tools: Sequence[ToolSpec], system: str | None
    ) -> dict[str, Any]:
        """Build the arguments of ``create``."""
        messages = [message for turn in turns for message in _openai_messages(turn)]
        if system is not None:
            messages.insert(0, {"role": "system", "content": system})
        offered = [{"type": "function", "function": to_builtins(t)} for t in tools]
        return self._request(messages, offered)

    def text_of(self, chunk: Any) -> str:
        """The text of the first choice of a chunk."""
        choices = items(get(chunk, "choices"))
        message = get(choices[0], "delta", "message") if choices else None
        return string_of(get(message, "content")) or ""

    def read(self, response: Any) -> ModelReply:
        """Read text and tool calls of the first choice."""
        calls = []
        for call in _openai_calls(response):
            function, problem = get(call, "function"), None
            try:
                arguments = decode(get(function, "arguments") or "{}")
                if not isinstance(arguments, dict):
                    arguments, problem = {}, "arguments: expected a JSON object"
            except ValueError as error:
                arguments, problem = {}, f"arguments: invalid JSON: {error}"
            name = get(function, "name") or ""
            calls.append(ToolCall(get(call, "id"), name, arguments, problem))
        return ModelReply(self.text_of(response), tuple(calls))


def _openai_messages(turn: Turn) -> list[dict[str, Any]]:
    if turn.role is Role.TOOLS:
        return [
            {"role": "tool", "tool_call_id": a.call.id, "content": a.result.text}
            for a in turn.answers
        ]
    if turn.role is not Role.MODEL:
        return [{"role": turn.role.value, "content": turn.text}]
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        # The model's own spelling of the arguments, if it wrote the calls.
        arguments = {
            get(call, "id"): get(get(call, "function"), "arguments") or "{}"
            for call in _openai_calls(turn.raw)
        }
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": arguments.get(call.id) or encode(call.input).decode(),
                },
            }
            for call in turn.calls
        ]
    return [message] if turn.text or turn.calls else []


def _openai_calls(response: Any) -> list[Any]:
    choices = items(get(response, "choices"))
    message = get(choices[0], "message") if choices else None
    calls = items(get(message, "tool_calls"))
    return [call for call in calls if get(call, "function") is not None]


class AnthropicModel(_CreateModel):
    """Messages of Anthropic, streamed with ``client.messages.create``.

    ``options`` go into every request: ``thinking``, ``extra_body`` and so on;
    ``max_tokens`` is the limit of an answer.
    """

    def __init__(
        self,
        client: Anthropic | AsyncAnthropic,
        model: str,
        max_tokens: int = 4096,
        **options: Any,
    ) -> None:
        from hookline.translators.anthropic import AnthropicTranslator

        super().__init__(
            client,
            client.messages.create,
            AnthropicTranslator(),
            {**options, "model": model, "max_tokens": max_tokens},
        )

    def build(
        self, turns: Sequence[Turn], tools: Sequence[ToolSpec], system: str | None
    ) -> dict[str, Any]:
        """Build the arguments of ``create``."""
        messages = filter(None, map(_anthropic_message, turns))
        described = _described(tools, "input_schema")
        request = self._request(list(messages), described)
        return request if system is None else {**request, "system": system}

    def text_of(self, chunk: Any) -> str:
        """The text of a chunk, which is an event, or of a complete message."""
        if get(chunk, "type") == "message":
            texts = [get(block, "text") for block in _anthropic_blocks(chunk, "text")]
            return "".join(string_of(text) or "" for text in texts)
        delta = get(chunk, "delta")
        is_text = get(delta, "type") == "text_delta"
        return string_of(get(delta, "text")) or "" if is_text else ""

    def read(self, response: Any) -> ModelReply:
        """Read text and tool uses."""
        calls = []
        for use in _anthropic_blocks(response, "tool_use"):
            call_id, name, tool_input = (get(use, k) for k in ("id", "name", "input"))
            is_object = tool_input is None or is_mapping(tool_input)
            problem = None if is_object else "input: expected a JSON object"
            fields = dict(tool_input or {}) if is_object else {}
            calls.append(ToolCall(call_id, name, fields, problem))
        return ModelReply(self.text_of(response), tuple(calls))


def _anthropic_message(turn: Turn) -> dict[str, Any] | None:
    if turn.role is Role.TOOLS:
        results: list[dict[str, Any]] = []
        for answer in turn.answers:
            call_id, text = answer.call.id, answer.result.text
            block = {"type": "tool_result", "tool_use_id": call_id, "content": text}
            is_error = answer.result.error is not None
            results.append({**block, "is_error": True} if is_error else block)
        return {"role": "user", "content": results}
    if turn.role is not Role.MODEL:
        return {"role": "user", "content": turn.marked_text}
    blocks: list[dict[str, Any]] = [
        block if isinstance(block, dict) else block.model_dump(exclude_none=True)
        for block in items(get(turn.raw, "content"))
    ]
    if turn.raw is None and turn.text:
        blocks = [{"type": "text", "text": turn.text}]
    # The service rejects a text block without text.
    blocks = [b for b in blocks if b.get("type") != "text" or b.get("text")]
    return {"role": "assistant", "content": blocks} if blocks else None


def _anthropic_blocks(message: Any, kind: str) -> list[Any]:
    content = items(get(message, "content"))
    return [block for block in content if get(block, "type") == kind]


_OWN_ID = "hookline-"


class GenAIModel:
    """google-genai, streamed with ``client.aio.models.generate_content_stream``.

    A ``Client`` is plain and async in one; its ``aio`` alone will do.
    ``config`` is the base of every request: temperature, safety settings and so on.
    The SDK's automatic function calling is off: the scheduler runs the tools.
    """

    def __init__(
        self,
        client: Client | AsyncClient,
        model: str,
        config: types.GenerateContentConfig | Mapping[str, Any] | None = None,
    ) -> None:
        from hookline.translators.genai import GenAITranslator

        self._types = genai_types()
        self._client: Any = getattr(client, "aio", client)
        self._name = model
        base = dict(config or {}) if isinstance(config, Mapping | None) else config
        self._config = self._types.GenerateContentConfig.model_validate(base)
        self.translator = GenAITranslator()

    def build(
        self, turns: Sequence[Turn], tools: Sequence[ToolSpec], system: str | None
    ) -> GenerateContentRequest:
        """Build the arguments of ``generate_content``."""
        from hookline.translators.genai import GenerateContentRequest

        contents = list(filter(None, map(self._content, turns)))
        off = self._types.AutomaticFunctionCallingConfig(disable=True)
        # Only parsed responses can be shown, to people as to hooks.
        changes: dict[str, Any] = {
            "automatic_function_calling": off,
            "should_return_http_response": None,
        }
        if system is not None:
            changes["system_instruction"] = system
        if tools:
            declarations = _described(tools, "parameters_json_schema")
            offered = self._types.Tool(function_declarations=declarations)
            changes["tools"] = [*(self._config.tools or []), offered]
        config = self._config.model_copy(update=changes)
        return GenerateContentRequest(self._name, contents, config)

    async def stream(self, request: GenerateContentRequest) -> AsyncIterator[Any]:
        """Call the model."""
        send = self._client.models.generate_content_stream
        async for chunk in await send(**structs.asdict(request)):
            yield chunk

    def text_of(self, chunk: Any) -> str:
        """The text of the first candidate of a chunk, without thoughts."""
        parts = _genai_parts(chunk)
        return "".join(p.text for p in parts if p.text and not p.thought)

    def assemble(self, chunks: Sequence[Any]) -> Any:
        """Build one response from the chunks."""
        if not chunks:
            return self._types.GenerateContentResponse()
        return self.translator.assemble_response(chunks)

    def read(self, response: Any) -> ModelReply:
        """Read text and function calls of the first candidate."""
        parts = _genai_parts(response)
        sdk_calls = [part.function_call for part in parts if part.function_call]
        calls = [
            ToolCall(c.id or f"{_OWN_ID}{number}", c.name or "", dict(c.args or {}))
            for number, c in enumerate(sdk_calls)
        ]
        return ModelReply(self.text_of(response), tuple(calls))

    def _content(self, turn: Turn) -> Any:
        types = self._types
        if turn.role is Role.MODEL:
            parts = _genai_parts(turn.raw) if turn.raw is not None else []
            parts = parts or ([types.Part(text=turn.text)] if turn.text else [])
            return types.Content(role="model", parts=parts) if parts else None
        if turn.role is Role.TOOLS:
            parts = []
            for answer in turn.answers:
                call, key = answer.call, "result"
                if answer.result.error is not None:
                    key = "error"
                response = types.FunctionResponse(
                    id=None if call.id.startswith(_OWN_ID) else call.id,
                    name=call.name,
                    response={key: answer.result.text},
                )
                parts.append(types.Part(function_response=response))
            return types.Content(role="user", parts=parts)
        return types.Content(role="user", parts=[types.Part(text=turn.marked_text)])


def _genai_parts(response: Any) -> list[Any]:
    candidates = response.candidates or []
    content = candidates[0].content if candidates else None
    return list(content.parts or []) if content is not None else []
