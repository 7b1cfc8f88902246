"""Streams that are made to break the assembly, or to use up memory (issue 12.5)."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from google.genai import types
from openai.types.chat import ChatCompletionChunk

from hookline.errors import TranslationError
from hookline.translators import stable_wire
from hookline.translators.streams import (
    assemble_anthropic,
    assemble_genai,
    assemble_openai,
)

MEGABYTE = 1 << 20


def genai_chunk(text: str, *arguments: dict[str, Any]) -> types.GenerateContentResponse:
    call = {"name": "f", "partialArgs": arguments, "willContinue": True}
    parts: list[dict[str, Any]] = [{"text": text}, {"functionCall": call}]
    content = {"role": "model", "parts": parts}
    return types.GenerateContentResponse.model_validate(
        {"candidates": [{"content": content}]}
    )


@pytest.mark.parametrize(
    "path",
    [
        "$.list[1000000000]",
        "$.list[99999999999999999999]",
        f"$.list[{'9' * 5000}]",
        "$.list[0].x[500000000]",
        "$" + ".x" * 100_000,
        "$" + "[0]" * 100_000,
        "$.text.x",
        "$.text[0]",
        "$[0]",
        "$",
        "",
    ],
    ids=lambda path: path[:20],
)
def test_genai_arguments_at_hostile_places_are_ignored(path: str) -> None:
    """An index of 10**9 would take eight gigabytes."""
    text = {"jsonPath": "$.text", "boolValue": True}
    chunks = [
        genai_chunk("hi", text, {"jsonPath": path, "stringValue": "x"}),
        genai_chunk("", {"jsonPath": path, "numberValue": 1}),
    ]
    tracemalloc.start()
    whole = assemble_genai(chunks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert stable_wire("llm_response", whole)["text"] == "hi"
    assert peak < 64 * MEGABYTE


def test_genai_arguments_of_an_array_are_kept_in_order() -> None:
    places = [f"$.list[{at}]" for at in range(300)]
    pieces = [{"jsonPath": path, "numberValue": 1} for path in places]
    whole = assemble_genai([genai_chunk("", *pieces)])
    (call,) = whole.function_calls
    assert call.args == {"list": [1.0] * 300}


def chat_chunk(*choices: Any, **fields: Any) -> Any:
    return ChatCompletionChunk.construct(choices=list(choices), **fields)


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ({"delta": {"content": "hi"}}, "hi"),
        ({"index": "0", "delta": {"content": "hi"}}, "hi"),
        ({"index": 10**12, "delta": {"content": "hi"}}, "hi"),
        ({"index": 0, "finish_reason": 5, "delta": {"content": "hi"}}, "hi"),
        ({"index": 0, "message": {"content": "hi"}}, "hi"),
        ({"index": 0, "delta": {"content": ["hi"]}}, "hi"),
        ({"index": 0, "delta": {"content": "hi", "tool_calls": [5, {}]}}, "hi"),
    ],
    ids=repr,
)
def test_openai_chunks_are_read_leniently(choice: dict[str, Any], text: str) -> None:
    for chunk in (chat_chunk(choice, usage=[]), {"choices": [choice], "usage": []}):
        whole = assemble_openai([chunk])
        assert stable_wire("llm_response", whole)["text"] == text


@pytest.mark.parametrize(
    "chunks",
    [
        [{"choices": {"a": "secret"}}],
        [{"choices": "secret"}],
        [{"choices": ["secret"]}],
        [{"choices": [{"delta": "secret"}]}],
        [{"choices": [{"delta": {"content": "x"}}, {"delta": {"content": {"y": 1}}}]}],
        [{"nothing": "secret"}],
        ["secret"],
        [],
    ],
    ids=repr,
)
@pytest.mark.parametrize("assemble", [assemble_openai, assemble_anthropic])
def test_what_cannot_be_assembled_is_one_error_that_quotes_nothing(
    assemble: Any, chunks: list[Any]
) -> None:
    with pytest.raises(TranslationError) as error:
        assemble(chunks)
    assert "secret" not in str(error.value)


def test_text_of_responses_counts_when_no_item_repeats_it() -> None:
    """A person sees the deltas, so a guard must."""
    delta = {"type": "response.output_text.delta", "output_index": 0, "delta": "hi"}
    whole = {"type": "response.completed", "response": {"output": []}}
    assembled = assemble_openai([delta, whole])
    assert stable_wire("llm_response", assembled)["text"] == "hi"


START: dict[str, Any] = {
    "type": "message_start",
    "message": {"content": [], "usage": 5},
}


@pytest.mark.parametrize("index", [0, 10**12, "0", None, -1, [], 0.5], ids=repr)
def test_anthropic_text_counts_without_the_start_of_its_block(index: Any) -> None:
    delta = {"type": "text_delta", "text": "hi"}
    event = {"type": "content_block_delta", "index": index, "delta": delta}
    end = {"type": "message_delta", "delta": {"stop_reason": 5}, "usage": [5]}
    whole = assemble_anthropic([START, event, end])
    assert stable_wire("llm_response", whole)["text"] == "hi"


def test_anthropic_arguments_may_be_nested_deeper_than_the_parser_goes() -> None:
    block = {"type": "tool_use", "id": "1", "name": "f", "input": {}}
    text = '{"a":' * 100_000
    delta = {"type": "input_json_delta", "partial_json": text}
    events = [
        START,
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
    ]
    (made,) = assemble_anthropic(events).content
    assert made.input == {}
