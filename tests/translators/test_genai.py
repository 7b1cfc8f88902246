"""The translator of google-genai, with real objects of the SDK."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from google.genai import types
from google.genai._transformers import t_contents

from hookline.translators import LLMMessage, pick_translator, to_wire
from hookline.translators.genai import GenAITranslator, GenerateContentRequest

from .samples import GenAIObjects

translator = GenAITranslator()
FILE = types.File(uri="https://example.org/f", mime_type="text/plain")
IMAGE = types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\0"))


def user(*parts: types.Part) -> types.Content:
    return types.Content(role="user", parts=list(parts))


def shown(contents: Any) -> list[LLMMessage]:
    return translator.to_hook_llm_request(
        GenerateContentRequest("m", contents)
    ).messages


@pytest.mark.parametrize(
    "value",
    [
        types.GenerateContentResponse(),
        types.Content(),
        types.GenerateContentConfig(),
        GenerateContentRequest("m", "hi"),
        {"contents": [types.Content(role="user", parts=[])]},
    ],
    ids=lambda value: type(value).__name__,
)
def test_its_objects_are_recognised(value: object) -> None:
    """protocol.md#translation: by the object's type."""
    assert isinstance(pick_translator(value), GenAITranslator)


@pytest.mark.parametrize(
    ("contents", "texts"),
    [
        ("hi", ["hi"]),
        (user(types.Part(text="hi")), ["hi"]),
        (types.Part(text="hi"), ["hi"]),
        (["hi", user(types.Part(text="ho"))], ["hi", "ho"]),
        (["hi", IMAGE, types.Part(text="ho")], ["hi", "ho"]),
        ([["h", types.Part(text="i")]], ["hi"]),
        ([user(types.Part(text="h"), IMAGE, types.Part(text="i"))], ["hi"]),
        ([user(types.Part(text="hm", thought=True), types.Part(text="hi"))], ["hi"]),
        ([user(types.Part(text="hm", thought=True))], []),
        ([FILE, "hi"], ["hi"]),
        ([{"text": "hi"}, {"file_data": {"file_uri": "x"}}], ["hi"]),
        ("", []),
        ([], []),
    ],
)
def test_contents_are_read_in_every_form(contents: Any, texts: list[str]) -> None:
    """HOOK-075, 076: also as a string, a Content, or a list of either."""
    assert [message.content for message in shown(contents)] == texts


@pytest.mark.parametrize(
    "content",
    [
        types.Content(parts=[types.Part(text="hi")]),
        {"parts": [{"text": "hi"}]},
        {"role": None, "parts": [{"text": "hi"}]},
    ],
    ids=["object", "dict", "null"],
)
def test_content_without_a_role_is_a_user_message(content: Any) -> None:
    """SDK and service take it as that: a guard must be shown it (issue 12.5)."""
    assert shown(content) == [LLMMessage("user", "hi")]
    assert shown([content]) == [LLMMessage("user", "hi")]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            types.GenerateContentConfig(top_k=3, max_output_tokens=9, top_p=0.5),
            {"topK": 3.0, "maxOutputTokens": 9, "topP": 0.5},
        ),
        ({"top_k": 3, "stop_sequences": ["x"]}, {"topK": 3, "stopSequences": ["x"]}),
        ({"topK": 3, "stopSequences": ["x"]}, {"topK": 3, "stopSequences": ["x"]}),
        ({"system_instruction": "s", "tools": [], "safetySettings": []}, None),
    ],
)
def test_config_is_read_in_both_spellings(config: Any, expected: Any) -> None:
    """HOOK-072: without system instruction, tools and safety settings."""
    request = {"model": "m", "contents": "hi", "config": config}
    assert translator.to_hook_llm_request(request).config == expected


@pytest.mark.parametrize(
    ("config", "changed"),
    [
        ({"top_p": 1}, {"top_p": 1, "max_output_tokens": 5}),
        ({"topP": 1}, {"topP": 1, "maxOutputTokens": 5}),
        ({"maxOutputTokens": 1}, {"maxOutputTokens": 5}),
        ({}, {"max_output_tokens": 5}),
    ],
)
def test_changed_setting_keeps_the_spelling_of_its_neighbours(
    config: dict[str, Any], changed: dict[str, Any]
) -> None:
    request = {"contents": "hi", "config": config}
    change = {"config": {"maxOutputTokens": 5}}
    assert translator.from_hook_llm_request(change, request)["config"] == changed


def test_unknown_setting_is_ignored_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    request = GenAIObjects().make_request()
    change = {"config": {"frobnicate": 1, "safetySettings": []}}
    with caplog.at_level(logging.WARNING, "hookline"):
        changed = translator.from_hook_llm_request(change, request, hook_name="odd")
    assert changed is request
    assert "'odd' set config.frobnicate" in caplog.text
    assert "config.safetySettings" in caplog.text


