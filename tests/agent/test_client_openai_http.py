"""The requests and answers of a hooked client of openai (issue 14, clients)."""

from __future__ import annotations

import gc
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import openai
import pytest
from openai import OpenAI
from openai.lib.responses_tool_runner import RegisteredFunction, ResponsesToolRunner

from hookline import Config
from hookline.agent import Agent, ChatSession, OpenAIModel, hooked, hooked_tool
from hookline.errors import UnknownClientError
from hookline.testing.modelapi import Answer, ModelServer

from .openai_ways import (
    CHAT,
    RESPONSES,
    chat,
    chat_stream,
    client_of,
    config_with,
    entered,
    got,
    responses,
    responses_raw,
    responses_stream,
    said,
)
from .scenes import config_of, runs

KINDS = ("sync", "async")
every_kind = pytest.mark.parametrize("kind", KINDS)


class Cut(httpx2.SyncByteStream):
    """A stream whose connection is cut."""

    def __iter__(self) -> Iterator[bytes]:
        yield streaming(chunk("unseen "), done=False)
        raise httpx2.ReadError("the connection was cut")


def answering(content: bytes | Cut, **headers: str) -> Any:
    """A plain client that gets one answer to everything."""
    sent = content if isinstance(content, Cut) else httpx2.ByteStream(content)

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=headers, stream=sent)

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    return OpenAI(api_key="k", base_url="http://l/v1", max_retries=0, http_client=http)


def streaming(*events: dict[str, Any], done: bool = True) -> bytes:
    """Server-sent events, as the services write them."""
    sent = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return (sent + ("data: [DONE]\n\n" if done else "")).encode()


def chunk(content: str, reason: str | None = None) -> dict[str, Any]:
    delta = {"role": "assistant", "content": content}
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "1", "object": "chat.completion.chunk", "choices": [choice]}


SSE = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}


@every_kind
async def test_the_hooks_of_a_call_run_once_for_all_its_retries(
    tmp_path: Path, kind: str
) -> None:
    names: list[str] = []
    hooks = dict.fromkeys(
        ("BeforeModel", "AfterModel"), lambda e: names.append(e["hook_event_name"])
    )
    config = config_with(tmp_path, **hooks)
    with ModelServer([Answer("busy", status=500), "done"]) as server:
        async with config, entered(client_of(server, kind, max_retries=1)) as client:
            seen = await chat(hooked(client, config))
    assert seen.text == "done"
    assert names == ["BeforeModel", "AfterModel"]
    assert len(server.requests) == 2


@every_kind
async def test_an_error_of_the_service_is_raised_and_fires_no_after_model(
    tmp_path: Path, kind: str
) -> None:
    after: list[Any] = []
    config = config_with(tmp_path, AfterModel=after.append)
    with ModelServer([Answer("no such model", status=404)]) as server:
        async with config, entered(client_of(server, kind)) as client:
            with pytest.raises(openai.NotFoundError, match="no such model"):
                await chat_stream(hooked(client, config))
    assert after == []


class SigningOpenAI(OpenAI):
    """Signs requests, as the providers of the SDK do."""

    signed: bytes = b""

    def _prepare_request(self, request: Any) -> None:
        type(self).signed = SigningOpenAI.signed = request.content


async def test_hooks_run_before_a_request_is_signed(tmp_path: Path) -> None:
    change = said("BeforeModel", additionalContext="a note")
    config = config_with(tmp_path, BeforeModel=change)
    with ModelServer(["ok"]) as server:
        url = f"{server.url}/v1"
        async with config:
            with SigningOpenAI(api_key="k", base_url=url) as client:
                await chat(hooked(client, config))
    assert json.loads(SigningOpenAI.signed) == server.requests[0].body
    assert "a note" in str(server.requests[0].body)


