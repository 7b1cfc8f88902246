"""A hooked anthropic client: every way to call a model passes the hooks.

Issue 14, "Clients: one line"; protocol.md#events, #translation and #callers.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, APIResponse, AsyncAnthropic, MessageStream, Stream
from anthropic.types import Message, ParsedMessage
from anthropic.types.beta import BetaMessage

from hookline.agent import hooked
from hookline.errors import UnknownClientError
from hookline.testing.modelapi import Answer, ModelServer

from .anthropic_ways import (
    REQUEST,
    WAYS,
    Hooks,
    Note,
    async_client,
    call,
    config_in,
    plain_client,
    specific,
    without_secret,
)

MODEL_EVENTS = ["BeforeToolSelection", "BeforeModel", "AfterModel"]
ANSWER = "one secret word"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer([ANSWER, ANSWER]) as running:
        yield running


def hooks_of(folder: Path, **outputs: Any) -> Hooks:
    return Hooks(config_in(folder), **outputs)


@pytest.mark.parametrize("way", WAYS)
async def test_every_way_fires_the_model_events_once(
    way: str, server: ModelServer, tmp_path: Path
) -> None:
    hooks = hooks_of(tmp_path, **dict.fromkeys(MODEL_EVENTS))
    said = await call(way, server, lambda client: hooked(client, hooks.config))
    assert hooks.names == MODEL_EVENTS
    assert hooks.seen[1]["llm_request"]["messages"][0]["content"] == "hi"
    assert hooks.seen[2]["llm_response"]["text"] == ANSWER
    assert "secret" in said
    assert len(server.requests) == 1


# The runner of a client without hooks leaves the conversation at the service.
@pytest.mark.parametrize("way", [way for way in WAYS if "runner" not in way])
async def test_hooks_that_say_nothing_change_nothing(
    way: str, server: ModelServer, tmp_path: Path
) -> None:
    hooks = hooks_of(tmp_path, **dict.fromkeys(MODEL_EVENTS))
    before = await call(way, server)
    after = await call(way, server, lambda client: hooked(client, hooks.config))
    assert after == before
    assert server.requests[1] == server.requests[0]


@pytest.mark.parametrize("way", WAYS)
async def test_what_a_hook_took_out_of_an_answer_is_shown_nowhere(
    way: str, server: ModelServer, tmp_path: Path
) -> None:
    hooks = hooks_of(tmp_path, AfterModel=without_secret)
    said = await call(way, server, lambda client: hooked(client, hooks.config))
    assert "secret" not in said
    assert "one *** word" in said


@pytest.mark.parametrize("way", WAYS)
async def test_a_blocked_call_is_answered_by_the_hook_without_a_request(
    way: str, server: ModelServer, tmp_path: Path
) -> None:
    answer = specific(llm_response={"text": "not today"})
    block = {"decision": "block", "reason": "closed", **answer}
    hooks = hooks_of(tmp_path, BeforeModel=block, AfterModel=None)
    said = await call(way, server, lambda client: hooked(client, hooks.config))
    assert "not today" in said
    assert hooks.names == ["BeforeModel"]
    assert not server.requests


@pytest.mark.parametrize("way", WAYS)
async def test_a_blocked_call_without_an_answer_is_an_empty_refusal(
    way: str, server: ModelServer, tmp_path: Path
) -> None:
    hooks = hooks_of(tmp_path, BeforeModel={"decision": "block", "reason": "closed"})
    said = await call(way, server, lambda client: hooked(client, hooks.config))
    assert '"stop_reason": "refusal"' in said
    assert '"explanation": "closed"' in said
    assert not server.requests


@pytest.mark.parametrize("way", WAYS)
async def test_a_changed_request_is_what_is_sent(
    way: str, server: ModelServer, tmp_path: Path
) -> None:
    changed = {"messages": [{"role": "user", "content": "bye"}]}
    changed["config"] = {"temperature": 0.1, "maxOutputTokens": 7}  # type: ignore[assignment]  # a JSON object
    hooks = hooks_of(tmp_path, BeforeModel=specific(llm_request=changed))
    await call(way, server, lambda client: hooked(client, hooks.config))
    body = server.requests[0].body
    assert body["messages"] == [{"role": "user", "content": "bye"}]
    assert (body["temperature"], body["max_tokens"]) == (0.1, 7)
    assert "extra_body" not in body


@pytest.mark.parametrize("event", MODEL_EVENTS)
@pytest.mark.parametrize("way", ["create", "stream", "async create stream"])
async def test_a_stop_is_told_once(
    event: str, way: str, server: ModelServer, tmp_path: Path
) -> None:
    hooks = hooks_of(tmp_path, **{event: {"continue": False, "stopReason": "enough"}})
    told: list[str] = []
    said = await call(
        way,
        server,
        lambda client: hooked(client, hooks.config, on_stop=told.append),
    )
    assert told == ["enough"]
    assert len(server.requests) == (event == "AfterModel")
    assert ("refusal" in said) == (event != "AfterModel")


def test_the_types_of_a_client_and_of_its_answers_stay(
    server: ModelServer, tmp_path: Path
) -> None:
    answer = specific(llm_response={"text": '{"text": "no"}'})
    hooks = hooks_of(tmp_path, BeforeModel={"decision": "block", **answer})
    client = hooked(plain_client(server), hooks.config)
    assert isinstance(client, Anthropic)
    assert type(client).__name__ == "Anthropic"
    assert isinstance(client.with_options(max_retries=1), Anthropic)
    message = client.messages.create(**REQUEST)
    assert type(message) is Message
    assert (message.model, message.role, message.content[0].type) == (
        "m",
        "assistant",
        "text",
    )
    assert type(client.beta.messages.create(**REQUEST)) is BetaMessage
    assert isinstance(client.messages.create(**REQUEST, stream=True), Stream)
    with client.messages.stream(**REQUEST) as stream:
        assert isinstance(stream, MessageStream)
    raw = client.messages.with_raw_response.create(**REQUEST)
    assert isinstance(raw, APIResponse)
    assert (raw.status_code, raw.method) == (200, "POST")
    parsed = client.messages.parse(**REQUEST, output_format=Note)
    assert isinstance(parsed, ParsedMessage)
    assert parsed.parsed_output == Note(text="no")
    assert isinstance(hooked(async_client(server), hooks.config), AsyncAnthropic)


def test_the_client_passed_in_is_untouched_and_shares_its_connections(
    server: ModelServer, tmp_path: Path
) -> None:
    hooks = hooks_of(tmp_path, BeforeModel={"decision": "block", "reason": "no"})
    client = plain_client(server)
    messages, before = client.messages, dict(vars(client))
    with hooked(client, hooks.config) as guarded:
        assert guarded.messages.create(**REQUEST).stop_reason == "refusal"
        assert vars(client) == before
        assert messages.create(**REQUEST).stop_reason == "end_turn"
        assert type(client) is Anthropic
        assert not client.is_closed()
    assert guarded.is_closed()
    assert client.is_closed()


async def test_an_async_client_closes_as_before(
    server: ModelServer, tmp_path: Path
) -> None:
    hooks = hooks_of(tmp_path, BeforeModel=None)
    client = async_client(server)
    async with hooked(client, hooks.config) as guarded:
        await guarded.messages.create(**REQUEST)
    assert client.is_closed()
    other = hooked(async_client(server), hooks.config)
    await other.close()
    assert other.is_closed()


@pytest.mark.parametrize("mode", ["buffer", "pass"])
@pytest.mark.parametrize("hears", [{}, {"AfterModel": None}], ids=["", "AfterModel"])
@pytest.mark.parametrize(
    "way",
    ["create", "create stream", "stream", "async stream", "async beta create stream"],
)
async def test_tools_are_restricted_in_the_request_and_in_the_answer(
    way: str,
    hears: dict[str, Any],
    mode: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """protocol.md#callers: a call outside the list is held back in every mode."""
    config = {"mode": "AUTO", "allowedFunctionNames": ["read"]}
    only_read = specific(toolConfig=config)
    hooks = hooks_of(tmp_path, BeforeToolSelection=only_read, **hears)
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in "ab"]
    tools[0]["name"] = "read"
    calls = (("read", {"x": 1}), ("b", {"y": 2}))
    with ModelServer([Answer("ok", calls)]) as server:

        def hook(client: Any) -> Any:
            made = hooked(client, hooks.config, stream_mode=mode)
            for messages in (made.messages, made.beta.messages):
                for name in ("create", "stream"):
                    own = getattr(messages, name)
                    setattr(messages, name, partial(own, tools=tools))
            return made

        with caplog.at_level(logging.WARNING, "hookline"):
            said = await call(way, server, hook)
        sent = server.requests[0].body
    assert [tool["name"] for tool in sent["tools"]] == ["read"]
    assert hooks.seen[0]["available_tools"] == ["read", "b"]
    assert '"name": "read"' in said
    assert '"name": "b"' not in said
    assert "dropped tool calls" in caplog.text