def test_removed_setting_is_removed() -> None:
    request = {"contents": "hi", "config": {"temperature": 1, "seed": 2}}
    changed = translator.from_hook_llm_request({"config": {"seed": None}}, request)
    assert changed == {"contents": "hi", "config": {"temperature": 1}}


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        (None, "be brief"),
        ("be kind", "be kind\n\nbe brief"),
        (["be kind"], ["be kind", "be brief"]),
        (types.Part(text="be kind"), [types.Part(text="be kind"), "be brief"]),
        (
            types.Content(parts=[types.Part(text="be kind")]),
            types.Content(
                parts=[types.Part(text="be kind"), types.Part(text="be brief")]
            ),
        ),
    ],
)
def test_system_message_is_appended_to_the_instruction(
    instruction: Any, expected: Any
) -> None:
    config = types.GenerateContentConfig(system_instruction=instruction)
    request = GenerateContentRequest("m", "hi", config)
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
    ]
    changed = translator.from_hook_llm_request({"messages": messages}, request)
    assert changed.contents == "hi"
    assert changed.config.system_instruction == expected


@pytest.mark.parametrize(
    "contents",
    ["hi", ["hi", IMAGE], ["hi", FILE]],
    ids=["text", "text and image", "text and file"],
)
@pytest.mark.parametrize("as_dict", [True, False])
def test_appended_message_comes_last_to_the_sdk_itself(
    contents: Any, as_dict: bool
) -> None:
    """The SDK would move bare parts behind a dict that follows them."""
    request: Any = GenerateContentRequest("m", contents)
    if as_dict:
        request = {"model": "m", "contents": contents}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "model", "content": "ho"},
    ]
    changed = translator.from_hook_llm_request({"messages": messages}, request)
    found = changed["contents"] if as_dict else changed.contents
    sent = t_contents(found)
    assert [content.role for content in sent] == ["user", "model"]
    texts = [(content.parts or [])[0].text for content in sent]
    assert texts == ["hi", "ho"]


@pytest.mark.parametrize(
    ("mode", "names", "expected"),
    [
        ("ANY", ["a"], ["a"]),
        ("ANY", None, None),
        ("AUTO", ["a"], None),
        ("NONE", ["a"], None),
    ],
)
def test_allowed_names_are_set_only_in_modes_that_accept_them(
    mode: str, names: list[str] | None, expected: list[str] | None
) -> None:
    """HOOK-074: under ANY."""
    change = {"mode": mode, "allowedFunctionNames": names}
    made = translator.from_hook_tool_config(change)
    assert isinstance(made, types.ToolConfig)
    calling = made.function_calling_config
    assert calling is not None
    assert calling.mode is types.FunctionCallingConfigMode(mode)
    assert calling.allowed_function_names == expected
    assert translator.carries_names(change) is (mode == "ANY")


def test_changed_mode_leaves_the_rest_of_the_tool_config() -> None:
    """HOOK-078."""
    tool_config = types.ToolConfig(include_server_side_tool_invocations=True)
    config = types.GenerateContentConfig(tool_config=tool_config, seed=1)
    request = GenerateContentRequest("m", "hi", config)
    changed = translator.from_hook_llm_request(
        {"toolConfig": {"mode": "NONE"}}, request
    )
    assert changed.config.tool_config.include_server_side_tool_invocations is True
    assert changed.config.seed == 1
    assert to_wire(translator.to_hook_llm_request(changed))["toolConfig"] == {
        "mode": "NONE"
    }


def test_limited_tools_are_the_named_functions_and_nothing_else() -> None:
    """protocol.md#callers."""

    def read_file(path: str) -> str:
        return path

    def write_file(path: str) -> str:
        return path

    search = types.Tool(google_search=types.GoogleSearch())
    tools: list[Any] = [read_file, write_file, search]
    request = GenerateContentRequest(
        "m", "hi", types.GenerateContentConfig(tools=tools)
    )
    assert translator.tool_names(request) == ["read_file", "write_file"]
    limited = translator.limit_tools(request, ["read_file"])
    assert limited.config.tools == [read_file]


def test_safety_ratings_lose_blocked_and_enums_become_text() -> None:
    """HOOK-077."""
    response = GenAIObjects().make_response("hi")
    candidate = to_wire(translator.to_hook_llm_response(response))["candidates"][0]
    assert candidate["safetyRatings"] == [
        {"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}
    ]
    assert candidate["finishReason"] == "STOP"


def test_rebuilt_response_keeps_its_other_fields() -> None:
    """HOOK-079: id, model and usage stay; what was parsed from the old text goes."""
    base = GenAIObjects().make_response("hi").model_copy(update={"parsed": {"a": 1}})
    rebuilt = translator.from_hook_llm_response({"text": "ho"}, base)
    assert rebuilt.response_id == "r-1"
    assert rebuilt.usage_metadata == base.usage_metadata
    assert rebuilt.candidates[0].safety_ratings == base.candidates[0].safety_ratings
    assert rebuilt.parsed is None
    rebuilt.model_dump_json()


def test_finish_reason_and_usage_of_a_hook_are_used() -> None:
    change = {
        "candidates": [
            {
                "content": {"role": "model", "parts": ["ho"]},
                "finishReason": "MAX_TOKENS",
                "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT"}],
            }
        ],
        "usageMetadata": {"promptTokenCount": 7},
    }
    made = translator.from_hook_llm_response(change)
    assert made.candidates[0].finish_reason is types.FinishReason.MAX_TOKENS
    assert made.usage_metadata.prompt_token_count == 7
    assert made.candidates[0].safety_ratings[0].category.value.endswith("HARASSMENT")
