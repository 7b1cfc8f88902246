"""Ways past the hooks of an anthropic client that somebody who reads its source tries.

Issue 14, "Clients: one line": nothing slips past.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import APIConnectionError, Omit, Stream, beta_tool
from anthropic.resources.beta.messages.messages import Messages as BetaMessages
from anthropic.types import Message, RawMessageStreamEvent

from hookline.agent import hooked
from hookline.errors import UnhookedCallError
from hookline.testing.cases import ServerAnswer
from hookline.testing.loopback import AnsweringServer
from hookline.testing.modelapi import Answer, ModelServer

from .anthropic_ways import (
    REQUEST,
    Hooks,
    async_client,
    config_in,
    plain_client,
    shown,
    specific,
    without_secret,
)

NO = {"decision": "block", "reason": "no"}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(["one secret word"] * 4) as started:
        yield started


def parses(request: Any, go_on: Any) -> Any:
    """A middleware that reads the answer, which the SDK then remembers."""
    response = go_on(request)
    response.parse()
    return response


async def parses_async(request: Any, go_on: Any) -> Any:
    response = await go_on(request)
    await response.parse()
    return response


def test_what_a_middleware_has_parsed_is_not_shown(
    server: ModelServer, tmp_path: Path
) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    with hooked(plain_client(server, middleware=[parses]), hooks.config) as client:
        messages = client.messages
        whole = messages.create(**REQUEST)
        raw = messages.with_raw_response.create(**REQUEST).parse()
        events = list(messages.create(**REQUEST, stream=True))
        with messages.stream(**REQUEST) as stream:
            final = stream.get_final_message()
    for said in (shown(whole), shown(raw), shown(events), shown(final)):
        assert "***" in said
        assert "secret" not in said


async def test_what_an_async_middleware_has_parsed_is_not_shown(
    server: ModelServer, tmp_path: Path
) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    async with async_client(server, middleware=[parses_async]) as plain:
        client = hooked(plain, hooks.config)
        whole = await client.messages.create(**REQUEST)
        async with client.messages.stream(**REQUEST) as stream:
            final = await stream.get_final_message()
    assert "secret" not in shown(whole, final)


def test_a_field_of_the_body_cannot_replace_what_hooks_have_seen(
    server: ModelServer, tmp_path: Path
) -> None:
    added = specific(additionalContext="careful")
    hooks = Hooks(config_in(tmp_path), BeforeModel=added)
    unseen = {"messages": [{"role": "user", "content": "unseen"}], "system": "unseen"}
    with hooked(plain_client(server), hooks.config) as client:
        client.messages.create(**REQUEST, extra_body={"extra_body": unseen})
    body = server.requests[0].body
    assert "careful" in json.dumps(body["messages"]) + json.dumps(body.get("system"))
    assert "unseen" not in json.dumps(body)


def test_another_address_does_not_make_a_model_call_harmless(
    server: ModelServer, tmp_path: Path
) -> None:
    hooks = Hooks(config_in(tmp_path), BeforeModel=NO)
    with hooked(plain_client(server), hooks.config) as client:
        other = client.with_options(base_url=f"{server.url}/v1/messages?x=")
        with pytest.raises(APIConnectionError) as refused:
            other.post("/v1/files", body=REQUEST, cast_to=object)
    assert isinstance(refused.value.__cause__, UnhookedCallError)
    assert not server.requests


def test_a_middleware_does_not_make_a_harmless_request_a_model_call(
    server: ModelServer, tmp_path: Path
) -> None:
    def asks(request: Any, go_on: Any) -> Any:
        request.options.url, request.options.method = "/v1/messages", "post"
        request.options.json_data = REQUEST
        return go_on(request)

    hooks = Hooks(config_in(tmp_path), BeforeModel=NO)
    with (
        hooked(plain_client(server, middleware=[asks]), hooks.config) as client,
        pytest.raises(APIConnectionError) as refused,
    ):
        client.models.list()
    assert isinstance(refused.value.__cause__, UnhookedCallError)
    assert not server.requests


@pytest.mark.parametrize("name", ["b%2Fresults", "b%2fresults", "%2e%2e", "b\\results"])
def test_another_spelling_of_a_path_is_refused(
    name: str, server: ModelServer, tmp_path: Path
) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    with (
        hooked(plain_client(server), hooks.config) as client,
        pytest.raises(UnhookedCallError),
    ):
        client.get(f"/v1/messages/batches/{name}", cast_to=object)


@pytest.mark.parametrize("header", ["x-stainless-helper", "X-Stainless-Helper"])
def test_a_runner_that_does_not_say_what_it_is_runs_no_tool(
    header: str, tmp_path: Path
) -> None:
    ran = []

    @beta_tool
    def write(path: str) -> str:
        """Write a file."""
        ran.append(path)
        return path

    hooks = Hooks(config_in(tmp_path), BeforeTool=NO)
    with (
        ModelServer([Answer("", (("write", {"path": "a"}),)), "done"]) as server,
        hooked(plain_client(server), hooks.config) as client,
    ):
        hidden: Any = {header: Omit()}
        messages: Any = BetaMessages(client)
        runner = messages.tool_runner(**REQUEST, tools=[write], extra_headers=hidden)
        with pytest.raises(UnhookedCallError, match="tool_runner"):
            runner.until_done()
    assert not ran


async def test_what_is_left_running_after_a_call_passes_nothing(
    server: ModelServer, tmp_path: Path
) -> None:
    left: list[asyncio.Task[Any]] = []
    is_over = asyncio.Event()

    async def later() -> None:
        await is_over.wait()
        await client._client.post(f"{server.url}/v1/messages", json=REQUEST)

    async def leaves(request: Any, go_on: Any) -> Any:
        left.append(asyncio.create_task(later()))
        return await go_on(request)

    hooks = Hooks(config_in(tmp_path), BeforeModel=None)
    async with async_client(server, middleware=[leaves]) as plain:
        client = hooked(plain, hooks.config)
        await client.messages.create(**REQUEST)
        is_over.set()
        with pytest.raises(UnhookedCallError):
            await left[0]
    assert len(server.requests) == 1


def event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


MESSAGE: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
    "stop_reason": None, "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip
BLOCK = {"type": "text", "text": ""}
DELTA = {"type": "text_delta", "text": "a secret"}


@pytest.mark.parametrize("hidden", ["[DONE]", "{", "[]", "a secret"])
def test_what_the_sdk_skips_hides_nothing_from_the_hooks(
    hidden: str, tmp_path: Path
) -> None:
    parts = [
        event("message_start", message=MESSAGE),
        event("content_block_start", index=0, content_block=BLOCK),
        f"data: {hidden}\n\n",
        event("content_block_delta", index=0, delta=DELTA),
        event("content_block_stop", index=0),
        event("message_stop"),
    ]
    headers = {"Content-Type": "text/event-stream"}
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    with (
        AnsweringServer(ServerAnswer(headers=headers, body="".join(parts))) as server,
        hooked(plain_client(server), hooks.config) as client,
    ):
        messages = client.messages
        events = list(messages.create(**REQUEST, stream=True))
        body: Any = {**REQUEST, "stream": True}
        raw = client.post("/v1/messages", cast_to=httpx2.Response, body=body)
    assert "***" in shown(events)
    assert "secret" not in shown(events) + raw.text


def test_a_stream_of_another_content_type_is_seen(tmp_path: Path) -> None:
    parts = [
        event("message_start", message=MESSAGE),
        event("content_block_start", index=0, content_block=BLOCK),
        event("content_block_delta", index=0, delta=DELTA),
        event("message_stop"),
    ]
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    answer = ServerAnswer(headers={"Content-Type": "x/y"}, body="".join(parts))
    with (
        AnsweringServer(answer) as server,
        hooked(plain_client(server), hooks.config) as client,
    ):
        kind = Stream[RawMessageStreamEvent]
        events = client.post(
            "/v1/messages",
            cast_to=Message,
            body={**REQUEST, "stream": 1},
            stream=True,
            stream_cls=kind,
        )
        said = shown(list(events))
    assert "***" in said
    assert "secret" not in said
