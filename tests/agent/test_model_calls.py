"""The model triggers, for people who call their model themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.genai import types

from hookline import Config, Settings
from hookline.agent import (
    fire_after_model_hook,
    fire_before_model_hook,
    fire_before_tool_selection_hook,
)
from hookline.translators.anthropic import AnthropicTranslator
from hookline.translators.genai import GenerateContentRequest
from hookline.translators.openai import OpenAITranslator

from .scenes import BROKEN, config_of, events, runs, says, specific

TOOL = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(name="read_file"),
        types.FunctionDeclaration(name="write_file"),
    ]
)
REQUEST = GenerateContentRequest(
    "m", "hi", types.GenerateContentConfig(temperature=0.5, tools=[TOOL])
)
RESPONSE = types.GenerateContentResponse.model_validate(
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "call 123"}]}}]}
)


async def test_before_model_result_is_empty_when_no_hook_had_an_output(
    tmp_path: Path,
) -> None:
    async with config_of(tmp_path, {"BeforeModel": runs("true")}) as config:
        result = await fire_before_model_hook(config, REQUEST)
    assert (result.blocked, result.modified_request) == (False, None)
    assert events(tmp_path)[0]["llm_request"]["messages"][0]["content"] == "hi"


@pytest.mark.parametrize(
    ("hook", "reason", "stops"),
    [
        (runs("echo no >&2; exit 2"), "no", False),
        (says({"continue": False, "stopReason": "enough"}), "enough", True),
    ],
    ids=["block", "stop"],
)
async def test_before_model_block_or_stop_gives_blocked(
    tmp_path: Path, hook: Any, reason: str, stops: bool
) -> None:
    """protocol.md#callers: block or stop gives ``blocked``."""
    async with config_of(tmp_path, {"BeforeModel": hook}) as config:
        result = await fire_before_model_hook(config, REQUEST)
    assert (result.blocked, result.reason, result.should_stop) == (True, reason, stops)
    assert (result.synthetic_response, result.modified_request) == (None, None)


async def test_before_model_gives_a_synthetic_response_in_the_sdks_type(
    tmp_path: Path,
) -> None:
    hook = says(
        {"decision": "deny", "hookSpecificOutput": {"llm_response": {"text": "no!"}}}
    )
    async with config_of(tmp_path, {"BeforeModel": hook}) as config:
        result = await fire_before_model_hook(config, REQUEST)
    assert isinstance(result.synthetic_response, types.GenerateContentResponse)
    assert result.synthetic_response.text == "no!"


async def test_before_model_gives_the_changed_request_with_its_context(
    tmp_path: Path,
) -> None:
    hook = specific(
        llm_request={"config": {"temperature": 0.1}}, additionalContext="late"
    )
    async with config_of(tmp_path, {"BeforeModel": hook}) as config:
        result = await fire_before_model_hook(config, REQUEST)
    changed = result.modified_request
    assert changed.config.temperature == 0.1
    assert changed.config.tools == [TOOL]
    assert "late" in str(changed.contents[-1])
    assert REQUEST.config.temperature == 0.5


async def test_after_model_keeps_the_same_response_object_when_nothing_is_changed(
    tmp_path: Path,
) -> None:
    async with config_of(tmp_path, {"AfterModel": runs("true")}) as config:
        result = await fire_after_model_hook(config, REQUEST, RESPONSE)
    assert result.response is RESPONSE


async def test_after_model_gives_the_changed_response_in_the_sdks_type(
    tmp_path: Path,
) -> None:
    hook = says(
        {
            "suppressOutput": True,
            "systemMessage": "redacted",
            "hookSpecificOutput": {"llm_response": {"text": "call [phone]"}},
        }
    )
    async with config_of(tmp_path, {"AfterModel": hook}) as config:
        result = await fire_after_model_hook(config, REQUEST, RESPONSE)
    assert isinstance(result.response, types.GenerateContentResponse)
    assert result.response.text == "call [phone]"
    assert (result.suppress_output, result.system_message) == (True, "redacted")


async def test_tool_selection_gives_config_tools_and_names(tmp_path: Path) -> None:
    hook = specific(toolConfig={"mode": "ANY", "allowedFunctionNames": ["read_file"]})
    async with config_of(tmp_path, {"BeforeToolSelection": hook}) as config:
        result = await fire_before_tool_selection_hook(config, REQUEST)
    calling = result.tool_config.function_calling_config
    assert calling.allowed_function_names == ["read_file"]
    assert result.tools == [TOOL]
    assert result.allowed_names == frozenset({"read_file"})
    assert events(tmp_path)[0]["available_tools"] == ["read_file", "write_file"]


