"""Every way to call a model with the SDKs' clients, and servers on this machine.

The ways are the same for plain and for async clients.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import partial, wraps
from inspect import isawaitable
from itertools import count
from operator import attrgetter
from typing import Any

import anthropic
import httpx2
import openai
from anthropic.types import Message, RawMessageStreamEvent
from google import genai
from google.genai import types
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from hookline.agent import AnthropicModel, GenAIModel, ModelClient, OpenAIModel
from hookline.testing.cases import ServerAnswer
from hookline.testing.loopback import ThreadedServer
from hookline.testing.modelapi import Answer, ModelServer

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
RESPONSES: dict[str, Any] = {"model": "m", "input": "hi"}
MESSAGES: dict[str, Any] = {**CHAT, "max_tokens": 10}
CONTENT: dict[str, Any] = {"model": "m", "contents": "hi"}
SDKS = ("genai", "openai", "anthropic")


class ScriptedServer(ModelServer):
    """A model server for many tests: each says what is answered next."""

    def __init__(self) -> None:
        self._script: deque[Answer | str] = deque()
        super().__init__(iter(self._next, None))

    def _next(self) -> Answer | str:
        return self._script.popleft() if self._script else ""

    def answers(self, *answers: Answer | str) -> None:
        """Forget what was, and answer these from now on; empty ones after the last."""
        self._script.clear()
        self._script.extend(answers)
        self.requests.clear()
        self.numbers = count()
        self.gate = None

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was received since."""
        return [request.body for request in self.requests]

    @property
    def received(self) -> list[Any]:
        """What was received since; what is just as the caller asked says so."""
        return [_as_asked(body) for body in self.bodies]


def _as_asked(body: dict[str, Any]) -> Any:
    asked = {name: value for name, value in body.items() if name != "stream" and value}
    contents = [{"parts": [{"text": "hi"}], "role": "user"}]
    if asked in (CHAT, RESPONSES, MESSAGES, {"contents": contents}):
        return "as asked, streamed" if body.get("stream") else "as asked"
    if tools := body.get("tools"):
        return {**body, "tools": [name for tool in tools for name in _names_in(tool)]}
    return body


def _names_in(tool: dict[str, Any]) -> list[Any]:
    if "functionDeclarations" in tool:
        return [declared["name"] for declared in tool["functionDeclarations"]]
    return [(tool.get("function") or tool).get("name", tool)]


def answer_of(data: Any) -> Answer | str:
    """An answer as a row writes it: text, or ``text``, ``calls`` and ``status``."""
    if isinstance(data, str):
        return data
    calls = tuple((name, arguments) for name, arguments in data.pop("calls", ()))
    return Answer(calls=calls, **data)


def wire_answer(data: dict[str, Any]) -> ServerAnswer:
    """An answer byte by byte: ``events`` of a stream, ``json`` or ``body``."""
    if "events" in data:
        body, kind = server_sent(data["events"]), "text/event-stream"
    elif "json" in data:
        body, kind = json.dumps(data["json"]), "application/json"
    else:
        body, kind = data["body"], "text/html"
    return ServerAnswer(headers={"Content-Type": data.get("type", kind)}, body=body)


def server_sent(events: Iterable[Any]) -> str:
    """Events as the services write them; a text stays as it is."""
    return "".join(
        event
        if isinstance(event, str)
        else f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        if "type" in event
        else f"data: {json.dumps(event)}\n\n"
        for event in events
    )


def client_of(sdk: str, server: ThreadedServer, kind: str = "sync", **more: Any) -> Any:
    """A real client of an SDK, pointed at a server of the test."""
    if sdk == "genai":
        options = types.HttpOptions(base_url=server.url)
        return genai.Client(api_key="local", http_options=options)
    # No connection is left to clients that a test does not close.
    given: dict[str, Any] = {"api_key": "k", "max_retries": 0, "base_url": server.url}
    given |= {"default_headers": {"connection": "close"}, **more}
    if sdk == "anthropic":
        made = anthropic.Anthropic if kind == "sync" else anthropic.AsyncAnthropic
        return made(**given)
    if not more.get("base_url"):
        given["base_url"] = f"{server.url}/v1"
    # It raises for what is not as the service would write it.
    given.setdefault("_strict_response_validation", True)
    return (openai.OpenAI if kind == "sync" else openai.AsyncOpenAI)(**given)