@every_kind
async def test_azure_clients_pass_the_hooks(tmp_path: Path, kind: str) -> None:
    config = config_with(
        tmp_path, AfterModel=said("AfterModel", llm_response={"text": "changed"})
    )
    make: Any = openai.AzureOpenAI if kind == "sync" else openai.AsyncAzureOpenAI
    with ModelServer(["one", "two"]) as server:
        azure = make(azure_endpoint=server.url, api_version="1", api_key="k")
        async with config, entered(azure) as client:
            made = hooked(client, config)
            assert isinstance(made, make)
            texts = [(await chat(made)).text, (await responses(made)).text]
    assert texts == ["changed", "changed"]
    assert "/deployments/m/chat/completions" in server.requests[0].path


@every_kind
async def test_http_clients_of_httpx_pass_the_hooks(tmp_path: Path, kind: str) -> None:
    """The SDK takes them beside those of httpx2."""
    config = config_with(
        tmp_path, AfterModel=said("AfterModel", llm_response={"text": "changed"})
    )
    http: Any = httpx.Client() if kind == "sync" else httpx.AsyncClient()
    with ModelServer(["one", "two", "three"]) as server:
        async with config, entered(client_of(server, kind, http_client=http)) as client:
            made = hooked(client, config)
            assert isinstance(made._client, type(http))
            plain = await chat(made)
            streamed = await responses_stream(made)
            passed = await chat_stream(hooked(client, config, stream_mode="pass"))
    assert [plain.text, streamed.text, passed.text] == ["changed", "changed", "three"]


@every_kind
async def test_the_client_itself_stays_as_it_was(tmp_path: Path, kind: str) -> None:
    seen: list[Any] = []
    config = config_with(tmp_path, BeforeModel=seen.append)
    with ModelServer(["one", "two"]) as server:
        async with config, entered(client_of(server, kind)) as client:
            resource, fields = client.chat, dict(vars(client))
            made = hooked(client, config)
            await chat(made)
            assert len(seen) == 1
            assert vars(client) == fields
            assert made._client._transport is client._client._transport
            assert made.chat is not resource
            await chat(client)
    assert len(seen) == 1


@every_kind
async def test_closing_either_client_closes_the_connections_of_both(kind: str) -> None:
    config = Config("s-1")
    with ModelServer() as server:
        client = client_of(server, kind)
        async with entered(hooked(client, config)) as made:
            assert not made.is_closed()
        assert client.is_closed()
        other = client_of(server, kind)
        made = hooked(other, config)
        await got(other.close())
        assert made.is_closed()


async def test_a_hooked_client_outlives_the_one_that_it_was_made_from(
    tmp_path: Path,
) -> None:
    config = config_with(tmp_path, BeforeModel=lambda _: None)
    with ModelServer(["still here", "and here"]) as server:
        async with config:
            made = hooked(client_of(server, "sync"), config)
            gc.collect()
            assert (await chat(made)).text == "still here"
            kept = client_of(server, "sync")
            hooked(kept, config)
            gc.collect()  # the hooked one is gone, its connections are not
            assert (await chat(kept)).text == "and here"
            made.close()
            kept.close()


