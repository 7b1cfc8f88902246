"""The model triggers with objects of the SDKs, broken answers and changed ones.

What the triggers give their callers is recorded in
``tests/pins/agent/model_triggers.json``. Issue 12.5; protocol.md#results, #translation.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from types import MappingProxyType
from typing import Any

import pytest
from anthropic.types import Message
from google.genai import types
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from hookline.agent import (
    fire_after_model_hook,
    fire_before_model_hook,
    fire_before_tool_selection_hook,
)
from hookline.errors import TranslationError
from hookline.translators.genai import GenerateContentRequest
from hookline.translators.openai import OpenAITranslator
from hookline.translators.stable import LLMRequest
from tests.support.recorded_events import RecordedHooks, specific

SECRET = "sk-12345"
CLOSED = {"AfterModel": {"$raise": "oh no", "onError": "block"}}
Wire = dict[str, Any]

# --- Broken answers: with ``onError: block`` nothing of the original is shown ---------

JUNK: list[Any] = [[], {}, 5, "5", None, [5], {"x": SECRET}, [SECRET], True]


def chat(**choice: Any) -> Wire:
    message = {"role": "assistant", "content": SECRET}
    one = {"index": 0, "finish_reason": "stop", "message": message, **choice}
    return {"id": "1", "object": "chat.completion", "created": 1, "choices": [one]}


def items(**fields: Any) -> Wire:
    block = {"type": "output_text", "text": SECRET}
    item = {"type": "message", "role": "assistant", "content": [block]}
    return {"object": "response", "status": "completed", "output": [item], **fields}


def claude(**fields: Any) -> Wire:
    blocks = [{"type": "text", "text": SECRET}]
    return {"type": "message", "role": "assistant", "content": blocks, **fields}


def gemini(**candidate: Any) -> Wire:
    content = {"role": "model", "parts": [{"text": SECRET}]}
    return {"candidates": [{"content": content, **candidate}]}


SAID = [{"role": "assistant", "content": "hi"}]
REQUESTS: dict[str, Wire] = {
    "chat": {"model": "m", "messages": SAID},
    "responses": {"model": "m", "input": "hi"},
    "anthropic": {"model": "claude-x", "messages": SAID},
    "genai": {"model": "m", "contents": "hi"},
}
KINDS: dict[str, Any] = {
    "chat": ChatCompletion,
    "responses": Response,
    "anthropic": Message,
    "genai": types.GenerateContentResponse,
}
BROKEN: dict[str, dict[str, Callable[[Any], Wire]]] = {
    "chat": {
        "usage": lambda junk: {**chat(), "usage": junk},
        "finish_reason": lambda junk: chat(finish_reason=junk),
        "index": lambda junk: chat(index=junk),
        "message": lambda junk: chat(message=junk),
        "content": lambda junk: chat(message={"content": junk}),
        "choices": lambda junk: {**chat(), "choices": junk},
    },
    "responses": {
        "usage": lambda junk: items(usage=junk),
        "status": lambda junk: items(status=junk),
        "output": lambda junk: items(output=junk),
    },
    "anthropic": {
        "usage": lambda junk: claude(usage=junk),
        "stop_reason": lambda junk: claude(stop_reason=junk),
        "content": lambda junk: claude(content=junk),
    },
    "genai": {
        "usageMetadata": lambda junk: {**gemini(), "usageMetadata": junk},
        "finishReason": lambda junk: gemini(finishReason=junk),
        "content": lambda junk: gemini(content=junk),
        "parts": lambda junk: gemini(content={"parts": junk}),
        "candidates": lambda junk: {"candidates": junk},
    },
}


@pytest.mark.parametrize("api", list(BROKEN))
async def test_a_broken_answer_is_replaced_whatever_is_broken(
    subtests: pytest.Subtests, api: str
) -> None:
    """As a dict, as another mapping and as the SDK's own object."""
    async with RecordedHooks(CLOSED).config as config:
        for field, make in BROKEN[api].items():
            for junk in JUNK:
                answer = make(junk)
                built = KINDS[api].model_construct(**answer)
                for given in (answer, MappingProxyType(answer), built):
                    with subtests.test(f"{field} {junk} {type(given).__name__}"):
                        result = await fire_after_model_hook(
                            config, REQUESTS[api], given
                        )
                        text = str(result.response)
                        assert SECRET not in text
                        assert "onError" in text or "Blocked" in text


