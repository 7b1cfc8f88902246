"""What makes a request or a response unreadable, and what does not (issue 12.5)."""

from __future__ import annotations

from collections import ChainMap, OrderedDict, UserDict, UserList, deque
from collections.abc import Callable
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from google.genai import types
from openai.types.chat import ChatCompletion

from hookline import Config, HookSystem
from hookline.errors import TranslationError
from hookline.translators import pick_translator, stable_wire, to_wire
from hookline.translators.genai import GenerateContentRequest
from hookline.translators.stable import HookTranslator


class Text(str):
    """A str subclass, as LangChain's ``message.text`` is one."""

    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


class Number(float):
    """A float subclass, as numpy's is one."""


class Fields(dict[str, Any]):
    """A dict subclass."""


HI = {"role": "user", "content": "hi"}
MAPPINGS: list[Callable[[dict[str, Any]], Any]] = [
    Fields,
    OrderedDict,
    UserDict,
    ChainMap,
    MappingProxyType,
]
REQUESTS: dict[str, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    "stable": ("stable", lambda text: {"messages": [{**HI, "content": text}]}),
    "openai": ("openai", lambda text: {"messages": [{**HI, "content": text}]}),
    "openai blocks": (
        "openai",
        lambda text: {
            "messages": [{**HI, "content": [{"type": Text("text"), "text": text}]}]
        },
    ),
    "responses": ("openai", lambda text: {"input": text}),
    "anthropic": ("anthropic", lambda text: {"messages": [{**HI, "content": text}]}),
    "genai": ("genai", lambda text: {"contents": text}),
    "genai list": ("genai", lambda text: {"contents": [text]}),
    "genai parts": (
        "genai",
        lambda text: {"contents": [{"role": Text("user"), "parts": [{"text": text}]}]},
    ),
}


def wire_of(request: Any, name: str = "auto") -> dict[str, Any]:
    return stable_wire("llm_request", request, name)


@pytest.mark.parametrize("sdk", REQUESTS)
async def test_a_guard_is_shown_text_of_any_string_class(sdk: str) -> None:
    """Issue 12.5: a str subclass failed the translation, and guards were skipped."""
    name, make = REQUESTS[sdk]
    seen: list[dict[str, Any]] = []
    async with HookSystem(Config(translator=name)) as hooks:
        hooks.on("BeforeModel")(seen.append)
        request = {"model": Text("m"), **make(Text("secret"))}
        result = await hooks.event_handler.fire_before_model_event(request)
    assert result.aggregated.errors == []
    assert seen[0]["llm_request"] == {
        "model": "m",
        "messages": [{"role": "user", "content": "secret"}],
    }
    assert type(seen[0]["llm_request"]["messages"][0]["content"]) is str


@pytest.mark.parametrize("mapping", MAPPINGS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("sdk", REQUESTS)
def test_mappings_of_any_class_are_read_and_rewritten(
    sdk: str, mapping: Callable[[dict[str, Any]], Any]
) -> None:
    name, make = REQUESTS[sdk]
    request = make("secret")
    for key in ("messages", "contents"):
        if isinstance(request.get(key), list) and isinstance(request[key][0], dict):
            request[key] = [mapping(one) for one in request[key]]
    given = mapping(request)
    assert wire_of(given, name)["messages"] == [{"role": "user", "content": "secret"}]
    translator = pick_translator(given, name)
    change = {"messages": [{"role": "user", "content": "redacted"}]}
    changed = translator.from_hook_llm_request(change, given)
    assert "redacted" in str(changed)
    assert "secret" not in str(changed)


@pytest.mark.parametrize("kind", [tuple, deque, UserList], ids=lambda k: k.__name__)
@pytest.mark.parametrize("sdk", ["stable", "openai blocks", "anthropic", "genai parts"])
def test_lists_of_any_class_are_read(sdk: str, kind: Any) -> None:
    name, make = REQUESTS[sdk]
    request = {
        key: kind(value) if isinstance(value, list) else value
        for key, value in make("secret").items()
    }
    translator = pick_translator(request, name)
    assert translator.to_hook_llm_request(request).messages[0].content == "secret"
    change = {"messages": [{"role": "user", "content": "redacted"}]}
    assert "secret" not in str(translator.from_hook_llm_request(change, request))


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("genai", {"model": 5}),
        ("genai", {"config": 5}),
        ("genai", {"config": {"toolConfig": 5, "tools": 5}}),
        ("genai", {"config": {"toolConfig": {"functionCallingConfig": {"mode": 5}}}}),
        ("genai", {"config": {"temperature": Number(0.5), "topK": Decimal(3)}}),
        ("openai", {"model": None, "tool_choice": 5, "tools": 5}),
        ("openai", {"tool_choice": {"type": 5}, "stop": Text("x")}),
        ("openai", {"temperature": Number(0.5), "seed": object()}),
        ("anthropic", {"tool_choice": "auto", "system": 5, "extra_body": 5}),
        ("anthropic", {"model": ["m"], "stop_sequences": "x", "max_tokens": "5"}),
        ("stable", {"model": 5, "config": [], "toolConfig": "NONE"}),
        ("stable", {"config": {"temperature": Number(0.5), "x": UserDict(y=1)}}),
    ],
)
def test_a_setting_of_any_value_does_not_hide_the_messages(
    name: str, extra: dict[str, Any]
) -> None:
    """A guard that looks for secrets needs the messages, not the settings."""
    text = {"contents": "secret"} if name == "genai" else {"messages": [secret()]}
    shown = wire_of({**text, **extra}, name)
    assert shown["messages"] == [{"role": "user", "content": "secret"}]


