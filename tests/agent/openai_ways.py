"""The ways in which the clients of openai call a model, plain and async alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from inspect import isawaitable
from pathlib import Path
from typing import Any

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

from hookline import Config, HookEventName, Settings
from hookline.testing.modelapi import ModelServer

TOOL: dict[str, Any] = {"name": "write_file", "parameters": {"type": "object"}}
MESSAGES = [{"role": "user", "content": "hi"}]
CHAT: dict[str, Any] = {"model": "m", "messages": MESSAGES}
RESPONSES: dict[str, Any] = {"model": "m", "input": "hi"}


class Seen:
    """The text of an answer, and everything that the SDK showed of it."""

    def __init__(self, text: str, *shown: Any) -> None:
        self.text = text
        self.shown = shown

    def __contains__(self, word: str) -> bool:
        return any(word in repr(one) for one in self.shown)


def client_of(server: ModelServer, kind: str, **more: Any) -> Any:
    """A real client, pointed at a server in the test process.

    It raises for what is not as the service would write it.
    """
    given = {"base_url": f"{server.url}/v1", "max_retries": 0, **more}
    given["_strict_response_validation"] = True
    if kind == "sync":
        return openai.OpenAI(api_key="k", **given)
    return openai.AsyncOpenAI(api_key="k", **given)


def config_with(folder: Path, **hooks: Callable[[Any], Any]) -> Config:
    """A Config with functions as hooks, by the names of their events."""
    config = Config("s-1", folder, Settings.from_mapping({}))
    system = config.get_hook_system()
    assert system is not None
    for event, function in hooks.items():
        system.on(HookEventName.of(event), name=event)(function)
    return config


def said(event: str, **output: Any) -> Callable[[Any], Any]:
    """A hook that always says the same."""
    return lambda _: {"hookSpecificOutput": {"hookEventName": event, **output}}


async def got(value: Any) -> Any:
    """What a method returned, or its coroutine."""
    return await value if isawaitable(value) else value


async def listed(items: Any) -> list[Any]:
    """All items of a plain or async iterable."""
    if hasattr(items, "__aiter__"):
        return [item async for item in items]
    return list(items)


@asynccontextmanager
async def entered(manager: Any) -> AsyncIterator[Any]:
    """A plain or async context manager."""
    if hasattr(manager, "__aenter__"):
        async with manager as value:
            yield value
    else:
        with manager as value:
            yield value


def chat_text(completion: Any) -> str:
    return completion.choices[0].message.content or ""


def chunks_text(chunks: list[ChatCompletionChunk]) -> str:
    found = [choice.delta.content for chunk in chunks for choice in chunk.choices]
    return "".join(text or "" for text in found)


def events_text(events: list[Any]) -> str:
    kind = "response.output_text.delta"
    return "".join(event.delta for event in events if event.type == kind)


async def chat(client: Any, **more: Any) -> Seen:
    found = await got(client.chat.completions.create(**CHAT, **more))
    assert isinstance(found, ChatCompletion)
    return Seen(chat_text(found), found)


async def chat_stream(client: Any, **more: Any) -> Seen:
    stream = await got(client.chat.completions.create(**CHAT, **more, stream=True))
    chunks = await listed(stream)
    assert all(isinstance(chunk, ChatCompletionChunk) for chunk in chunks)
    return Seen(chunks_text(chunks), chunks)


async def chat_helper(client: Any, **more: Any) -> Seen:
    async with entered(client.chat.completions.stream(**CHAT, **more)) as stream:
        events = await listed(stream)
        final = await got(stream.get_final_completion())
        return Seen(chat_text(final), events, final, stream.current_completion_snapshot)


async def chat_parse(client: Any, **more: Any) -> Seen:
    found = await got(client.chat.completions.parse(**CHAT, **more))
    return Seen(chat_text(found), found)


async def chat_raw(client: Any, **more: Any) -> Seen:
    raw = await got(client.chat.completions.with_raw_response.create(**CHAT, **more))
    found = raw.parse()
    return Seen(chat_text(found), found, raw.text, raw.http_response.content)


async def chat_raw_stream(client: Any, **more: Any) -> Seen:
    create = client.chat.completions.with_raw_response.create
    raw = await got(create(**CHAT, **more, stream=True))
    chunks = await listed(raw.parse())
    return Seen(chunks_text(chunks), chunks)


async def chat_lines(client: Any, **more: Any) -> Seen:
    create = client.chat.completions.with_streaming_response.create
    async with entered(create(**CHAT, **more)) as raw:
        lines = await listed(raw.iter_lines())
        found = ChatCompletion.model_validate_json("".join(lines))
        return Seen(chat_text(found), lines)


async def chat_post(client: Any, **more: Any) -> Seen:
    body = {**CHAT, **more}
    post = client.post("/chat/completions", cast_to=ChatCompletion, body=body)
    found = await got(post)
    return Seen(chat_text(found), found)


async def chat_options(client: Any, **more: Any) -> Seen:
    return await chat(client.with_options(timeout=5).copy(max_retries=1), **more)


async def responses(client: Any, **more: Any) -> Seen:
    found = await got(client.responses.create(**RESPONSES, **more))
    assert isinstance(found, Response)
    return Seen(found.output_text, found)


async def responses_stream(client: Any, **more: Any) -> Seen:
    events = await listed(
        await got(client.responses.create(**RESPONSES, **more, stream=True))
    )
    return Seen(events_text(events), events)


async def responses_helper(client: Any, **more: Any) -> Seen:
    async with entered(client.responses.stream(**RESPONSES, **more)) as stream:
        events = await listed(stream)
        final = await got(stream.get_final_response())
        return Seen(final.output_text, events, final)


async def responses_parse(client: Any, **more: Any) -> Seen:
    found = await got(client.responses.parse(**RESPONSES, **more))
    return Seen(found.output_text, found)


async def responses_raw(client: Any, **more: Any) -> Seen:
    raw = await got(client.responses.with_raw_response.create(**RESPONSES, **more))
    found = raw.parse()
    return Seen(found.output_text, found, raw.text)


async def responses_beta(client: Any, **more: Any) -> Seen:
    found = await got(client.beta.responses.create(**RESPONSES, **more))
    parts = [part for item in found.output for part in item.content]
    return Seen("".join(p.text for p in parts if p.type == "output_text"), found)


async def responses_beta_stream(client: Any, **more: Any) -> Seen:
    events = await listed(
        await got(client.beta.responses.create(**RESPONSES, **more, stream=True))
    )
    return Seen(events_text(events), events)


Way = Callable[..., Coroutine[Any, Any, Seen]]
CHAT_WAYS: list[Way] = [
    chat,
    chat_stream,
    chat_helper,
    chat_parse,
    chat_raw,
    chat_raw_stream,
    chat_lines,
    chat_post,
    chat_options,
]
RESPONSES_WAYS: list[Way] = [
    responses,
    responses_stream,
    responses_helper,
    responses_parse,
    responses_raw,
    responses_beta,
    responses_beta_stream,
]
WAYS = [*CHAT_WAYS, *RESPONSES_WAYS]
STREAMS = [chat_stream, chat_helper, responses_stream, responses_helper]
