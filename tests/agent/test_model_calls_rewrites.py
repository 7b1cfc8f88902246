"""A hook's rewrite holds, whatever else is wrong with its answer (issue 12.5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline.agent import ChatSession, fire_before_model_hook, hooked
from hookline.errors import TranslationError
from hookline.testing.modelapi import Answer, ModelServer
from hookline.translators.stable import LLMRequest

from .scenes import config_of, specific
from .servers import MODELS, SDKS, genai_client

SECRET = "sk-12345"
REDACTED = [{"role": "user", "content": "redacted"}]
BESIDE: dict[str, dict[str, Any]] = {
    "a whole float": {"config": {"maxOutputTokens": 4096.0}},
    "a fraction": {"config": {"maxOutputTokens": 4096.5}},
    "a number as text": {"config": {"temperature": "0.5"}},
    "one name as text": {"config": {"stopSequences": "x"}},
    "a list of numbers": {"config": {"stopSequences": [5]}},
    "an unknown setting": {"config": {"noSuchSetting": {"x": 1}}},
    "a tool mode of the wrong type": {"toolConfig": {"mode": ["NONE"]}},
    "names as text": {"toolConfig": {"allowedFunctionNames": "x"}},
}
EMPTIED: dict[str, dict[str, Any]] = {
    "parts: []": {"candidates": [{"content": {"role": "model", "parts": []}}]},
    "parts: ['']": {"candidates": [{"content": {"role": "model", "parts": [""]}}]},
    "parts: null": {"candidates": [{"content": {"role": "model", "parts": None}}]},
    "candidates: []": {"candidates": []},
    "candidates: null": {"candidates": None},
    "text: null": {"text": None},
    "text: ''": {"text": ""},
}


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("sdk", SDKS)
async def test_a_redaction_is_sent_whatever_stands_beside_it(
    tmp_path: Path, sdk: str, beside: str
) -> None:
    """protocol.md#process: a value of the wrong type is ignored by itself."""
    hook = specific(llm_request={"messages": REDACTED, **BESIDE[beside]})
    config = config_of(tmp_path, {"BeforeModel": hook}, seen=False)
    with ModelServer(["ok"]) as server:
        async with MODELS[sdk](server) as model, config:
            reply = await ChatSession(config, model).send(SECRET)
        body = server.requests[0].body
    assert reply.text == "ok"
    assert SECRET not in str(body)
    assert "redacted" in str(body)
    if beside == "a whole float":
        assert "4096" in str(body)
        assert "4096.0" not in str(body)


@pytest.mark.parametrize("sdk", SDKS)
async def test_an_invalid_message_is_not_sent_as_it_was(
    tmp_path: Path, sdk: str
) -> None:
    """The hook meant to change it: it is removed, and the original stays away."""
    invalid = {"role": "user", "content": {"text": "redacted"}}
    hook = specific(llm_request={"messages": [invalid, *REDACTED]})
    config = config_of(tmp_path, {"BeforeModel": hook}, seen=False)
    with ModelServer(["ok"]) as server:
        async with MODELS[sdk](server) as model, config:
            await ChatSession(config, model).send(SECRET)
        body = server.requests[0].body
    assert SECRET not in str(body)
    assert "redacted" in str(body)


@pytest.mark.parametrize("left", [True, False], ids=["other fields left", "alone"])
@pytest.mark.parametrize("emptied", EMPTIED)
@pytest.mark.parametrize("sdk", SDKS)
async def test_an_emptied_answer_shows_nothing(
    tmp_path: Path, sdk: str, emptied: str, left: bool
) -> None:
    """protocol.md#translation: emptied means emptied."""
    content = {"role": "model", "parts": [SECRET]}
    shown = {"text": SECRET, "candidates": [{"content": content, "index": 0}]}
    hook = specific(llm_response={**(shown if left else {}), **EMPTIED[emptied]})
    config = config_of(tmp_path, {"AfterModel": hook}, seen=False)
    pieces: list[str] = []
    with ModelServer([SECRET]) as server:
        async with MODELS[sdk](server) as model, config:
            session = ChatSession(config, model)
            reply = await session.send("hi", pieces.append)
    assert reply.text == ""
    assert SECRET not in f"{pieces} {reply} {session.history}"


@pytest.mark.parametrize("emptied", EMPTIED)
async def test_an_emptied_answer_of_a_hooked_client_shows_nothing(
    tmp_path: Path, emptied: str
) -> None:
    hook = specific(llm_response={"text": SECRET, **EMPTIED[emptied]})
    config = config_of(tmp_path, {"AfterModel": hook}, seen=False)
    with ModelServer([SECRET, SECRET]) as server, genai_client(server) as client:
        async with config:
            models = hooked(client, config).models
            whole = models.generate_content(model="m", contents="hi")
            chunks = list(models.generate_content_stream(model="m", contents="hi"))
    assert SECRET not in f"{whole} {chunks}"
    assert not whole.text


class BrokenTranslator:
    """Reads requests and cannot write them."""

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        return LLMRequest("m", [])

    def from_hook_llm_request(self, *_: Any, **__: Any) -> Any:
        raise TranslationError("cannot write")


async def test_a_change_that_cannot_be_applied_blocks_the_call(tmp_path: Path) -> None:
    """Rather than to send what a hook has changed as it was."""
    hook = specific(llm_request={"messages": REDACTED})
    async with config_of(tmp_path, {"BeforeModel": hook}, seen=False) as config:
        translator: Any = BrokenTranslator()
        result = await fire_before_model_hook(config, SECRET, translator=translator)
    assert result.blocked
    assert "could not be applied" in (result.reason or "")


async def test_text_beside_calls_is_redacted_and_a_warning_names_the_calls(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hook = specific(llm_response={"text": "redacted", "usageMetadata": []})
    config = config_of(tmp_path, {"AfterModel": hook}, seen=False)
    with ModelServer([Answer(SECRET, (("f", {}),))]) as server:
        async with MODELS["openai"](server) as model, config:
            reply = await ChatSession(config, model).send("hi")
    assert (reply.text, reply.calls) == ("redacted", ())
    assert "tool calls are lost (f)" in caplog.text