async def test_a_raw_http_response_is_replaced() -> None:
    """The answer in its body was never shown to a hook."""
    raw = types.HttpResponse(body=SECRET)
    answer = types.GenerateContentResponse(sdk_http_response=raw)
    hook = {"$process": {"command": "true", "onError": "block"}}
    async with RecordedHooks({"AfterModel": hook}).config as config:
        result = await fire_after_model_hook(config, REQUESTS["genai"], answer)
    assert SECRET not in str(result.response)


@pytest.mark.parametrize("request_", [object(), None])
async def test_requests_in_no_known_shape_are_sent(request_: Any) -> None:
    deny = {"decision": "deny"}
    hooks = RecordedHooks({"BeforeModel": deny, "BeforeToolSelection": deny})
    async with hooks.config as config:
        before = await fire_before_model_hook(config, request_)
        selected = await fire_before_tool_selection_hook(config, request_)
    assert (before.blocked, selected.allowed_names) == (False, None)


class BrokenTranslator:
    """Reads requests and cannot write them."""

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        return LLMRequest("m", [])

    def from_hook_llm_request(self, *_: Any, **__: Any) -> Any:
        raise TranslationError("cannot write")


async def test_a_change_that_cannot_be_applied_blocks_the_call() -> None:
    """Rather than to send what a hook has changed as it was."""
    messages = [{"role": "user", "content": "redacted"}]
    hook = specific(llm_request={"messages": messages})
    async with RecordedHooks({"BeforeModel": hook}).config as config:
        translator: Any = BrokenTranslator()
        result = await fire_before_model_hook(config, SECRET, translator=translator)
    assert result.blocked
    assert "could not be applied" in (result.reason or "")


@pytest.mark.parametrize("name", ["anthropic", "auto"])
async def test_a_callers_translator_counts_whatever_the_config_names(name: str) -> None:
    hook = specific(llm_request={"config": {"temperature": 0.1}})
    hooks = RecordedHooks({"BeforeModel": hook}, translator=name)
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with hooks.config as config:
        result = await fire_before_model_hook(
            config, request, translator=OpenAITranslator()
        )
    assert result.modified_request == {**request, "temperature": 0.1}


# --- Objects of google-genai ----------------------------------------------------------

READ = types.FunctionDeclaration(name="read_file")
WRITE = types.FunctionDeclaration(name="write_file")


@pytest.mark.parametrize(
    ("tool_config", "left", "mode"),
    [
        ({"mode": "ANY", "allowedFunctionNames": ["read_file"]}, [READ, WRITE], "ANY"),
        ({"mode": "AUTO", "allowedFunctionNames": ["read_file"]}, [READ], "AUTO"),
        ({"mode": "ANY", "allowedFunctionNames": ["other"]}, [READ, WRITE], "NONE"),
        ({"mode": "NONE"}, [READ, WRITE], "NONE"),
    ],
)
async def test_objects_of_genai_are_changed_like_dicts(
    tool_config: Any, left: list[Any], mode: str
) -> None:
    both = types.Tool(
        function_declarations=[READ, WRITE], google_search=types.GoogleSearch()
    )
    code = types.Tool(code_execution=types.ToolCodeExecution())
    config = types.GenerateContentConfig(temperature=0.5, tools=[both, code])
    request = GenerateContentRequest("m", "hi", config)
    change = specific(
        llm_request={"config": {"temperature": 0.1}}, additionalContext="late"
    )
    hooks = RecordedHooks(
        {"BeforeToolSelection": specific(toolConfig=tool_config), "BeforeModel": change}
    )
    async with hooks.config:
        selected = await fire_before_tool_selection_hook(hooks.config, request)
        before = await fire_before_model_hook(hooks.config, request)
    assert selected.tools == [types.Tool(function_declarations=left)]
    assert selected.modified_request.config.tools == selected.tools
    assert selected.tool_config.function_calling_config.mode == mode
    assert hooks.events[0]["available_tools"] == ["read_file", "write_file"]
    changed = before.modified_request
    assert (changed.config.temperature, changed.config.tools) == (0.1, [both, code])
    assert "late" in str(changed.contents[-1])
    assert (config.temperature, both.google_search is None) == (0.5, False)


