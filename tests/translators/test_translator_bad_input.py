"""Bad input always raises a ``TranslationError`` that names the field."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hookline.errors import TranslationError
from hookline.translators import HookTranslator, pick_translator
from hookline.translators.anthropic import AnthropicTranslator
from hookline.translators.genai import GenAITranslator
from hookline.translators.openai import OpenAITranslator
from hookline.translators.passthrough import StableTranslator

from . import samples

TRANSLATORS: dict[str, HookTranslator] = {
    "genai": GenAITranslator(),
    "openai": OpenAITranslator(),
    "anthropic": AnthropicTranslator(),
    "stable": StableTranslator(),
}
USER = {"role": "user"}


@pytest.mark.parametrize(
    ("sdk", "request_", "field"),
    [
        ("genai", {"contents": None}, "contents"),
        ("genai", {"contents": 7}, "contents"),
        ("genai", {"contents": [7]}, r"contents\[0\]"),
        ("genai", {"contents": [{**USER, "parts": 7}]}, r"contents\[0\]\.parts"),
        ("genai", {"contents": [{**USER, "parts": [7]}]}, r"contents\[0\]\.parts\[0\]"),
        ("genai", {"contents": [{"role": 5, "parts": []}]}, r"contents\[0\]\.role"),
        ("genai", {"contents": [{**USER, "parts": [{"text": 5}]}]}, "text"),
        ("openai", {"messages": "x"}, "messages"),
        ("openai", {"messages": [5]}, r"messages\[0\]"),
        ("openai", {"messages": [{"content": "x"}]}, r"messages\[0\]\.role"),
        ("openai", {"messages": [{**USER, "content": 5}]}, r"messages\[0\]\.content"),
        ("openai", {"messages": [{**USER, "content": [5]}]}, r"content\[0\]"),
        ("openai", {"input": 5}, "input"),
        ("openai", {"input": [{"content": "x"}]}, r"input\[0\]\.role"),
        ("openai", {"input": [{"type": "message"}]}, r"input\[0\]\.role"),
        ("openai", {"input": [{"type": 5}]}, r"input\[0\]\.type"),
        ("anthropic", {"messages": 5}, "messages"),
        ("anthropic", {"messages": [{"content": "x"}]}, r"messages\[0\]\.role"),
        ("anthropic", {"messages": [USER]}, r"messages\[0\]\.content"),
        ("stable", {"messages": [{"content": "x"}]}, "role"),
        ("stable", {"messages": "x"}, "messages"),
        ("stable", {"messages": [{**USER, "content": []}]}, "content.*translator="),
    ],
)
def test_request_of_wrong_shape_is_refused_by_field(
    sdk: str, request_: dict[str, Any], field: str
) -> None:
    """DELTA-HPAY-004."""
    with pytest.raises(TranslationError, match=field):
        TRANSLATORS[sdk].to_hook_llm_request(request_)


@pytest.mark.parametrize(
    ("sdk", "response", "field"),
    [
        ("genai", {"candidates": 5}, "candidates"),
        ("genai", {"candidates": [5]}, r"candidates\[0\]"),
        ("genai", {"candidates": [{"content": {"parts": 5}}]}, "parts"),
        ("openai", {"choices": 5}, "choices"),
        ("openai", {"choices": [{}]}, r"choices\[0\]\.message"),
        ("openai", {"choices": [{"message": {"content": 5}}]}, "content"),
        ("openai", {"output": [5]}, r"output\[0\]"),
        ("anthropic", {"content": 5}, "content"),
        ("stable", {"candidates": [{"content": {"parts": [5]}}]}, "parts|role"),
    ],
)
def test_response_of_wrong_shape_is_refused_by_field(
    sdk: str, response: dict[str, Any], field: str
) -> None:
    """DELTA-HPAY-004."""
    with pytest.raises(TranslationError, match=field):
        TRANSLATORS[sdk].to_hook_llm_response(response)


KEYS = [
    "model", "messages", "contents", "input", "config", "role", "content", "parts",
    "text", "type", "tool_choice", "toolConfig", "functionCallingConfig", "mode",
    "candidates", "choices", "output", "message", "usage", "usageMetadata",
    "finishReason", "stop_reason", "tools", "name", "safetyRatings", "index",
    "allowedFunctionNames", "extra_body", "status", "incomplete_details", "thought",
    "tool_calls", "function", "system", "functionCall", "tool_config",
]  # fmt: skip
WORDS = ["user", "model", "text", "message", "tool", "function", "allowed_tools", "ANY"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=25,
)
objects = st.dictionaries(st.sampled_from(KEYS), json_values, max_size=6)


@pytest.mark.parametrize("sdk", TRANSLATORS)
@settings(max_examples=80, deadline=None)
@given(value=json_values | objects, change=objects)
def test_nothing_but_a_translation_error_is_raised(
    sdk: str, value: Any, change: dict[str, Any]
) -> None:
    """protocol.md#translation: for any value, from a caller or from a hook."""
    translator = TRANSLATORS[sdk]
    for function in (
        translator.to_hook_llm_request,
        translator.to_hook_llm_response,
        translator.to_hook_tool_config,
        translator.tool_names,
        lambda given: translator.from_hook_llm_request(change, given),
        lambda given: translator.from_hook_llm_response(change, given),
        pick_translator,
    ):
        with suppress(TranslationError):
            function(value)


@pytest.mark.parametrize(
    "sample",
    [
        samples.GenAIObjects(),
        samples.GenAIDicts(),
        samples.OpenAIChat(),
        samples.OpenAIResponses(),
        samples.Anthropic(),
    ],
    ids=lambda sample: type(sample).__name__,
)
@settings(max_examples=60, deadline=None)
@example(change={"candidates": [{"safetyRatings": False}]})
@example(change={"candidates": [{"safetyRatings": [{"category": 0}]}]})
@example(change={"candidates": [{"index": ""}]})
@given(change=objects)
def test_real_request_survives_any_hook_output(
    sample: Any, change: dict[str, Any]
) -> None:
    """A change is refused, or it gives a valid request; never half a change."""
    request, response = sample.make_request(), sample.make_response("hi")
    with suppress(TranslationError):
        changed = sample.translator.from_hook_llm_request(change, request)
        sample.translator.to_hook_llm_request(changed)
    with suppress(TranslationError):
        changed = sample.translator.from_hook_llm_response(change, response)
        sample.translator.to_hook_llm_response(changed)
