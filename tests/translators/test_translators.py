"""What plain data cannot show: objects among dicts, classes, imports and memory."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tracemalloc
from collections import ChainMap, OrderedDict, UserDict, UserList, deque
from collections.abc import Callable
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from anthropic import types as claude
from anthropic.resources.messages import Messages
from google.genai import types as genai
from google.genai._transformers import t_contents
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionMessage

from hookline import Config, HookSystem
from hookline.errors import TranslationError
from hookline.translators import (
    HookTranslator,
    LLMMessage,
    LLMRequest,
    pick_translator,
    stable_wire,
    to_wire,
)
from hookline.translators.genai import GenerateContentRequest
from tests.support.translated import chunk_objects

from .samples import Anthropic, GenAIObjects, OpenAIChat, OpenAIResponses

HI = {"role": "user", "content": "hi"}
SECRET = {"role": "user", "content": "secret"}
REDACTED = {"messages": [{"role": "user", "content": "redacted"}]}
MEGABYTE = 1 << 20


class Text(str):
    """A str subclass, as LangChain's ``message.text`` is one."""

    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


class Number(float):
    """A float subclass, as numpy's is one."""


class Fields(dict[str, Any]):
    """A dict subclass."""


def test_objects_are_recognised_by_their_class(subtests: pytest.Subtests) -> None:
    """protocol.md#translation: also as a message among dicts."""
    message = ChatCompletionMessage(role="assistant", content="hi")
    for name, value in (
        ("genai", genai.GenerateContentResponse()),
        ("genai", genai.Content()),
        ("genai", genai.GenerateContentConfig()),
        ("genai", GenerateContentRequest("m", "hi")),
        ("genai", {"contents": [genai.Content(role="user", parts=[])]}),
        ("openai", OpenAIChat().make_response("hi")),
        ("openai", OpenAIResponses().make_response("hi")),
        ("openai", {"messages": [message]}),
        ("anthropic", Anthropic().make_response("hi")),
        ("anthropic", {"messages": [Anthropic().make_response("hi")]}),
        ("stable", LLMRequest("m", [LLMMessage("user", "hi")])),
    ):
        with subtests.test(str(type(value))):
            assert type(pick_translator(value)) is type(pick_translator({}, name))
    with pytest.raises(TranslationError, match="got object; set Config"):
        pick_translator(object())


def test_stable_values_are_frozen_and_stay_structs() -> None:
    message = LLMMessage("user", "hi")
    with pytest.raises(AttributeError):
        message.content = "ho"  # type: ignore[misc]  # frozen: that is the test
    request = LLMRequest("m", [message])
    changed = pick_translator(request).from_hook_llm_request({"model": "n"}, request)
    assert changed == LLMRequest("n", [message])
    assert to_wire(request) == {"model": "m", "messages": [HI]}


def test_message_objects_in_a_history_are_edited_in_a_copy() -> None:
    """HOOK-078: a message of an earlier answer, as agents append it."""
    message = OpenAIChat().make_response_with_call("hi").choices[0].message
    request: dict[str, Any] = {"messages": [{**HI, "content": "x"}, message]}
    messages = [{**HI, "content": "x"}, {"role": "model", "content": "ho"}]
    translator = pick_translator(request)
    changed = translator.from_hook_llm_request({"messages": messages}, request)
    edited = changed["messages"][1]
    assert isinstance(edited, ChatCompletionMessage)
    assert (edited.content, edited.tool_calls) == ("ho", message.tool_calls)
    assert message.content == "hi"


def test_blocks_of_an_earlier_message_are_edited_in_a_copy() -> None:
    """HOOK-078: content in the SDK's own blocks."""
    earlier = Anthropic().make_response_with_call("hi")
    request = {"messages": [{"role": "assistant", "content": earlier.content}]}
    change = {"messages": [{"role": "model", "content": "ho"}]}
    translator = pick_translator(request, "anthropic")
    changed = translator.from_hook_llm_request(change, request)
    thinking, text, call = changed["messages"][0]["content"]
    assert (thinking, call) == (earlier.content[0], earlier.content[2])
    assert isinstance(text, claude.TextBlock)
    assert (text.text, earlier.content[1].text) == ("ho", "hi")


