"""Values that are in the stable shape already."""

from __future__ import annotations

from typing import Any

import pytest

from hookline.errors import TranslationError
from hookline.translators import (
    LLMMessage,
    LLMRequest,
    LLMUsage,
    to_wire,
)
from hookline.translators.passthrough import StableTranslator

translator = StableTranslator()
HI = {"role": "user", "content": "hi"}
REQUEST: dict[str, Any] = {
    "model": "m",
    "messages": [HI],
    "config": {"temperature": 1, "other": [1]},
    "toolConfig": {"mode": "ANY", "allowedFunctionNames": ["a"]},
    "beyond": "kept",
}
RESPONSE: dict[str, Any] = {
    "candidates": [{"content": {"role": "model", "parts": ["h", "i"]}, "index": 0}],
    "usageMetadata": {"promptTokenCount": 1},
}


def test_request_passes_through() -> None:
    """HOOK-074: unchanged, without fields that the shape does not have."""
    shown = to_wire(translator.to_hook_llm_request(REQUEST))
    assert shown == {key: REQUEST[key] for key in REQUEST if key != "beyond"}


def test_changes_are_merged_into_the_request() -> None:
    """HOOK-078: settings key by key; fields that the shape does not have stay."""
    change = {"config": {"temperature": 0}, "toolConfig": {"mode": "NONE"}}
    changed = translator.from_hook_llm_request(change, REQUEST)
    assert changed == {
        **REQUEST,
        "config": {"temperature": 0, "other": [1]},
        "toolConfig": {"mode": "NONE", "allowedFunctionNames": ["a"]},
    }
    assert translator.from_hook_llm_request({"model": "m"}, REQUEST) is REQUEST


def test_edited_message_keeps_unknown_fields() -> None:
    """HOOK-078."""
    asked = {"role": "user", "content": "hello there", "name": "ann"}
    request = {"model": "m", "messages": [asked, {**HI, "id": 2}]}
    new = {"role": "model", "content": "new"}
    change = {"messages": [{**HI, "content": "ho"}, HI, new]}
    changed = translator.from_hook_llm_request(change, request)
    assert changed["messages"] == [
        {"role": "user", "content": "ho", "name": "ann"},
        {**HI, "id": 2},
        new,
    ]


def test_struct_stays_a_struct() -> None:
    request = LLMRequest("m", [LLMMessage("user", "hi")])
    changed = translator.from_hook_llm_request({"model": "n"}, request)
    assert changed == LLMRequest("n", [LLMMessage("user", "hi")])


def test_response_gets_the_text_of_its_first_candidate() -> None:
    """HOOK-073."""
    assert translator.to_hook_llm_response(RESPONSE).text == "hi"
    assert translator.to_hook_llm_response({"text": "ho"}).text == "ho"


@pytest.mark.parametrize(
    "change",
    [
        {"text": "ho"},
        {"candidates": [{"content": {"role": "model", "parts": ["h", "o"]}}]},
        {**RESPONSE, "text": "ho"},
    ],
    ids=["text", "candidates", "both, text changed"],
)
def test_text_and_candidates_stay_consistent(change: dict[str, Any]) -> None:
    """HOOK-079."""
    changed = translator.from_hook_llm_response(change, {**RESPONSE, "text": "hi"})
    shown = translator.to_hook_llm_response(changed)
    assert shown.text == "ho"
    assert "".join(shown.candidates[0].content.parts) == "ho"
    assert shown.usage_metadata == LLMUsage(1)


def test_response_stays_itself_when_nothing_changed() -> None:
    """HOOK-079."""
    response = {**RESPONSE, "text": "hi"}
    assert translator.from_hook_llm_response({"text": "hi"}, response) is response


@pytest.mark.parametrize("value", [{}, {"model": "m"}, 7, None, {"text": 5}])
def test_other_shapes_are_refused(value: Any) -> None:
    with pytest.raises(TranslationError):
        translator.to_hook_llm_request(value)
    with pytest.raises(TranslationError):
        translator.to_hook_llm_response(value)


def test_stream_is_joined() -> None:
    whole = translator.assemble_response([{"text": "h"}, {"text": "i"}])
    assert translator.to_hook_llm_response(whole).text == "hi"
