"""The translator of openai: two APIs, with real objects of the SDK."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.responses import Response

from hookline.translators import LLMMessage, pick_translator, to_wire
from hookline.translators.openai import OpenAITranslator

from .samples import OpenAIChat, OpenAIResponses
from .wires import chat_response, item_message, item_response

translator = OpenAITranslator()
FLAT_NAMED = {"type": "function", "name": "f"}
NAMED = {"type": "function", "function": {"name": "f"}}
CHAT: dict[str, Any] = {"model": "m", "messages": []}
ITEMS: dict[str, Any] = {"model": "m", "input": []}


def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **more}


@pytest.mark.parametrize(
    "value",
    [
        OpenAIChat().make_response("hi"),
        OpenAIResponses().make_response("hi"),
        chat(ChatCompletionMessage(role="assistant", content="hi")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_its_objects_are_recognised(value: object) -> None:
    """protocol.md#translation: by the object's type, also as a message among dicts."""
    assert isinstance(pick_translator(value), OpenAITranslator)


def test_roles_are_mapped_and_unknown_ones_pass() -> None:
    request = chat(
        {"role": "developer", "content": "a"},
        {"role": "system", "content": "b"},
        {"role": "assistant", "content": "c"},
        {"role": "narrator", "content": "d"},
        {"role": "tool", "tool_call_id": "x", "content": "e"},
    )
    assert translator.to_hook_llm_request(request).messages == [
        LLMMessage("system", "a"),
        LLMMessage("system", "b"),
        LLMMessage("model", "c"),
        LLMMessage("narrator", "d"),
    ]


def test_message_objects_in_the_history_are_read_and_edited() -> None:
    """HOOK-078: a message of an earlier completion, as agents append it."""
    message = OpenAIChat().make_response_with_call("hi").choices[0].message
    request = chat({"role": "user", "content": "x"}, message)
    change = {
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "model", "content": "ho"},
        ]
    }
    edited = translator.from_hook_llm_request(change, request)["messages"][1]
    assert isinstance(edited, ChatCompletionMessage)
    assert edited.content == "ho"
    assert edited.tool_calls == message.tool_calls
    assert message.content == "hi"


@pytest.mark.parametrize(
    ("choice", "mode", "names"),
    [
        ("none", "NONE", None),
        ("auto", "AUTO", None),
        ("required", "ANY", None),
        (NAMED, "ANY", ["f"]),
        (FLAT_NAMED, "ANY", ["f"]),
        ({"type": "custom", "custom": {"name": "f"}}, "ANY", ["f"]),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [NAMED]},
            },
            "AUTO",
            ["f"],
        ),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [FLAT_NAMED]},
            "ANY",
            ["f"],
        ),
        ({"type": "web_search"}, "ANY", ["web_search"]),
        ("someday", "someday", None),
    ],
)
def test_tool_choice_is_read_in_every_form(
    choice: Any, mode: str, names: list[str] | None
) -> None:
    """HOOK-074."""
    found = translator.to_hook_tool_config(choice)
    assert (found.mode, found.allowed_function_names) == (mode, names)


@pytest.mark.parametrize(
    ("mode", "names", "chat_choice", "item_choice"),
    [
        ("NONE", ["f"], "none", "none"),
        ("AUTO", None, "auto", "auto"),
        ("ANY", [], "none", "none"),
        ("ANY", None, "required", "required"),
        ("ANY", ["f"], NAMED, FLAT_NAMED),
        (
            "AUTO",
            ["f"],
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [NAMED]},
            },
            {"type": "allowed_tools", "mode": "auto", "tools": [FLAT_NAMED]},
        ),
        (
            "ANY",
            ["f", "f"],
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [NAMED, NAMED]},
            },
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [FLAT_NAMED, FLAT_NAMED],
            },
        ),
    ],
)
def test_tool_choice_is_written_in_the_spelling_of_each_api(
    mode: str, names: list[str] | None, chat_choice: Any, item_choice: Any
) -> None:
    """HOOK-074."""
    change = {"mode": mode, "allowedFunctionNames": names}
    assert translator.from_hook_tool_config(change) == chat_choice
    assert translator.from_hook_tool_config(change, ITEMS) == item_choice
    changed = translator.from_hook_llm_request({"toolConfig": change}, CHAT)
    assert changed == {**CHAT, "tool_choice": chat_choice}


def test_custom_tool_is_named_as_one() -> None:
    tools = [{"type": "custom", "custom": {"name": "f"}}]
    change = {"mode": "ANY", "allowedFunctionNames": ["f"]}
    made = translator.from_hook_tool_config(change, {**CHAT, "tools": tools})
    assert made == {"type": "custom", "custom": {"name": "f"}}


