"""A hooked google-genai client, with the SDK's automatic function calling."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest
from google import genai
from google.genai import types

from hookline import Config
from hookline.agent import hooked, hooked_tool, session_of
from hookline.agent.client import ClientHooks
from hookline.agent.client_genai import GenAICall
from hookline.agent.decorator import iterate_to_end
from hookline.errors import UnseenResponseError
from hookline.testing.modelapi import Answer, ModelServer

from .scenes import BROKEN, Hook, config_of, events, names, runs, says, specific
from .servers import genai_client

TOOL_CALL = Answer("", (("write_file", {"path": "a.txt", "size": 3}),))
WAYS = ("sync", "stream", "aio", "aio stream", "chat", "chat stream", "aio chat")
ALL_EVENTS = (
    "BeforeToolSelection",
    "BeforeModel",
    "AfterModel",
    "BeforeTool",
    "AfterTool",
)


class Files:
    """A callable for the SDK to run, and what it was called with."""

    def __init__(self) -> None:
        self.written: list[tuple[str, int]] = []
        self.threads: set[str] = set()

    def tool(self) -> Callable[..., str]:
        def write_file(path: str, size: int) -> str:
            """Write a file."""
            self.written.append((path, size))
            self.threads.add(threading.current_thread().name)
            return f"wrote {path}"

        return write_file


async def generate(client: genai.Client, way: str, tools: list[Any]) -> str:
    """Generate in one of the SDK's ways; the text of all that came back."""
    config = types.GenerateContentConfig(tools=tools, temperature=0.5)
    given: dict[str, Any] = {"model": "m", "contents": "go", "config": config}
    if way == "sync":
        return client.models.generate_content(**given).text or ""
    if way == "stream":
        return _joined(list(client.models.generate_content_stream(**given)))
    if way == "aio":
        return (await client.aio.models.generate_content(**given)).text or ""
    if way == "aio stream":
        stream = await client.aio.models.generate_content_stream(**given)
        return _joined([chunk async for chunk in stream])
    if way == "aio chat":
        chat = client.aio.chats.create(model="m", config=config)
        return (await chat.send_message("go")).text or ""
    plain = client.chats.create(model="m", config=config)
    if way == "chat stream":
        return _joined(list(plain.send_message_stream("go")))
    return plain.send_message("go").text or ""


def _joined(chunks: list[types.GenerateContentResponse]) -> str:
    texts = []
    for chunk in chunks:
        content = chunk.candidates[0].content if chunk.candidates else None
        parts = (content.parts if content else None) or []
        texts += [part.text or "" for part in parts]
    return "".join(texts)


async def play(
    config: Config,
    way: str,
    answers: list[Answer | str],
    **more: Any,
) -> tuple[str, ModelServer, Files]:
    files = Files()
    with ModelServer(answers) as server:
        client = genai_client(server)
        async with config:
            text = await generate(hooked(client, config, **more), way, [files.tool()])
        await client.aio.aclose()
        client.close()
    return text, server, files


@pytest.mark.parametrize("way", WAYS)
async def test_every_inner_call_passes_its_hooks(tmp_path: Path, way: str) -> None:
    """Automatic function calling: tool hooks for callables, model hooks for each."""
    config = config_of(tmp_path, dict.fromkeys(ALL_EVENTS, runs("true")))
    text, server, files = await play(config, way, [TOOL_CALL, "all done"])
    assert text == "all done"
    assert files.written == [("a.txt", 3)]
    assert len(server.requests) == 2
    model = ["BeforeToolSelection", "BeforeModel", "AfterModel"]
    assert names(tmp_path) == [*model, "BeforeTool", "AfterTool", *model]
    assert events(tmp_path)[3]["tool_input"] == {"path": "a.txt", "size": 3}


@pytest.mark.parametrize("way", WAYS)
async def test_a_blocked_function_is_not_called_and_the_model_gets_the_reason(
    tmp_path: Path, way: str
) -> None:
    config = config_of(tmp_path, {"BeforeTool": runs("echo no files >&2; exit 2")})
    text, server, files = await play(config, way, [TOOL_CALL, "sorry"])
    assert (text, files.written) == ("sorry", [])
    assert "no files" in str(server.requests[1].body["contents"][-1])


