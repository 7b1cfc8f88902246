"""Round trips of generated requests."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookline.protocol import jsontext
from hookline.translators import HookTranslator, to_wire
from hookline.translators.anthropic import AnthropicTranslator
from hookline.translators.genai import GenAITranslator
from hookline.translators.openai import OpenAITranslator

from . import strategies

few = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
REQUESTS: dict[str, tuple[HookTranslator, st.SearchStrategy[Any]]] = {
    "genai objects": (GenAITranslator(), strategies.genai_requests),
    "genai dicts": (GenAITranslator(), strategies.genai_dicts),
    "openai chat": (OpenAITranslator(), strategies.chat_requests),
    "openai responses": (OpenAITranslator(), strategies.item_requests),
    "anthropic": (AnthropicTranslator(), strategies.claude_requests),
}
CONTENT_FIELDS = {
    "genai dicts": ("contents", "parts"),
    "openai chat": ("messages", "content"),
    "openai responses": ("input", "content"),
    "anthropic": ("messages", "content"),
}
TEXT_KINDS = {"text", "input_text", "output_text"}
CACHE_FIELDS = ("cache_control", "prompt_cache_breakpoint")
every_sdk = pytest.mark.parametrize("sdk", REQUESTS)
every_dict = pytest.mark.parametrize("sdk", CONTENT_FIELDS)


def over_the_wire(value: Any) -> Any:
    return jsontext.decode(jsontext.encode(value))


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
def test_request_is_shown_as_before_when_a_setting_was_changed_and_restored(
    sdk: str, data: st.DataObject
) -> None:
    """HOOK-078: a change of one setting is that change and nothing else."""
    translator, requests = REQUESTS[sdk]
    request = data.draw(requests)
    shown = to_wire(translator.to_hook_llm_request(request))
    changed = translator.from_hook_llm_request({"config": {"temperature": 7}}, request)
    seen = to_wire(translator.to_hook_llm_request(changed))
    assert seen == {**shown, "config": {**shown.get("config", {}), "temperature": 7}}
    old = shown.get("config", {}).get("temperature")
    back = translator.from_hook_llm_request({"config": {"temperature": old}}, changed)
    assert to_wire(translator.to_hook_llm_request(back)) == shown


@every_dict
@few
@given(data=st.data())
def test_changed_setting_is_the_only_difference(sdk: str, data: st.DataObject) -> None:
    """HOOK-078: field by field, against the request itself."""
    translator, requests = REQUESTS[sdk]
    request = data.draw(requests)
    changed = translator.from_hook_llm_request({"config": {"temperature": 7}}, request)
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
    """HOOK-078: its text goes into the first text part, the other text parts go."""
    translator, requests = REQUESTS[sdk]
    request = data.draw(requests)
    messages = to_wire(translator.to_hook_llm_request(request))["messages"]
    if not messages:
        return
    at = data.draw(st.integers(0, len(messages) - 1))
    messages[at]["content"] = "EDITED"
    before = copy.deepcopy(request)
    changed = translator.from_hook_llm_request({"messages": messages}, request)
    assert changed == edited_by_hand(sdk, request, at)
    assert request == before


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


def edited_by_hand(sdk: str, request: Any, at: int) -> dict[str, Any]:
    """Edit the at-th shown message of a request, without the code under test."""
    history, field = CONTENT_FIELDS[sdk]
    expected: dict[str, Any] = copy.deepcopy(request)
    if isinstance(expected[history], str):
        return {**expected, history: "EDITED"}
    seen = -1
    for entry in expected[history]:
        seen += bool(shown_text(entry, field))
        if seen == at:
            entry[field] = edited_value(entry[field])
            break
    return expected


def shown_text(entry: dict[str, Any], field: str) -> str:
    content = entry.get(field)
    if entry.get("role") == "tool" and field == "content":
        return ""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content or [] if is_text(part))


def is_text(part: dict[str, Any]) -> bool:
    if "type" in part:
        return part["type"] in TEXT_KINDS
    return "text" in part and not part.get("thought")


def edited_value(content: Any) -> Any:
    if isinstance(content, str):
        return "EDITED"
    texts = [part for part in content if is_text(part)]
    head = {**texts[0], "text": "EDITED"}
    for name in CACHE_FIELDS:
        marks = [part[name] for part in texts if name in part]
        if marks:
            head.setdefault(name, marks[-1])
    kept = [part for part in content if not is_text(part) or part is texts[0]]
    return [head if part is texts[0] else part for part in kept]