async def close_client(client: Any) -> None:
    """Close a client of any SDK."""
    if hasattr(client, "aio"):
        await client.aio.aclose()
    await settled(client.close())


@asynccontextmanager
async def closing_client(client: Any) -> AsyncIterator[Any]:
    """Close a client of any SDK at the end."""
    try:
        yield client
    finally:
        await close_client(client)


@asynccontextmanager
async def model_of(sdk: str, server: ThreadedServer) -> AsyncIterator[ModelClient]:
    """The agent's model over a client; ``sync`` and ``aio`` name the other kind."""
    name, _, kind = sdk.partition(" ")
    lax = {"_strict_response_validation": False} if name == "openai" else {}
    made = client_of(name, server, kind or "async", **lax)
    async with closing_client(made) as client:
        if name == "genai":
            used = client.aio if kind == "aio" else client
            yield GenAIModel(used, "gemini-local", {"temperature": 0.5})
        elif name == "openai":
            yield OpenAIModel(client, "gpt-local", temperature=0.5)
        else:
            body = {"temperature": 0.5}
            yield AnthropicModel(client, "claude-local", extra_body=body)


class Shown:
    """The text of an answer, and everything that the SDK showed of it."""

    def __init__(self, text: str, *values: Any) -> None:
        self.text = text
        self.everything = "\n".join(_written(value) for value in values)

    def __contains__(self, word: str) -> bool:
        return word in self.everything