@pytest.mark.parametrize("way", WAYS)
async def test_a_changed_input_is_what_the_function_gets(
    tmp_path: Path, way: str
) -> None:
    hooks = {
        "BeforeTool": specific(tool_input={"path": "src/a.txt"}),
        "AfterTool": specific(additionalContext="note this"),
    }
    config = config_of(tmp_path, hooks)
    _, server, files = await play(config, way, [TOOL_CALL, "ok"])
    assert files.written == [("src/a.txt", 3)]
    answer = str(server.requests[1].body["contents"][-1])
    assert "wrote src/a.txt" in answer
    assert "note this" in answer


@pytest.mark.parametrize("way", ["sync", "aio stream", "chat"])
async def test_a_blocked_model_call_makes_no_http_request(
    tmp_path: Path, way: str
) -> None:
    config = config_of(tmp_path, {"BeforeModel": runs("echo no >&2; exit 2")})
    text, server, _ = await play(config, way, ["never"])
    assert (text, server.requests) == ("", [])


async def test_a_blocked_model_call_has_its_reason_in_the_prompt_feedback(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"BeforeModel": runs("echo no >&2; exit 2")})
    with ModelServer() as server, genai_client(server) as client:
        async with config:
            response = hooked(client, config).models.generate_content(
                model="m", contents="hi"
            )
    assert response.prompt_feedback is not None
    assert response.prompt_feedback.block_reason_message == "no"


@pytest.mark.parametrize("way", ["sync", "stream", "aio", "aio stream", "chat"])
async def test_a_synthetic_response_comes_back_without_a_request(
    tmp_path: Path, way: str
) -> None:
    hook = says(
        {"decision": "block", "hookSpecificOutput": {"llm_response": {"text": "no!"}}}
    )
    text, server, _ = await play(config_of(tmp_path, {"BeforeModel": hook}), way, [])
    assert (text, server.requests) == ("no!", [])


@pytest.mark.parametrize("way", WAYS)
async def test_changes_of_request_and_answer_take_effect(
    tmp_path: Path, way: str
) -> None:
    hooks = {
        "BeforeModel": specific(llm_request={"config": {"temperature": 0.125}}),
        "AfterModel": specific(llm_response={"text": "call [phone]"}),
    }
    text, server, _ = await play(config_of(tmp_path, hooks), way, ["call 123"])
    assert text == "call [phone]"
    assert server.requests[0].body["generationConfig"]["temperature"] == 0.125


@pytest.mark.parametrize("way", ["sync", "aio stream", "chat"])
@pytest.mark.parametrize("event", ["BeforeTool", "AfterTool", "AfterModel"])
async def test_a_stop_ends_the_sdks_loop_without_another_request(
    tmp_path: Path, way: str, event: str
) -> None:
    stops: list[str] = []
    hook = says({"continue": False, "stopReason": "enough"})
    config = config_of(tmp_path, {event: hook})
    _, server, files = await play(
        config, way, [TOOL_CALL, "never"], on_stop=stops.append
    )
    assert stops == ["enough"]
    assert len(server.requests) == 1
    assert len(files.written) == (1 if event == "AfterTool" else 0)


@pytest.mark.parametrize("way", ["sync", "aio stream", "chat"])
async def test_a_function_outside_the_list_is_left_out_and_refused(
    tmp_path: Path, way: str
) -> None:
    hook = specific(toolConfig={"mode": "NONE"})
    config = config_of(tmp_path, {"BeforeToolSelection": hook})
    _, server, files = await play(config, way, [TOOL_CALL, "ok"])
    calling = server.requests[0].body["toolConfig"]["functionCallingConfig"]
    assert calling["mode"] == "NONE"
    assert files.written == []
    assert "not allowed" in str(server.requests[1].body["contents"][-1])


DECLARED = {"function_declarations": [{"name": "write_file"}, {"name": "read_file"}]}
BOTH_CALLS = Answer("so", (("write_file", {"path": "a"}), ("read_file", {"path": "b"})))
BY_HAND: dict[str, dict[str, Any]] = {
    "declared": {"tools": [DECLARED]},
    "disabled": {"automatic_function_calling": {"disable": True}},
    "last round": {"automatic_function_calling": {"maximum_remote_calls": 1}},
    "no round": {"automatic_function_calling": {"maximum_remote_calls": 0}},
}


