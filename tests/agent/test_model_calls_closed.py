"""With ``onError: block`` no answer of any kind shows the original (issue 12.5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from anthropic.types import Message
from google.genai.types import GenerateContentResponse, HttpResponse
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from hookline.agent import ChatSession, fire_after_model_hook, fire_before_model_hook
from hookline.testing.cases import ServerAnswer
from hookline.testing.loopback import AnsweringServer

from .scenes import config_of, runs, says
from .servers import MODELS, genai_client

CLOSED = runs("exit 1", onError="block")
SECRET = "sk-12345"
JUNK: list[Any] = [[], {}, 5, "5", None, [5], {"x": SECRET}, [SECRET], True]


def chat(**choice: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": SECRET}
    one = {"index": 0, "finish_reason": "stop", "message": message, **choice}
    return {"id": "1", "object": "chat.completion", "created": 1, "choices": [one]}


def items(**fields: Any) -> dict[str, Any]:
    block = {"type": "output_text", "text": SECRET}
    item = {"type": "message", "role": "assistant", "content": [block]}
    return {"object": "response", "status": "completed", "output": [item], **fields}


def claude(**fields: Any) -> dict[str, Any]:
    blocks = [{"type": "text", "text": SECRET}]
    return {"type": "message", "role": "assistant", "content": blocks, **fields}


def gemini(**candidate: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": SECRET}]}
    return {"candidates": [{"content": content, **candidate}]}


REQUESTS: dict[str, dict[str, Any]] = {
    "chat": {"model": "m", "messages": [{"role": "assistant", "content": "hi"}]},
    "responses": {"model": "m", "input": "hi"},
    "anthropic": {
        "model": "claude-x",
        "messages": [{"role": "assistant", "content": "hi"}],
    },
    "genai": {"model": "m", "contents": "hi"},
}
KINDS: dict[str, Any] = {
    "chat": ChatCompletion,
    "responses": Response,
    "anthropic": Message,
    "genai": GenerateContentResponse,
}
FIELDS: dict[str, dict[str, Callable[[Any], dict[str, Any]]]] = {
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


@pytest.mark.parametrize(
    ("api", "field"), [(api, field) for api in FIELDS for field in FIELDS[api]]
)
async def test_a_broken_answer_is_replaced_whatever_is_broken(
    tmp_path: Path, api: str, field: str
) -> None:
    """As a dict, as another mapping and as the SDK's own object.

    protocol.md#results
    """
    async with config_of(tmp_path, {"AfterModel": CLOSED}, seen=False) as config:
        for junk in JUNK:
            answer = FIELDS[api][field](junk)
            built = KINDS[api].model_construct(**answer)
            for given in (answer, MappingProxyType(answer), built):
                result = await fire_after_model_hook(config, REQUESTS[api], given)
                assert SECRET not in str(result.response), (junk, type(given))
                assert "onError" in str(result.response) or "Blocked" in str(
                    result.response
                )


@pytest.mark.parametrize("given", [object(), [], "text", 5, {"nothing": SECRET}])
@pytest.mark.parametrize("api", KINDS)
async def test_the_closed_form_has_the_type_of_the_requests_api(
    tmp_path: Path, api: str, given: Any
) -> None:
    """protocol.md#translation, where the answer itself does not say whose it is."""
    async with config_of(tmp_path, {"AfterModel": CLOSED}, seen=False) as config:
        result = await fire_after_model_hook(config, REQUESTS[api], given)
    if isinstance(given, dict):
        assert SECRET not in str(result.response)
        assert "Blocked" in json.dumps(result.response)
    else:
        assert isinstance(result.response, KINDS[api])


@pytest.mark.parametrize("api", KINDS)
async def test_a_synthetic_response_has_the_type_of_the_requests_api(
    tmp_path: Path, api: str
) -> None:
    """protocol.md#translation."""
    answer = {"llm_response": {"text": "no!"}}
    hook = says({"decision": "block", "hookSpecificOutput": answer})
    async with config_of(tmp_path, {"BeforeModel": hook}, seen=False) as config:
        result = await fire_before_model_hook(config, REQUESTS[api])
    assert isinstance(result.synthetic_response, KINDS[api])
    assert "no!" in str(result.synthetic_response)


async def test_a_raw_http_response_is_replaced(tmp_path: Path) -> None:
    """The answer in its body was never shown to a hook."""
    answer = GenerateContentResponse(sdk_http_response=HttpResponse(body=SECRET))
    hook = runs("true", onError="block")
    async with config_of(tmp_path, {"AfterModel": hook}, seen=False) as config:
        result = await fire_after_model_hook(config, REQUESTS["genai"], answer)
    assert SECRET not in str(result.response)


def openai_stream(*choices: Any) -> str:
    chunks = [{"id": "1", "object": "chat.completion.chunk", "choices": choices}]
    return (
        "".join(f"data: {json.dumps(one)}\n\n" for one in chunks) + "data: [DONE]\n\n"
    )


def claude_stream(*events: dict[str, Any]) -> str:
    return "".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events
    )