def _written(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(_written(item) for item in value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, BaseModel):
        dump = value.model_dump(mode="json", exclude_none=True, warnings=False)
        return json.dumps(dump, ensure_ascii=False)
    return str(value)


async def settled(value: Any) -> Any:
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


Resource = Callable[[Any], Any]
Way = Callable[..., Coroutine[Any, Any, Shown]]


def answer_text(answer: Any) -> str:
    """The text of a whole answer of any service."""
    if isinstance(answer, str):  # what an SDK cannot read as an answer
        return ""
    if isinstance(answer, types.GenerateContentResponse):
        return _parts_text([answer])
    if hasattr(answer, "choices"):
        return answer.choices[0].message.content or ""
    if hasattr(answer, "output"):
        parts = [
            part
            for item in answer.output
            for part in getattr(item, "content", None) or ()
        ]
        return "".join(part.text for part in parts if part.type == "output_text")
    return "".join(block.text for block in answer.content if block.type == "text")


def events_text(events: list[Any]) -> str:
    """The text of the events of a stream of any service."""
    if events and isinstance(events[0], types.GenerateContentResponse):
        return _parts_text(events)
    deltas: list[str | None] = []
    for event in events:
        if hasattr(event, "choices"):
            deltas += [choice.delta.content for choice in event.choices]
        elif event.type == "response.output_text.delta":
            deltas.append(event.delta)
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            deltas.append(event.delta.text)
    return "".join(delta or "" for delta in deltas)


def _parts_text(chunks: list[types.GenerateContentResponse]) -> str:
    contents = [c.content for chunk in chunks for c in chunk.candidates or ()]
    parts = [part for content in contents if content for part in content.parts or ()]
    return "".join(part.text or "" for part in parts)


async def _whole(method: Resource, given: Any, client: Any, **more: Any) -> Shown:
    answer = await settled(method(client)(**given, **more))
    return Shown(answer_text(answer), answer)


async def _stream(method: Resource, given: Any, client: Any, **more: Any) -> Shown:
    stream = await settled(method(client)(**given, **more, stream=True))
    events = await listed(stream)
    return Shown(events_text(events), events)


async def _raw(resource: Resource, given: Any, client: Any, **more: Any) -> Shown:
    raw = await settled(resource(client).with_raw_response.create(**given, **more))
    answer = await settled(raw.parse())
    text = await settled(raw.text() if callable(raw.text) else raw.text)
    return Shown(answer_text(answer), answer, text, raw.http_response.content)


async def _raw_stream(
    resource: Resource, given: Any, client: Any, **more: Any
) -> Shown:
    create = resource(client).with_raw_response.create
    raw = await settled(create(**given, **more, stream=True))
    events = await listed(await settled(raw.parse()))
    return Shown(events_text(events), events)


async def _lines(resource: Resource, given: Any, client: Any, **more: Any) -> Shown:
    create = resource(client).with_streaming_response.create
    async with entered(create(**given, **more)) as raw:
        lines = await listed(raw.iter_lines())
        return Shown("", lines)


async def _helper(resource: Resource, given: Any, client: Any, **more: Any) -> Shown:
    async with entered(resource(client).stream(**given, **more)) as stream:
        events = [
            event.model_copy(deep=True) if isinstance(event, BaseModel) else event
            for event in await listed(stream)
        ]
        if hasattr(stream, "get_final_message"):
            final = await settled(stream.get_final_message())
            snapshot = stream.current_message_snapshot
        elif hasattr(stream, "get_final_completion"):
            final = await settled(stream.get_final_completion())
            snapshot = stream.current_completion_snapshot
        else:
            final, snapshot = await settled(stream.get_final_response()), ""
        return Shown(answer_text(final), events, final, snapshot)


async def _text_stream(resource: Resource, client: Any, **more: Any) -> Shown:
    async with entered(resource(client).stream(**MESSAGES, **more)) as stream:
        texts = await listed(stream.text_stream)
        return Shown("".join(texts), texts, await settled(stream.get_final_message()))


async def _run_tools(client: Any, *, stream: bool = False, **more: Any) -> Shown:
    make = client.beta.messages.tool_runner
    runner = make(**{**MESSAGES, "tools": [], "stream": stream, **more})
    messages = [] if stream else await listed(runner)
    last = await settled(runner.until_done())
    return Shown(answer_text(last), messages, last)


async def _post(path: str, kind: Any, body: Any, client: Any, **more: Any) -> Shown:
    posted = client.post(path, cast_to=kind, body={**body, **more})
    answer = await settled(posted)
    return Shown(answer_text(answer), answer)


async def _post_http(client: Any, *, stream: bool = False, **more: Any) -> Shown:
    body = {**MESSAGES, "stream": stream, **more}
    post = client.post("/v1/messages", cast_to=httpx2.Response, body=body)
    response = await settled(post)
    return Shown("", response.headers["content-type"], response.content)


async def _post_stream(client: Any, **more: Any) -> Shown:
    is_async = isinstance(client, anthropic.AsyncAnthropic)
    kind: Any = anthropic.AsyncStream if is_async else anthropic.Stream
    stream = await settled(
        client.post(
            "v1/messages",
            cast_to=Message,
            body={**MESSAGES, "stream": True, **more},
            stream=True,
            stream_cls=kind[RawMessageStreamEvent],
        )
    )
    events = await listed(stream)
    return Shown(events_text(events), events)


async def _with_options(
    create: Resource, given: Any, client: Any, **more: Any
) -> Shown:
    other = client.with_options(timeout=9).copy(max_retries=client.max_retries)
    return await _whole(create, given, other, **more)


def _resource_ways(path: str, given: dict[str, Any]) -> dict[str, Way]:
    """What each resource for model calls of openai and anthropic offers."""
    resource = attrgetter(path)
    create, parse = attrgetter(f"{path}.create"), attrgetter(f"{path}.parse")
    return {
        "create": partial(_whole, create, given),
        "create stream": partial(_stream, create, given),
        "stream": partial(_helper, resource, given),
        "parse": partial(_whole, parse, given),
        "raw": partial(_raw, resource, given),
        "raw stream": partial(_raw_stream, resource, given),
        "lines": partial(_lines, resource, given),
        "with options": partial(_with_options, create, given),
    }


def _named(prefix: str, ways: dict[str, Way]) -> dict[str, Way]:
    return {f"{prefix} {name}": way for name, way in ways.items()}


async def _raw_of_client(client: Any, **more: Any) -> Shown:
    raw = await settled(client.with_raw_response.messages.create(**MESSAGES, **more))
    answer = await settled(raw.parse())
    return Shown(answer_text(answer), answer)


async def _generate(client: Any, *, aio: bool, stream: bool, **more: Any) -> Shown:
    models = (client.aio if aio else client).models
    name = "generate_content_stream" if stream else "generate_content"
    answer = await settled(getattr(models, name)(**{**CONTENT, **more}))
    chunks = await listed(answer) if stream else [answer]
    return Shown(_parts_text(chunks), chunks)


async def _converse(client: Any, *, aio: bool, stream: bool, **more: Any) -> Shown:
    chats = (client.aio if aio else client).chats
    chat = chats.create(model="m", **more)
    send = chat.send_message_stream if stream else chat.send_message
    answer = await settled(send("hi"))
    chunks = await listed(answer) if stream else [answer]
    return Shown(_parts_text(chunks), chunks, chat.get_history())


_CHAT_PATH = ("/chat/completions", ChatCompletion, CHAT)
_beta_create = attrgetter("beta.responses.create")
WAYS: dict[str, dict[str, Way]] = {
    "openai": {
        **_named("chat", _resource_ways("chat.completions", CHAT)),
        "chat post": partial(_post, *_CHAT_PATH),
        **_named("responses", _resource_ways("responses", RESPONSES)),
        "responses beta create": partial(_whole, _beta_create, RESPONSES),
        "responses beta create stream": partial(_stream, _beta_create, RESPONSES),
    },
    "anthropic": {
        **_resource_ways("messages", MESSAGES),
        "text stream": partial(_text_stream, attrgetter("messages")),
        **_named("beta", _resource_ways("beta.messages", MESSAGES)),
        "beta text stream": partial(_text_stream, attrgetter("beta.messages")),
        "tool runner": _run_tools,
        "tool runner stream": partial(_run_tools, stream=True),
        "tool runner eager": partial(_run_tools, stream=True, run_tools_eagerly=True),
        "raw of client": _raw_of_client,
        "post": partial(_post, "/v1/messages", Message, MESSAGES),
        "post http": _post_http,
        "post http stream": partial(_post_http, stream=True),
        "post stream": _post_stream,
    },
    "genai": {
        f"{'aio ' if aio else ''}{name}{' stream' if stream else ''}": partial(
            way, aio=aio, stream=stream
        )
        for name, way in (("generate", _generate), ("chat", _converse))
        for aio in (False, True)
        for stream in (False, True)
    },
}
"""By SDK and name; each takes a client and more of the request."""


class RecordedFunctions:
    """Functions for an SDK to call, and the calls; ``result`` is given or raised."""

    def __init__(self, result: Any = "written") -> None:
        self.calls: list[list[Any]] = []
        self.result = result

    def _called(self, *call: Any) -> Any:
        self.calls.append(list(call))
        if isinstance(self.result, dict):
            raise OSError(self.result["raise"])
        return self.result

    def plain(self) -> list[Callable[..., Any]]:
        """The functions as they are."""

        def write_file(path: str, size: int = 1) -> Any:
            """Write a file."""
            return self._called("write_file", path, size)

        def read_file(path: str) -> Any:
            """Read a file."""
            return self._called("read_file", path)

        return [write_file, read_file]

    def of(self, sdk: str, kind: str) -> list[Any]:
        """The functions as the tools of an SDK."""
        if sdk == "genai":
            return self.plain()
        if kind == "sync":
            return [anthropic.beta_tool(function) for function in self.plain()]
        return [anthropic.beta_async_tool(_later(one)) for one in self.plain()]


def _later(function: Callable[..., Any]) -> Any:
    @wraps(function)
    async def later(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return later


def kinds_of(sdk: str) -> tuple[str, ...]:
    """The kinds of clients: those of genai are both in one."""
    return ("sync",) if sdk == "genai" else ("sync", "async")