@pytest.mark.parametrize("is_stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("request_of", [CHAT, RESPONSES], ids=["chat", "responses"])
@pytest.mark.parametrize("content", [b"<p>sk-123</p>", b'"sk-123"', b'{"x": "sk-123"}'])
@pytest.mark.parametrize("headers", [SSE, JSON], ids=["events", "json"])
async def test_an_unreadable_answer_is_withheld_if_a_hook_asks_for_that(
    tmp_path: Path,
    is_stream: bool,
    request_of: dict[str, Any],
    content: bytes,
    headers: dict[str, str],
) -> None:
    """``onError: block`` (issue 12.5)."""
    hook = {"AfterModel": runs("exit 1", onError="block")}
    data = b"data: " + content + b"\n\n" if headers is SSE else content
    async with config_of(tmp_path, hook, seen=False) as config:
        with answering(data, **headers) as client:
            made = hooked(client, config)
            api = made.chat.completions if request_of is CHAT else made.responses
            raw = api.with_raw_response.create(**request_of, stream=is_stream)
    assert b"sk-123" not in raw.http_response.read()


async def test_a_stream_that_fails_shows_nothing_but_its_error(tmp_path: Path) -> None:
    after: list[Any] = []
    problem = {"error": {"message": "overloaded"}}
    sent = streaming(chunk("unseen "), problem)
    async with config_with(tmp_path, AfterModel=after.append) as config:
        with answering(sent, **SSE) as client:
            create = hooked(client, config).chat.completions.create
            with pytest.raises(openai.APIError, match="overloaded"):
                next(iter(create(**CHAT, stream=True)))
    assert after == []


async def test_an_error_in_a_stream_brings_nothing_else_with_it(tmp_path: Path) -> None:
    problem = {**chunk("unseen"), "error": {"message": "overloaded"}}
    async with config_with(tmp_path, AfterModel=lambda _: None) as config:
        with answering(streaming(problem), **SSE) as client:
            api = hooked(client, config).chat.completions.with_streaming_response
            with api.create(**CHAT, stream=True) as raw:
                lines = list(raw.iter_lines())
    assert lines == ['data: {"error": {"message": "overloaded"}}', ""]


UNREADABLE = {
    "null": b"data: null\n\n",
    "text": b'data: "secret"\n\n',
    "list": b'data: ["secret"]\n\n',
    "no JSON": b"data: {secret\n\n",
    "comment": b": secret\n\n",
    "nothing": b"",
}


@pytest.mark.parametrize("event", UNREADABLE.values(), ids=UNREADABLE)
async def test_events_that_no_hook_can_read_are_left_out(
    tmp_path: Path, event: bytes
) -> None:
    """They keep no hook from reading the others, and no cut end does."""

    def change(given: Any) -> Any:
        text = given["llm_response"]["text"].replace("secret", "changed")
        return {"hookSpecificOutput": {"llm_response": {"text": text}}}

    secret, end = streaming(chunk("secret"), done=False), b'data: {"choices": [{"se'
    async with config_with(tmp_path, AfterModel=change) as config:
        with answering(event + secret + event + end, **SSE) as client:
            changed = await chat_stream(hooked(client, config))
    sent = event + streaming(chunk("fine")) + secret
    async with config_with(tmp_path, AfterModel=lambda _: None) as config:
        with answering(sent, **SSE) as client:
            api = hooked(client, config).chat.completions.with_raw_response
            raw = api.create(**CHAT, stream=True).http_response.read()
    assert changed.text == "changed"
    assert "secret" not in changed
    assert raw == streaming(chunk("fine"))


async def test_a_stream_that_is_cut_shows_nothing(tmp_path: Path) -> None:
    after: list[Any] = []
    async with config_with(tmp_path, AfterModel=after.append) as config:
        with answering(Cut(), **SSE) as client:
            create = hooked(client, config).chat.completions.create
            with pytest.raises(openai.APIConnectionError):
                create(**CHAT, stream=True)
    assert after == []


SAYING_MORE: dict[str, dict[str, Any]] = {
    "delta": {"type": "response.output_text.delta", "delta": "secret"},
    "text": {"type": "response.output_text.done", "text": "secret"},
    "part": {
        "type": "response.content_part.done",
        "part": {"type": "output_text", "text": "secret"},
    },
    "item": {
        "type": "response.output_item.done",
        "item": {
            "type": "message",
            "content": [{"type": "output_text", "text": "secret"}],
        },
    },
}


@pytest.mark.parametrize("more", SAYING_MORE.values(), ids=SAYING_MORE)
async def test_events_that_say_more_than_the_whole_response_are_not_shown(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    part = {"type": "output_text", "text": "harmless", "annotations": []}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [part]}
    whole = {
        "id": "r",
        "object": "response",
        "status": "completed",
        "output": [message],
    }
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "output": []}},
        {"type": "response.output_text.delta", "delta": "harmless"},
        {"output_index": 0, **more},
        {"type": "response.completed", "response": whole},
    ]
    async with config_with(tmp_path, AfterModel=lambda _: None) as config:
        with answering(streaming(*events, done=False), **SSE) as client:
            seen = await responses_stream(hooked(client, config))
    assert seen.text == "harmless"
    assert "secret" not in seen


