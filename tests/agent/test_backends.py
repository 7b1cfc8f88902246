"""What the models behind the SDKs make of histories and of odd answers."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest
from google import genai

from hookline.agent import (
    AnthropicModel,
    GenAIModel,
    ModelClient,
    OpenAIModel,
    Role,
    ToolAnswer,
    ToolCall,
    ToolResult,
    Turn,
)

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


def model(sdk: str) -> ModelClient:
    if sdk == "genai":
        return GenAIModel(genai.Client(api_key="k"), "m")
    if sdk == "openai":
        return OpenAIModel(openai.AsyncOpenAI(api_key="k"), "m")
    return AnthropicModel(anthropic.AsyncAnthropic(api_key="k"), "m")


def test_genai_takes_a_history_without_its_own_objects() -> None:
    request = model("genai").build(RESTORED, [], None)
    found = [content.model_dump(exclude_none=True) for content in request.contents]
    answer = {"name": "look", "id": "c1", "response": {"error": "Error: gone"}}
    assert found == [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"text": "let me look"}]},
        {"role": "user", "parts": [{"text": "[System] be brief"}]},
        {"role": "user", "parts": [{"function_response": answer}]},
    ]


def test_openai_takes_a_history_without_its_own_objects() -> None:
    turns = [*RESTORED[:2], Turn(role=Role.MODEL, calls=(CALL,)), *RESTORED[2:]]
    request = model("openai").build(turns, [], "be good")
    function = {"name": "look", "arguments": '{"path":"ü"}'}
    call = {"id": "c1", "type": "function", "function": function}
    assert request["messages"] == [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "let me look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "system", "content": "be brief"},
        {"role": "tool", "tool_call_id": "c1", "content": "Error: gone"},
    ]


def test_anthropic_takes_a_history_without_its_own_objects() -> None:
    request = model("anthropic").build(RESTORED, [], "be good")
    answer = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": "Error: gone",
        "is_error": True,
    }
    said = [{"type": "text", "text": "let me look"}]
    assert request["system"] == "be good"
    assert request["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": said},
        {"role": "user", "content": "[System] be brief"},
        {"role": "user", "content": [answer]},
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [("{nonsense", "invalid JSON"), ("[1]", "expected a JSON object")],
)
def test_openai_arguments_that_cannot_be_read_are_a_problem_of_the_call(
    arguments: str, problem: str
) -> None:
    call = {"id": "c", "function": {"name": "look", "arguments": arguments}}
    message: dict[str, Any] = {"content": None, "tool_calls": [call]}
    reply = model("openai").read({"choices": [{"message": message}]})
    assert problem in (reply.calls[0].problem or "")


def test_genai_without_a_chunk_is_an_empty_response() -> None:
    found = model("genai")
    assert found.read(found.assemble([])).text == ""
