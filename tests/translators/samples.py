"""The same conversation in the real objects of each SDK, for the shared suite."""

from __future__ import annotations

import json
from typing import Any

from anthropic import types as claude
from google.genai import types as genai
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from hookline.translators.anthropic import AnthropicTranslator
from hookline.translators.genai import GenAITranslator, GenerateContentRequest
from hookline.translators.openai import OpenAITranslator

from .wires import (
    ARGUMENT_TEXT,
    ARGUMENTS,
    chat_chunk,
    chat_response,
    claude_event,
    claude_response,
    genai_response,
    item_call,
    item_event,
    item_message,
    item_response,
    wire,
)

IMAGE_URL = "data:image/png;base64,AAAA"


class GenAIObjects:
    translator = GenAITranslator()

    def make_request(self) -> Any:
        call = genai.FunctionCall(name="read_file", args=ARGUMENTS)
        result = genai.FunctionResponse(name="read_file", response={"output": "x"})
        return GenerateContentRequest(
            "m-1",
            [
                genai.Content(
                    role="user",
                    parts=[
                        genai.Part(text="look at this"),
                        genai.Part(
                            inline_data=genai.Blob(mime_type="image/png", data=b"\0")
                        ),
                    ],
                ),
                genai.Content(
                    role="model",
                    parts=[
                        genai.Part(text="hm", thought=True),
                        genai.Part(text="calling"),
                        genai.Part(function_call=call),
                    ],
                ),
                genai.Content(
                    role="user", parts=[genai.Part(function_response=result)]
                ),
                genai.Content(role="model", parts=[genai.Part(text="done")]),
            ],
            genai.GenerateContentConfig(
                temperature=0.5,
                system_instruction="be kind",
                tools=[
                    genai.Tool(
                        function_declarations=[
                            genai.FunctionDeclaration(name="read_file"),
                            genai.FunctionDeclaration(name="write_file"),
                        ]
                    )
                ],
                safety_settings=[
                    genai.SafetySetting(
                        category=genai.HarmCategory.HARM_CATEGORY_HARASSMENT,
                        threshold=genai.HarmBlockThreshold.BLOCK_NONE,
                    )
                ],
            ),
        )

    def make_response(self, text: str) -> Any:
        return genai.GenerateContentResponse.model_validate(
            genai_response([{"text": text}])
        )

    def make_response_with_call(self, text: str) -> Any:
        call = {"functionCall": {"name": "read_file", "args": ARGUMENTS}}
        return genai.GenerateContentResponse.model_validate(
            genai_response([{"text": "hm", "thought": True}, {"text": text}, call])
        )

    def make_chunks(self) -> list[Any]:
        call = {"functionCall": {"name": "read_file", "args": ARGUMENTS}}
        pieces: list[list[dict[str, Any]]] = [
            [{"text": "Hel"}],
            [{"text": "lo"}],
            [call],
        ]
        return [
            genai.GenerateContentResponse.model_validate(genai_response(parts))
            for parts in pieces
        ]

    def text_of(self, response: Any) -> str | None:
        text: str | None = response.text
        return text

    def calls_in(self, response: Any) -> list[tuple[str, dict[str, Any]]]:
        return [(call.name, call.args) for call in response.function_calls or []]

    def outline(self, request: Any) -> list[str]:
        parts = [part for content in request.contents for part in content.parts]
        kinds = {
            "text": "text",
            "inline_data": "image",
            "function_call": "call",
            "function_response": "result",
        }
        return [
            kinds[name]
            for part in parts
            if not part.thought
            for name, value in part
            if name in kinds and value is not None
        ]

    def system_of(self, request: Any) -> str:
        return str(request.config.system_instruction)


class GenAIDicts(GenAIObjects):
    def make_request(self) -> Any:
        request = super().make_request()
        return {
            "model": request.model,
            "contents": [wire(content) for content in request.contents],
            "config": wire(request.config),
        }

    def make_response(self, text: str) -> Any:
        return wire(super().make_response(text))

    def make_response_with_call(self, text: str) -> Any:
        return wire(super().make_response_with_call(text))

    def text_of(self, response: Any) -> str | None:
        return super().text_of(_as_genai(response))

    def calls_in(self, response: Any) -> list[tuple[str, dict[str, Any]]]:
        return super().calls_in(_as_genai(response))

    def outline(self, request: Any) -> list[str]:
        contents = [genai.Content.model_validate(one) for one in request["contents"]]
        return super().outline(GenerateContentRequest("m-1", contents))

    def system_of(self, request: Any) -> str:
        return str(request["config"]["systemInstruction"])


