"""Every way to call a model with a client of anthropic, and all that it shows."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
from anthropic import Anthropic, AsyncAnthropic, AsyncStream, Stream
from anthropic.types import Message, RawMessageStreamEvent
from pydantic import BaseModel

from hookline import Config, HookEventName, Settings
from hookline.testing.loopback import ThreadedServer

REQUEST: dict[str, Any] = {
    "model": "m",
    "max_tokens": 10,
    "messages": [{"role": "user", "content": "hi"}],
}
BODY = {**REQUEST, "stream": False}
STREAM_BODY = {**REQUEST, "stream": True}


class Note(BaseModel):
    """A structured answer."""

    text: str


def config_in(folder: Path, **settings: Any) -> Config:
    return Config("s-1", folder, Settings.from_mapping(settings))


class Hooks:
    """In-process hooks, and the events that they were given."""

    def __init__(self, config: Config, **outputs: Any) -> None:
        """By event: what its hook says, or a function of the input."""
        self.config = config
        self.seen: list[dict[str, Any]] = []
        for event, output in outputs.items():
            self._add(event, output)

    def _add(self, event: str, output: Any) -> None:
        system = self.config.get_hook_system()
        assert system is not None

        @system.on(HookEventName.of(event))
        def hook(given: dict[str, Any]) -> Any:
            self.seen.append(given)
            return output(given) if callable(output) else output

    @property
    def names(self) -> list[str]:
        return [event["hook_event_name"] for event in self.seen]

    def of(self, event: str) -> list[dict[str, Any]]:
        return [one for one in self.seen if one["hook_event_name"] == event]


def specific(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": fields}


def answer_text(event: dict[str, Any]) -> str:
    parts = event["llm_response"]["candidates"][0]["content"]["parts"]
    return "".join(parts)


def without_secret(event: dict[str, Any]) -> dict[str, Any]:
    """An AfterModel hook that takes a word out of every answer."""
    clean = answer_text(event).replace("secret", "***")
    return specific(llm_response={"text": clean})


def options_for(server: ThreadedServer) -> dict[str, Any]:
    # No connection is left to clients that a test does not close.
    headers = {"connection": "close"}
    given = {"base_url": server.url, "max_retries": 0, "default_headers": headers}
    return {"api_key": "k", **given}


def plain_client(server: ThreadedServer, **more: Any) -> Anthropic:
    return Anthropic(**{**options_for(server), **more})


def async_client(server: ThreadedServer, **more: Any) -> AsyncAnthropic:
    return AsyncAnthropic(**{**options_for(server), **more})


def shown(*values: Any) -> str:
    """All that a caller can see of some values."""
    return "\n".join(_shown(value) for value in values)


def _shown(value: Any) -> str:
    if hasattr(value, "to_dict"):
        return json.dumps(value.to_dict(), default=str)
    if isinstance(value, list):
        return shown(*value)
    return value.decode() if isinstance(value, bytes) else str(value)


def _stream_helper(manager: Any) -> str:
    with manager as stream:
        events = [event.model_copy(deep=True) for event in stream]
        return shown(
            events,
            stream.current_message_snapshot,
            stream.get_final_message(),
        )


def _text_stream(manager: Any) -> str:
    with manager as stream:
        return shown(list(stream.text_stream), stream.get_final_message())


def _raw(response: Any) -> str:
    return shown(response.text(), response.parse(), response.http_response.content)


def _raw_stream(response: Any) -> str:
    return shown(list(response.parse()))


def _streamed(manager: Any) -> str:
    with manager as response:
        return shown(list(response.iter_lines()))


def _posted(client: Anthropic) -> str:
    return shown(client.post("/v1/messages", cast_to=Message, body=BODY))


def _posted_http(client: Anthropic) -> str:
    found = client.post("/v1/messages", cast_to=httpx2.Response, body=BODY)
    return shown(found.content, found.json())


def _posted_stream(client: Anthropic) -> str:
    kind = Stream[RawMessageStreamEvent]
    return shown(
        list(
            client.post(
                "v1/messages",
                cast_to=Message,
                body=STREAM_BODY,
                stream=True,
                stream_cls=kind,
            )
        )
    )


def _run_tools(client: Anthropic, **more: Any) -> str:
    runner = client.beta.messages.tool_runner(**REQUEST, tools=[], **more)
    return shown(list(runner) if not more else [], runner.until_done())


SYNC: dict[str, Callable[[Anthropic], str]] = {
    "create": lambda c: shown(c.messages.create(**REQUEST)),
    "create stream": lambda c: shown(list(c.messages.create(**REQUEST, stream=True))),
    "stream": lambda c: _stream_helper(c.messages.stream(**REQUEST)),
    "text stream": lambda c: _text_stream(c.messages.stream(**REQUEST)),
    "parse": lambda c: shown(c.messages.parse(**REQUEST)),
    "beta create": lambda c: shown(c.beta.messages.create(**REQUEST)),
    "beta create stream": lambda c: shown(
        list(c.beta.messages.create(**REQUEST, stream=True))
    ),
    "beta stream": lambda c: _stream_helper(c.beta.messages.stream(**REQUEST)),
    "beta text stream": lambda c: _text_stream(c.beta.messages.stream(**REQUEST)),
    "beta parse": lambda c: shown(c.beta.messages.parse(**REQUEST)),
    "tool runner": _run_tools,
    "streaming tool runner": lambda c: _run_tools(c, stream=True),
    "raw": lambda c: _raw(c.messages.with_raw_response.create(**REQUEST)),
    "raw of client": lambda c: _raw(c.with_raw_response.messages.create(**REQUEST)),
    "raw stream": lambda c: _raw_stream(
        c.messages.with_raw_response.create(**REQUEST, stream=True)
    ),
    "streamed": lambda c: _streamed(
        c.messages.with_streaming_response.create(**REQUEST)
    ),
    "streamed stream": lambda c: _streamed(
        c.beta.messages.with_streaming_response.create(**REQUEST, stream=True)
    ),
    "with options": lambda c: shown(
        c.with_options(timeout=9).copy().messages.create(**REQUEST)
    ),
    "post": _posted,
    "post http": _posted_http,
    "post stream": _posted_stream,
}


async def _async_stream_helper(manager: Any) -> str:
    async with manager as stream:
        events = [event.model_copy(deep=True) async for event in stream]
        return shown(
            events,
            stream.current_message_snapshot,
            await stream.get_final_message(),
        )


async def _async_text_stream(manager: Any) -> str:
    async with manager as stream:
        texts = [text async for text in stream.text_stream]
        return shown(texts, await stream.get_final_message())


async def _async_create_stream(messages: Any) -> str:
    stream = await messages.create(**REQUEST, stream=True)
    return shown([event async for event in stream])


async def _async_raw(client: AsyncAnthropic) -> str:
    response = await client.messages.with_raw_response.create(**REQUEST)
    return shown(await response.text(), await response.parse())


async def _async_streamed(client: AsyncAnthropic) -> str:
    given = client.messages.with_streaming_response.create(**REQUEST, stream=True)
    async with given as response:
        return shown([line async for line in response.iter_lines()])


async def _async_posted_stream(client: AsyncAnthropic) -> str:
    stream = await client.post(
        "/v1/messages",
        cast_to=Message,
        body=STREAM_BODY,
        stream=True,
        stream_cls=AsyncStream[RawMessageStreamEvent],
    )
    return shown([event async for event in stream])


async def _async_create(messages: Any) -> str:
    return shown(await messages.create(**REQUEST))


async def _async_parse(messages: Any) -> str:
    return shown(await messages.parse(**REQUEST))


async def _async_run_tools(client: AsyncAnthropic) -> str:
    runner = client.beta.messages.tool_runner(**REQUEST, tools=[])
    return shown([one async for one in runner], await runner.until_done())


ASYNC: dict[str, Callable[[AsyncAnthropic], Awaitable[str]]] = {
    "async create": lambda c: _async_create(c.messages),
    "async create stream": lambda c: _async_create_stream(c.messages),
    "async stream": lambda c: _async_stream_helper(c.messages.stream(**REQUEST)),
    "async text stream": lambda c: _async_text_stream(c.messages.stream(**REQUEST)),
    "async parse": lambda c: _async_parse(c.messages),
    "async beta create": lambda c: _async_create(c.beta.messages),
    "async beta create stream": lambda c: _async_create_stream(c.beta.messages),
    "async beta stream": lambda c: _async_stream_helper(
        c.beta.messages.stream(**REQUEST)
    ),
    "async beta parse": lambda c: _async_parse(c.beta.messages),
    "async tool runner": _async_run_tools,
    "async raw": _async_raw,
    "async streamed": _async_streamed,
    "async with options": lambda c: _async_create(c.with_options(timeout=9).messages),
    "async post stream": _async_posted_stream,
}
WAYS = (*SYNC, *ASYNC)


async def call(
    way: str,
    server: ThreadedServer,
    hook: Callable[[Any], Any] = lambda client: client,
) -> str:
    """Call a model in one way; all that came back."""
    if way in SYNC:
        with plain_client(server) as client:
            return SYNC[way](hook(client))
    async with async_client(server) as client_:
        return await ASYNC[way](hook(client_))