# --- Changed answers: candidates count where they are given, else the text ------------

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "n": 2}


def choice(index: int) -> Wire:
    message = {"role": "assistant", "content": f"{SECRET} {index}"}
    return {"index": index, "finish_reason": "stop", "message": message}


def content(*parts: Any) -> Wire:
    return {"content": {"role": "model", "parts": list(parts)}}


RESPONSES: dict[str, Wire] = {
    "openai": {"object": "chat.completion", "choices": [choice(0), choice(1)]},
    "genai": {
        "candidates": [
            {"index": at, **content({"text": f"{SECRET} {at}"})} for at in range(2)
        ]
    },
    "stable": {"candidates": [content(f"{SECRET} {at}") for at in range(2)]},
}


def texts_changed(change: Callable[[str], str], response: Wire) -> list[Wire]:
    return [
        {
            **one,
            "content": {"parts": [change(text) for text in one["content"]["parts"]]},
        }
        for one in response["candidates"]
    ]


def redact(text: str) -> str:
    return text.replace(SECRET, "*")


def sign(text: str) -> str:
    return f"{text}, yours"


CHANGES: dict[str, Callable[[Callable[[str], str], Wire], Wire]] = {
    "text": lambda change, shown: {"text": change(shown["text"])},
    "candidates": lambda change, shown: {"candidates": texts_changed(change, shown)},
    "text, the rest as shown": lambda change, shown: {
        **shown,
        "text": change(shown["text"]),
    },
    "candidates, the rest as shown": lambda change, shown: {
        **shown,
        "candidates": texts_changed(change, shown),
    },
}
"""Ways in which hooks return a changed answer."""


async def answer_after(response: Wire, hooks: Any, *, sequential: bool = False) -> str:
    """The response as text, after hooks that change it."""
    async with RecordedHooks({"BeforeModel": None}).config as config:
        system = config.get_hook_system()
        assert system is not None
        for change, name in hooks:

            def hook(event: Wire, change: Any = change, name: str = name) -> Wire:
                changed = CHANGES[name](change, event["llm_response"])
                return specific(llm_response=changed)

            system.on("AfterModel", sequential=sequential)(hook)
        result = await fire_after_model_hook(config, REQUEST, response)
    return str(result.response)


async def test_a_redaction_leaves_no_candidate_as_it_was(
    subtests: pytest.Subtests,
) -> None:
    for sdk, response in RESPONSES.items():
        for name in CHANGES:
            with subtests.test(f"{sdk}: {name}"):
                shown = await answer_after(response, [(redact, name)])
                assert SECRET not in shown
                assert "* 0" in shown


@pytest.mark.parametrize("sequential", [True, False], ids=["sequential", "parallel"])
async def test_no_other_change_brings_back_what_was_redacted(
    subtests: pytest.Subtests, sequential: bool
) -> None:
    """Each hook's answer counts in full, whatever it left beside its change."""
    for first, second in permutations(CHANGES, 2):
        for hooks in (
            [(redact, first), (sign, second)],
            [(sign, first), (redact, second)],
        ):
            with subtests.test(f"{hooks[0][0].__name__} {first}, {second}"):
                shown = await answer_after(
                    RESPONSES["openai"], hooks, sequential=sequential
                )
                assert SECRET not in shown
                assert "* 0, yours" in shown