def test_tool_settings_are_removed_with_the_last_tool() -> None:
    """The service refuses ``tool_choice`` without tools."""
    request = {
        **CHAT,
        "tools": [NAMED],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
    }
    assert translator.limit_tools(request, []) == CHAT
    hosted = {**ITEMS, "tools": [{"type": "web_search"}, FLAT_NAMED]}
    assert translator.limit_tools(hosted, ["f"])["tools"] == [FLAT_NAMED]
    assert translator.limit_tools(hosted, []) == ITEMS
    space = {"type": "namespace", "name": "n", "tools": [FLAT_NAMED, {"name": "g"}]}
    spaced = {**ITEMS, "tools": [space]}
    assert translator.tool_names(spaced) == ["f", "g"]
    assert translator.tool_names(translator.limit_tools(spaced, ["g"])) == ["g"]


@pytest.mark.parametrize(
    ("request_", "key", "expected"),
    [
        (CHAT, "maxOutputTokens", {**CHAT, "max_completion_tokens": 5}),
        ({**CHAT, "max_tokens": 1}, "maxOutputTokens", {**CHAT, "max_tokens": 5}),
        (ITEMS, "maxOutputTokens", {**ITEMS, "max_output_tokens": 5}),
        (CHAT, "topP", {**CHAT, "top_p": 5}),
    ],
)
def test_setting_is_written_under_the_name_that_the_request_uses(
    request_: dict[str, Any], key: str, expected: dict[str, Any]
) -> None:
    changed = translator.from_hook_llm_request({"config": {key: 5}}, request_)
    assert changed == expected


def test_unsupported_setting_is_ignored_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "hookline"):
        changed = translator.from_hook_llm_request(
            {"config": {"topK": 5}}, CHAT, hook_name="cold"
        )
    assert changed is CHAT
    assert "'cold' set config.topK" in caplog.text


def test_edited_message_keeps_its_cache_mark() -> None:
    """Cache settings stay: the marked end of the text is now in the first part."""
    mark = {"mode": "explicit"}
    content = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "text", "text": "b", "prompt_cache_breakpoint": mark},
    ]
    request = chat({"role": "user", "content": content})
    change = {"messages": [{"role": "user", "content": "c"}]}
    changed = translator.from_hook_llm_request(change, request)
    assert changed["messages"][0]["content"] == [
        {"type": "text", "text": "c", "prompt_cache_breakpoint": mark},
        content[1],
    ]


def test_system_message_is_added_in_its_place() -> None:
    """The SDK has a place for it among the messages."""
    change = {
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "hi"},
            {"role": "model", "content": "ho"},
        ]
    }
    changed = translator.from_hook_llm_request(change, {"model": "m", "input": "hi"})
    assert changed["input"] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ho"},
    ]


def test_reasoning_goes_with_the_answer_that_a_hook_removed() -> None:
    """The service refuses reasoning that no item of the model follows."""
    reasoning = {"type": "reasoning", "id": "r1", "summary": []}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    user, answer = {"role": "user", "content": "hi"}, {**item_message("ho")}
    again = {"role": "user", "content": "again"}
    change = {"messages": [user, again]}
    request = {"model": "m", "input": [user, reasoning, answer, again]}
    assert translator.from_hook_llm_request(change, request)["input"] == [user, again]
    request = {"model": "m", "input": [user, reasoning, answer, call, again]}
    kept = translator.from_hook_llm_request(change, request)["input"]
    assert kept == [user, reasoning, call, again]


def test_reasoning_stays_when_its_answer_does() -> None:
    """Even if one object is in the history twice."""
    reasoning = {"type": "reasoning", "id": "r1", "summary": []}
    history = [reasoning, item_message("ho"), reasoning]
    change = {
        "messages": [
            {"role": "model", "content": "ho"},
            {"role": "user", "content": "more"},
        ]
    }
    changed = translator.from_hook_llm_request(change, {"model": "m", "input": history})
    assert changed["input"][:-1] == history


@pytest.mark.parametrize("given", ["hi", [{"role": "user", "content": "hi"}]])
def test_only_message_can_be_removed(given: Any) -> None:
    request = {"model": "m", "input": given}
    changed = translator.from_hook_llm_request({"messages": []}, request)
    assert changed == {"model": "m", "input": []}