def test_each_session_of_a_config_has_its_own_client(
    server: ModelServer, tmp_path: Path
) -> None:
    hooks = hooks_of(tmp_path, BeforeModel=None)
    client = plain_client(server)
    for name in ("a", "b"):
        guarded = hooked(client, hooks.config.session(name))
        guarded.messages.create(**REQUEST)
    again = hooked(hooked(client, hooks.config.session("c")), hooks.config.session("d"))
    again.messages.create(**REQUEST)
    assert [event["session_id"] for event in hooks.seen] == ["a", "b", "d"]


@pytest.mark.parametrize("way", ["create", "stream", "async create stream"])
async def test_a_failing_hook_that_must_not_be_missed_closes_the_answer(
    way: str, server: ModelServer, tmp_path: Path
) -> None:
    hook = {"type": "command", "command": "exit 1", "onError": "block"}
    config = config_in(tmp_path, hooks={"AfterModel": [{"hooks": [hook]}]})
    said = await call(way, server, lambda client: hooked(client, config))
    assert "secret" not in said


def test_messages_from_an_iterator_and_an_extra_body_are_seen(
    server: ModelServer, tmp_path: Path
) -> None:
    hooks = hooks_of(tmp_path, BeforeModel=None)
    client = hooked(plain_client(server), hooks.config)
    messages: Any = ({"role": "user", "content": text} for text in ("a", "b"))
    more = {"messages": messages, "extra_body": {"temperature": 0.3}}
    client.messages.create(**{**REQUEST, **more})
    seen = hooks.seen[0]["llm_request"]
    assert [message["content"] for message in seen["messages"]] == ["a", "b"]
    assert seen["config"]["temperature"] == 0.3
    sent = server.requests[0].body
    assert json.dumps(sent["messages"]).count("role") == 2
    assert sent["temperature"] == 0.3


def test_tools_that_the_service_calls_are_warned_about_once(
    server: ModelServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client: Any = hooked(plain_client(server), hooks_of(tmp_path).config)
    servers = [{"type": "url", "name": "a", "url": "https://mcp.example"}]
    with client, caplog.at_level(logging.WARNING, "hookline"):
        for _ in range(2):
            client.beta.messages.create(**REQUEST, mcp_servers=servers)
    assert caplog.text.count("mcp_servers") == 1


def test_what_is_no_client_of_the_sdk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownClientError):
        hooked(Message.model_construct(), config_in(tmp_path))
