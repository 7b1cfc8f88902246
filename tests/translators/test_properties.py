"""What holds for every request, response and stream, not only for samples."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hookline.errors import TranslationError
from hookline.protocol import values
from hookline.translators import HookTranslator, pick_translator, to_wire
from tests.support.translated import chunk_objects

from . import strategies
from .samples import SAMPLES

few = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TRANSLATORS = {
    name: pick_translator({}, name)
    for name in ("genai", "openai", "anthropic", "stable")
}
REQUESTS: dict[str, tuple[HookTranslator, st.SearchStrategy[Any]]] = {
    "genai objects": (TRANSLATORS["genai"], strategies.genai_requests),
    "genai dicts": (TRANSLATORS["genai"], strategies.genai_dicts),
    **{
        name: (TRANSLATORS[name.split()[0]], strategies.requests(name))
        for name in ("openai chat", "openai responses", "anthropic")
    },
}
CONTENT_FIELDS = {
    "genai dicts": ("contents", "parts"),
    "openai chat": ("messages", "content"),
    "openai responses": ("input", "content"),
    "anthropic": ("messages", "content"),
}
TEXT_KINDS = {"text", "input_text", "output_text"}
every_sdk = pytest.mark.parametrize("sdk", REQUESTS)
every_dict = pytest.mark.parametrize("sdk", CONTENT_FIELDS)


def over_the_wire(value: Any) -> Any:
    return values.decode(values.encode(value))


@every_sdk
@few
@given(data=st.data())
def test_unchanged_request_comes_back_equal(sdk: str, data: st.DataObject) -> None:
    """HOOK-078: from(to(x), base=x) == x, as a Struct and by way of JSON."""
    translator, requests = REQUESTS[sdk]
    request = data.draw(requests)
    before = copy.deepcopy(request)
    shown = translator.to_hook_llm_request(request)
    wire = over_the_wire(to_wire(shown))
    assert translator.from_hook_llm_request(shown, request) == before
    assert translator.from_hook_llm_request(wire, request) == before
    assert request == before


@every_sdk
@few
@given(data=st.data())
def test_changed_setting_is_the_only_difference(sdk: str, data: st.DataObject) -> None:
    """HOOK-078: as hooks see it, until it is restored, and in the request itself."""
    translator, requests = REQUESTS[sdk]
    request = data.draw(requests)
    shown = to_wire(translator.to_hook_llm_request(request))
    changed = translator.from_hook_llm_request({"config": {"temperature": 7}}, request)
    seen = to_wire(translator.to_hook_llm_request(changed))
    assert seen == {**shown, "config": {**shown.get("config", {}), "temperature": 7}}
    old = shown.get("config", {}).get("temperature")
    back = translator.from_hook_llm_request({"config": {"temperature": old}}, changed)
    assert to_wire(translator.to_hook_llm_request(back)) == shown
    if sdk not in CONTENT_FIELDS:
        return
    expected = copy.deepcopy(request)
    if sdk == "genai dicts":
        expected["config"]["temperature"] = 7
    elif sdk == "anthropic" and "temperature" not in request:
        expected.setdefault("extra_body", {})["temperature"] = 7
    else:
        expected["temperature"] = 7
    assert changed == expected


@every_dict
@few
@given(data=st.data())
def test_edited_message_is_the_only_difference(sdk: str, data: st.DataObject) -> None:
    """HOOK-078: its text is replaced, all else of it and of the others stays."""
    translator, requests = REQUESTS[sdk]
    request = data.draw(requests)
    messages = to_wire(translator.to_hook_llm_request(request))["messages"]
    if not messages:
        return
    at = data.draw(st.integers(0, len(messages) - 1))
    messages[at]["content"] = "EDITED"
    before = copy.deepcopy(request)
    changed = translator.from_hook_llm_request({"messages": messages}, request)
    history, field = CONTENT_FIELDS[sdk]
    assert request == before
    assert to_wire(translator.to_hook_llm_request(changed))["messages"] == messages
    assert {**changed, history: None} == {**request, history: None}
    if isinstance(request[history], str):
        return
    pairs = list(zip(changed[history], request[history], strict=True))
    ((new, old),) = [(new, old) for new, old in pairs if new != old] or [pairs[0]]
    assert {**new, field: None} == {**old, field: None}
    assert without_text(new[field]) == without_text(old[field])


@every_dict
@few
@given(data=st.data())
def test_appended_message_is_the_only_difference(sdk: str, data: st.DataObject) -> None:
    """HOOK-179: all other messages stay as they were, in order."""
    translator, requests = REQUESTS[sdk]
    request = data.draw(requests)
    history = CONTENT_FIELDS[sdk][0]
    messages = to_wire(translator.to_hook_llm_request(request))["messages"]
    messages.append({"role": "user", "content": "APPENDED"})
    changed = translator.from_hook_llm_request({"messages": messages}, request)
    if isinstance(request[history], str):
        assert changed[history][0]["content"] == request[history]
    else:
        assert changed[history][:-1] == request[history]
    assert {**changed, history: None} == {**request, history: None}
    assert "APPENDED" in str(changed[history][-1])


@every_sdk
@few
@given(data=st.data())
def test_rewritten_messages_neither_lose_nor_add_text(
    sdk: str, data: st.DataObject
) -> None:
    """HOOK-078: any list of messages, over any history."""
    translator, requests = REQUESTS[sdk]
    request = data.draw(requests)
    shown = to_wire(translator.to_hook_llm_request(request))["messages"]
    pool = st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["user", "model"]),
        st.text(min_size=1, max_size=5),
    )
    if shown:
        pool |= st.sampled_from(shown)
    wanted = data.draw(st.lists(pool, max_size=8))
    changed = translator.from_hook_llm_request({"messages": wanted}, request)
    seen = to_wire(translator.to_hook_llm_request(changed))["messages"]
    own = [m for m in seen if m["role"] != "system"]
    expected = [m for m in wanted if m["role"] != "system"]
    assert sorted(map(str, merged_runs(own))) == sorted(map(str, merged_runs(expected)))


def merged_runs(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """Join the texts of each role, ordered: bare strings may have been grouped."""
    by_role: dict[str, list[str]] = {}
    for message in messages:
        by_role.setdefault(message["role"], []).append(message["content"])
    return [
        {"role": role, "content": "".join(sorted("".join(change)))}
        for role, change in by_role.items()
    ]


def without_text(content: Any) -> list[Any]:
    """The other blocks of a message, in order."""
    blocks = content if isinstance(content, list) else []
    return [
        block
        for block in blocks
        if block.get("type", "text") not in TEXT_KINDS
        or ("type" not in block and ("text" not in block or block.get("thought")))
    ]


KEYS = [
    "model", "messages", "contents", "input", "config", "role", "content", "parts",
    "text", "type", "tool_choice", "toolConfig", "functionCallingConfig", "mode",
    "candidates", "choices", "output", "message", "usage", "usageMetadata",
    "finishReason", "stop_reason", "tools", "name", "safetyRatings", "index",
    "allowedFunctionNames", "extra_body", "status", "incomplete_details", "thought",
    "tool_calls", "function", "system", "functionCall", "tool_config",
]  # fmt: skip
WORDS = ["user", "model", "text", "message", "tool", "function", "allowed_tools", "ANY"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=25,
)
objects = st.dictionaries(st.sampled_from(KEYS), json_values, max_size=6)


@pytest.mark.parametrize("sdk", TRANSLATORS)
@settings(max_examples=80, deadline=None)
@given(value=json_values | objects, change=objects)
def test_nothing_but_a_translation_error_is_raised(
    sdk: str, value: Any, change: dict[str, Any]
) -> None:
    """protocol.md#translation: for any value, from a caller or from a hook."""
    translator = TRANSLATORS[sdk]
    for function in (
        translator.to_hook_llm_request,
        translator.to_hook_llm_response,
        translator.to_hook_tool_config,
        translator.tool_names,
        lambda given: translator.from_hook_llm_request(change, given),
        lambda given: translator.from_hook_llm_response(change, given),
        pick_translator,
    ):
        with suppress(TranslationError):
            function(value)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda one: type(one).__name__)