@pytest.mark.parametrize("mode", ["buffer", "pass"])
@pytest.mark.parametrize("hears", [{}, {"AfterModel": runs("true")}], ids=["", "after"])
@pytest.mark.parametrize("by_hand", BY_HAND)
@pytest.mark.parametrize("way", WAYS)
async def test_a_call_outside_the_list_is_held_back_from_a_caller_who_makes_calls(
    tmp_path: Path, way: str, by_hand: str, hears: dict[str, Hook], mode: str
) -> None:
    """protocol.md#callers: the restriction of tools holds in every mode."""
    hook = specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": ["read_file"]})
    config = config_of(tmp_path, {"BeforeToolSelection": hook, **hears})
    with ModelServer([BOTH_CALLS, "next"]) as server:
        client = genai_client(server)
        async with config:
            given = {"tools": [write_file, read_file], **BY_HAND[by_hand]}
            wrapped = hooked(client, config, stream_mode=mode)
            shown, history = await shown_by(wrapped, way, given)
        await client.aio.aclose()
        client.close()
    assert "read_file" in shown
    assert "write_file" not in shown
    assert "write_file" not in history


async def shown_by(client: genai.Client, way: str, config: Any) -> tuple[str, str]:
    """What a caller sees of an answer, and of the history of a chat."""
    given: dict[str, Any] = {"model": "m", "contents": "go", "config": config}
    if "chat" in way:
        chats: Any = client.aio.chats if "aio" in way else client.chats
        chat = chats.create(model="m", config=config)
        send = chat.send_message_stream if "stream" in way else chat.send_message
        found = send("go")
    else:
        models: Any = client.aio.models if "aio" in way else client.models
        is_stream = "stream" in way
        send = models.generate_content_stream if is_stream else models.generate_content
        found, chat = send(**given), None
    found = await found if isawaitable(found) else found
    if "aio" in way and "stream" in way:
        found = [chunk async for chunk in found]
    elif "stream" in way:
        found = list(found)
    chunks = found if isinstance(found, list) else [found]
    history = [] if chat is None else chat.get_history()
    return _written(chunks), _written(history)


def _written(values: list[Any]) -> str:
    return "".join(value.model_dump_json(exclude_none=True) for value in values)


def write_file(path: str) -> str:
    """Write a file."""
    raise AssertionError(path)


def read_file(path: str) -> str:
    """Read a file."""
    return path


async def test_a_call_that_arrives_in_pieces_is_held_back_whole(
    tmp_path: Path,
) -> None:
    hook = specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": ["read_file"]})
    config = config_of(tmp_path, {"BeforeToolSelection": hook})
    pieces = [
        {"name": "write_file", "willContinue": True},
        {"partialArgs": [{"jsonPath": "$.path", "stringValue": "x"}]},
        {"name": "read_file", "args": {"path": "b"}},
    ]
    chunks = [
        types.GenerateContentResponse.model_validate(
            {"candidates": [{"content": {"parts": [{"functionCall": piece}]}}]}
        )
        for piece in pieces
    ]
    shown = _written(await asyncio.to_thread(streamed, config, chunks))
    assert "read_file" in shown
    assert "write_file" not in shown
    assert "partial_args" not in shown


def test_a_raw_response_is_refused_where_tools_are_restricted(tmp_path: Path) -> None:
    hook = specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": ["read_file"]})
    config = config_of(tmp_path, {"BeforeToolSelection": hook})
    with ModelServer([BOTH_CALLS]) as server, genai_client(server) as client:
        given: Any = {"tools": [DECLARED], "should_return_http_response": True}
        with pytest.raises(UnseenResponseError, match="should_return_http_response"):
            hooked(client, config).models.generate_content(
                model="m", contents="go", config=given
            )
    asyncio.run(config.dispose())


class Shelf:
    """An iterable of somebody's own."""

    def __init__(self, *tools: Any) -> None:
        self._tools = tools

    def __iter__(self) -> Iterator[Any]:
        return iter(self._tools)


ITERABLES: dict[str, Callable[[Any], Any]] = {
    "dict view": lambda tool: {"write_file": tool}.values(),
    "set": lambda tool: {tool},
    "frozenset": lambda tool: frozenset({tool}),
    "deque": lambda tool: deque([tool]),
    "tuple": lambda tool: (tool,),
    "generator": lambda tool: (each for each in [tool]),
    "own": Shelf,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ITERABLES)
