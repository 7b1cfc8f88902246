"""The stable shape on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from hookline import Config, HookSystem
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

HI = {"role": "user", "content": "hi"}


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
        LLMMessage("user", "hi").content = "ho"  # type: ignore[misc]  # frozen: that is the test


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
