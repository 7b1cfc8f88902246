"""Which translator a value gets (PROTOCOL 9)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hookline.errors import TranslationError
from hookline.translators import LLMMessage, LLMRequest, pick_translator
from hookline.translators.genai import GenAITranslator, GenerateContentRequest
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
    """PROTOCOL 9: for dicts ``contents`` is google-genai, ``messages`` stable."""
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
