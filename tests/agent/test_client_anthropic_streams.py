"""Streams of a hooked anthropic client: held back, passed at once, or failed.

Issue 14, "Clients: one line"; protocol.md#callers (streaming).
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic, APIStatusError
from anthropic.types import Message

from hookline.agent import hooked
from hookline.testing.cases import ServerAnswer
from hookline.testing.loopback import AnsweringServer, QuietHandler, ThreadedServer
from hookline.testing.modelapi import Answer, ModelServer

from .anthropic_ways import (
    ASYNC,
    REQUEST,
    STREAM_BODY,
    SYNC,
    Hooks,
    async_client,
    config_in,
    plain_client,
    shown,
    without_secret,
)

STREAMED = [way for way in (*SYNC, *ASYNC) if "stream" in way and "runner" not in way]
ANSWER = "one secret word"


def guarded(server: ThreadedServer, hooks: Hooks) -> Anthropic:
    return hooked(plain_client(server), hooks.config)


def sse(*events: dict[str, Any]) -> ServerAnswer:
    lines = [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events]
    return ServerAnswer(
        headers={"Content-Type": "text/event-stream"}, body="".join(lines)
    )


def started(*content: dict[str, Any]) -> dict[str, Any]:
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": list(content), "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    return {"type": "message_start", "message": message}


def text_block(at: int, *texts: str) -> Iterator[dict[str, Any]]:
    block = {"type": "text", "text": ""}
    yield {"type": "content_block_start", "index": at, "content_block": block}
    for text in texts:
        delta = {"type": "text_delta", "text": text}
        yield {"type": "content_block_delta", "index": at, "delta": delta}
    yield {"type": "content_block_stop", "index": at}


ENDED: list[dict[str, Any]] = [
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 2},
    },
    {"type": "message_stop"},
]


def test_no_event_comes_before_the_hook_has_seen_the_whole_answer(
    tmp_path: Path,
) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel=None)
    with ModelServer([ANSWER]) as server:
        server.gate = threading.Event()
        client = hooked(plain_client(server), hooks.config)
        got: list[Any] = []

        def read() -> None:
            got.extend(client.messages.create(**REQUEST, stream=True))

        reader = threading.Thread(target=read)
        reader.start()
        while not server.requests:
            reader.join(0.01)
        assert (got, hooks.seen) == ([], [])
        server.gate.set()
        reader.join()
        client.close()
    assert len(got) > 3
    assert hooks.names == ["AfterModel"]


async def test_pass_shows_events_at_once_and_hooks_see_the_answer_at_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    with ModelServer([ANSWER, ANSWER]) as server:
        server.gate = threading.Event()
        async with async_client(server) as given:
            client = hooked(given, hooks.config, stream_mode="pass")
            with caplog.at_level(logging.WARNING, "hookline"):
                stream = await client.messages.create(**REQUEST, stream=True)
                first = await anext(stream)
                assert first.type == "message_start"
                assert not hooks.seen
                await asyncio.to_thread(server.gate.set)
                rest = [event async for event in stream]
                assert "secret" in shown(rest)
                other = hooked(given, hooks.config.session("b"), stream_mode="pass")
                async with other.messages.stream(**REQUEST) as helper:
                    assert await helper.get_final_text() == ANSWER
    assert hooks.names == ["AfterModel", "AfterModel"]
    assert hooks.seen[0]["llm_response"]["text"] == ANSWER
    assert caplog.text.count("stream_mode 'pass'") == 1


def test_pass_still_changes_what_is_no_stream(tmp_path: Path) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    with ModelServer([ANSWER, ANSWER]) as server:
        given = plain_client(server)
        with hooked(given, hooks.config, stream_mode="pass") as client:
            assert "secret" not in shown(client.messages.create(**REQUEST))
            server.gate = threading.Event()
            stopped = client.messages.create(**REQUEST, stream=True)
            next(stopped)
            stopped.close()
    assert len(hooks.seen) == 1  # an aborted stream is no answer


def test_after_model_in_pass_mode_can_stop(tmp_path: Path) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel={"continue": False})
    told: list[str] = []
    with ModelServer([ANSWER]) as server:
        more: Any = {"stream_mode": "pass", "on_stop": told.append}
        with hooked(plain_client(server), hooks.config, **more) as client:
            list(client.messages.create(**REQUEST, stream=True))
    assert len(told) == 1


@pytest.mark.parametrize("way", STREAMED)
async def test_a_stream_that_fails_shows_only_its_error(
    way: str, tmp_path: Path
) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    events = [started(), *list(text_block(0, "one secret"))[:2], error]
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    got = ""
    with AnsweringServer(sse(*events)) as server:
        try:
            if way in SYNC:
                with plain_client(server) as client:
                    got = SYNC[way](hooked(client, hooks.config))
            else:
                async with async_client(server) as client_:
                    got = await ASYNC[way](hooked(client_, hooks.config))
        except APIStatusError as problem:
            got = str(problem)
    assert "busy" in got
    assert "secret" not in got
    assert not hooks.seen


class BreakingHandler(QuietHandler[ThreadedServer]):
    """Closes the connection in the middle of an answer."""

    def do_POST(self) -> None:  # noqa: N802 - the base class calls it
        self.rfile.read(int(self.headers["Content-Length"]))
        body = sse(started(), *text_block(0, "one secret")).body.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body) + 100))
        self.end_headers()
        self.wfile.write(body)


def test_nothing_is_shown_of_a_stream_that_breaks_off(tmp_path: Path) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    got: list[Any] = []
    with (
        ThreadedServer(BreakingHandler) as server,
        guarded(server, hooks) as client,
        pytest.raises(httpx2.RemoteProtocolError),
    ):
        got.extend(client.messages.create(**REQUEST, stream=True))
    assert (got, hooks.seen) == ([], [])


HOSTILE: dict[str, list[dict[str, Any]]] = {
    "text in the first event": [started({"type": "text", "text": "a secret"}), *ENDED],
    "a block twice": [
        started(),
        *text_block(0, "a secret"),
        *text_block(0, "b"),
        *ENDED,
    ],
    "no end": [started(), *text_block(0, "a ", "secret")],
    "a delta without a start": [
        started(),
        *list(text_block(0, "a secret"))[1:],
        *ENDED,
    ],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_odd_streams_hide_nothing_from_the_hooks(name: str, tmp_path: Path) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    with (
        AnsweringServer(sse(*HOSTILE[name])) as server,
        guarded(server, hooks) as client,
    ):
        said = shown(list(client.messages.create(**REQUEST, stream=True)))
    assert "secret" not in said
    assert len(hooks.seen) == 1


def test_hooks_that_keep_an_odd_stream_see_what_is_shown(tmp_path: Path) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel=None)
    with (
        AnsweringServer(sse(*HOSTILE["a block twice"])) as server,
        guarded(server, hooks) as client,
    ):
        said = shown(list(client.messages.create(**REQUEST, stream=True)))
    seen = hooks.seen[0]["llm_response"]["text"]
    assert ("secret" in said) == ("secret" in seen)


def test_a_stream_that_is_read_as_http_is_changed_too(tmp_path: Path) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    with ModelServer([ANSWER]) as server, guarded(server, hooks) as client:
        found = client.post("/v1/messages", cast_to=httpx2.Response, body=STREAM_BODY)
    assert found.headers["content-type"] == "text/event-stream"
    assert "secret" not in found.text
    assert "one *** word" in found.text


def test_json_of_another_content_type_is_seen(tmp_path: Path) -> None:
    body = json.dumps({**started()["message"], "content": [
        {"type": "text", "text": ANSWER}
    ]})  # fmt: skip
    hooks = Hooks(config_in(tmp_path), AfterModel=without_secret)
    answer = ServerAnswer(headers={"Content-Type": "text/plain"}, body=body)
    with AnsweringServer(answer) as server, guarded(server, hooks) as client:
        said = client.messages.create(**REQUEST)
    assert isinstance(said, Message)
    assert "secret" not in shown(said)


@pytest.mark.parametrize("stream", [False, True])
def test_hooks_fire_once_for_all_retries(stream: bool, tmp_path: Path) -> None:
    hooks = Hooks(config_in(tmp_path), BeforeModel=None, AfterModel=without_secret)
    busy = Answer("busy", status=500)
    with ModelServer([busy, ANSWER]) as server:
        client = hooked(plain_client(server, max_retries=1), hooks.config)
        with client:
            found: Any = client.messages.create(**REQUEST, stream=stream)
            said = shown(list(found) if stream else found)
        assert len(server.requests) == 2
    assert hooks.names == ["BeforeModel", "AfterModel"]
    assert "secret" not in said


def test_an_error_of_the_service_is_raised_and_no_answer(tmp_path: Path) -> None:
    hooks = Hooks(config_in(tmp_path), BeforeModel=None, AfterModel=None)
    with ModelServer([Answer("bad", status=400)]) as server:
        client = hooked(plain_client(server), hooks.config)
        with client, pytest.raises(APIStatusError, match="bad"):
            client.messages.create(**REQUEST)
    assert hooks.names == ["BeforeModel"]


def test_thinking_and_tool_calls_stay_if_hooks_change_nothing(tmp_path: Path) -> None:
    hooks = Hooks(config_in(tmp_path), AfterModel=None)
    calls: Any = (("write", {"path": "a"}), ("read", {}))
    with (
        ModelServer([Answer("ok", calls), Answer("ok", calls)]) as server,
        guarded(server, hooks) as client,
    ):
        whole = client.messages.create(**REQUEST)
        with client.messages.stream(**REQUEST) as stream:
            final = stream.get_final_message()
    found = [block.to_dict() for block in final.content]
    assert [b["input"] for b in found if b["type"] == "tool_use"] == [
        {"path": "a"},
        {},
    ]
    assert [b.type for b in final.content] == [b.type for b in whole.content]