@pytest.mark.parametrize("is_object", [False, True], ids=["dict", "object"])
async def test_tools_in_any_iterable_pass_their_hooks(
    tmp_path: Path, way: str, kind: str, is_object: bool
) -> None:
    """protocol.md#callers: what the SDK would run is what hooks have seen."""
    config = config_of(tmp_path, {"BeforeTool": runs("echo no files >&2; exit 2")})
    files = Files()
    with ModelServer([TOOL_CALL, "sorry"]) as server:
        client = genai_client(server)
        given: Any = {"tools": ITERABLES[kind](files.tool())}
        if is_object:
            given = types.GenerateContentConfig.model_construct(**given)
        async with config:
            await shown_by(hooked(client, config), way, given)
        await client.aio.aclose()
        client.close()
    assert files.written == []
    assert names(tmp_path) == ["BeforeTool"]
    assert "no files" in str(server.requests[1].body["contents"][-1])


def test_tools_of_a_chat_may_come_from_a_generator(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"BeforeTool": runs("true")})
    answers: list[Any] = [TOOL_CALL, "a", TOOL_CALL, "b"]
    with ModelServer(answers) as server, genai_client(server) as client:
        given: Any = {"tools": (tool for tool in [Files().tool()])}
        chat = hooked(client, config).chats.create(model="m", config=given)
        assert chat.send_message("one").text == "a"
        assert chat.send_message("two").text == "b"
    assert names(tmp_path) == ["BeforeTool"] * 2
    asyncio.run(config.dispose())


@pytest.mark.parametrize("tools", [{"write_file": print}, print, 5, "write_file"])
def test_tools_that_are_no_list_are_refused(tmp_path: Path, tools: Any) -> None:
    config = config_of(tmp_path, {"BeforeTool": runs("true")})
    with ModelServer(["never"]) as server, genai_client(server) as client:
        models = hooked(client, config).models
        given: Any = {"model": "m", "contents": "go", "config": {"tools": tools}}
        with pytest.raises(TypeError, match="tools: expected a list of tools, got"):
            models.generate_content(**given)
    assert server.requests == []


@pytest.mark.parametrize("event", ALL_EVENTS)
@pytest.mark.parametrize(
    ("way", "failure"),
    [("sync", "crash with a word"), ("aio stream", "timeout"), ("chat", "wrong parts")],
)
async def test_the_client_goes_on_when_a_hook_fails(
    tmp_path: Path, way: str, event: str, failure: str
) -> None:
    config = config_of(tmp_path, {event: BROKEN[failure]}, seen=False)
    text, server, files = await play(config, way, [TOOL_CALL, "all done"])
    assert (text, files.written) == ("all done", [("a.txt", 3)])
    assert len(server.requests) == 2


async def test_an_async_function_is_hooked_too(tmp_path: Path) -> None:
    seen: list[str] = []

    async def look_up(word: str) -> str:
        """Look a word up."""
        seen.append(word)
        return "found"

    hook: Hook = specific(tool_input={"word": "changed"})
    config = config_of(tmp_path, {"BeforeTool": hook})
    with ModelServer([Answer("", (("look_up", {"word": "x"}),)), "ok"]) as server:
        client = genai_client(server)
        async with config:
            await generate(hooked(client, config), "aio", [look_up])
        await client.aio.aclose()
        client.close()
    assert seen == ["changed"]


async def test_a_function_with_its_own_hooks_is_not_hooked_twice(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"BeforeTool": runs("true")})
    files = Files()
    tool = hooked_tool(config)(files.tool())
    with ModelServer([TOOL_CALL, "ok"]) as server, genai_client(server) as client:
        async with config:
            await generate(hooked(client, config), "sync", [tool])
    assert names(tmp_path) == ["BeforeTool"]


async def test_the_declaration_of_a_hooked_function_is_its_own(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"BeforeTool": runs("true")})
    tool = Files().tool()
    with ModelServer(["ok", "ok"]) as server, genai_client(server) as client:
        await generate(client, "sync", [tool])
        async with config:
            await generate(hooked(client, config), "sync", [tool])
    without, with_hooks = (asked.body["tools"] for asked in server.requests)
    assert with_hooks == without
    assert "write_file" in str(without)


