"""Hooked clients of openai and anthropic: what they are, and when hooks run.

What hooks do in every way of calling is recorded in ``tests/pins/clients``.
protocol.md#events and #callers.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import threading
from collections.abc import Callable
from typing import Any, assert_type

import anthropic
import httpx
import httpx2
import openai
import pytest
from anthropic.lib.credentials import AccessToken
from anthropic.types import Message, ParsedMessage
from anthropic.types.beta import BetaMessage
from openai.lib.responses_tool_runner import RegisteredFunction, ResponsesToolRunner
from pydantic import BaseModel

from hookline import Config
from hookline.agent import hooked, hooked_tool
from hookline.errors import UnhookedCallError, UnknownClientError
from hookline.testing.loopback import AnsweringServer, QuietHandler, ThreadedServer
from hookline.testing.modelapi import Answer
from tests.support.model_calls import (
    CHAT,
    MESSAGES,
    RESPONSES,
    WAYS,
    ScriptedServer,
    answer_text,
    client_of,
    closing_client,
    entered,
    listed,
    server_sent,
    settled,
    wire_answer,
)
from tests.support.recorded_events import DENY, RecordedHooks, specific, warnings_of

REDACT = {"$redact": "secret"}
KINDS = ("sync", "async")
CREATE: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "chat": (lambda client: client.chat.completions.create, CHAT),
    "responses": (lambda client: client.responses.create, RESPONSES),
    "anthropic": (lambda client: client.messages.create, MESSAGES),
}
SDK_OF = {"chat": "openai", "responses": "openai", "anthropic": "anthropic"}
CALLS = [(api, kind) for api in CREATE for kind in KINDS]
every_call = pytest.mark.parametrize(("api", "kind"), CALLS)
every_client = pytest.mark.parametrize(
    ("api", "kind"), [call for call in CALLS if "responses" not in call]
)


def made(api: str, kind: str, server: ThreadedServer, **more: Any) -> Any:
    return client_of(SDK_OF[api], server, kind, **more)


async def create(api: str, client: Any, **more: Any) -> Any:
    method, request = CREATE[api]
    return await settled(method(client)(**request, **more))


async def text_of(api: str, client: Any) -> str:
    return answer_text(await create(api, client))


async def first_of(stream: Any) -> Any:
    if hasattr(stream, "__anext__"):
        return await anext(stream)
    return next(stream)


async def read_into(events: list[Any], api: str, client: Any) -> None:
    """Event by event: those before a failure are in the list."""
    stream = await create(api, client, stream=True)
    while True:
        events.append(await first_of(stream))


@every_call
async def test_streams_are_held_back_until_hooks_have_seen_the_whole_answer(
    model_server: ScriptedServer, api: str, kind: str
) -> None:
    hooks = RecordedHooks({"AfterModel": None})
    model_server.answers("one two three")
    model_server.gate = threading.Event()
    async with hooks.config, closing_client(made(api, kind, model_server)) as client:
        order: list[str] = []

        def read() -> None:
            async def all_of_it() -> None:
                stream = await create(api, guarded, stream=True)
                order.extend("event" for _ in await listed(stream))

            asyncio.run(all_of_it())

        guarded = hooked(client, hooks.config)
        reader = threading.Thread(target=read)
        reader.start()
        while not model_server.requests:
            reader.join(0.01)
        assert (order, hooks.names) == ([], [])
        model_server.gate.set()
        await asyncio.to_thread(reader.join)
    assert len(order) > 3
    assert hooks.names == ["AfterModel"]


@every_call
async def test_streams_pass_before_the_hooks_in_mode_pass(
    model_server: ScriptedServer, api: str, kind: str
) -> None:
    """Pass lets them through at once; AfterModel fires at the end, with a warning."""
    hooks = RecordedHooks({"AfterModel": None})
    model_server.answers("one two three", "again")
    model_server.gate = threading.Event()
    async with hooks.config, closing_client(made(api, kind, model_server)) as client:
        with warnings_of() as log:
            passing = hooked(client, hooks.config, stream_mode="pass")
            stream = await create(api, passing, stream=True)
            # The server waits after the first event: it is here before the rest.
            await first_of(stream)
            assert hooks.names == []
            model_server.gate.set()
            await listed(stream)
            other = hooked(client, hooks.config.session("b"), stream_mode="pass")
            await listed(await create(api, other, stream=True))
    texts = [event["llm_response"]["text"] for event in hooks.events]
    assert texts == ["one two three", "again"]
    assert [line[:40] for line in log].count(log[0][:40]) == len(log) == 1
    assert "stream_mode 'pass'" in log[0]


@every_call
async def test_streams_that_are_left_early_fire_no_after_model(
    model_server: ScriptedServer, api: str, kind: str
) -> None:
    """AfterModel never fires for an aborted stream (protocol.md#callers)."""
    hooks = RecordedHooks({"AfterModel": None})
    model_server.answers("one two three")
    model_server.gate = threading.Event()
    async with hooks.config, closing_client(made(api, kind, model_server)) as client:
        passing = hooked(client, hooks.config, stream_mode="pass")
        stream = await create(api, passing, stream=True)
        await first_of(stream)
        await settled(stream.close())
        model_server.gate.set()
    assert hooks.names == []


class BreakingHandler(QuietHandler[ThreadedServer]):
    """Closes the connection in the middle of an answer."""

    def do_POST(self) -> None:  # noqa: N802 - the base class calls it
        self.rfile.read(int(self.headers["Content-Length"]))
        chunk = {"choices": [{"index": 0, "delta": {"content": "unseen"}}]}
        start = {"type": "message_start", "message": {"content": []}}
        body = server_sent([start, chunk]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body) + 100))
        self.end_headers()
        self.wfile.write(body)


