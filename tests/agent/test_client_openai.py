"""A hooked client of openai: Chat Completions and Responses (issue 14, clients)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, assert_type

import openai
import pytest

from hookline import Config
from hookline.agent import hooked
from hookline.errors import UnknownClientError
from hookline.testing.modelapi import Answer, ModelServer

from .openai_ways import (
    CHAT,
    RESPONSES,
    STREAMS,
    WAYS,
    Seen,
    Way,
    chat,
    chat_helper,
    chat_parse,
    chat_raw_stream,
    chat_stream,
    client_of,
    config_with,
    entered,
    got,
    listed,
    responses,
    responses_beta_stream,
    responses_helper,
    responses_stream,
    said,
)

KINDS = ("sync", "async")
every_kind = pytest.mark.parametrize("kind", KINDS)
every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("read_file", "write_file")
]
FLAT_TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": name, "strict": False, "parameters": {}}
    for name in ("read_file", "write_file")
]


async def play(
    config: Config, kind: str, way: Way, answers: list[Any], **more: Any
) -> tuple[Seen, ModelServer]:
    """Call a model once, in one way; what was seen, and the server."""
    options = more.pop("options", {})
    with ModelServer(answers) as server:
        async with config, entered(client_of(server, kind)) as client:
            seen = await way(hooked(client, config, **options), **more)
    return seen, server


@every_kind
@every_way
async def test_every_way_fires_the_three_model_events_once(
    tmp_path: Path, kind: str, way: Way
) -> None:
    names: list[str] = []
    events = ("BeforeToolSelection", "BeforeModel", "AfterModel")
    hook = dict.fromkeys(events, lambda event: names.append(event["hook_event_name"]))
    seen, server = await play(config_with(tmp_path, **hook), kind, way, ["all done"])
    assert seen.text == "all done"
    assert names == list(events)
    assert len(server.requests) == 1


@every_kind
@every_way
async def test_what_after_model_removes_is_in_nothing_that_the_sdk_shows(
    tmp_path: Path, kind: str, way: Way
) -> None:
    """No chunk, no final message, no snapshot (protocol.md#events, AfterModel)."""
    config = config_with(tmp_path, AfterModel=_masked)
    seen, _ = await play(config, kind, way, ["the secret is out"])
    assert seen.text == "the *** is out"
    assert "secret" not in seen


def _masked(event: dict[str, Any]) -> dict[str, Any]:
    text = event["llm_response"]["text"].replace("secret", "***")
    return {"hookSpecificOutput": {"llm_response": {"text": text}}}


@every_kind
@every_way
async def test_a_changed_request_is_what_is_sent(
    tmp_path: Path, kind: str, way: Way
) -> None:
    change = said(
        "BeforeModel",
        llm_request={"messages": [{"role": "user", "content": "be kind"}]},
        additionalContext="a note",
    )
    config = config_with(tmp_path, BeforeModel=change)
    _, server = await play(config, kind, way, ["ok"])
    sent = str(server.requests[0].body)
    assert "be kind" in sent
    assert "a note" in sent
    assert "'hi'" not in sent


@every_kind
@every_way
async def test_a_blocked_call_is_answered_in_the_models_place(
    tmp_path: Path, kind: str, way: Way
) -> None:
    def block(_: Any) -> dict[str, Any]:
        answer = {"llm_response": {"text": "from the cache"}}
        return {"decision": "block", "reason": "cached", "hookSpecificOutput": answer}

    config = config_with(tmp_path, BeforeModel=block)
    seen, server = await play(config, kind, way, ["from the model"])
    assert seen.text == "from the cache"
    assert server.requests == []


BLOCK = {"decision": "block", "reason": "not on Sundays"}


# These two raise the SDK's own error for an answer that was filtered.
RAISING: list[Way] = [chat_helper, chat_parse]
QUIET = [way for way in WAYS if way not in RAISING]


@every_kind
@pytest.mark.parametrize("way", RAISING, ids=lambda way: way.__name__)
async def test_parsing_a_blocked_call_raises_the_sdks_error_for_filtered_answers(
    tmp_path: Path, kind: str, way: Way
) -> None:
    config = config_with(tmp_path, BeforeModel=lambda _: BLOCK)
    with pytest.raises(openai.ContentFilterFinishReasonError):
        await play(config, kind, way, ["no"])


@every_kind
@pytest.mark.parametrize("way", QUIET, ids=lambda way: way.__name__)
async def test_a_blocked_call_gives_an_empty_filtered_answer_with_the_reason(
    tmp_path: Path, kind: str, way: Way
) -> None:
    after: list[Any] = []
    config = config_with(tmp_path, BeforeModel=lambda _: BLOCK, AfterModel=after.append)
    seen, server = await play(config, kind, way, ["no"])
    assert seen.text == ""
    assert "content_filter" in seen
    assert "not on Sundays" in seen
    assert (server.requests, after) == ([], [])


BLOCKS: dict[str, dict[str, Any]] = {
    "blocked": {"decision": "block", "reason": "no"},
    "answered": {
        "decision": "block",
        "hookSpecificOutput": {"llm_response": {"text": "in its place"}},
    },
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("before", [{}, {"previous_response_id": "resp_1"}])
async def test_a_conversation_goes_on_after_a_response_that_hooks_gave(
    tmp_path: Path, block: dict[str, Any], before: dict[str, Any]
) -> None:
    """The service knows nothing of it."""
    said = iter([block, block, None])
    async with config_with(tmp_path, BeforeModel=lambda _: next(said)) as config:
        with ModelServer(["yes"]) as server, client_of(server, "sync") as client:
            create = hooked(client, config).responses.create
            first = create(**RESPONSES, **before)
            second = create(**RESPONSES, previous_response_id=first.id)
            third = create(**RESPONSES, previous_response_id=second.id)
    assert third.output_text == "yes"
    assert [one.body for one in server.requests] == [{**RESPONSES, **before}]
    assert len({first.id, second.id, third.id}) == 3


@every_kind
@pytest.mark.parametrize("way", [chat, chat_stream, responses, responses_helper])
async def test_a_stop_answers_like_a_block_and_calls_on_stop(
    tmp_path: Path, kind: str, way: Way
) -> None:
    stop = {"continue": False, "stopReason": "budget spent"}
    stops: list[str] = []
    config = config_with(tmp_path, BeforeModel=lambda _: stop)
    options = {"on_stop": stops.append}
    seen, server = await play(config, kind, way, ["no"], options=options)
    assert (seen.text, stops, server.requests) == ("", ["budget spent"], [])
    assert "content_filter" in seen


@every_kind
@pytest.mark.parametrize("way", [chat, chat_stream, chat_helper, responses_stream])
async def test_a_stop_after_the_model_drops_the_tool_calls(
    tmp_path: Path, kind: str, way: Way
) -> None:
    """Loops over tool calls end, and what the model said stays."""
    stops: list[str] = []
    stop = {"continue": False, "stopReason": "enough"}
    config = config_with(tmp_path, AfterModel=lambda _: stop)
    answer = Answer("so far", (("write_file", {"path": "a"}),))
    options = {"on_stop": stops.append}
    seen, _ = await play(config, kind, way, [answer], options=options)
    assert (seen.text, stops) == ("so far", ["enough"])
    assert "write_file" not in seen
    assert "tool_calls'" not in seen


@every_kind
@pytest.mark.parametrize(
    ("way", "tools"),
    [
        (chat, TOOLS),
        (chat_stream, TOOLS),
        (chat_helper, TOOLS),
        (chat_raw_stream, TOOLS),
        (responses, FLAT_TOOLS),
        (responses_stream, FLAT_TOOLS),
        (responses_helper, FLAT_TOOLS),
        (responses_beta_stream, FLAT_TOOLS),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("mode", ["buffer", "pass"])
@pytest.mark.parametrize("hears", [False, True], ids=["", "AfterModel"])
async def test_a_restricted_call_offers_and_accepts_only_the_allowed_tools(
    tmp_path: Path, kind: str, way: Way, tools: list[Any], mode: str, hears: bool
) -> None:
    """protocol.md#callers: a call outside the list is held back in every mode."""
    only_read = said(
        "BeforeToolSelection",
        toolConfig={"mode": "AUTO", "allowedFunctionNames": ["read_file"]},
    )
    more: Any = {"AfterModel": lambda _: None} if hears else {}
    config = config_with(tmp_path, BeforeToolSelection=only_read, **more)
    calls = (("write_file", {"path": "a"}), ("read_file", {"path": "b"}))
    seen, server = await play(
        config,
        kind,
        way,
        [Answer("", calls)],
        options={"stream_mode": mode},
        tools=tools,
    )
    choice = server.requests[0].body["tool_choice"]
    assert "write_file" not in str(choice)
    assert "read_file" in seen
    assert "write_file" not in seen


@every_kind
@pytest.mark.parametrize("way", STREAMS, ids=lambda way: way.__name__)
async def test_streams_without_after_model_hooks_are_the_services_own(
    tmp_path: Path, kind: str, way: Way
) -> None:
    config = config_with(tmp_path, BeforeModel=lambda _: None)
    with_hooks, _ = await play(config, kind, way, ["one two three"])
    with ModelServer(["one two three"]) as server:
        async with entered(client_of(server, kind)) as client:
            without = await way(client)
    assert repr(with_hooks.shown) == repr(without.shown)


@every_kind
@pytest.mark.parametrize("way", STREAMS, ids=lambda way: way.__name__)
async def test_unchanged_streams_keep_their_chunks(
    tmp_path: Path, kind: str, way: Way
) -> None:
    config = config_with(tmp_path, AfterModel=lambda _: None)
    seen, _ = await play(config, kind, way, ["one two three"])
    assert seen.text == "one two three"
    assert "delta='two '" in seen or "content='two '" in seen


@every_kind
async def test_a_stream_is_held_back_until_the_hooks_have_spoken(
    tmp_path: Path, kind: str
) -> None:
    order: list[str] = []
    config = config_with(tmp_path, AfterModel=lambda _: order.append("hook"))
    with ModelServer(["one two three"]) as server:
        async with config, entered(client_of(server, kind)) as client:
            create = hooked(client, config).chat.completions.create
            stream = await got(create(**CHAT, stream=True))
            order.extend("chunk" for _ in await listed(stream))
    assert order[0] == "hook"
    assert order.count("hook") == 1


@every_kind
@pytest.mark.parametrize("request_of", [CHAT, RESPONSES], ids=["chat", "responses"])
async def test_stream_mode_pass_shows_chunks_before_the_hooks_run(
    tmp_path: Path, kind: str, request_of: dict[str, Any]
) -> None:
    """Pass lets them through at once; AfterModel fires at the end.

    protocol.md#callers
    """
    order: list[str] = []
    seen: list[str] = []

    def listen(event: dict[str, Any]) -> None:
        order.append("hook")
        seen.append(event["llm_response"]["text"])

    config = config_with(tmp_path, AfterModel=listen)
    with ModelServer(["one two three"]) as server:
        server.gate = threading.Event()
        async with config, entered(client_of(server, kind)) as client:
            passing = hooked(client, config, stream_mode="pass")
            api = passing.chat.completions if "messages" in request_of else None
            create = (api or passing.responses).create
            stream = await got(create(**request_of, stream=True))
            # The server waits after the first chunk: it is here before the rest.
            if kind == "sync":
                next(stream)
            else:
                await stream.__anext__()
            order.append("first")
            server.gate.set()
            await listed(stream)
    assert seen == ["one two three"]
    assert order == ["first", "hook"]


async def test_a_stream_that_is_left_early_fires_no_after_model(tmp_path: Path) -> None:
    """AfterModel never fires for an aborted stream (protocol.md#callers)."""
    after: list[Any] = []
    config = config_with(tmp_path, AfterModel=after.append)
    with ModelServer(["one two three"]) as server:
        server.gate = threading.Event()
        async with config, entered(client_of(server, "sync")) as client:
            create = hooked(client, config, stream_mode="pass").responses.create
            with create(**RESPONSES, stream=True) as stream:
                next(iter(stream))
            server.gate.set()
    assert after == []


def test_the_class_of_the_client_stays() -> None:
    with openai.OpenAI(api_key="k") as client:
        config = Config("s-1")
        made = hooked(client, config)
        assert_type(made, openai.OpenAI)
        assert isinstance(made, openai.OpenAI)
        assert type(made).__name__ == "OpenAI"
        assert isinstance(made.with_options(timeout=1), openai.OpenAI)
        assert type(client) is openai.OpenAI


def test_other_things_of_the_sdk_are_no_clients() -> None:
    with openai.OpenAI(api_key="k") as client, pytest.raises(UnknownClientError):
        hooked(client.chat, Config("s-1"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Config("s-1"), r"got a Config as the client: write hooked\(client, config\)"),
        (openai.OpenAI, r"got the class OpenAI: write hooked\(OpenAI\(\), config\)"),
        (print, "unknown client .*: expected .*; for a function use hooked_tool"),
    ],
    ids=["swapped", "class", "function"],
)
def test_what_is_no_client_says_what_to_write(given: Any, message: str) -> None:
    """Issue 17."""
    with pytest.raises(TypeError, match=message):
        hooked(given, Config("s-1"))