@settings(max_examples=60, deadline=None)
@example(change={"candidates": [{"safetyRatings": False}]})
@example(change={"candidates": [{"safetyRatings": [{"category": 0}]}]})
@example(change={"candidates": [{"index": ""}]})
@given(change=objects)
def test_real_request_survives_any_hook_output(
    sample: Any, change: dict[str, Any]
) -> None:
    """A change is refused, or it gives a valid request; never half a change."""
    request, response = sample.make_request(), sample.make_response("hi")
    with suppress(TranslationError):
        changed = sample.translator.from_hook_llm_request(change, request)
        sample.translator.to_hook_llm_request(changed)
    with suppress(TranslationError):
        changed = sample.translator.from_hook_llm_response(change, response)
        sample.translator.to_hook_llm_response(changed)


roles = st.sampled_from(["user", "model"])
few_texts = st.sampled_from(["", "a", "b", "ok"])
histories = st.lists(st.tuples(roles, few_texts), max_size=40)


def origins(old: list[tuple[str, str]], new: list[tuple[str, str]]) -> list[int | None]:
    """Which message each new one was: the stable shape keeps a key of the caller."""
    messages = [
        {"role": role, "content": text, "at": at} for at, (role, text) in enumerate(old)
    ]
    change = {"messages": [{"role": role, "content": text} for role, text in new]}
    stable = TRANSLATORS["stable"]
    changed = stable.from_hook_llm_request(change, {"messages": messages})
    return [message.get("at") for message in changed["messages"]]