def test_reasoning_that_is_in_a_history_twice_stays() -> None:
    """One object twice: items are told apart by identity."""
    reasoning = {"type": "reasoning", "id": "r1", "summary": []}
    history = [reasoning, {"role": "assistant", "content": "ho"}, reasoning]
    messages = [{"role": "model", "content": "ho"}, {**HI, "content": "more"}]
    request = {"model": "m", "input": history}
    translator = pick_translator(request)
    changed = translator.from_hook_llm_request({"messages": messages}, request)
    assert changed["input"] == [*history, {**HI, "content": "more"}]


def test_changed_request_is_taken_by_the_sdk_of_anthropic() -> None:
    change = {
        "messages": [{"role": "system", "content": "s"}, HI],
        "config": {"temperature": 0, "topK": 3, "topP": 1, "stopSequences": ["x"]},
        "toolConfig": {"mode": "ANY"},
    }
    base: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": []}
    changed = pick_translator(base, "anthropic").from_hook_llm_request(change, base)
    inspect.signature(Messages.create).bind(None, **changed)


def test_appended_message_comes_last_to_the_sdk_of_genai(
    subtests: pytest.Subtests,
) -> None:
    """The SDK would move bare parts behind a dict that follows them."""
    image = genai.Part(inline_data=genai.Blob(mime_type="image/png", data=b"\0"))
    file = genai.File(uri="https://example.org/f", mime_type="text/plain")
    messages = [HI, {"role": "model", "content": "ho"}]
    for contents in ("hi", ["hi", image], ["hi", file]):
        for request in (
            GenerateContentRequest("m", contents),
            {"model": "m", "contents": contents},
        ):
            with subtests.test(f"{type(request).__name__} {contents}"):
                translator = pick_translator(request)
                changed = translator.from_hook_llm_request(
                    {"messages": messages}, request
                )
                is_dict = isinstance(changed, dict)
                history = changed["contents"] if is_dict else changed.contents
                assert isinstance(history[-1], dict) is (is_dict and contents == "hi")
                sent = t_contents(history)
                texts = [(one.role, (one.parts or [])[0].text) for one in sent]
                assert texts == [("user", "hi"), ("model", "ho")]


def test_genai_functions_are_limited_by_their_names() -> None:
    """protocol.md#callers."""

    def read_file(path: str) -> str:
        return path

    def write_file(path: str) -> str:
        return path

    search = genai.Tool(google_search=genai.GoogleSearch())
    tools: list[Any] = [read_file, write_file, search]
    config = genai.GenerateContentConfig(tools=tools)
    request = GenerateContentRequest("m", "hi", config)
    translator = pick_translator(request)
    assert translator.tool_names(request) == ["read_file", "write_file"]
    assert translator.limit_tools(request, ["read_file"]).config.tools == [read_file]
    session = object()  # of MCP: it has no name, and its calls pass the hooks
    as_dict = {"contents": "hi", "config": {"tools": [write_file, session]}}
    limited = translator.limit_tools(as_dict, ["read_file"])
    assert limited["config"]["tools"] == [session]


def test_genai_response_is_rebuilt_as_one_that_can_be_sent() -> None:
    base = GenAIObjects().make_response("hi").model_copy(update={"parsed": {"a": 1}})
    rebuilt = pick_translator(base).from_hook_llm_response({"text": "ho"}, base)
    assert (rebuilt.text, rebuilt.parsed, rebuilt.response_id) == ("ho", None, "r-1")
    rebuilt.model_dump_json()


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


