"""The model triggers: no answer that a guard changed or could not see comes back.

What the triggers give their callers is recorded in the tables ``model_triggers`` and
``broken_answers`` in ``tests/pins/agent``. protocol.md#results and #translation.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from google.genai import types

from hookline.agent import fire_after_model_hook, fire_before_model_hook
from hookline.errors import TranslationError
from hookline.translators.openai import OpenAITranslator
from hookline.translators.shape import LLMRequest
from tests.support.recorded_events import RecordedHooks, specific

SECRET = "sk-12345"
Wire = dict[str, Any]


async def test_a_raw_http_response_is_replaced() -> None:
    """The answer in its body was never shown to a hook."""
    raw = types.HttpResponse(body=SECRET)
    answer = types.GenerateContentResponse(sdk_http_response=raw)
    hook = {"$process": {"command": "true", "onError": "block"}}
    async with RecordedHooks({"AfterModel": hook}).config as config:
        result = await fire_after_model_hook(
            config, {"model": "m", "contents": "hi"}, answer
        )
    assert SECRET not in str(result.response)


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


# --- Changed answers: candidates count where they are given, else the text ------------

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "n": 2}


def content(*parts: Any) -> Wire:
    return {"content": {"role": "model", "parts": list(parts)}}


RESPONSES: dict[str, Wire] = {
    "openai": {
        "object": "chat.completion",
        "choices": [
            {"index": at, "message": {"role": "assistant", "content": f"{SECRET} {at}"}}
            for at in range(2)
        ],
    },
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