class OpenAIChat:
    translator = OpenAITranslator()

    def make_request(self) -> Any:
        call = {
            "id": "c1",
            "type": "function",
            "function": {"name": "read_file", "arguments": ARGUMENT_TEXT},
        }
        return {
            "model": "m-1",
            "temperature": 0.5,
            "messages": [
                {"role": "developer", "content": "be kind"},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "look at this"},
                        {"type": "image_url", "image_url": {"url": IMAGE_URL}},
                    ],
                },
                {"role": "assistant", "content": "calling", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "x"},
                {"role": "assistant", "content": "done"},
            ],
            "tools": [
                {"type": "function", "function": {"name": "read_file"}},
                {"type": "function", "function": {"name": "write_file"}},
            ],
        }

    def make_response(self, text: str) -> Any:
        return ChatCompletion.model_validate(chat_response(text, []))

    def make_response_with_call(self, text: str) -> Any:
        call = {
            "id": "c1",
            "type": "function",
            "function": {"name": "read_file", "arguments": ARGUMENT_TEXT},
        }
        return ChatCompletion.model_validate(chat_response(text, [call]))

    def make_chunks(self) -> list[Any]:
        half = len(ARGUMENT_TEXT) // 2
        start = {
            "index": 0,
            "id": "c1",
            "type": "function",
            "function": {"name": "read_file", "arguments": ""},
        }
        rest = [
            {"index": 0, "function": {"arguments": piece}}
            for piece in (ARGUMENT_TEXT[:half], ARGUMENT_TEXT[half:])
        ]
        deltas: list[dict[str, Any]] = [
            {"role": "assistant", "content": ""},
            {"content": "Hel"},
            {"content": "lo"},
            {"tool_calls": [start]},
            *({"tool_calls": [piece]} for piece in rest),
        ]
        return [chat_chunk(delta) for delta in deltas] + [chat_chunk({}, "tool_calls")]

    def text_of(self, response: Any) -> str | None:
        text: str | None = response.choices[0].message.content
        return text

    def calls_in(self, response: Any) -> list[tuple[str, dict[str, Any]]]:
        calls = response.choices[0].message.tool_calls or []
        return [
            (call.function.name, json.loads(call.function.arguments)) for call in calls
        ]

    def outline(self, request: Any) -> list[str]:
        found: list[str] = []
        for message in request["messages"]:
            if message["role"] in ("system", "developer"):
                continue
            if message["role"] == "tool":
                found.append("result")
                continue
            content = message.get("content")
            blocks = content if isinstance(content, list) else [{"type": "text"}]
            kinds = {"text": "text", "image_url": "image"}
            found += [kinds[block["type"]] for block in blocks if content is not None]
            found += ["call" for _ in message.get("tool_calls", [])]
        return found

    def system_of(self, request: Any) -> str:
        return "\n".join(
            message["content"]
            for message in request["messages"]
            if message["role"] in ("system", "developer")
        )


class OpenAIResponses:
    translator = OpenAITranslator()

    def make_request(self) -> Any:
        return {
            "model": "m-1",
            "temperature": 0.5,
            "instructions": "be kind",
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "look at this"},
                        {"type": "input_image", "image_url": IMAGE_URL},
                    ],
                },
                {"role": "assistant", "content": "calling"},
                {
                    "type": "function_call",
                    "call_id": "c1",
                    "name": "read_file",
                    "arguments": ARGUMENT_TEXT,
                },
                {"type": "function_call_output", "call_id": "c1", "output": "x"},
                {"type": "message", "role": "assistant", "content": "done"},
            ],
            "tools": [
                {"type": "function", "name": "read_file"},
                {"type": "function", "name": "write_file"},
            ],
        }

    def make_response(self, text: str) -> Any:
        return Response.model_validate(item_response([item_message(text)]))

    def make_response_with_call(self, text: str) -> Any:
        output = [item_message(text), item_call()]
        return Response.model_validate(item_response(output))

    def make_chunks(self) -> list[Any]:
        whole = item_response([item_message("Hello"), item_call()])
        events: list[dict[str, Any]] = [
            {
                "type": "response.created",
                "response": {**whole, "output": [], "status": "in_progress"},
            },
            {
                "type": "response.output_text.delta",
                "delta": "Hel",
                "content_index": 0,
                "item_id": "m1",
                "output_index": 0,
                "logprobs": [],
            },
            {"type": "response.completed", "response": whole},
        ]
        return [item_event(event, at) for at, event in enumerate(events)]

    def text_of(self, response: Any) -> str | None:
        text: str = response.output_text
        return text

    def calls_in(self, response: Any) -> list[tuple[str, dict[str, Any]]]:
        return [
            (item.name, json.loads(item.arguments))
            for item in response.output
            if item.type == "function_call"
        ]

    def outline(self, request: Any) -> list[str]:
        found: list[str] = []
        kinds = {
            "input_text": "text",
            "input_image": "image",
            "function_call": "call",
            "function_call_output": "result",
        }
        for item in request["input"]:
            if item.get("role") == "system":
                continue
            if item.get("type") in kinds:
                found.append(kinds[item["type"]])
            elif isinstance(item["content"], str):
                found.append("text")
            else:
                found += [kinds[block["type"]] for block in item["content"]]
        return found

    def system_of(self, request: Any) -> str:
        told = [
            item["content"] for item in request["input"] if item.get("role") == "system"
        ]
        return "\n".join([request["instructions"], *told])