@every_call
async def test_streams_that_are_cut_show_nothing(api: str, kind: str) -> None:
    hooks = RecordedHooks({"AfterModel": None})
    events: list[Any] = []
    # As without hooks: anthropic passes on the error of the HTTP client.
    broken: type[Exception] = openai.APIConnectionError
    if api == "anthropic":
        broken = httpx2.RemoteProtocolError
    with ThreadedServer(BreakingHandler) as server:
        async with hooks.config, closing_client(made(api, kind, server)) as client:
            with pytest.raises(broken):
                await read_into(events, api, hooked(client, hooks.config))
    assert (events, hooks.names) == ([], [])


FAILS_AT_THE_END: dict[str, list[Any]] = {
    "chat": [
        {
            "choices": [
                {"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}
            ]
        },
        {"error": {"message": "overloaded"}},
    ],
    "anthropic": [
        {"type": "message_start", "message": {"content": [], "usage": {}}},
        {
            "type": "content_block_start",
            "content_block": {"type": "text", "text": "hi"},
        },
        {"type": "message_stop"},
        {"type": "error", "error": {"message": "overloaded"}},
    ],
}


@pytest.mark.parametrize("api", FAILS_AT_THE_END)
async def test_an_answer_that_is_whole_counts_though_its_stream_fails(
    wire_server: AnsweringServer, api: str
) -> None:
    """In mode pass; one that fails before its end fires no AfterModel."""
    hooks = RecordedHooks({"AfterModel": None})
    errors = (openai.APIError, anthropic.APIError)
    async with hooks.config, closing_client(made(api, "sync", wire_server)) as client:
        passing = hooked(client, hooks.config, stream_mode="pass")
        for events in (FAILS_AT_THE_END[api], FAILS_AT_THE_END[api][-1:]):
            wire_server.answer = wire_answer({"events": events})
            with pytest.raises(errors):
                await listed(await create(api, passing, stream=True))
    assert [event["llm_response"]["text"] for event in hooks.events] == ["hi"]


@every_client
async def test_clients_are_untouched_and_share_their_connections(
    model_server: ScriptedServer, api: str, kind: str
) -> None:
    model_server.answers("one", "two", "three")
    hooks = RecordedHooks({"BeforeModel": DENY})
    async with hooks.config:
        client = made(api, kind, model_server)
        resource = client.chat if api == "chat" else client.messages
        fields = dict(vars(client))
        guarded = hooked(client, hooks.config)
        assert isinstance(guarded, type(client))
        assert type(guarded).__name__ == type(client).__name__
        assert isinstance(guarded.with_options(timeout=1), type(client))
        assert guarded._client._transport is client._client._transport
        assert await text_of(api, guarded) == ""
        assert (vars(client), len(hooks.events)) == (fields, 1)
        assert (client.chat if api == "chat" else client.messages) is resource
        assert await text_of(api, client) == "one"
        async with entered(guarded):
            assert not guarded.is_closed()
        assert guarded.is_closed()
        assert client.is_closed()
        other = made(api, kind, model_server)
        copied = hooked(other, hooks.config)
        await settled(other.close())
        assert copied.is_closed()


async def test_clients_outlive_those_that_they_were_made_from(
    model_server: ScriptedServer,
) -> None:
    model_server.answers("still here", "and here")
    hooks = RecordedHooks({"BeforeModel": None})
    async with hooks.config:
        guarded = hooked(client_of("openai", model_server), hooks.config)
        gc.collect()
        assert await text_of("chat", guarded) == "still here"
        plain = client_of("openai", model_server)
        hooked(plain, hooks.config)
        gc.collect()  # the hooked one is gone, its connections are not
        assert await text_of("chat", plain) == "and here"
        guarded.close()
        plain.close()


@every_client
async def test_sessions_of_one_client_do_not_mix(
    model_server: ScriptedServer, api: str, kind: str
) -> None:
    """Also for a client that has hooks already, for another session."""
    model_server.answers("one", "two", "three")
    hooks = RecordedHooks({"BeforeModel": None})
    async with hooks.config, closing_client(made(api, kind, model_server)) as client:
        first = hooked(client, hooks.config.session("first"))
        second = hooked(first, hooks.config.session("second"))
        for each in (first, second, second.with_options(timeout=1)):
            await text_of(api, each)
        with pytest.raises(UnknownClientError, match="hooks of another config"):
            hooked(first, Config("s-2"))
    assert [event["session_id"] for event in hooks.events] == [
        *("first", "second", "second")
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Config("s-1"), r"got a Config as the client: write hooked\(client, config\)"),
        (openai.OpenAI, r"got the class OpenAI: write hooked\(OpenAI\(\), config\)"),
        (print, "unknown client .*: expected .*; for a function use hooked_tool"),
        (openai.OpenAI(api_key="k").chat, "unknown client"),
        (Message.model_construct(), "unknown client"),
    ],
    ids=["swapped", "class", "function", "resource", "answer"],
)
def test_clients_that_are_none_say_what_to_write(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        hooked(given, Config("s-1"))
    is_unknown = message.startswith("unknown client")
    assert isinstance(caught.value, UnknownClientError) is is_unknown


class Note(BaseModel):
    """A structured answer."""

    text: str


def test_client_types_and_those_of_answers_stay(model_server: ScriptedServer) -> None:
    model_server.answers()
    answer = specific(llm_response={"text": '{"text": "no"}'})
    hooks = RecordedHooks({"BeforeModel": {"decision": "block", **answer}})
    with openai.OpenAI(api_key="k") as plain:
        assert_type(hooked(plain, hooks.config), openai.OpenAI)
    client: anthropic.Anthropic = hooked(
        client_of("anthropic", model_server), hooks.config
    )
    message = client.messages.create(**MESSAGES)
    assert type(message) is Message
    assert (message.model, message.role, message.content[0].type) == (
        *("m", "assistant", "text"),
    )
    assert type(client.beta.messages.create(**MESSAGES)) is BetaMessage
    stream = client.messages.create(**MESSAGES, stream=True)
    assert isinstance(stream, anthropic.Stream)
    with client.messages.stream(**MESSAGES) as helper:
        assert isinstance(helper, anthropic.MessageStream)
    raw = client.messages.with_raw_response.create(**MESSAGES)
    assert isinstance(raw, anthropic.APIResponse)
    assert (raw.status_code, raw.method) == (200, "POST")
    parsed = client.messages.parse(**MESSAGES, output_format=Note)
    assert isinstance(parsed, ParsedMessage)
    assert parsed.parsed_output == Note(text="no")
    asyncio.run(hooks.config.dispose())


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": lambda c: c.copy(),
    "with options": lambda c: c.with_options(default_headers={"a": "b"}),
    "another HTTP client": lambda c: c.copy(http_client=httpx2.Client()),
    "middleware": lambda c: c.with_middleware(lambda request, go_on: go_on(request)),
    "no middleware": lambda c: c.with_options(middleware=[]),
    "twice": lambda c: c.with_options(max_retries=1).copy(timeout=3),
    "a fresh one": lambda c: type(c)(api_key="k", base_url=c.base_url),
}