@settings(max_examples=150, deadline=None)
@given(histories, histories)
def test_messages_are_recognised_in_order_and_by_their_roles(
    old: list[tuple[str, str]], new: list[tuple[str, str]]
) -> None:
    """HOOK-078: pairs are in order, one to one, and of the same role."""
    found = origins(old, new)
    pairs = [(i, j) for j, i in enumerate(found) if i is not None]
    assert len(found) == len(new)
    assert [i for i, _ in pairs] == sorted({i for i, _ in pairs})
    assert all(old[i][0] == new[j][0] for i, j in pairs)


@settings(max_examples=60, deadline=None)
@given(histories.filter(len), st.data())
def test_edited_message_is_recognised_anywhere(
    old: list[tuple[str, str]], data: st.DataObject
) -> None:
    """HOOK-078: also among equal messages."""
    at = data.draw(st.integers(0, len(old) - 1))
    new = [*old[:at], (old[at][0], "EDITED"), *old[at + 1 :]]
    assert origins(old, new) == list(range(len(old)))


def test_long_history_that_is_all_new_is_recognised_by_its_roles() -> None:
    old = [("user" if n % 2 else "model", f"old {n}") for n in range(500)]
    new = [(role, f"new {n}") for n, (role, _) in enumerate(old)]
    assert origins(old, new) == list(range(500))


STREAMS = json.loads(Path(__file__).with_name("streams.json").read_text())


@pytest.mark.parametrize("sdk", STREAMS)
@few
@given(texts=st.lists(st.text(max_size=8), min_size=1, max_size=8))
def test_every_text_of_a_chunk_is_in_the_response(sdk: str, texts: list[str]) -> None:
    """Hooks judge the response, people see the chunks."""
    chunk = json.dumps(STREAMS[sdk]["chunk"])
    plain = [json.loads(chunk.replace('"<text>"', json.dumps(text))) for text in texts]
    chunks = chunk_objects(sdk, [*STREAMS[sdk]["start"], *plain])
    whole = TRANSLATORS[sdk].assemble_response(chunks)
    shown = TRANSLATORS[sdk].to_hook_llm_response(whole)
    assert (shown.text or "") == "".join(texts)
