"""Values that are in the stable shape already, and the shape itself."""

from __future__ import annotations

from typing import Any

import pytest

from hookline import Config, HookSystem
from hookline.errors import TranslationError
from hookline.translators import (
    HookToolConfig,
    LLMCandidate,
    LLMContent,
    LLMMessage,
    LLMRequest,
    LLMResponse,
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


def test_wire_spelling_leaves_out_what_is_absent() -> None:
    """HOOK-072, 073, 074."""
    assert to_wire(LLMRequest("m", [LLMMessage("user", "hi")])) == {
        "model": "m",
        "messages": [HI],
    }
    request = LLMRequest("m", [], {"topK": 1}, HookToolConfig("ANY", ["a"]))
    assert to_wire(request) == {
        "model": "m",
        "messages": [],
        "config": {"topK": 1},
        "toolConfig": {"mode": "ANY", "allowedFunctionNames": ["a"]},
    }
    candidate = LLMCandidate(LLMContent("model", ["hi"]), "STOP", 0)
    assert to_wire(LLMResponse([candidate], "hi", LLMUsage(1, 2, 3))) == {
        "text": "hi",
        "candidates": [
            {
                "content": {"role": "model", "parts": ["hi"]},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 1,
            "candidatesTokenCount": 2,
            "totalTokenCount": 3,
        },
    }


def test_values_are_frozen() -> None:
    with pytest.raises(AttributeError):
        LLMMessage("user", "hi").content = "ho"  # type: ignore[misc]  # that is the point


def test_request_passes_through() -> None:
    """HOOK-074: as it is, but for what is beyond the shape."""
    shown = to_wire(translator.to_hook_llm_request(REQUEST))
    assert shown == {key: REQUEST[key] for key in REQUEST if key != "beyond"}


def test_changes_are_laid_over_the_request() -> None:
    """HOOK-078: settings key by key; what is beyond the shape stays."""
    said = {"config": {"temperature": 0}, "toolConfig": {"mode": "NONE"}}
    changed = translator.from_hook_llm_request(said, REQUEST)
    assert changed == {
        **REQUEST,
        "config": {"temperature": 0, "other": [1]},
        "toolConfig": {"mode": "NONE", "allowedFunctionNames": ["a"]},
    }
    assert translator.from_hook_llm_request({"model": "m"}, REQUEST) is REQUEST


def test_edited_message_keeps_what_is_beyond_the_shape() -> None:
    """HOOK-078."""
    asked = {"role": "user", "content": "hello there", "name": "ann"}
    request = {"model": "m", "messages": [asked, {**HI, "id": 2}]}
    new = {"role": "model", "content": "new"}
    said = {"messages": [{**HI, "content": "ho"}, HI, new]}
    changed = translator.from_hook_llm_request(said, request)
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
    "said",
    [
        {"text": "ho"},
        {"candidates": [{"content": {"role": "model", "parts": ["h", "o"]}}]},
        {**RESPONSE, "text": "ho"},
    ],
    ids=["text", "candidates", "both, text changed"],
)
def test_text_and_candidates_stay_in_step(said: dict[str, Any]) -> None:
    """HOOK-079."""
    changed = translator.from_hook_llm_response(said, {**RESPONSE, "text": "hi"})
    shown = translator.to_hook_llm_response(changed)
    assert shown.text == "ho"
    assert "".join(shown.candidates[0].content.parts) == "ho"
    assert shown.usage_metadata == LLMUsage(1)


def test_response_stays_itself_when_nothing_changed() -> None:
    """HOOK-079."""
    response = {**RESPONSE, "text": "hi"}
    assert translator.from_hook_llm_response({"text": "hi"}, response) is response


@pytest.mark.parametrize("value", [{}, {"model": "m"}, 7, None, {"text": 5}])
def test_what_is_not_in_the_shape_is_refused(value: Any) -> None:
    with pytest.raises(TranslationError):
        translator.to_hook_llm_request(value)
    with pytest.raises(TranslationError):
        translator.to_hook_llm_response(value)


def test_stream_is_joined() -> None:
    whole = translator.assemble_response([{"text": "h"}, {"text": "i"}])
    assert translator.to_hook_llm_response(whole).text == "hi"


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


SAME_REQUEST: dict[str, dict[str, Any]] = {
    "genai": {
        "model": "m",
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"text": "hello"}]},
        ],
    },
    "openai": {
        "model": "m",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
        ],
    },
    "anthropic": {
        "model": "m",
        "messages": [
            {"role": "user", "content": [text("hi")]},
            {"role": "assistant", "content": [text("hello")]},
        ],
    },
}


@pytest.mark.parametrize("sdk", SAME_REQUEST)
async def test_hooks_see_the_same_request_whichever_sdk_it_comes_from(sdk: str) -> None:
    """HOOK-071."""
    seen: list[dict[str, Any]] = []
    async with HookSystem(Config(translator=sdk)) as hooks:
        hooks.on("BeforeModel")(seen.append)
        await hooks.event_handler.fire_before_model_event(SAME_REQUEST[sdk])
    assert seen[0]["llm_request"] == {
        "model": "m",
        "messages": [HI, {"role": "model", "content": "hello"}],
    }
