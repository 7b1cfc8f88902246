"""The stable shape on the wire."""

from __future__ import annotations

import pytest

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