def test_refusal_is_not_text_and_is_replaced() -> None:
    """HOOK-079."""
    wire = chat_response("", [])
    wire["choices"][0]["message"] = {
        "role": "assistant",
        "content": None,
        "refusal": "no",
    }
    refused = ChatCompletion.model_validate(wire)
    assert translator.to_hook_llm_response(refused).text is None
    rebuilt = translator.from_hook_llm_response({"text": "ho"}, refused)
    assert rebuilt.choices[0].message.content == "ho"
    assert rebuilt.choices[0].message.refusal is None
    assert refused.choices[0].message.refusal == "no"


def test_refusal_in_the_history_stays_in_place() -> None:
    refusal = {"type": "refusal", "refusal": "no"}
    content = [{"type": "text", "text": "a"}, refusal]
    request = chat({"role": "assistant", "content": content})
    change = {"messages": [{"role": "model", "content": "b"}]}
    changed = translator.from_hook_llm_request(change, request)
    assert changed["messages"][0]["content"] == [{"type": "text", "text": "b"}, refusal]


@pytest.mark.parametrize(
    ("own", "stable"),
    [
        ("stop", "STOP"),
        ("length", "MAX_TOKENS"),
        ("content_filter", "SAFETY"),
        ("tool_calls", "STOP"),
        ("eclipse", "eclipse"),
    ],
)
def test_finish_reason_is_mapped_and_unknown_ones_pass(own: str, stable: str) -> None:
    """HOOK-073."""
    wire = chat_response("hi", [])
    wire["choices"][0]["finish_reason"] = own
    found = translator.to_hook_llm_response(wire).candidates[0].finish_reason
    assert found == stable


@pytest.mark.parametrize(
    ("status", "details", "stable"),
    [
        ("completed", None, "STOP"),
        ("incomplete", {"reason": "max_output_tokens"}, "MAX_TOKENS"),
        ("incomplete", {"reason": "content_filter"}, "SAFETY"),
        ("failed", None, "failed"),
    ],
)
def test_status_is_mapped_and_unknown_ones_pass(
    status: str, details: Any, stable: str
) -> None:
    """HOOK-073."""
    wire = item_response([item_message("hi")])
    response = Response.model_validate(
        {**wire, "status": status, "incomplete_details": details}
    )
    found = translator.to_hook_llm_response(response).candidates[0].finish_reason
    assert found == stable


@pytest.mark.parametrize(
    ("base", "kind"),
    [
        (None, ChatCompletion),
        (OpenAIChat().make_response("hi"), ChatCompletion),
        (OpenAIResponses().make_response("hi"), Response),
    ],
)
def test_base_decides_between_the_apis(base: Any, kind: Any) -> None:
    made: Any = translator.from_hook_llm_response({"text": "ho"}, base)
    assert type(made) is kind
    again = made.model_validate(made.model_dump())
    assert translator.to_hook_llm_response(again).text == "ho"


def test_rebuilt_completion_finishes_with_stop_when_its_calls_are_lost() -> None:
    """HOOK-079: an agent must not wait for calls that are gone."""
    base = OpenAIChat().make_response_with_call("hi")
    rebuilt = translator.from_hook_llm_response({"text": "ho"}, base)
    assert rebuilt.choices[0].finish_reason == "stop"
    assert (rebuilt.id, rebuilt.usage) == (base.id, base.usage)


def test_finish_reason_and_usage_of_a_hook_are_used() -> None:
    content = {"role": "model", "parts": ["ho"]}
    change = {
        "candidates": [{"content": content, "finishReason": "MAX_TOKENS"}],
        "usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 7},
    }
    made = translator.from_hook_llm_response(change)
    assert made.choices[0].finish_reason == "length"
    assert made.usage.prompt_tokens == 7
    base = OpenAIResponses().make_response("hi")
    cut = translator.from_hook_llm_response(change, base)
    assert cut.status == "incomplete"
    assert cut.incomplete_details.reason == "max_output_tokens"
    assert cut.usage.input_tokens == 7
    assert to_wire(translator.to_hook_llm_response(cut))["text"] == "ho"


def test_dict_stays_a_dict() -> None:
    for wire in (chat_response("hi", []), item_response([item_message("hi")])):
        made = translator.from_hook_llm_response({"text": "ho"}, wire)
        assert isinstance(made, dict)
        assert translator.to_hook_llm_response(made).text == "ho"


def test_text_without_candidates_is_the_whole_answer() -> None:
    wire = chat_response("hi", [])
    wire["choices"].append({**wire["choices"][0], "index": 1})
    made = translator.from_hook_llm_response({"text": "ho"}, wire)
    texts = [choice["message"]["content"] for choice in made["choices"]]
    assert texts == ["ho"]