class Anthropic:
    translator = AnthropicTranslator()

    def make_request(self) -> Any:
        source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
        return {
            "model": "m-1",
            "max_tokens": 100,
            "extra_body": {"temperature": 0.5},
            "system": "be kind",
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "look at this"},
                        {"type": "image", "source": source},
                    ],
                },
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "s"},
                        {"type": "text", "text": "calling"},
                        {
                            "type": "tool_use",
                            "id": "t1",
                            "name": "read_file",
                            "input": ARGUMENTS,
                        },
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
                    ],
                },
                {"role": "assistant", "content": "done"},
            ],
            "tools": [
                {"name": "read_file", "input_schema": {"type": "object"}},
                {"name": "write_file", "input_schema": {"type": "object"}},
            ],
        }

    def make_response(self, text: str) -> Any:
        blocks = [{"type": "text", "text": text}]
        return claude.Message.model_validate(claude_response(blocks))

    def make_response_with_call(self, text: str) -> Any:
        blocks: list[dict[str, Any]] = [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": text},
            {"type": "tool_use", "id": "t1", "name": "read_file", "input": ARGUMENTS},
        ]
        return claude.Message.model_validate(claude_response(blocks, "tool_use"))

    def make_chunks(self) -> list[Any]:
        half = len(ARGUMENT_TEXT) // 2
        call = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {}}
        deltas: list[tuple[int, dict[str, Any]]] = [
            (0, {"type": "text_delta", "text": "Hel"}),
            (0, {"type": "text_delta", "text": "lo"}),
            (1, {"type": "input_json_delta", "partial_json": ARGUMENT_TEXT[:half]}),
            (1, {"type": "input_json_delta", "partial_json": ARGUMENT_TEXT[half:]}),
        ]
        starts: list[dict[str, Any]] = [{"type": "text", "text": ""}, call]
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": claude_response([], None)},
            *(
                {"type": "content_block_start", "index": at, "content_block": block}
                for at, block in enumerate(starts)
            ),
            *(
                {"type": "content_block_delta", "index": at, "delta": delta}
                for at, delta in deltas
            ),
            *({"type": "content_block_stop", "index": at} for at in (0, 1)),
            {
                "type": "message_delta",
                "delta": {"stop_reason": "tool_use", "stop_sequence": None},
                "usage": {"output_tokens": 2},
            },
            {"type": "message_stop"},
        ]
        return [claude_event(event) for event in events]

    def text_of(self, response: Any) -> str | None:
        text: str = response.content[0].text
        return text

    def calls_in(self, response: Any) -> list[tuple[str, dict[str, Any]]]:
        return [
            (block.name, block.input)
            for block in response.content
            if block.type == "tool_use"
        ]

    def outline(self, request: Any) -> list[str]:
        kinds = {
            "text": "text",
            "image": "image",
            "tool_use": "call",
            "tool_result": "result",
        }
        found: list[str] = []
        for message in request["messages"]:
            content = message["content"]
            blocks = [{"type": "text"}] if isinstance(content, str) else content
            found += [kinds[b["type"]] for b in blocks if b["type"] in kinds]
        return found

    def system_of(self, request: Any) -> str:
        return str(request["system"])


def _as_genai(response: Any) -> Any:
    if isinstance(response, dict):
        return genai.GenerateContentResponse.model_validate(response)
    return response