async def test_a_stream_with_the_type_of_something_else_is_held_all_the_same(
    tmp_path: Path,
) -> None:
    """The SDK reads it as a stream, whatever its type."""
    change = said("AfterModel", llm_response={"text": "changed"})
    sent = streaming(chunk("secret", "stop"))
    async with config_with(tmp_path, AfterModel=change) as config:
        with answering(sent, **JSON) as client:
            seen = await chat_stream(hooked(client, config))
    assert seen.text == "changed"
    assert "secret" not in seen


async def test_a_service_that_repeats_its_answer_shows_only_the_changed_one(
    tmp_path: Path,
) -> None:
    part = {"type": "output_text", "text": "secret", "annotations": []}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [part]}
    whole = {"object": "response", "output": [message], "output_text": "secret"}
    change = said("AfterModel", llm_response={"text": "changed"})
    async with config_with(tmp_path, AfterModel=change) as config:
        with answering(json.dumps(whole).encode(), **JSON) as client:
            seen = await responses_raw(hooked(client, config))
    assert seen.text == "changed"
    assert "secret" not in seen


async def test_compressed_streams_are_shown_to_hooks_in_pass_mode(
    tmp_path: Path,
) -> None:
    texts: list[str] = []
    sent = gzip.compress(streaming(chunk("hel"), chunk("lo", "stop")))
    listen = lambda e: texts.append(e["llm_response"]["text"])  # noqa: E731
    async with config_with(tmp_path, AfterModel=listen) as config:
        with answering(sent, **SSE, **{"content-encoding": "gzip"}) as client:
            seen = await chat_stream(hooked(client, config, stream_mode="pass"))
    assert (seen.text, texts) == ("hello", ["hello"])


@every_kind
async def test_usage_and_id_stay_on_a_changed_answer(tmp_path: Path, kind: str) -> None:
    config = config_with(
        tmp_path, AfterModel=said("AfterModel", llm_response={"text": "changed"})
    )
    with ModelServer(["one"]) as server:
        async with config, entered(client_of(server, kind)) as client:
            found = await got(hooked(client, config).responses.create(**RESPONSES))
    assert found.usage.total_tokens == 3
    assert found.output_text == "changed"
    assert found.id == "resp_local"


async def test_objects_of_the_sdk_in_the_history_are_read_and_sent(
    tmp_path: Path,
) -> None:
    seen: list[Any] = []
    config = config_with(tmp_path, BeforeModel=seen.append)
    with ModelServer(["first", "second"]) as server:
        async with config, entered(client_of(server, "sync")) as client:
            create = hooked(client, config).chat.completions.create
            message = create(**CHAT).choices[0].message
            create(model="m", messages=[*CHAT["messages"], message])
    texts = [m["content"] for m in seen[1]["llm_request"]["messages"]]
    assert texts == ["hi", "first"]
    assert server.requests[1].body["messages"][1]["content"] == "first"


async def test_two_conversations_of_one_client_do_not_mix(tmp_path: Path) -> None:
    """Also for a client that has hooks already, for another session."""
    seen: list[str] = []
    config = config_with(tmp_path, BeforeModel=lambda e: seen.append(e["session_id"]))
    with ModelServer(["one", "two", "three"]) as server:
        async with config, entered(client_of(server, "async")) as client:
            first = hooked(client, config.session("first"))
            second = hooked(first, config.session("second"))
            for made in (first, second, second.with_options(timeout=1)):
                await chat(made)
            with pytest.raises(UnknownClientError, match="hooks of another config"):
                hooked(first, Config("s-2"))
    assert seen == ["first", "second", "second"]


TOOL: Any = {
    "type": "function",
    "name": "write_file",
    "strict": False,
    "parameters": {"type": "object", "properties": {}, "additionalProperties": True},
}