@pytest.mark.parametrize("api", ["chat", "anthropic"])
async def test_copies_of_a_hooked_client_are_hooked(
    model_server: ScriptedServer, subtests: pytest.Subtests, api: str
) -> None:
    hooks = RecordedHooks({"AfterModel": REDACT})
    async with hooks.config:
        for name, copied in COPIES.items():
            if api == "chat" and "middleware" in name:
                continue
            model_server.answers("one secret word")
            with subtests.test(name):
                plain = made(api, "sync", model_server)
                with copied(hooked(plain, hooks.config)) as client:
                    assert isinstance(client, type(plain))
                    assert await text_of(api, client) == "one *** word"
                    with pytest.raises(UnhookedCallError):
                        client.post("/novelties", cast_to=object)


def test_a_copy_keeps_credentials(model_server: ScriptedServer) -> None:
    model_server.answers("ok")
    given: Any = {"api_key": None, "credentials": lambda **_: AccessToken(token="t")}
    hooks = RecordedHooks({"BeforeModel": None})
    client = hooked(client_of("anthropic", model_server, **given), hooks.config)
    copied = client.with_options(timeout=3)
    assert copied.credentials is client.credentials
    assert copied.messages.create(**MESSAGES).content
    asyncio.run(hooks.config.dispose())


