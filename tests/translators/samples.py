"""The conversation of ``samples.json`` in each SDK, for the shared suite."""

from __future__ import annotations

import json
from typing import Any

from google.genai import types as genai_types

from hookline.translators import HookTranslator, pick_translator
from tests.support.translated import chunk_objects, dumped, samples, sdk_objects

_TEXT = ("text", "input_text")
_KINDS = {
    **dict.fromkeys(("inlineData", "image_url", "input_image", "image"), "image"),
    **dict.fromkeys(("functionCall", "function_call", "tool_use"), "call"),
    **dict.fromkeys(
        ("functionResponse", "function_call_output", "tool_result"), "result"
    ),
}


class Sample:
    """The conversation as objects of one SDK; requests are dicts where it has none."""

    name: str
    sdk: str
    history = "messages"

    @property
    def translator(self) -> HookTranslator:
        return pick_translator({}, self.sdk)

    def make_request(self) -> Any:
        return samples()[f"{self.name} request"]

    def make_response(self, text: str) -> Any:
        return self.response(samples(text)[f"{self.name} response"])

    def make_response_with_call(self, text: str) -> Any:
        return self.response(samples(text)[f"{self.name} response with a call"])

    def make_chunks(self) -> list[Any]:
        return chunk_objects(self.sdk, samples()[f"{self.name} chunks"])

    def response(self, plain: dict[str, Any]) -> Any:
        return sdk_objects(self.sdk, "response", plain)

    def outline(self, request: Any) -> list[str]:
        entries = dumped(request)[self.history]
        return [kind for entry in entries for kind in _kinds(entry)]


def _kinds(entry: dict[str, Any]) -> list[str]:
    """What an entry of a history holds, without the system instruction."""
    if entry.get("role") in ("system", "developer"):
        return []
    if entry.get("role") == "tool":
        return ["result"]
    if entry.get("type") in _KINDS:
        return [_KINDS[entry["type"]]]
    content = entry.get("content", entry.get("parts"))
    blocks = [{"type": "text"}] if isinstance(content, str) else content or []
    kinds = [_kind(block) for block in blocks]
    calls = ["call" for _ in entry.get("tool_calls", ())]
    return [kind for kind in kinds if kind] + calls


def _kind(block: dict[str, Any]) -> str | None:
    kind = block.get("type")
    if kind is None:
        kind = next((name for name in (*_KINDS, "text") if name in block), None)
        kind = None if block.get("thought") else kind
    return "text" if kind in _TEXT else _KINDS.get(kind or "")


class GenAIDicts(Sample):
    name = sdk = "genai"
    history = "contents"

    def response(self, plain: dict[str, Any]) -> Any:
        return plain

    def text_of(self, response: Any) -> str | None:
        text: str | None = _genai_response(response).text
        return text

    def calls_in(self, response: Any) -> list[tuple[str, dict[str, Any]]]:
        calls = _genai_response(response).function_calls or []
        return [(call.name, call.args) for call in calls]

    def system_of(self, request: Any) -> str:
        return str(dumped(request)["config"]["systemInstruction"])


class GenAIObjects(GenAIDicts):
    def make_request(self) -> Any:
        return sdk_objects("genai", "request", super().make_request())

    def response(self, plain: dict[str, Any]) -> Any:
        return _genai_response(plain)


def _genai_response(response: Any) -> Any:
    if not isinstance(response, dict):
        return response
    return genai_types.GenerateContentResponse.model_validate(response)


class OpenAIChat(Sample):
    name = "openai chat"
    sdk = "openai"

    def text_of(self, response: Any) -> str | None:
        text: str | None = response.choices[0].message.content
        return text

    def calls_in(self, response: Any) -> list[tuple[str, dict[str, Any]]]:
        calls = response.choices[0].message.tool_calls or []
        functions = [call.function for call in calls]
        return [(call.name, json.loads(call.arguments)) for call in functions]

    def system_of(self, request: Any) -> str:
        return _system_messages(request["messages"])


class OpenAIResponses(Sample):
    name = "openai responses"
    sdk = "openai"
    history = "input"

    def text_of(self, response: Any) -> str | None:
        text: str = response.output_text
        return text

    def calls_in(self, response: Any) -> list[tuple[str, dict[str, Any]]]:
        calls = [item for item in response.output if item.type == "function_call"]
        return [(call.name, json.loads(call.arguments)) for call in calls]

    def system_of(self, request: Any) -> str:
        return f"{request['instructions']}\n{_system_messages(request['input'])}"


def _system_messages(messages: list[dict[str, Any]]) -> str:
    return "\n".join(
        message["content"]
        for message in messages
        if message.get("role") in ("system", "developer")
    )


class Anthropic(Sample):
    name = sdk = "anthropic"

    def text_of(self, response: Any) -> str | None:
        text: str = response.content[0].text
        return text

    def calls_in(self, response: Any) -> list[tuple[str, dict[str, Any]]]:
        blocks = [block for block in response.content if block.type == "tool_use"]
        return [(block.name, block.input) for block in blocks]

    def system_of(self, request: Any) -> str:
        return str(request["system"])


SAMPLES = (
    *(GenAIObjects(), GenAIDicts(), OpenAIChat(), OpenAIResponses(), Anthropic()),
)