async def test_the_client_itself_stays_without_hooks(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"BeforeModel": runs("exit 2")})
    with ModelServer(["hello"]) as server, genai_client(server) as client:
        async with config:
            wrapped = hooked(client, config)
            assert wrapped.files is client.files
            assert await generate(client, "sync", []) == "hello"


async def test_chunks_pass_before_after_model_in_mode_pass(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"AfterModel": runs("true")})
    with ModelServer(["one two"]) as server, genai_client(server) as client:
        async with config:
            wrapped = hooked(client, config, stream_mode="pass")
            stream = wrapped.models.generate_content_stream(model="m", contents="x")
            next(stream)
            assert names(tmp_path) == []
            list(stream)
            assert names(tmp_path) == ["AfterModel"]


async def test_an_aborted_stream_fires_no_after_model(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"AfterModel": runs("true")})
    with ModelServer(["one two"]) as server, genai_client(server) as client:
        async with config:
            wrapped = hooked(client, config, stream_mode="pass")
            stream = wrapped.models.generate_content_stream(model="m", contents="x")
            next(stream)
            stream.close()  # type: ignore[attr-defined]  # it is a generator
    assert names(tmp_path) == []


async def test_a_message_after_the_model_goes_into_the_next_inner_request(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"AfterModel": says({"systemMessage": "mind it"})})
    _, server, _ = await play(config, "sync", [TOOL_CALL, "ok"])
    first, second = (str(asked.body) for asked in server.requests)
    assert "mind it" not in first
    assert "mind it" in second


def streamed(config: Config, chunks: list[Any]) -> list[Any]:
    """What a hooked call makes of the chunks that the SDK yields."""
    call = GenAICall(ClientHooks(session_of(config)), is_async=False)
    given = {"model": "m", "contents": "hi", "config": None}
    made = list(iterate_to_end(call.stream(lambda **_: iter(chunks), given)))
    asyncio.run(config.dispose())
    return made


def test_a_stream_without_chunks_fires_no_after_model(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"AfterModel": runs("true")})
    assert streamed(config, []) == []
    assert names(tmp_path) == []


def test_chunks_that_cannot_be_read_pass_when_no_policy_is_closed(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"AfterModel": runs("true")})
    chunk = object()
    assert streamed(config, [chunk]) == [chunk]


def test_chunks_that_cannot_be_read_are_replaced_when_a_policy_is_closed(
    tmp_path: Path,
) -> None:
    """No hook has seen them, so a hook with onError "block" withholds them."""
    config = config_of(tmp_path, {"AfterModel": runs("true", onError="block")})
    [response] = streamed(config, [object()])
    assert isinstance(response, types.GenerateContentResponse)
    assert "Blocked by the policy" in (response.text or "")


async def test_hooked_clients_are_closed_like_their_own(tmp_path: Path) -> None:
    config = config_of(tmp_path, {})
    with ModelServer(["one", "two"]) as server:
        async with hooked(genai_client(server), config).aio as client:
            given: dict[str, Any] = {"model": "m", "contents": "hi"}
            assert (await client.models.generate_content(**given)).text == "one"
        with hooked(genai_client(server), config) as plain:
            assert plain.models.generate_content(**given).text == "two"
        with pytest.raises(RuntimeError, match="closed"):
            plain.models.generate_content(**given)
    await config.dispose()


async def test_mcp_servers_without_tool_hooks_are_warned_about_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = ClientHooks(session_of(config_of(tmp_path, {})))
    config = {"tools": [{"mcp_servers": [{"name": "far"}]}]}
    for _ in range(2):
        GenAICall(hooks, is_async=True).with_hooked_tools(config)
    assert [r.getMessage()[:20] for r in caplog.records] == ["tools of mcp_servers"]


def test_methods_are_coroutine_functions_where_the_sdks_are(tmp_path: Path) -> None:
    plain = genai.Client(api_key="k")
    client = hooked(plain, Config("s-1", tmp_path))
    for name in ("generate_content", "generate_content_stream"):
        for ours, theirs in (
            (client.models, plain.models),
            (client.aio.models, plain.aio.models),
        ):
            assert asyncio.iscoroutinefunction(getattr(ours, name)) is (
                asyncio.iscoroutinefunction(getattr(theirs, name))
            )
