"""Responses and stream events as the services send them."""

from __future__ import annotations

import json
from typing import Any

from anthropic import types as claude
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

ARGUMENTS = {"path": "a.txt", "lines": [1, 2]}
ARGUMENT_TEXT = json.dumps(ARGUMENTS)


def wire(value: Any) -> dict[str, Any]:
    """Spell an object of google-genai as its service does."""
    plain: dict[str, Any] = value.model_dump(
        mode="json", by_alias=True, exclude_none=True
    )
    return plain


def genai_response(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "candidates": [
            {
                "content": {"role": "model", "parts": parts},
                "finishReason": "STOP",
                "index": 0,
                "safetyRatings": [
                    {
                        "category": "HARM_CATEGORY_HARASSMENT",
                        "probability": "LOW",
                        "blocked": False,
                    }
                ],
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 1,
            "candidatesTokenCount": 2,
            "totalTokenCount": 3,
            "thoughtsTokenCount": 9,
        },
        "modelVersion": "m-1",
        "responseId": "r-1",
    }


def chat_response(text: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = calls
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-1",
        "system_fingerprint": "fp",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls" if calls else "stop",
                "message": message,
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }


def chat_chunk(delta: dict[str, Any], reason: str | None = None) -> Any:
    return ChatCompletionChunk.model_validate(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m-1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }
    )


def item_message(text: str) -> dict[str, Any]:
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }


def item_call() -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": "c1",
        "name": "read_file",
        "arguments": ARGUMENT_TEXT,
    }


def item_response(output: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1.0,
        "model": "m-1",
        "status": "completed",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 3,
        },
    }


def item_event(event: dict[str, Any], at: int) -> Any:
    adapter: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    return adapter.validate_python({**event, "sequence_number": at})


def claude_response(
    blocks: list[dict[str, Any]], reason: str | None = "end_turn"
) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }


def claude_event(event: dict[str, Any]) -> Any:
    adapter: TypeAdapter[Any] = TypeAdapter(claude.RawMessageStreamEvent)
    return adapter.validate_python(event)