@pytest.mark.parametrize("before", [{}, {"previous_response_id": "resp_1"}])
@pytest.mark.parametrize("more", [{}, specific(llm_response={"text": "instead"})])
async def test_a_conversation_goes_on_after_a_response_that_hooks_gave(
    model_server: ScriptedServer, before: dict[str, Any], more: dict[str, Any]
) -> None:
    """The service knows nothing of it."""
    model_server.answers("yes")
    block = {**DENY, **more}
    hooks = RecordedHooks({"BeforeModel": {"$each": [block, block]}})
    async with hooks.config, closing_client(client_of("openai", model_server)) as plain:
        respond = hooked(plain, hooks.config).responses.create
        first = respond(**RESPONSES, **before)
        second = respond(**RESPONSES, previous_response_id=first.id)
        third = respond(**RESPONSES, previous_response_id=second.id)
    assert third.output_text == "yes"
    assert model_server.bodies == [{**RESPONSES, **before}]
    assert len({first.id, second.id, third.id}) == 3


class SigningOpenAI(openai.OpenAI):
    """Signs requests, as the providers of the SDK do."""

    signed: bytes = b""

    def _prepare_request(self, request: Any) -> None:
        type(self).signed = SigningOpenAI.signed = request.content


async def test_hooks_run_before_a_request_is_signed(
    model_server: ScriptedServer,
) -> None:
    model_server.answers("ok")
    hooks = RecordedHooks({"BeforeModel": specific(additionalContext="a note")})
    url = f"{model_server.url}/v1"
    async with hooks.config:
        with SigningOpenAI(api_key="k", base_url=url) as client:
            await text_of("chat", hooked(client, hooks.config))
    assert json.loads(SigningOpenAI.signed) == model_server.bodies[0]
    assert "a note" in str(model_server.bodies[0])


VERTEX = {"region": "r", "project_id": "p", "access_token": "t", "max_retries": 0}


def clouds(url: str) -> dict[str, tuple[Any, str]]:
    azure: Any = {"azure_endpoint": url, "api_version": "1", "api_key": "k"}
    bedrock: Any = {"api_key": "k", "aws_region": "r", "max_retries": 0}
    vertex: Any = {**VERTEX, "base_url": url}
    path = "/openai/deployments/m/chat/completions?api-version=1"
    predict = "/projects/p/locations/r/publishers/anthropic/models/m:rawPredict"
    return {
        "azure": (openai.AzureOpenAI(**azure), path),
        "async azure": (openai.AsyncAzureOpenAI(**azure), path),
        "vertex": (anthropic.AnthropicVertex(**vertex), predict),
        "async vertex": (anthropic.AsyncAnthropicVertex(**vertex), predict),
        "bedrock": (
            anthropic.AnthropicBedrock(base_url=url, **bedrock),
            "/model/m/invoke",
        ),
    }


@pytest.mark.parametrize("name", clouds("http://local"))
async def test_clients_of_clouds_pass_the_hooks(
    model_server: ScriptedServer, name: str
) -> None:
    model_server.answers("a secret", "a secret")
    plain, path = clouds(model_server.url)[name]
    api = "chat" if "azure" in name else "anthropic"
    hooks = RecordedHooks({"AfterModel": REDACT})
    answer = {**DENY, **specific(llm_response={"text": "no"})}
    blocking = RecordedHooks({"BeforeModel": answer})
    async with hooks.config, blocking.config, closing_client(plain):
        guarded = hooked(plain, hooks.config)
        assert isinstance(guarded, type(plain))
        assert await text_of(api, guarded) == "a ***"
        assert await text_of(api, guarded.copy()) == "a ***"
        assert await text_of(api, hooked(plain, blocking.config)) == "no"
        with pytest.raises(UnhookedCallError):
            await settled(guarded.post("/other:rawPredict", cast_to=object, body={}))
    assert [request.path for request in model_server.requests] == [path] * 2
    assert hooks.events[0]["llm_request"]["model"] == "m"