async def test_guard_is_shown_text_of_any_string_class(
    subtests: pytest.Subtests,
) -> None:
    """A str subclass failed the translation, and guards were skipped."""
    for case, (name, make) in REQUESTS.items():
        seen: list[dict[str, Any]] = []
        async with HookSystem(Config(translator=name)) as hooks:
            hooks.on("BeforeModel")(seen.append)
            request = {"model": Text("m"), **make(Text("secret"))}
            result = await hooks.event_handler.fire_before_model_event(request)
        with subtests.test(case):
            assert result.aggregated.errors == []
            shown = seen[0]["llm_request"]
            assert shown == {"model": "m", "messages": [SECRET]}
            assert type(shown["messages"][0]["content"]) is str


def test_mappings_and_lists_of_any_class_are_read_and_rewritten(
    subtests: pytest.Subtests,
) -> None:
    mappings: tuple[Any, ...] = (
        *(Fields, OrderedDict, UserDict, ChainMap, MappingProxyType),
    )
    lists: tuple[Any, ...] = (tuple, deque, UserList)
    for case, (name, make) in REQUESTS.items():
        plain = make("secret")
        for kind in mappings:
            request = {
                key: [kind(one) if isinstance(one, dict) else one for one in value]
                if isinstance(value, list)
                else value
                for key, value in plain.items()
            }
            with subtests.test(f"{case} {kind.__name__}"):
                _assert_read_and_rewritten(kind(request), name)
        for kind in lists:
            request = {
                key: kind(value) if isinstance(value, list) else value
                for key, value in plain.items()
            }
            with subtests.test(f"{case} {kind.__name__}"):
                _assert_read_and_rewritten(request, name)


def _assert_read_and_rewritten(request: Any, name: str) -> None:
    assert stable_wire("llm_request", request, name)["messages"] == [SECRET]
    translator = pick_translator(request, name)
    changed = str(translator.from_hook_llm_request(REDACTED, request))
    assert "redacted" in changed
    assert "secret" not in changed


def test_settings_of_any_class_do_not_hide_the_messages(
    subtests: pytest.Subtests,
) -> None:
    """A guard that looks for secrets needs the messages, not the settings."""
    odd: dict[str, dict[str, Any]] = {
        "genai": {"config": {"temperature": Number(0.5), "topK": Decimal(3)}},
        "openai": {"temperature": Number(0.5), "seed": object(), "stop": Text("x")},
        "stable": {"config": {"temperature": Number(0.5), "x": UserDict(y=1)}},
    }
    for name, extra in odd.items():
        text = {"contents": "secret"} if name == "genai" else {"messages": [SECRET]}
        with subtests.test(name):
            shown = stable_wire("llm_request", {**text, **extra}, name)
            assert shown["messages"] == [SECRET]


def test_text_that_can_be_read_only_once_is_a_failure_and_not_hidden(
    subtests: pytest.Subtests,
) -> None:
    """protocol.md#translation: then the failure policy decides."""
    cases: list[tuple[str, dict[str, Any]]] = [
        ("openai", {"messages": (one for one in [HI])}),
        ("openai", {"messages": [object()]}),
        ("openai", {"messages": [{**HI, "content": [object()]}]}),
        ("anthropic", {"messages": [{**HI, "content": iter("x")}]}),
    ]
    for name, request in cases:
        with subtests.test(str(request)), pytest.raises(TranslationError):
            stable_wire("llm_request", request, name)


def run_python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_dicts_are_translated_without_importing_an_sdk() -> None:
    run_python(
        """
import sys
import hookline.translators.openai, hookline.translators.anthropic
from hookline.translators import pick_translator
request = {"model": "m", "contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
translator = pick_translator(request)
changed = translator.from_hook_llm_request(
    {"messages": [{"role": "user", "content": "ho"}, {"role": "model", "content": "x"}],
     "config": {"temperature": 0}, "toolConfig": {"mode": "NONE"}}, request)
assert changed["contents"][0]["parts"] == [{"text": "ho"}], changed
loaded = {"google", "openai", "anthropic", "pydantic"} & set(sys.modules)
assert not loaded, loaded
"""
    )


