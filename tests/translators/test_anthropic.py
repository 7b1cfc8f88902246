"""The translator of anthropic, with real objects of the SDK."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from anthropic import types
from anthropic.resources.messages import Messages

from hookline.translators import LLMMessage, pick_translator, to_wire
from hookline.translators.anthropic import AnthropicTranslator

from .samples import Anthropic
from .wires import claude_response

translator = AnthropicTranslator()
BASE: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": []}


def with_messages(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**BASE, "messages": list(messages), **more}


@pytest.mark.parametrize(
    "value",
    [
        Anthropic().make_response("hi"),
        {"messages": [Anthropic().make_response("hi")]},
    ],
    ids=["Message", "among dicts"],
)
def test_its_objects_are_recognised(value: object) -> None:
    """protocol.md#translation: by the object's type."""
    assert isinstance(pick_translator(value), AnthropicTranslator)


def test_system_is_not_shown_but_system_messages_are() -> None:
    """protocol.md#translation: except where the SDK keeps it among the messages."""
    request = with_messages(
        {"role": "system", "content": "a"},
        {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
        system="hidden",
    )
    assert translator.to_hook_llm_request(request).messages == [
        LLMMessage("system", "a"),
        LLMMessage("model", "b"),
    ]


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (None, "be brief"),
        ("be kind", "be kind\n\nbe brief"),
        (
            [
                {
                    "type": "text",
                    "text": "be kind",
                    "cache_control": {"type": "ephemeral"},
                }
            ],
            [
                {
                    "type": "text",
                    "text": "be kind",
                    "cache_control": {"type": "ephemeral"},
                },
                {"type": "text", "text": "be brief"},
            ],
        ),
    ],
)
def test_system_message_is_appended_to_system(system: Any, expected: Any) -> None:
    request = BASE if system is None else {**BASE, "system": system}
    change = {"messages": [{"role": "system", "content": "be brief"}]}
    changed = translator.from_hook_llm_request(change, request)
    assert changed == {**BASE, "system": expected}


def test_blocks_of_an_earlier_message_are_read_and_edited() -> None:
    """HOOK-078: content as agents append it, in the SDK's own blocks."""
    earlier = Anthropic().make_response_with_call("hi")
    request = with_messages({"role": "assistant", "content": earlier.content})
    change = {"messages": [{"role": "model", "content": "ho"}]}
    changed = translator.from_hook_llm_request(change, request)
    thinking, text, call = changed["messages"][0]["content"]
    assert (thinking, call) == (earlier.content[0], earlier.content[2])
    assert isinstance(text, types.TextBlock)
    assert text.text == "ho"
    assert earlier.content[1].text == "hi"


def test_message_between_call_and_result_goes_after_the_result() -> None:
    """The service refuses a call that its result does not follow at once."""
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    request = with_messages(
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, call]},
        {"role": "user", "content": [result, {"type": "text", "text": "b"}]},
    )
    change = {
        "messages": [
            {"role": "model", "content": "a"},
            {"role": "user", "content": "NEW"},
            {"role": "user", "content": "b"},
        ]
    }
    changed = translator.from_hook_llm_request(change, request)["messages"]
    assert changed[:2] == request["messages"]
    assert changed[2] == {"role": "user", "content": "NEW"}


def test_emptied_message_keeps_its_image() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org"}}
    content = [{"type": "text", "text": "a"}, image]
    request = with_messages({"role": "user", "content": content})
    change = {"messages": [{"role": "user", "content": ""}]}
    changed = translator.from_hook_llm_request(change, request)
    assert changed["messages"] == [{"role": "user", "content": [image]}]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (BASE, {**BASE, "extra_body": {"temperature": 0}}),
        (
            {**BASE, "extra_body": {"a": 1}},
            {**BASE, "extra_body": {"a": 1, "temperature": 0}},
        ),
        ({**BASE, "temperature": 1}, {**BASE, "temperature": 0}),
    ],
)
def test_temperature_goes_where_the_sdk_takes_it(
    request_: dict[str, Any], expected: dict[str, Any]
) -> None:
    """``create`` has no argument of that name, and would raise for one."""
    changed = translator.from_hook_llm_request({"config": {"temperature": 0}}, request_)
    assert changed == expected
    seen = translator.to_hook_llm_request(changed)
    assert seen.config == {"maxOutputTokens": 9, "temperature": 0}


