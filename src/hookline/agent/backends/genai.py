"""Models behind the google-genai client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
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
from hookline.errors import MissingExtraError
from hookline.translators.genai import GenAITranslator, GenerateContentRequest

if TYPE_CHECKING:
    from google.genai import Client, types

_OWN_ID = "hookline-"


class GenAIModel:
    """Streams ``client.aio.models.generate_content_stream``.

    ``config`` is what every request starts from: temperature, safety settings and so
    on. The SDK's automatic function calling is off: the scheduler runs the tools.
    """

    def __init__(
        self,
        client: Client,
        model: str,
        config: types.GenerateContentConfig | Mapping[str, Any] | None = None,
    ) -> None:
        self._types = _genai_types()
        self._client = client
        self._name = model
        given = config if config is not None else {}
        self._config = self._types.GenerateContentConfig.model_validate(
            dict(given) if isinstance(given, Mapping) else given
        )
        self.translator = GenAITranslator()

    def build(
        self, turns: Sequence[Turn], tools: Sequence[ToolSpec], system: str | None
    ) -> GenerateContentRequest:
        """Make the arguments of ``generate_content``."""
        contents = [made for turn in turns if (made := self._content(turn))]
        off = self._types.AutomaticFunctionCallingConfig(disable=True)
        changes: dict[str, Any] = {"automatic_function_calling": off}
        if system is not None:
            changes["system_instruction"] = system
        if tools:
            offered = self._types.Tool(function_declarations=self._declared(tools))
            changes["tools"] = [*(self._config.tools or []), offered]
        config = self._config.model_copy(update=changes)
        return GenerateContentRequest(self._name, contents, config)

    async def stream(self, request: GenerateContentRequest) -> AsyncIterator[Any]:
        """Call the model."""
        stream = await self._client.aio.models.generate_content_stream(
            model=request.model, contents=request.contents, config=request.config
        )
        async for chunk in stream:
            yield chunk

    def text_of(self, chunk: Any) -> str:
        """The text of the first candidate, thoughts left out."""
        parts = _parts(chunk)
        return "".join(p.text for p in parts if p.text and not p.thought)

    def assemble(self, chunks: Sequence[Any]) -> Any:
        """Make one response of the chunks."""
        if not chunks:
            return self._types.GenerateContentResponse()
        return self.translator.assemble_response(chunks)

    def read(self, response: Any) -> ModelReply:
        """Read text and function calls of the first candidate."""
        found = [part.function_call for part in _parts(response) if part.function_call]
        calls = tuple(
            ToolCall(
                call.id or f"{_OWN_ID}{at}", call.name or "", dict(call.args or {})
            )
            for at, call in enumerate(found)
        )
        return ModelReply(self.text_of(response), calls)

    def _declared(self, tools: Sequence[ToolSpec]) -> list[Any]:
        return [
            self._types.FunctionDeclaration(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=tool.parameters,
            )
            for tool in tools
        ]

    def _content(self, turn: Turn) -> Any:
        types = self._types
        if turn.role is Role.MODEL:
            parts = _parts(turn.raw) if turn.raw is not None else []
            parts = parts or ([types.Part(text=turn.text)] if turn.text else [])
            return types.Content(role="model", parts=parts) if parts else None
        if turn.role is Role.TOOLS:
            answers = [self._answer(answer) for answer in turn.answers]
            return types.Content(role="user", parts=answers)
        # Contents have no role for the system: it is marked as its word instead.
        text = annotation(turn.text) if turn.role is Role.SYSTEM else turn.text
        return types.Content(role="user", parts=[types.Part(text=text)])

    def _answer(self, answer: ToolAnswer) -> Any:
        key = "result" if answer.result.error is None else "error"
        call_id = None if answer.call.id.startswith(_OWN_ID) else answer.call.id
        response = self._types.FunctionResponse(
            id=call_id, name=answer.call.name, response={key: answer.result.text}
        )
        return self._types.Part(function_response=response)


def _parts(response: Any) -> list[Any]:
    candidates = response.candidates or []
    content = candidates[0].content if candidates else None
    return list(content.parts or []) if content is not None else []


def _genai_types() -> Any:
    try:
        from google.genai import types
    except ImportError as error:
        raise MissingExtraError("genai", "google-genai") from error
    return types
