"""What a hooked google-genai client offers beside its hooks (issue 12.5)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from google import genai
from google.genai import types

from hookline import Config
from hookline.agent import hooked
from hookline.errors import UnseenResponseError
from hookline.testing.modelapi import ModelServer

from .scenes import config_of, runs
from .servers import genai_client

RAW_CONFIGS: list[Any] = [
    {"should_return_http_response": True},
    {"shouldReturnHttpResponse": True},
    types.GenerateContentConfig(should_return_http_response=True),
]
WAYS = ("sync", "stream", "aio", "aio stream", "chat", "aio chat", "chat config")


async def generate(client: genai.Client, way: str, config: Any) -> Any:
    given: dict[str, Any] = {"model": "m", "contents": "hi", "config": config}
    if way == "sync":
        return client.models.generate_content(**given)
    if way == "stream":
        return list(client.models.generate_content_stream(**given))
    if way == "aio":
        return await client.aio.models.generate_content(**given)
    if way == "aio stream":
        stream = await client.aio.models.generate_content_stream(**given)
        return [chunk async for chunk in stream]
    if way == "aio chat":
        return await client.aio.chats.create(model="m").send_message("hi", config)
    if way == "chat":
        return client.chats.create(model="m", config=config).send_message("hi")
    return client.chats.create(model="m").send_message("hi", config)


@pytest.mark.parametrize("config", RAW_CONFIGS, ids=["snake", "camel", "object"])
@pytest.mark.parametrize("way", WAYS)
async def test_raw_responses_are_refused_while_after_model_hooks_listen(
    tmp_path: Path, way: str, config: Any
) -> None:
    with ModelServer(["secret"]) as server:
        client = genai_client(server)
        async with config_of(tmp_path, {"AfterModel": runs("true")}) as hooks:
            with pytest.raises(UnseenResponseError, match="should_return_http"):
                await generate(hooked(client, hooks), way, config)
        await client.aio.aclose()
        client.close()
    assert server.requests == []


async def test_raw_responses_come_back_where_no_hook_listens_for_them(
    tmp_path: Path,
) -> None:
    with ModelServer(["hello"]) as server, genai_client(server) as client:
        async with config_of(tmp_path, {"BeforeModel": runs("true")}) as hooks:
            response = await generate(hooked(client, hooks), "sync", RAW_CONFIGS[0])
    assert "hello" in response.sdk_http_response.body


def parts_of(service: object) -> set[str]:
    return {name for name in dir(service) if not name.startswith("_")}


@pytest.mark.filterwarnings("ignore:.*experimental")
def test_every_other_part_of_the_client_is_warned_about_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the installed SDK offers, but for what calls no model."""
    plain = genai.Client(api_key="k")
    client = hooked(plain, Config("s-1", tmp_path))
    harmless = {"files", "file_search_stores", "operations", "auth_tokens", "webhooks"}
    harmless |= {"models", "chats", "aio", "close", "aclose", "credentials", "vertexai"}
    for _ in range(2):
        for name in parts_of(plain) - {"close"}:
            getattr(client, name)
        for name in parts_of(plain.aio) - {"aclose"}:
            getattr(client.aio, name)
    warned = [record.getMessage().split()[0] for record in caplog.records]
    expected = {f"client.{name}" for name in parts_of(plain) - harmless}
    expected |= {f"client.aio.{name}" for name in parts_of(plain.aio) - harmless}
    assert sorted(warned) == sorted(expected)
    assert {"client.interactions", "client.batches", "client.aio.live"} <= expected
    assert {"client.caches", "client.tunings"} <= expected


def test_model_calls_past_the_hooks_are_warned_about_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = genai.Client(api_key="k")
    client = hooked(plain, Config("s-1", tmp_path))
    hooks = {"generate_content", "generate_content_stream"}
    harmless = {"get", "list", "update", "delete", "vertexai"}
    for _ in range(2):
        for name in parts_of(plain.models):
            assert callable(getattr(client.models, name)) or name == "vertexai"
            getattr(client.aio.models, name)
    warned = [record.getMessage().split()[0] for record in caplog.records]
    names = parts_of(plain.models) - hooks - harmless
    expected = [f"client.{at}models.{name}" for name in names for at in ("", "aio.")]
    assert sorted(warned) == sorted(expected)
    assert {"embed_content", "generate_images", "generate_videos"} <= names
    assert "without hooks" in caplog.text


def test_methods_past_the_hooks_stay_what_they_are(tmp_path: Path) -> None:
    plain = genai.Client(api_key="k")
    client = hooked(plain, Config("s-1", tmp_path))
    assert asyncio.iscoroutinefunction(client.aio.models.embed_content)
    assert not asyncio.iscoroutinefunction(client.models.embed_content)
    assert client.batches is plain.batches


def test_a_call_through_the_hooks_warns_of_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ModelServer(["a", "b", "c"]) as server, genai_client(server) as plain:
        client = hooked(plain, Config("s-1", tmp_path))
        client.models.generate_content(model="m", contents="hi")
        chat = client.chats.create(model="m")
        chat.send_message("hi")
        assert len(chat.get_history()) == 2
    assert "without hooks" not in caplog.text