START = {"type": "message_start", "message": claude(content=[], usage={})}
DELTA = {"type": "text_delta", "text": SECRET}
BROKEN_STREAMS: dict[str, tuple[str, str]] = {
    "choices without an index": (
        "openai",
        openai_stream({"delta": {"content": SECRET}}),
    ),
    "an index as text": (
        "openai",
        openai_stream({"index": "0", "delta": {"content": SECRET}}),
    ),
    "a delta as text": ("openai", openai_stream({"index": 0, "delta": SECRET})),
    "content as a list": (
        "openai",
        openai_stream({"index": 0, "delta": {"content": [SECRET]}}),
    ),
    "a call with a huge index": (
        "openai",
        openai_stream(
            {
                "index": 10**9,
                "delta": {
                    "content": SECRET,
                    "tool_calls": [{"index": 10**12, "function": {"arguments": "{"}}],
                },
            }
        ),
    ),
    "no message_start": (
        "anthropic",
        claude_stream({"type": "content_block_delta", "index": 0, "delta": DELTA}),
    ),
    "a block without a start": (
        "anthropic",
        claude_stream(
            START, {"type": "content_block_delta", "index": 10**9, "delta": DELTA}
        ),
    ),
    "an answer in message_start": (
        "anthropic",
        claude_stream({"type": "message_start", "message": claude()}),
    ),
    "usage as a list": (
        "anthropic",
        claude_stream(
            {"type": "message_start", "message": claude(usage=[])},
            {"type": "message_delta", "delta": {"stop_reason": 5}, "usage": [5]},
        ),
    ),
}


@pytest.mark.parametrize("case", BROKEN_STREAMS)
async def test_a_broken_stream_shows_nothing_of_the_original(
    tmp_path: Path, case: str
) -> None:
    """Issue 12.5: chunks that cannot be assembled, with real clients."""
    sdk, body = BROKEN_STREAMS[case]
    answer = ServerAnswer(body=body, headers={"Content-Type": "text/event-stream"})
    shown: list[str] = []
    with AnsweringServer(answer) as server:
        config = config_of(tmp_path, {"AfterModel": CLOSED}, seen=False)
        async with MODELS[sdk](server) as model, config:
            session = ChatSession(config, model)
            reply = await session.send("hi", shown.append)
    assert SECRET not in f"{shown} {reply} {session.history}"
    assert "onError" in reply.text or "Blocked" in reply.text


@pytest.mark.parametrize("case", BROKEN_STREAMS)
async def test_a_guard_sees_all_the_text_of_a_broken_stream(
    tmp_path: Path, case: str
) -> None:
    """Or nobody does: what is displayed is what the hooks were shown."""
    sdk, body = BROKEN_STREAMS[case]
    answer = ServerAnswer(body=body, headers={"Content-Type": "text/event-stream"})
    redact = runs(
        f"grep -q {SECRET} && echo "
        '\'{"hookSpecificOutput": {"llm_response": {"text": "redacted"}}}\''
        " || true"
    )
    shown: list[str] = []
    with AnsweringServer(answer) as server:
        config = config_of(tmp_path, {"AfterModel": redact}, seen=False)
        async with MODELS[sdk](server) as model, config:
            try:
                await ChatSession(config, model).send("hi", shown.append)
            except Exception as error:  # noqa: BLE001 - any is better than the text
                shown.append(type(error).__name__)
    assert SECRET not in str(shown)


async def test_a_hooked_client_replaces_a_broken_answer(tmp_path: Path) -> None:
    from hookline.agent import hooked

    body = json.dumps(gemini(index="0") | {"usageMetadata": {"totalTokenCount": "5"}})
    answer = ServerAnswer(body=body, headers={"Content-Type": "application/json"})
    with AnsweringServer(answer) as server:
        async with config_of(tmp_path, {"AfterModel": CLOSED}, seen=False) as config:
            client = genai_client(server)
            response = hooked(client, config).models.generate_content(
                model="m", contents="hi"
            )
            client.close()
    assert SECRET not in str(response)
    assert "onError" in (response.text or "")


async def test_a_hooked_client_streams_what_the_hooks_have_seen(tmp_path: Path) -> None:
    """Text in a call that arrives in pieces is in the chunks, not in the response."""
    from hookline.agent import hooked

    pieces = [
        {"text": SECRET, "functionCall": {"name": "f", "willContinue": True}},
        {"text": "more", "functionCall": {"name": "f"}},
    ]
    contents = [{"role": "model", "parts": [piece]} for piece in pieces]
    chunks = [{"candidates": [{"content": content}]} for content in contents]
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    answer = ServerAnswer(body=body, headers={"Content-Type": "text/event-stream"})
    hook = runs(f"grep -q {SECRET} && exit 1 || exit 0", onError="block")
    with AnsweringServer(answer) as server:
        async with config_of(tmp_path, {"AfterModel": hook}, seen=False) as config:
            client = genai_client(server)
            models = hooked(client, config).models
            shown = list(models.generate_content_stream(model="m", contents="hi"))
            client.close()
    assert SECRET not in str(shown)
    assert "more" in str(shown)