def test_changed_request_is_taken_by_create() -> None:
    change = {
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "hi"},
        ],
        "config": {"temperature": 0, "topK": 3, "topP": 1, "stopSequences": ["x"]},
        "toolConfig": {"mode": "ANY"},
    }
    changed = translator.from_hook_llm_request(change, BASE)
    inspect.signature(Messages.create).bind(None, **changed)


@pytest.mark.parametrize(
    ("choice", "mode", "names"),
    [
        ({"type": "auto"}, "AUTO", None),
        ({"type": "any"}, "ANY", None),
        ({"type": "tool", "name": "f"}, "ANY", ["f"]),
        ({"type": "none"}, "NONE", None),
        ({"type": "someday"}, "someday", None),
    ],
)
def test_tool_choice_is_read_in_every_form(
    choice: Any, mode: str, names: list[str] | None
) -> None:
    """HOOK-074."""
    found = translator.to_hook_tool_config(choice)
    assert (found.mode, found.allowed_function_names) == (mode, names)


@pytest.mark.parametrize(
    ("mode", "names", "choice"),
    [
        ("AUTO", None, {"type": "auto", "disable_parallel_tool_use": True}),
        ("AUTO", ["f"], {"type": "auto", "disable_parallel_tool_use": True}),
        ("ANY", ["f", "g"], {"type": "any", "disable_parallel_tool_use": True}),
        (
            "ANY",
            ["f"],
            {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        ),
        ("NONE", ["f"], {"type": "none"}),
    ],
)
def test_tool_choice_keeps_parallel_use(
    mode: str, names: list[str] | None, choice: Any
) -> None:
    """HOOK-074: ``disable_parallel_tool_use`` stays if the new choice can have it."""
    before = {"type": "tool", "name": "x", "disable_parallel_tool_use": True}
    request = {**BASE, "tool_choice": before}
    change = {"mode": mode, "allowedFunctionNames": names}
    assert translator.from_hook_tool_config(change, request) == choice
    assert translator.carries_names(change) is (choice["type"] == "tool")


def test_tool_choice_is_removed_with_the_last_tool() -> None:
    """The service refuses a choice without tools."""
    request = {**BASE, "tools": [{"name": "f"}], "tool_choice": {"type": "auto"}}
    assert translator.limit_tools(request, ["f"]) is request
    assert translator.limit_tools(request, []) == BASE


@pytest.mark.parametrize(
    ("own", "stable"),
    [
        ("end_turn", "STOP"),
        ("stop_sequence", "STOP"),
        ("tool_use", "STOP"),
        ("max_tokens", "MAX_TOKENS"),
        ("model_context_window_exceeded", "MAX_TOKENS"),
        ("refusal", "SAFETY"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_stop_reason_is_mapped_and_unknown_ones_pass(own: str, stable: str) -> None:
    """HOOK-073."""
    wire = claude_response([{"type": "text", "text": "hi"}], own)
    found = translator.to_hook_llm_response(types.Message.model_validate(wire))
    assert found.candidates[0].finish_reason == stable


def test_cached_tokens_count_as_prompt() -> None:
    """HOOK-073: the service counts them separately, the stable shape does not."""
    wire = claude_response([])
    wire["usage"] |= {"cache_read_input_tokens": 10, "cache_creation_input_tokens": 5}
    shown = to_wire(translator.to_hook_llm_response(wire))
    assert shown["usageMetadata"] == {
        "promptTokenCount": 16,
        "candidatesTokenCount": 2,
        "totalTokenCount": 18,
    }


def test_rebuilt_message_keeps_its_id_and_ends_the_turn() -> None:
    """HOOK-079."""
    base = Anthropic().make_response_with_call("hi")
    rebuilt = translator.from_hook_llm_response({"text": "ho"}, base)
    assert isinstance(rebuilt.content[0], types.TextBlock)
    assert (rebuilt.id, rebuilt.usage) == (base.id, base.usage)
    assert rebuilt.stop_reason == "end_turn"
    types.Message.model_validate(rebuilt.model_dump())


def test_finish_reason_and_usage_of_a_hook_are_used() -> None:
    content = {"role": "model", "parts": ["ho"]}
    change = {
        "candidates": [{"content": content, "finishReason": "SAFETY"}],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 1},
    }
    made = translator.from_hook_llm_response(change)
    assert made.stop_reason == "refusal"
    assert (made.usage.input_tokens, made.usage.output_tokens) == (7, 1)
    types.Message.model_validate(made.model_dump())
