"""Which translator a value gets (protocol.md#translation)."""

from __future__ import annotations

import subprocess
import sys
from types import MappingProxyType
from typing import Any

import pytest

from hookline.errors import TranslationError
from hookline.protocol.inputs import TRANSLATORS
from hookline.translators import (
    LLMMessage,
    LLMRequest,
    pick_translator,
    stable_wire,
)
from hookline.translators.anthropic import AnthropicTranslator
from hookline.translators.genai import GenAITranslator, GenerateContentRequest
from hookline.translators.openai import OpenAITranslator
from hookline.translators.passthrough import StableTranslator

TEXT_PARTS = {"candidates": [{"content": {"role": "model", "parts": ["hi"]}}]}
OBJECT_PARTS = {"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}}]}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        pytest.param({"contents": "hi"}, GenAITranslator, id="contents"),
        pytest.param({"messages": []}, StableTranslator, id="messages"),
        pytest.param(TEXT_PARTS, StableTranslator, id="parts that are strings"),
        pytest.param(OBJECT_PARTS, GenAITranslator, id="parts that are objects"),
        pytest.param({"text": "hi"}, StableTranslator, id="text"),
        pytest.param(
            LLMRequest("m", [LLMMessage("user", "hi")]), StableTranslator, id="Struct"
        ),
        pytest.param(
            GenerateContentRequest("m", "hi"), GenAITranslator, id="our request"
        ),
    ],
)
def test_pick_translator_goes_by_shape(value: object, kind: type) -> None:
    """For dicts ``contents`` is google-genai, ``messages`` stable.

    protocol.md#translation
    """
    assert isinstance(pick_translator(value), kind)


@pytest.mark.parametrize("value", [7, None, "hi", [], {}, {"prompt": "hi"}, object()])
def test_pick_translator_describes_a_value_of_unknown_shape(
    value: object,
) -> None:
    with pytest.raises(TranslationError, match="expected"):
        pick_translator(value)


def test_pick_translator_lists_the_names_when_a_name_is_unknown() -> None:
    with pytest.raises(TranslationError, match=r"'gemini'.*genai.*stable"):
        pick_translator({"contents": "hi"}, "gemini")


HI = {"role": "user", "content": "hi"}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}
PICTURE = {"type": "image", "source": {"type": "url", "url": "https://x"}}


def block(kind: str = "text") -> dict[str, Any]:
    return {"type": kind, "text": "hi"}


def said(content: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def asked(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **more}


OPENAI_REQUESTS: dict[str, dict[str, Any]] = {
    "list content": asked(said([block()])),
    "input_text": asked(said([block("input_text")])),
    "an image": asked(said([block(), IMAGE])),
    "calls beside null": asked(HI, said(None, "assistant", tool_calls=[CALL])),
    "calls without content": asked(HI, {"role": "assistant", "tool_calls": [CALL]}),
    "an older call": asked(HI, said(None, "assistant", function_call={"name": "f"})),
    "assistant": asked(HI, said("yo", "assistant")),
    "developer": asked(said("be kind", "developer"), HI),
    "tool": asked(HI, said("x", "tool", tool_call_id="1")),
    "function": asked(HI, said("x", "function", name="f")),
    "a temperature": asked(HI, temperature=0.5),
    "tools": asked(HI, tools=[{"type": "function", "function": {"name": "f"}}]),
    "Responses, text": {"model": "m", "input": "hi"},
    "Responses, items": {"model": "m", "input": [said([block("input_text")])]},
    "Responses, instructions": {"model": "m", "instructions": "x", "input": "hi"},
    "Responses, a conversation": {"previous_response_id": "r", "input": "hi"},
    "another cloud's name": asked(HI, said("yo", "assistant"), model="a/claude-x"),
}
ANTHROPIC_REQUESTS: dict[str, dict[str, Any]] = {
    "system": asked(HI, system="be kind"),
    "max_tokens and its model": asked(HI, model="claude-x", max_tokens=5),
    "the model on another cloud": asked(HI, model="us.anthropic.claude-x", top_k=5),
    "tool_use": asked(HI, said([{"type": "tool_use", "name": "f"}], "assistant")),
    "tool_result": asked(HI, said([{"type": "tool_result", "content": "x"}])),
    "an image": asked(said([block(), PICTURE])),
    "input_schema": asked(HI, tools=[{"name": "f", "input_schema": {}}]),
    "a server tool": asked(HI, tools=[{"type": "web_search_20250305", "name": "s"}]),
}
STABLE_REQUESTS: dict[str, dict[str, Any]] = {
    "text": asked(HI),
    "system and model": asked(said("be kind", "system"), HI, said("yo", "model")),
    "config": asked(HI, config={"temperature": 0.5}),
    "toolConfig": asked(HI, toolConfig={"mode": "NONE"}),
    "a key of the caller": asked({**HI, "cursor": 5}, beyond=1),
    "the role of another host": asked(said("hi", "critic")),
}
RESPONSES: dict[str, tuple[type, dict[str, Any]]] = {
    "chat": (
        OpenAITranslator,
        {"choices": [{"message": said("hi", "assistant")}], "usage": {}},
    ),
    "items": (
        OpenAITranslator,
        {
            "output": [
                {**said([block("output_text")], "assistant"), "type": "message"}
            ],
            "text": {"format": {"type": "text"}},
            "instructions": None,
        },
    ),
    "message": (
        AnthropicTranslator,
        {"type": "message", "role": "assistant", "content": [block()]},
    ),
    "blocks": (AnthropicTranslator, {"content": [block()], "stop_reason": "end_turn"}),
    "text": (StableTranslator, {"text": "hi"}),
}


@pytest.mark.parametrize(
    ("kind", "request_"),
    [
        pytest.param(kind, request, id=f"{kind.__name__}, {name}")
        for kind, requests in (
            (OpenAITranslator, OPENAI_REQUESTS),
            (AnthropicTranslator, ANTHROPIC_REQUESTS),
            (StableTranslator, STABLE_REQUESTS),
        )
        for name, request in requests.items()
    ],
)
def test_requests_of_every_sdk_are_recognised_as_dicts(
    kind: type, request_: dict[str, Any]
) -> None:
    """Issue 12.5: and guards see their text, without ``translator=``.

    protocol.md#translation
    """
    for given in (request_, MappingProxyType(request_)):
        assert isinstance(pick_translator(given), kind)
        assert "hi" in str(stable_wire("llm_request", given)["messages"])


@pytest.mark.parametrize("name", RESPONSES)
def test_responses_of_every_sdk_are_recognised_as_dicts(name: str) -> None:
    """protocol.md#translation."""
    kind, response = RESPONSES[name]
    for given in (response, MappingProxyType(response)):
        assert isinstance(pick_translator(given), kind)
        assert stable_wire("llm_response", given)["text"] == "hi"


def test_the_names_of_translators_are_those_that_exist() -> None:
    for name in set(TRANSLATORS) - {"auto"}:
        pick_translator({}, name)


def test_dicts_are_translated_without_importing_an_sdk() -> None:
    code = """
import sys
from hookline.translators import pick_translator
request = {"model": "m", "contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
translator = pick_translator(request)
changed = translator.from_hook_llm_request(
    {"messages": [{"role": "user", "content": "ho"}, {"role": "model", "content": "x"}],
     "config": {"temperature": 0}, "toolConfig": {"mode": "NONE"}}, request)
assert changed["contents"][0]["parts"] == [{"text": "ho"}], changed
loaded = {"google", "openai", "anthropic", "pydantic"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)
