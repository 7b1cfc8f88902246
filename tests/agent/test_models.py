"""The agent's models behind the SDKs: histories of a host, and plain clients.

Issue 14, "Clients: one line".
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anthropic
import openai
from google import genai

from hookline.agent import (
    AnthropicModel,
    GenAIModel,
    OpenAIModel,
    Role,
    ToolAnswer,
    ToolCall,
    ToolResult,
    Turn,
)
from tests.support.model_calls import ScriptedServer, client_of

CALL = ToolCall("c1", "look", {"path": "ü"})
FAILED = ToolResult(llm_content="Error: gone", error="gone")
RESTORED = [
    Turn(role=Role.USER, text="hi"),
    Turn(role=Role.MODEL, text="let me look"),
    Turn(role=Role.MODEL),
    Turn(role=Role.SYSTEM, text="be brief"),
    Turn(role=Role.TOOLS, answers=(ToolAnswer(CALL, FAILED),)),
]
"""A history without the SDKs' own objects, as a host may have kept it."""


def test_genai_takes_a_history_without_its_own_objects() -> None:
    model = GenAIModel(genai.Client(api_key="k"), "m")
    request = model.build(RESTORED, [], None)
    contents = [content.model_dump(exclude_none=True) for content in request.contents]
    answer = {"name": "look", "id": "c1", "response": {"error": "Error: gone"}}
    assert contents == [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"text": "let me look"}]},
        {"role": "user", "parts": [{"text": "[System] be brief"}]},
        {"role": "user", "parts": [{"function_response": answer}]},
    ]
    assert model.read(model.assemble([])).text == ""


def test_openai_takes_a_history_without_its_own_objects() -> None:
    model = OpenAIModel(openai.AsyncOpenAI(api_key="k"), "m")
    turns = [*RESTORED[:2], Turn(role=Role.MODEL, calls=(CALL,)), *RESTORED[2:]]
    function = {"name": "look", "arguments": '{"path":"ü"}'}
    call = {"id": "c1", "type": "function", "function": function}
    assert model.build(turns, [], "be good")["messages"] == [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "let me look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "system", "content": "be brief"},
        {"role": "tool", "tool_call_id": "c1", "content": "Error: gone"},
    ]


def test_anthropic_takes_a_history_without_its_own_objects() -> None:
    model = AnthropicModel(anthropic.AsyncAnthropic(api_key="k"), "m")
    request = model.build(RESTORED, [], "be good")
    answer = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": "Error: gone",
        "is_error": True,
    }
    assert request["system"] == "be good"
    assert request["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "let me look"}]},
        {"role": "user", "content": "[System] be brief"},
        {"role": "user", "content": [answer]},
    ]


async def test_plain_clients_block_no_loop_and_streams_that_are_left_are_closed(
    model_server: ScriptedServer,
) -> None:
    model_server.answers("one two", "one two")
    model_server.gate = threading.Event()
    client = client_of("anthropic", model_server)
    model = AnthropicModel(client, "m")
    chunks: list[Any] = []
    started = asyncio.Event()

    async def read() -> None:
        async for chunk in model.stream(model.build([], [], None)):
            chunks.append(chunk)
            started.set()

    work = asyncio.create_task(read())
    await started.wait()
    model_server.gate.set()  # the stream waits for this, and this loop runs
    await work
    assert model.text_of(model.assemble(chunks)) == "one two"
    stream: Any = model.stream(model.build([], [], None))
    assert (await anext(stream)).type == "message_start"
    await stream.aclose()
    client.close()