@pytest.mark.parametrize("is_stream", [False, True], ids=["plain", "stream"])
async def test_the_sdks_tool_runner_passes_the_hooks_at_each_step(
    tmp_path: Path, is_stream: bool
) -> None:
    names: list[str] = []
    events = ("BeforeModel", "AfterModel", "BeforeTool")
    note = lambda e: names.append(e["hook_event_name"])  # noqa: E731
    config = config_with(tmp_path, **dict.fromkeys(events, note))

    @hooked_tool(config)
    def write_file(given: dict[str, object]) -> str:
        return f"wrote {given['path']}"

    runner = ResponsesToolRunner(functions=[RegisteredFunction(TOOL, write_file)])
    with ModelServer([Answer("", (("write_file", {"path": "a"}),)), "done"]) as server:
        async with config, entered(client_of(server, "sync")) as client:
            asked: Any = {"model": "m", "input": [{"role": "user", "content": "go"}]}
            made = hooked(client, config)
            found = runner.run(made, asked, max_steps=3, stream=is_stream)
    assert found.output_text == "done"
    step = ["BeforeModel", "AfterModel"]
    assert names == [*step, "BeforeTool", *step]
    assert "wrote a" in str(server.requests[1].body["input"])


@every_kind
async def test_a_model_of_the_agent_takes_both_clients(
    tmp_path: Path, kind: str
) -> None:
    """``OpenAIModel``, with the hooks of the chat itself."""

    def write_file(path: str) -> str:
        return f"wrote {path}"

    config = config_with(
        tmp_path, AfterModel=said("AfterModel", llm_response={"text": "changed"})
    )
    with ModelServer(["one two"]) as server:
        async with config, entered(client_of(server, kind)) as client:
            reply = await ChatSession(config, OpenAIModel(client, "m")).send("hi")
    assert reply.text == "changed"
    plain = Config("s-2", tmp_path)
    calls = Answer("", (("write_file", {"path": "a"}),))
    with ModelServer([calls, "all done"]) as server:
        async with plain, entered(client_of(server, kind)) as client:
            agent = Agent(plain, OpenAIModel(client, "m"), [write_file])
            result = await agent.run("go")
    assert result.text == "all done"
    assert "wrote a" in str(server.requests[1].body["messages"])


ONLY_READ = said(
    "BeforeToolSelection",
    toolConfig={"mode": "AUTO", "allowedFunctionNames": ["read_file"]},
)
WRITE: dict[str, Any] = {
    "type": "function_call", "id": "f", "call_id": "c", "name": "write_file",
    "arguments": "{}", "status": "completed",
}  # fmt: skip
WRITE_CHUNK = {
    "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
    "choices": [{
        "index": 0, "finish_reason": None,
        "delta": {"tool_calls": [{
            "index": 0, "id": "c", "type": "function",
            "function": {"name": "write_file", "arguments": "{}"},
        }]},
    }],
}  # fmt: skip


def item_done(item: dict[str, Any]) -> dict[str, Any]:
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    return {**done, "sequence_number": 0}


def completed(*output: dict[str, Any]) -> dict[str, Any]:
    whole = {
        "id": "r", "object": "response", "created_at": 1, "model": "m", "tools": [],
        "status": "completed", "output": output, "parallel_tool_calls": True,
        "tool_choice": "auto",
    }  # fmt: skip
    return {"type": "response.completed", "sequence_number": 1, "response": whole}


READ = {**WRITE, "name": "read_file"}
WITHOUT_ID = {name: value for name, value in WRITE.items() if name != "call_id"}
HIDDEN_CALLS: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "unreadable chunk": (chat_stream, [{"choices": "x"}, WRITE_CHUNK]),
    "other than at the end": (responses_stream, [item_done(WRITE), completed(READ)]),
    "after the end": (responses_stream, [completed(READ), item_done(WRITE)]),
    "without an id": (responses_stream, [item_done(WITHOUT_ID), completed(WITHOUT_ID)]),
}


@pytest.mark.parametrize("mode", ["buffer", "pass"])
@pytest.mark.parametrize("hidden", HIDDEN_CALLS)
async def test_no_odd_stream_gets_a_call_past_the_restriction_of_tools(
    tmp_path: Path, hidden: str, mode: str
) -> None:
    """protocol.md#callers: a call outside the list is held back in every mode."""
    way, events = HIDDEN_CALLS[hidden]
    config = config_with(tmp_path, BeforeToolSelection=ONLY_READ)
    client = answering(streaming(*events, done=False), **SSE)
    async with config:
        seen = await way(hooked(client, config, stream_mode=mode))
    assert "write_file" not in seen