@pytest.mark.parametrize("kind", KINDS)
async def test_http_clients_of_httpx_pass_the_hooks(
    model_server: ScriptedServer, kind: str
) -> None:
    """The SDK takes them beside those of httpx2."""
    model_server.answers("a secret", "a secret", "a secret")
    hooks = RecordedHooks({"AfterModel": REDACT})
    http: Any = httpx.Client() if kind == "sync" else httpx.AsyncClient()
    plain = client_of("openai", model_server, kind, http_client=http)
    ways = WAYS["openai"]
    async with hooks.config, closing_client(plain) as client:
        guarded = hooked(client, hooks.config)
        assert isinstance(guarded._client, type(http))
        whole = await ways["chat create"](guarded)
        streamed = await ways["responses create stream"](guarded)
        passing = hooked(client, hooks.config, stream_mode="pass")
        passed = await ways["chat create stream"](passing)
    assert [whole.text, streamed.text, passed.text] == ["a ***", "a ***", "a secret"]


async def test_compressed_streams_are_shown_to_hooks_in_mode_pass() -> None:
    chunks = [
        {
            "id": "1",
            "object": "chat.completion.chunk",
            "choices": [
                {"index": 0, "delta": {"content": text}, "finish_reason": reason}
            ],
        }
        for text, reason in (("hel", None), ("lo", "stop"))
    ]
    content = gzip.compress(server_sent([*chunks, "data: [DONE]\n\n"]).encode())
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=headers, stream=httpx2.ByteStream(content))

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    hooks = RecordedHooks({"AfterModel": None})
    async with hooks.config:
        with openai.OpenAI(api_key="k", http_client=http) as client:
            passing = hooked(client, hooks.config, stream_mode="pass")
            shown = await WAYS["openai"]["chat create stream"](passing)
    assert shown.text == hooks.events[0]["llm_response"]["text"] == "hello"


@pytest.mark.parametrize("api", ["chat", "anthropic"])
async def test_messages_of_any_iterable_and_objects_are_seen_and_sent(
    model_server: ScriptedServer, api: str
) -> None:
    model_server.answers("first", "second")
    hooks = RecordedHooks({"BeforeModel": None})
    async with hooks.config, closing_client(made(api, "sync", model_server)) as client:
        guarded = hooked(client, hooks.config)
        answer: Any = await create(api, guarded)
        reply: Any = {"role": "assistant", "content": "first"}
        if api == "chat":
            reply = answer.choices[0].message
        messages: Any = (message for message in [*CHAT["messages"], reply])
        method, request = CREATE[api]
        method(guarded)(**{**request, "messages": messages})
    for request in (hooks.events[1]["llm_request"], model_server.bodies[1]):
        texts = [message["content"] for message in request["messages"]]
        assert texts == ["hi", "first"]


def test_tools_that_the_service_calls_are_warned_about_once(
    model_server: ScriptedServer,
) -> None:
    model_server.answers("a", "b")
    client: Any = hooked(client_of("anthropic", model_server), Config("s-1"))
    servers = [{"type": "url", "name": "a", "url": "https://mcp.example"}]
    with client, warnings_of() as log:
        for _ in range(2):
            client.beta.messages.create(**MESSAGES, mcp_servers=servers)
    assert len(log) == 1
    assert "mcp_servers" in log[0]


TOOL: Any = {
    "type": "function",
    "name": "write_file",
    "strict": False,
    "parameters": {"type": "object", "properties": {}, "additionalProperties": True},
}


@pytest.mark.parametrize("is_stream", [False, True], ids=["plain", "stream"])
async def test_openais_tool_runner_passes_the_hooks_at_each_step(
    model_server: ScriptedServer, is_stream: bool
) -> None:
    model_server.answers(Answer("", (("write_file", {"path": "a"}),)), "done")
    hooks = RecordedHooks(dict.fromkeys(("BeforeModel", "AfterModel", "BeforeTool")))

    @hooked_tool(hooks.config)
    def write_file(given: dict[str, object]) -> str:
        return f"wrote {given['path']}"

    runner = ResponsesToolRunner(functions=[RegisteredFunction(TOOL, write_file)])
    asked: Any = {"model": "m", "input": [{"role": "user", "content": "go"}]}
    async with hooks.config, closing_client(client_of("openai", model_server)) as plain:
        guarded = hooked(plain, hooks.config)
        answer = runner.run(guarded, asked, max_steps=3, stream=is_stream)
    assert answer.output_text == "done"
    step = ["BeforeModel", "AfterModel"]
    assert hooks.names == [*step, "BeforeTool", *step]
    assert "wrote a" in str(model_server.bodies[1]["input"])