async def test_tool_selection_leaves_tools_out_that_the_sdk_cannot_rule_out(
    tmp_path: Path,
) -> None:
    hook = specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": ["read_file"]})
    async with config_of(tmp_path, {"BeforeToolSelection": hook}) as config:
        result = await fire_before_tool_selection_hook(config, REQUEST)
    [tool] = result.tools
    assert [declared.name for declared in tool.function_declarations] == ["read_file"]


async def test_tool_selection_of_unknown_tools_leaves_none(tmp_path: Path) -> None:
    hook = specific(toolConfig={"mode": "ANY", "allowedFunctionNames": ["other"]})
    async with config_of(tmp_path, {"BeforeToolSelection": hook}) as config:
        result = await fire_before_tool_selection_hook(config, REQUEST)
    assert result.tool_config.function_calling_config.mode == "NONE"


@pytest.mark.parametrize(
    ("translator", "request_"),
    [
        (OpenAITranslator(), {"model": "m", "messages": []}),
        (AnthropicTranslator(), {"model": "m", "messages": []}),
    ],
    ids=["openai", "anthropic"],
)
async def test_requests_without_tools_are_offered_no_choice(
    tmp_path: Path, translator: Any, request_: dict[str, Any]
) -> None:
    """Their services reject a tool choice without tools."""
    hook = specific(toolConfig={"mode": "NONE"})
    async with config_of(tmp_path, {"BeforeToolSelection": hook}) as config:
        result = await fire_before_tool_selection_hook(
            config, request_, translator=translator
        )
    assert result.modified_request == request_
    assert result.allowed_names == frozenset()


@pytest.mark.parametrize("name", ["openai", "auto"])
async def test_a_callers_translator_counts_whatever_the_config_names(
    tmp_path: Path, name: str
) -> None:
    hooks = {"BeforeModel": specific(llm_request={"config": {"temperature": 0.1}})}
    config = config_of(tmp_path, hooks, translator=name)
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with config:
        result = await fire_before_model_hook(
            config, request, translator=OpenAITranslator()
        )
    assert result.modified_request["temperature"] == 0.1


@pytest.mark.parametrize("failure", list(BROKEN))
async def test_model_triggers_go_on_when_a_hook_fails(
    tmp_path: Path, failure: str
) -> None:
    hooks = dict.fromkeys(
        ["BeforeModel", "AfterModel", "BeforeToolSelection"], BROKEN[failure]
    )
    async with config_of(tmp_path, hooks, seen=False) as config:
        before = await fire_before_model_hook(config, REQUEST)
        after = await fire_after_model_hook(config, REQUEST, RESPONSE)
        selected = await fire_before_tool_selection_hook(config, REQUEST)
    assert not before.blocked
    assert before.modified_request in (None, REQUEST)
    assert after.response is RESPONSE
    assert selected.allowed_names is None


@pytest.mark.parametrize("request_", [object(), {"nothing": 1}, None, "text"])
async def test_model_triggers_go_on_when_the_request_is_in_no_known_shape(
    tmp_path: Path, request_: Any
) -> None:
    hooks = dict.fromkeys(["BeforeModel", "BeforeToolSelection"], runs("exit 2"))
    async with config_of(tmp_path, hooks) as config:
        before = await fire_before_model_hook(config, request_)
        selected = await fire_before_tool_selection_hook(config, request_)
    assert (before.blocked, selected.allowed_names) == (False, None)


async def test_an_unknown_shape_is_blocked_when_a_hooks_policy_is_closed(
    tmp_path: Path,
) -> None:
    """Policies that the handler applies reach the triggers."""
    hook = runs("true", onError="block")
    async with config_of(tmp_path, {"BeforeModel": hook}) as config:
        result = await fire_before_model_hook(config, {"nothing": 1})
    assert result.blocked


@pytest.mark.parametrize(
    "response",
    [{"nothing": 1}, object(), {"candidates": 5}],
    ids=["unknown dict", "unknown object", "unreadable genai"],
)
async def test_an_unreadable_response_is_replaced_when_a_hooks_policy_is_closed(
    tmp_path: Path, response: Any
) -> None:
    """After a model call the closed form is a replaced response.

    protocol.md#results
    """
    hook = runs("true", onError="block")
    async with config_of(tmp_path, {"AfterModel": hook}) as config:
        result = await fire_after_model_hook(config, REQUEST, response)
    assert result.response is not response
    assert "Blocked by the policy" in str(result.response)


async def test_model_triggers_do_nothing_when_hooks_are_switched_off(
    tmp_path: Path,
) -> None:
    config = Config("s", tmp_path, Settings.from_mapping({"enableHooks": False}))
    assert not (await fire_before_model_hook(config, REQUEST)).blocked
    after = await fire_after_model_hook(config, REQUEST, RESPONSE)
    assert after.response is RESPONSE
