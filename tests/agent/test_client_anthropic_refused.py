"""What a hooked anthropic client refuses, lets pass, and keeps hooked.

Issue 14, "Clients: one line": nothing slips past.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import (
    Anthropic,
    AnthropicBedrock,
    AnthropicVertex,
    APIStatusError,
    AsyncAnthropicVertex,
)
from anthropic.lib.credentials import AccessToken
from anthropic.types import Message

from hookline.agent import hooked
from hookline.errors import UnhookedCallError
from hookline.testing.modelapi import ModelServer

from .anthropic_ways import (
    REQUEST,
    Hooks,
    async_client,
    config_in,
    plain_client,
    specific,
    without_secret,
)

Use = Callable[[Anthropic], Any]
CUSTOM: Any = {"custom_id": "a", "params": REQUEST}

HIDDEN: dict[str, tuple[str, Use]] = {
    "batch": ("BeforeModel", lambda c: c.messages.batches.create(requests=[CUSTOM])),
    "beta batch": (
        "AfterModel",
        lambda c: c.beta.messages.batches.create(requests=[CUSTOM]),
    ),
    "batch answers": (
        "AfterModel",
        lambda c: c.get(f"{c.base_url}/v1/messages/batches/b/results", cast_to=object),
    ),
    "tokens": (
        "BeforeModel",
        lambda c: c.messages.count_tokens(model="m", messages=REQUEST["messages"]),
    ),
    "beta tokens": (
        "BeforeModel",
        lambda c: c.beta.messages.count_tokens(model="m", messages=[]),
    ),
    "agent": ("BeforeTool", lambda c: c.beta.agents.create(name="a", model="m")),
    "session": (
        "BeforeModel",
        lambda c: c.beta.sessions.create(agent="a", environment_id="e"),
    ),
    "session events": ("AfterTool", lambda c: c.beta.sessions.events.list("s")),
    "session stream": ("AfterModel", lambda c: c.beta.sessions.events.stream("s")),
    "raw session": (
        "BeforeToolSelection",
        lambda c: c.with_raw_response.beta.sessions.retrieve("s"),
    ),
    "legacy completions": (
        "BeforeModel",
        lambda c: c.post("/v1/complete", cast_to=object, body={"prompt": "hi"}),
    ),
    "a resource of a later release": (
        "BeforeModel",
        lambda c: c.post("/v1/dialogues", cast_to=object, body={}),
    ),
    "a method of a later release": (
        "BeforeModel",
        lambda c: c.put("/v1/messages", cast_to=Message, body=REQUEST),
    ),
    "another spelling": (
        "BeforeModel",
        lambda c: c.post("/v1/files/../messages", cast_to=object, body=REQUEST),
    ),
    "an encoded spelling": (
        "BeforeModel",
        lambda c: c.post("/v1/%6dessages", cast_to=object, body=REQUEST),
    ),
    "a body of bytes": (
        "BeforeModel",
        lambda c: c.post("/v1/messages", cast_to=Message, content=b"{}"),
    ),
    "the HTTP client": (
        "BeforeModel",
        lambda c: c._client.post(f"{c.base_url}/v1/messages", json=REQUEST),
    ),
    "a thread": (
        "AfterModel",
        lambda c: c.beta.messages.create(
            **REQUEST, extra_body={"thread": {"type": "create"}}
        ),
    ),
}
FREE: dict[str, Use] = {
    "models": lambda c: c.models.list(),
    "one model": lambda c: c.beta.models.retrieve("m"),
    "files": lambda c: c.beta.files.list(),
    "a file": lambda c: c.beta.files.download("f"),
    "skills": lambda c: c.skills.list(),
    "batches": lambda c: c.messages.batches.list(),
    "one batch": lambda c: c.messages.batches.retrieve("b"),
    "cancel": lambda c: c.messages.batches.cancel("b"),
}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(["one secret word"] * 3) as running:
        yield running


@pytest.mark.parametrize("name", HIDDEN)
def test_what_hooks_cannot_see_is_refused_while_there_are_hooks(
    name: str, server: ModelServer, tmp_path: Path
) -> None:
    event, use = HIDDEN[name]
    hooks = Hooks(config_in(tmp_path), **{event: None})
    client = hooked(plain_client(server), hooks.config)
    with pytest.raises(UnhookedCallError, match=f"hooked client.*{event} hooks"):
        use(client)
    assert not server.requests
    assert not hooks.seen


@pytest.mark.parametrize("name", HIDDEN)
def test_nothing_is_refused_without_hooks(
    name: str, server: ModelServer, tmp_path: Path
) -> None:
    with hooked(plain_client(server), config_in(tmp_path)) as client:
        try:
            HIDDEN[name][1](client)
        except APIStatusError:
            pass  # the server does not know this path


@pytest.mark.parametrize("name", FREE)
def test_what_calls_no_model_passes(
    name: str, server: ModelServer, tmp_path: Path
) -> None:
    events = ("BeforeModel", "AfterModel", "BeforeTool", "BeforeToolSelection")
    hooks = Hooks(config_in(tmp_path), **dict.fromkeys(events))
    client = hooked(plain_client(server), hooks.config)
    with client, pytest.raises(APIStatusError):  # of the server, which knows none
        FREE[name](client)


async def test_an_async_client_refuses_the_same(
    server: ModelServer, tmp_path: Path
) -> None:
    hooks = Hooks(config_in(tmp_path), BeforeModel=None)
    async with hooked(async_client(server), hooks.config) as client:
        with pytest.raises(UnhookedCallError):
            await client.messages.count_tokens(model="m", messages=[])
        with pytest.raises(UnhookedCallError):
            await client.with_options(timeout=3).beta.sessions.create(
                agent="a", environment_id="e"
            )
        with pytest.raises(UnhookedCallError):
            await client._client.get(server.url)


COPIES: dict[str, Callable[[Anthropic], Anthropic]] = {
    "copy": lambda c: c.copy(),
    "with options": lambda c: c.with_options(default_headers={"a": "b"}),
    "another HTTP client": lambda c: c.copy(http_client=httpx2.Client()),
    "middleware": lambda c: c.with_middleware(lambda request, go_on: go_on(request)),
    "no middleware": lambda c: c.with_options(middleware=[]),
    "twice": lambda c: c.with_options(max_retries=1).copy(timeout=3),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_of_a_hooked_client_are_hooked(
    name: str, server: ModelServer, tmp_path: Path
) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    with COPIES[name](hooked(plain_client(server), hooks.config)) as client:
        assert isinstance(client, Anthropic)
        text = client.messages.create(**REQUEST).to_json()
        assert "one *** word" in text
        with pytest.raises(UnhookedCallError):
            client.get("/v1/messages/batches/b/results", cast_to=object)


def test_a_copy_keeps_credentials(server: ModelServer, tmp_path: Path) -> None:
    given = {"api_key": None, "credentials": lambda **_: AccessToken(token="t")}
    hooks = Hooks(config_in(tmp_path), BeforeModel=None)
    client = hooked(plain_client(server, **given), hooks.config)
    copied = client.with_options(timeout=3)
    assert copied.credentials is client.credentials
    assert copied.messages.create(**REQUEST).content


def test_a_middleware_cannot_answer_a_blocked_call(
    server: ModelServer, tmp_path: Path
) -> None:
    made = Message.model_validate(plain_client(server).messages.create(**REQUEST))
    client = plain_client(server, middleware=[lambda request, go_on: made])
    hooks = Hooks(config_in(tmp_path), BeforeModel={"decision": "block"})
    answer = hooked(client, hooks.config).messages.create(**REQUEST)
    assert answer.stop_reason == "refusal"


def test_hooks_see_what_a_middleware_answers(
    server: ModelServer, tmp_path: Path
) -> None:
    made = plain_client(server).messages.create(**REQUEST)
    stream = plain_client(server).messages.create(**REQUEST, stream=True)
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    client = plain_client(server, middleware=[lambda request, go_on: made])
    answer = hooked(client, hooks.config).messages.create(**REQUEST)
    assert "one *** word" in answer.to_json()
    other: Any = plain_client(server, middleware=[lambda request, go_on: stream])
    with pytest.raises(UnhookedCallError):
        hooked(other, hooks.config).messages.create(**REQUEST, stream=True)
    stream.close()


def test_a_middleware_may_change_what_is_sent(
    server: ModelServer, tmp_path: Path
) -> None:
    def other_model(request: Any, go_on: Any) -> Any:
        return go_on(request.copy(body={**request.json, "model": "other"}))

    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    client = hooked(plain_client(server, middleware=[other_model]), hooks.config)
    assert "***" in client.messages.create(**REQUEST).to_json()
    assert server.requests[0].body["model"] == "other"


def test_vertex_passes_the_hooks(server: ModelServer, tmp_path: Path) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    given = {"region": "r", "project_id": "p", "access_token": "t"}
    vertex = AnthropicVertex(base_url=server.url, max_retries=0, **given)  # type: ignore[arg-type]  # strings
    with hooked(vertex, hooks.config) as client:
        assert isinstance(client, AnthropicVertex)
        assert "***" in client.messages.create(**REQUEST).to_json()
        beta: Any = client.beta
        with beta.messages.stream(**REQUEST) as stream:
            assert stream.get_final_text() == "one *** word"
        with pytest.raises(UnhookedCallError):
            client.post("/projects/p/models/m:rawPredict", cast_to=object, body={})
    assert hooks.seen[0]["llm_request"]["model"] == "m"
    assert ":rawPredict" in server.requests[0].path


async def test_an_async_vertex_client_can_be_blocked(
    server: ModelServer, tmp_path: Path
) -> None:
    answer = specific(llm_response={"text": "no"})
    hooks = Hooks(config_in(tmp_path), BeforeModel={"decision": "block", **answer})
    given = {"region": "r", "project_id": "p", "access_token": "t"}
    vertex = AsyncAnthropicVertex(base_url=server.url, max_retries=0, **given)  # type: ignore[arg-type]  # strings
    client = hooked(vertex, hooks.config)
    async with client, client.messages.stream(**REQUEST) as stream:
        assert await stream.get_final_text() == "no"
    assert not server.requests


def test_bedrock_passes_the_hooks(server: ModelServer, tmp_path: Path) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    bedrock = AnthropicBedrock(
        base_url=server.url, api_key="k", aws_region="r", max_retries=0
    )
    with hooked(bedrock, hooks.config) as client:
        assert isinstance(client, AnthropicBedrock)
        assert "***" in client.messages.create(**REQUEST).to_json()
        beta: Any = client.beta
        assert "***" in beta.messages.create(**REQUEST).to_json()
        assert "***" in client.copy().messages.create(**REQUEST).to_json()
    assert server.requests[0].path == "/model/m/invoke"
