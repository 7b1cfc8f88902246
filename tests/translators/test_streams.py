"""``assemble_response`` gives the response that a call without streaming would give."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import types as genai
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from hookline.errors import TranslationError
from hookline.translators import HookTranslator
from hookline.translators.anthropic import AnthropicTranslator
from hookline.translators.genai import GenAITranslator
from hookline.translators.openai import OpenAITranslator
from hookline.translators.passthrough import StableTranslator

from .samples import Anthropic, GenAIObjects, OpenAIChat, OpenAIResponses
from .wires import (
    chat_chunk,
    claude_event,
    claude_response,
    genai_response,
    item_call,
    item_event,
    item_message,
    item_response,
)

TRANSLATORS: list[HookTranslator] = [
    GenAITranslator(),
    OpenAITranslator(),
    AnthropicTranslator(),
    StableTranslator(),
]


@pytest.mark.parametrize("translator", TRANSLATORS, ids=lambda t: type(t).__name__)
@pytest.mark.parametrize("chunks", [[], [7], [{"type": "ping"}]])
def test_stream_without_a_response_is_refused(
    translator: HookTranslator, chunks: list[Any]
) -> None:
    with pytest.raises(TranslationError):
        translator.assemble_response(iter(chunks))


def genai_chunk(*parts: dict[str, Any], **more: Any) -> Any:
    return genai.GenerateContentResponse.model_validate(
        {**genai_response(list(parts)), **more}
    )


def test_genai_thoughts_and_texts_are_joined_separately() -> None:
    whole = GenAITranslator().assemble_response(
        [
            genai_chunk({"text": "h", "thought": True}),
            genai_chunk({"text": "m", "thought": True, "thoughtSignature": "AAAA"}),
            genai_chunk({"text": "Hel"}, {"text": "l"}),
            genai_chunk({"text": "o"}, usageMetadata={"totalTokenCount": 9}),
        ]
    )
    parts = whole.candidates[0].content.parts
    assert [(part.text, part.thought) for part in parts] == [
        ("hm", True),
        ("Hello", None),
    ]
    assert parts[0].thought_signature == b"\0\0\0"
    assert whole.usage_metadata.total_token_count == 9
    assert whole.response_id == "r-1"


def test_genai_candidates_are_assembled_by_index() -> None:
    def piece(index: int, text: str) -> dict[str, Any]:
        return {"index": index, "content": {"role": "model", "parts": [{"text": text}]}}

    chunks = [
        genai_chunk(candidates=[piece(1, "b"), piece(0, "a")]),
        genai_chunk(candidates=[piece(0, "A")]),
        genai_chunk(candidates=[{**piece(1, "B"), "finishReason": "MAX_TOKENS"}]),
    ]
    whole = GenAITranslator().assemble_response(chunks)
    texts = [candidate.content.parts[0].text for candidate in whole.candidates]
    assert texts == ["aA", "bB"]
    assert whole.candidates[1].finish_reason is genai.FinishReason.MAX_TOKENS


def test_genai_call_is_put_together_when_its_arguments_come_in_pieces() -> None:
    def piece(**call: Any) -> Any:
        return genai_chunk({"functionCall": call})

    path = {"jsonPath": "$.path", "stringValue": "a."}
    more = {"jsonPath": "$.path", "stringValue": "txt"}
    lines = [{"jsonPath": f"$.lines[{at}]", "numberValue": at + 1} for at in (0, 1)]
    deep = {"jsonPath": "$.a.b[0]['c']", "boolValue": True}
    whole = GenAITranslator().assemble_response(
        [
            piece(name="read_file", willContinue=True),
            piece(partialArgs=[path], willContinue=True),
            piece(partialArgs=[more, *lines, deep], willContinue=True),
            piece(),
            piece(name="other", args={}),
        ]
    )
    first, second = whole.function_calls
    assert (first.name, second.name) == ("read_file", "other")
    assert first.args == {
        "path": "a.txt",
        "lines": [1, 2],
        "a": {"b": [{"c": True}]},
    }
    assert first.partial_args is None
    assert first.will_continue is None


def test_genai_citations_of_all_chunks_are_kept() -> None:
    def cited(uri: str) -> Any:
        candidate = genai_response([{"text": uri}])["candidates"][0]
        metadata = {"citations": [{"uri": uri}]}
        return genai_chunk(candidates=[{**candidate, "citationMetadata": metadata}])

    whole = GenAITranslator().assemble_response([cited("a"), cited("b")])
    citations = whole.candidates[0].citation_metadata.citations
    assert [citation.uri for citation in citations] == ["a", "b"]


def test_openai_chunks_become_the_completion_that_the_sdk_knows() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    last = chat_chunk({}).model_copy(update={"choices": []})
    last = type(last).model_validate({**last.model_dump(), "usage": usage})
    whole = OpenAITranslator().assemble_response([*OpenAIChat().make_chunks(), last])
    assert ChatCompletion in type(whole).__mro__
    ChatCompletion.model_validate(whole.model_dump())
    assert whole.choices[0].finish_reason == "tool_calls"
    assert whole.choices[0].message.tool_calls[0].id == "c1"
    assert whole.usage.total_tokens == 3
    assert "index" not in whole.choices[0].message.tool_calls[0].to_dict()


def test_openai_parallel_calls_are_assembled_separately() -> None:
    def call(index: int, **more: Any) -> dict[str, Any]:
        return {"tool_calls": [{"index": index, **more}]}

    deltas = [
        call(1, id="b", function={"name": "g", "arguments": "{"}),
        call(0, id="a", function={"name": "f", "arguments": "{"}),
        call(1, function={"arguments": '"x": 1}'}),
        call(0, id="a", function={"name": "f", "arguments": "}"}),
    ]
    whole = OpenAITranslator().assemble_response(map(chat_chunk, deltas))
    calls = whole.choices[0].message.tool_calls
    assert [(c.id, c.type, c.function.name) for c in calls] == [
        ("a", "function", "f"),
        ("b", "function", "g"),
    ]
    assert [json.loads(c.function.arguments) for c in calls] == [{}, {"x": 1}]


def test_openai_fields_unknown_to_the_sdk_are_joined_too() -> None:
    chunks = [chat_chunk({"reasoning_content": piece}) for piece in ("a", "b")]
    whole = OpenAITranslator().assemble_response(chunks)
    assert whole.choices[0].message.to_dict()["reasoning_content"] == "ab"
    assert whole.choices[0].message.content is None


def test_openai_events_of_the_stream_helper_are_unwrapped() -> None:
    from openai.lib.streaming.chat import ChatCompletionStreamState

    state: ChatCompletionStreamState[Any] = ChatCompletionStreamState()
    events = [
        event
        for chunk in OpenAIChat().make_chunks()
        for event in state.handle_chunk(chunk)
    ]
    assert any(event.type != "chunk" for event in events)
    whole = OpenAITranslator().assemble_response(events)
    final = state.get_final_completion()
    assert whole.choices[0].message.content == final.choices[0].message.content
    (call,), (expected,) = (
        one.choices[0].message.tool_calls or [] for one in (whole, final)
    )
    assert call.function.arguments == expected.function.arguments


def test_openai_response_is_the_one_that_the_last_event_holds() -> None:
    chunks = OpenAIResponses().make_chunks()
    assert OpenAITranslator().assemble_response(chunks) is chunks[-1].response


def test_openai_response_is_put_together_when_the_stream_was_cut() -> None:
    started = item_response([]) | {"status": "in_progress"}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": started},
        {"type": "response.output_item.done", "output_index": 1, "item": item_call()},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": item_message("Hi"),
        },
    ]
    whole = OpenAITranslator().assemble_response(
        item_event(event, at) for at, event in enumerate(events)
    )
    assert type(whole) is Response
    assert whole.output_text == "Hi"
    assert [item.type for item in whole.output] == ["message", "function_call"]


def claude_stream(*deltas: dict[str, Any], start: dict[str, Any]) -> list[Any]:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": claude_response([], None)},
        {"type": "content_block_start", "index": 0, "content_block": start},
        *(
            {"type": "content_block_delta", "index": 0, "delta": delta}
            for delta in deltas
        ),
    ]
    return [claude_event(event) for event in events]


def test_anthropic_events_become_the_message_that_the_sdk_knows() -> None:
    whole = AnthropicTranslator().assemble_response(Anthropic().make_chunks())
    assert type(whole).model_validate(whole.model_dump()) == whole
    assert whole.stop_reason == "tool_use"
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (1, 2)


def test_anthropic_thinking_and_its_signature_are_kept() -> None:
    whole = AnthropicTranslator().assemble_response(
        claude_stream(
            {"type": "thinking_delta", "thinking": "h"},
            {"type": "thinking_delta", "thinking": "m"},
            {"type": "signature_delta", "signature": "s"},
            start={"type": "thinking", "thinking": "", "signature": ""},
        )
    )
    assert whole.content[0].thinking == "hm"
    assert whole.content[0].signature == "s"


def test_anthropic_citations_are_kept() -> None:
    citation = {
        "type": "char_location",
        "cited_text": "x",
        "document_index": 0,
        "document_title": None,
        "start_char_index": 0,
        "end_char_index": 1,
        "file_id": None,
    }
    whole = AnthropicTranslator().assemble_response(
        claude_stream(
            {"type": "text_delta", "text": "a"},
            {"type": "citations_delta", "citation": citation},
            start={"type": "text", "text": ""},
        )
    )
    assert whole.content[0].text == "a"
    assert whole.content[0].citations[0].cited_text == "x"


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        ([], {}),
        (["", ""], {}),
        (['{"a": [1', ", 2]}"], {"a": [1, 2]}),
        (['{"a": 1, "b": "cu'], {"a": 1}),
        (["nonsense"], {}),
    ],
)
def test_anthropic_arguments_are_read_as_far_as_they_go(
    pieces: list[str], arguments: dict[str, Any]
) -> None:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    start = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    whole = AnthropicTranslator().assemble_response(claude_stream(*deltas, start=start))
    assert whole.content[0].input == arguments


def test_genai_dict_chunks_are_refused_by_place() -> None:
    with pytest.raises(TranslationError, match=r"chunks\[1\]"):
        GenAITranslator().assemble_response(
            [GenAIObjects().make_response("hi"), {"candidates": []}]
        )
