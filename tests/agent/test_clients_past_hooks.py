"""Ways past the hooks of a client that somebody who reads the SDKs' source tries.

Each of them is a call that no hook would see: it must be refused, or pass the hooks.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from anthropic import Omit, beta_tool
from anthropic.resources.beta.messages.messages import Messages as BetaMessages
from google import genai
from google.genai import types

from hookline import Config
from hookline.agent import hooked
from hookline.errors import UnhookedCallError, UnseenResponseError
from hookline.testing.modelapi import Answer
from tests.support.model_calls import (
    MESSAGES,
    WAYS,
    ScriptedServer,
    client_of,
    closing_client,
)
from tests.support.recorded_events import DENY, RecordedHooks, warnings_of

REDACTING = {"AfterModel": {"$redact": "secret"}}


def parses(request: Any, go_on: Any) -> Any:
    """A middleware that reads the answer, which the SDK then remembers."""
    response = go_on(request)
    response.parse()
    return response


async def parses_async(request: Any, go_on: Any) -> Any:
    response = await go_on(request)
    await response.parse()
    return response


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_what_a_middleware_has_parsed_is_not_shown(
    model_server: ScriptedServer, subtests: pytest.Subtests, kind: str
) -> None:
    hooks = RecordedHooks(REDACTING)
    middleware: Any = [parses if kind == "sync" else parses_async]
    plain = client_of("anthropic", model_server, kind, middleware=middleware)
    async with hooks.config, closing_client(plain):
        client = hooked(plain, hooks.config)
        for way in ("create", "raw", "create stream", "stream"):
            model_server.answers("one secret word")
            with subtests.test(way):
                shown = await WAYS["anthropic"][way](client)
                assert (shown.text, "secret" in shown) == ("one *** word", False)


def test_a_middleware_can_neither_answer_a_blocked_call_nor_hide_its_answer(
    model_server: ScriptedServer,
) -> None:
    model_server.answers("one secret word", "one secret word")
    plain = client_of("anthropic", model_server)
    answer = plain.messages.create(**MESSAGES)
    stream = plain.messages.create(**MESSAGES, stream=True)

    def answers(value: Any) -> Any:
        return client_of("anthropic", model_server, middleware=[lambda *_: value])

    blocking = RecordedHooks({"BeforeModel": {"decision": "block"}}).config
    redacting = RecordedHooks(REDACTING).config
    blocked = hooked(answers(answer), blocking).messages.create(**MESSAGES)
    assert blocked.stop_reason == "refusal"
    changed = hooked(answers(answer), redacting).messages.create(**MESSAGES)
    assert "one *** word" in changed.to_json()
    with pytest.raises(UnhookedCallError):
        hooked(answers(stream), redacting).messages.create(**MESSAGES, stream=True)
    stream.close()


def test_a_middleware_may_change_what_is_sent(model_server: ScriptedServer) -> None:
    def other_model(request: Any, go_on: Any) -> Any:
        return go_on(request.copy(body={**request.json, "model": "other"}))

    model_server.answers("one secret word")
    plain = client_of("anthropic", model_server, middleware=[other_model])
    client = hooked(plain, RecordedHooks(REDACTING).config)
    assert "***" in client.messages.create(**MESSAGES).to_json()
    assert model_server.bodies[0]["model"] == "other"


@pytest.mark.parametrize("header", ["x-stainless-helper", "X-Stainless-Helper"])
def test_a_runner_that_does_not_say_what_it_is_runs_no_tool(
    model_server: ScriptedServer, header: str
) -> None:
    ran: list[str] = []

    @beta_tool
    def write(path: str) -> str:
        """Write a file."""
        ran.append(path)
        return path

    model_server.answers(Answer("", (("write", {"path": "a"}),)), "done")
    hooks = RecordedHooks({"BeforeTool": DENY})
    with hooked(client_of("anthropic", model_server), hooks.config) as client:
        hidden: Any = {header: Omit()}
        messages: Any = BetaMessages(client)
        runner = messages.tool_runner(**MESSAGES, tools=[write], extra_headers=hidden)
        with pytest.raises(UnhookedCallError, match="tool_runner"):
            runner.until_done()
    assert not ran


# --- google-genai: what it offers beside its hooks ------------------------------------

RAW = types.GenerateContentConfig(should_return_http_response=True)


async def test_raw_responses_of_genai_are_refused_wherever_they_are_asked_for(
    model_server: ScriptedServer,
) -> None:
    """As an object, and for one message of a chat; as a dict: see the table."""
    model_server.answers("secret")
    hooks = RecordedHooks({"AfterModel": None})
    async with closing_client(client_of("genai", model_server)) as plain, hooks.config:
        client = hooked(plain, hooks.config)
        with pytest.raises(UnseenResponseError, match="should_return_http"):
            client.models.generate_content(model="m", contents="hi", config=RAW)
        with pytest.raises(UnseenResponseError, match="should_return_http"):
            client.chats.create(model="m").send_message("hi", RAW)
        with pytest.raises(UnseenResponseError, match="should_return_http"):
            await client.aio.chats.create(model="m").send_message("hi", RAW)
    assert model_server.requests == []


def parts_of(service: object) -> set[str]:
    return {name for name in dir(service) if not name.startswith("_")}


@pytest.mark.filterwarnings("ignore:.*experimental")
def test_every_other_part_of_genai_is_warned_about_once() -> None:
    """Whatever the installed SDK offers, but for what calls no model."""
    plain = genai.Client(api_key="k")
    client = hooked(plain, Config("s-1"))
    harmless = {"files", "file_search_stores", "operations", "auth_tokens", "webhooks"}
    harmless |= {"models", "chats", "aio", "close", "aclose", "credentials", "vertexai"}
    with warnings_of() as log:
        for _ in range(2):
            for name in parts_of(plain) - {"close"}:
                getattr(client, name)
            for name in parts_of(plain.aio) - {"aclose"}:
                getattr(client.aio, name)
    expected = {f"client.{name}" for name in parts_of(plain) - harmless}
    expected |= {f"client.aio.{name}" for name in parts_of(plain.aio) - harmless}
    assert sorted(line.split()[0] for line in log) == sorted(expected)
    assert {"client.interactions", "client.batches", "client.aio.live"} <= expected
    assert {"client.caches", "client.tunings"} <= expected
    assert client.batches is plain.batches
    assert client.files is plain.files


def test_model_calls_of_genai_past_the_hooks_are_warned_about_once() -> None:
    plain = genai.Client(api_key="k")
    client = hooked(plain, Config("s-1"))
    hooked_names = {"generate_content", "generate_content_stream"}
    harmless = {"get", "list", "update", "delete", "vertexai"}
    with warnings_of() as log:
        for _ in range(2):
            for name in parts_of(plain.models):
                for ours, theirs in (
                    (client.models, plain.models),
                    (client.aio.models, plain.aio.models),
                ):
                    method, original = getattr(ours, name), getattr(theirs, name)
                    assert callable(method) or name == "vertexai"
                    assert asyncio.iscoroutinefunction(method) is (
                        asyncio.iscoroutinefunction(original)
                    )
    names = parts_of(plain.models) - hooked_names - harmless
    expected = [f"client.{at}models.{name}" for name in names for at in ("", "aio.")]
    assert sorted(line.split()[0] for line in log) == sorted(expected)
    assert {"embed_content", "generate_images", "generate_videos"} <= names
    assert "without hooks" in log[0]