def test_missing_extra_is_named_and_dicts_still_work() -> None:
    """Without the SDK, only making its objects fails, and names the extra."""
    run_python(
        """
import sys
from hookline.errors import MissingExtraError
from hookline.translators import pick_translator
for name, package, request in (
    ("genai", "google.genai", {"contents": "hi"}),
    ("openai", "openai", {"messages": []}),
    ("anthropic", "anthropic", {"messages": []}),
):
    sys.modules[package] = None
    translator = pick_translator(request, name)
    translator.to_hook_llm_request(request)
    translator.from_hook_llm_request({"config": {"temperature": 0}}, request)
    try:
        translator.from_hook_llm_response({"text": "no"})
    except MissingExtraError as error:
        assert f"hookline[{name}]" in str(error), error
    else:
        raise AssertionError(name)
"""
    )


def test_chunks_of_the_stream_helper_of_openai_are_unwrapped() -> None:
    state: ChatCompletionStreamState[Any] = ChatCompletionStreamState()
    chunks = OpenAIChat().make_chunks()
    events = [event for chunk in chunks for event in state.handle_chunk(chunk)]
    assert any(event.type != "chunk" for event in events)
    whole = pick_translator({}, "openai").assemble_response(events)
    final = state.get_final_completion()
    assert whole.choices[0].message.content == final.choices[0].message.content
    calls = [one.choices[0].message.tool_calls or [] for one in (whole, final)]
    arguments = [[call.function.arguments for call in found] for found in calls]
    assert arguments[0] == arguments[1] != []


def test_stream_of_anthropic_is_a_message_that_the_sdk_validates() -> None:
    whole = pick_translator({}, "anthropic").assemble_response(
        Anthropic().make_chunks()
    )
    assert type(whole).model_validate(whole.model_dump()) == whole


def genai_call(text: str, *arguments: dict[str, Any]) -> Any:
    call = {"name": "f", "partialArgs": arguments, "willContinue": True}
    parts: list[dict[str, Any]] = [{"text": text}, {"functionCall": call}]
    content = {"candidates": [{"content": {"role": "model", "parts": parts}}]}
    return chunk_objects("genai", [content])[0]


def test_genai_arguments_at_hostile_places_use_up_no_memory(
    subtests: pytest.Subtests,
) -> None:
    """An index of 10**9 would take eight gigabytes."""
    translator: HookTranslator = pick_translator({}, "genai")
    paths = ("$.list[1000000000]", f"$.list[{'9' * 5000}]", "$.list[0].x[500000000]")
    for path in (*paths, "$" + ".x" * 100_000, "$" + "[0]" * 100_000):
        chunks = [
            genai_call("hi", {"jsonPath": path, "stringValue": "x"}),
            genai_call("", {"jsonPath": path, "numberValue": 1}),
        ]
        with subtests.test(path[:30]):
            tracemalloc.start()
            whole = translator.assemble_response(chunks)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert stable_wire("llm_response", whole)["text"] == "hi"
            assert peak < 64 * MEGABYTE


def test_genai_arguments_of_a_long_array_are_kept_in_order() -> None:
    pieces = [{"jsonPath": f"$.list[{at}]", "numberValue": at} for at in range(300)]
    whole = pick_translator({}, "genai").assemble_response([genai_call("", *pieces)])
    assert whole.function_calls[0].args == {"list": list(range(300))}


def test_anthropic_arguments_may_be_nested_deeper_than_the_parser_goes() -> None:
    block = {"type": "tool_use", "id": "1", "name": "f", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": '{"a":' * 100_000}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"content": [], "usage": 5}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
    ]
    whole = pick_translator({}, "anthropic").assemble_response(events)
    assert whole.content[0].input == {}