def secret() -> dict[str, Any]:
    return {"role": "user", "content": "secret"}


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("openai", {"messages": (one for one in [HI])}),
        ("openai", {"messages": [object()]}),
        ("openai", {"messages": [{**HI, "content": {"text": "x"}}]}),
        ("openai", {"messages": [{**HI, "content": [object()]}]}),
        ("openai", {"messages": [{**HI, "content": [{"type": "text", "text": {}}]}]}),
        ("anthropic", {"messages": [{**HI, "content": iter("x")}]}),
        ("genai", {"contents": [{"role": "user", "parts": [{"text": ["x"]}]}]}),
    ],
)
def test_text_that_cannot_be_read_is_a_failure_and_not_hidden(
    name: str, request_: dict[str, Any]
) -> None:
    """protocol.md#translation: then the failure policy decides."""
    with pytest.raises(TranslationError):
        wire_of(request_, name)


CHAT = {
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "hi"},
        }
    ]
}
MESSAGE = {"type": "message", "content": [{"type": "text", "text": "hi"}]}
GENAI = {"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}}]}
STABLE = {"candidates": [{"content": {"role": "model", "parts": ["hi"]}}]}
ITEMS = {"output": [{"type": "message", "content": MESSAGE["content"]}]}
BAD_COUNTS: list[Any] = [
    [],
    "5",
    5,
    {"prompt_tokens": "5", "input_tokens": "5", "promptTokenCount": "5"},
    {"prompt_tokens": [], "input_tokens": {}, "promptTokenCount": 1.5},
    {"total_tokens": True, "output_tokens": float("nan"), "totalTokenCount": None},
]


@pytest.mark.parametrize("counts", BAD_COUNTS, ids=repr)
@pytest.mark.parametrize(
    ("response", "field"),
    [
        (CHAT, "usage"),
        (MESSAGE, "usage"),
        (ITEMS, "usage"),
        (GENAI, "usageMetadata"),
        (STABLE, "usageMetadata"),
    ],
    ids=["chat", "anthropic", "responses", "genai", "stable"],
)
def test_counts_of_the_wrong_type_do_not_hide_an_answer(
    response: dict[str, Any], field: str, counts: Any
) -> None:
    """Issue 12.5: ``usage: []``, token counts as text."""
    given = {**response, field: counts}
    assert stable_wire("llm_response", given)["text"] == "hi"
    rebuilt = pick_translator(given).from_hook_llm_response({"text": "ho"}, given)
    assert stable_wire("llm_response", rebuilt)["text"] == "ho"


@pytest.mark.parametrize("value", [5, [], {}, "0", 0.5, True], ids=repr)
@pytest.mark.parametrize("field", ["index", "finish_reason", "logprobs"])
def test_fields_of_a_choice_of_the_wrong_type_do_not_hide_an_answer(
    field: str, value: Any
) -> None:
    """Issue 12.5: ``finish_reason: 5``, ``index: "0"``."""
    choice = {**CHAT["choices"][0], field: value}
    for given in ({"choices": [choice]}, ChatCompletion.construct(choices=[choice])):
        assert stable_wire("llm_response", given)["text"] == "hi"
        rebuilt = pick_translator(given).from_hook_llm_response({"text": "ho"}, given)
        assert stable_wire("llm_response", rebuilt)["text"] == "ho"


@pytest.mark.parametrize(
    "change",
    [{"finishReason": 5}, {"index": "0"}, {"safetyRatings": [5, {"category": 5}]}],
    ids=repr,
)
@pytest.mark.parametrize("response", [GENAI, STABLE], ids=["genai", "stable"])
def test_fields_of_a_candidate_of_the_wrong_type_do_not_hide_an_answer(
    response: dict[str, Any], change: dict[str, Any]
) -> None:
    given = {"candidates": [{**response["candidates"][0], **change}]}
    assert stable_wire("llm_response", given)["text"] == "hi"


def test_a_setting_that_the_sdk_refuses_is_ignored_by_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """protocol.md#process: settings that only google-genai knows the type of."""
    config = types.GenerateContentConfig(temperature=0.5)
    request = GenerateContentRequest("m", "secret", config)
    translator: HookTranslator = pick_translator(request)
    change = {
        "messages": [{"role": "user", "content": "redacted"}],
        "config": {"responseMimeType": 5, "temperature": 0.25},
    }
    changed = translator.from_hook_llm_request(change, request, hook_name="censor")
    assert to_wire(translator.to_hook_llm_request(changed)) == {
        "model": "m",
        "messages": [{"role": "user", "content": "redacted"}],
        "config": {"temperature": 0.25},
    }
    assert "censor" in caplog.text
    assert "config.responseMimeType" in caplog.text


async def test_unknown_keys_of_a_stable_message_survive_the_round_trip() -> None:
    """protocol.md#translation: so that an adapter may keep a cursor there."""
    messages = [
        {"role": "user", "content": "a", "cursor": 1, "extra": {"x": [1]}},
        {"role": "model", "content": "b", "cursor": 2},
    ]
    async with HookSystem(Config()) as hooks:

        @hooks.on("BeforeModel")
        def reverse(event: dict[str, Any]) -> dict[str, Any]:
            request = event["llm_request"]
            return {
                "hookSpecificOutput": {
                    "llm_request": {"messages": request["messages"][::-1]}
                }
            }

        request = {"model": "m", "messages": messages}
        result = await hooks.event_handler.fire_before_model_event(request)
    output = result.final_output
    assert output is not None
    assert output.llm_request == {"messages": messages[::-1]}
    translator = pick_translator(request)
    assert translator.from_hook_llm_request(output.llm_request, request) == {
        "model": "m",
        "messages": messages[::-1],
    }
    shown = translator.to_hook_llm_request(request)
    assert translator.from_hook_llm_request(shown, request) is request


BLOCK = {"type": "new_text", "text": "secret"}
OF_UNKNOWN_TYPE: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "openai": (
        "openai",
        {"messages": [{**HI, "content": [BLOCK]}]},
        {"choices": [{"message": {"role": "assistant", "content": [BLOCK]}}]},
    ),
    "responses block": (
        "openai",
        {"input": [{**HI, "content": [BLOCK]}]},
        {"output": [{"type": "message", "role": "assistant", "content": [BLOCK]}]},
    ),
    "responses item": (
        "openai",
        {"input": [{**HI, "type": "new_message", "content": "secret"}]},
        {"output": [{"type": 5, "role": "assistant", "content": "secret"}]},
    ),
    "anthropic": (
        "anthropic",
        {"messages": [{**HI, "content": [BLOCK]}]},
        {"type": "message", "content": [BLOCK]},
    ),
}


@pytest.mark.parametrize("case", OF_UNKNOWN_TYPE)
def test_an_unknown_type_does_not_hide_text(case: str) -> None:
    """What the service or its clients take for text is not for us to know."""
    name, request, response = OF_UNKNOWN_TYPE[case]
    assert wire_of(request, name)["messages"][0]["content"] == "secret"
    assert stable_wire("llm_response", response, name)["text"] == "secret"
    translator = pick_translator(request, name)
    change = {"messages": [{"role": "user", "content": "redacted"}]}
    assert "secret" not in str(translator.from_hook_llm_request(change, request))
    changed = translator.from_hook_llm_response({"text": "redacted"}, response)
    assert "secret" not in str(changed)


def test_a_thought_is_no_text() -> None:
    """protocol.md#translation: thoughts are dropped, those that have a text too."""
    block = {"type": "summary_text", "text": "hm"}
    request = {"messages": [{**HI, "content": [block, BLOCK]}]}
    assert wire_of(request, "openai")["messages"][0]["content"] == "secret"
