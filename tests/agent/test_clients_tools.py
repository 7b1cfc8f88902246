"""Functions, toolsets and MCP sessions that the SDKs call for a hooked client.

What hooks do to the tools of every way of calling is recorded in
``tests/pins/clients``. protocol.md#events and #callers.
"""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from anthropic import beta_async_tool
from anthropic.lib.tools import BetaRunnableToolset, BetaToolRunner
from google.genai import types

from hookline import Config
from hookline.agent import hooked, hooked_tool, session_of
from hookline.agent.clients import ClientHooks
from hookline.agent.clients.genai import GenAICall, HookedSession, is_session
from hookline.agent.waiting import iterate_to_end
from hookline.errors import UnhookedCallError
from hookline.testing.modelapi import Answer
from tests.support.model_calls import (
    CONTENT,
    MESSAGES,
    WAYS,
    RecordedFunctions,
    ScriptedServer,
    client_of,
    closing_client,
)
from tests.support.recorded_events import (
    DENY,
    STOP,
    RecordedHooks,
    specific,
    warnings_of,
)

WRITE = Answer("", (("write_file", {"path": "a"}),))


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


@pytest.mark.parametrize("is_object", [False, True], ids=["dict", "object"])
async def test_tools_in_any_iterable_pass_their_hooks(
    model_server: ScriptedServer, subtests: pytest.Subtests, is_object: bool
) -> None:
    """protocol.md#callers: what the SDK would run is what hooks have seen."""
    async with closing_client(client_of("genai", model_server)) as plain:
        for kind, make in ITERABLES.items():
            for way, call in WAYS["genai"].items():
                with subtests.test(f"{kind}, {way}"):
                    hooks = RecordedHooks({"BeforeTool": DENY})
                    functions = RecordedFunctions()
                    model_server.answers(WRITE, "sorry")
                    config: Any = {"tools": make(functions.plain()[0])}
                    if is_object:
                        config = types.GenerateContentConfig.model_construct(**config)
                    async with hooks.config:
                        await call(hooked(plain, hooks.config), config=config)
                    assert functions.calls == []
                    assert hooks.names == ["BeforeTool"]
                    assert "'no'" in str(model_server.bodies[1]["contents"][-1])


def test_tools_of_a_chat_may_come_from_a_generator(
    model_server: ScriptedServer,
) -> None:
    hooks = RecordedHooks({"BeforeTool": None})
    model_server.answers(WRITE, "a", WRITE, "b")
    with client_of("genai", model_server) as client:
        given: Any = {"tools": (tool for tool in RecordedFunctions().plain())}
        chat = hooked(client, hooks.config).chats.create(model="m", config=given)
        assert chat.send_message("one").text == "a"
        assert chat.send_message("two").text == "b"
    assert hooks.names == ["BeforeTool"] * 2
    asyncio.run(hooks.config.dispose())


async def test_async_functions_and_hooked_ones_pass_hooks_once(
    model_server: ScriptedServer,
) -> None:
    hooks = RecordedHooks({"BeforeTool": specific(tool_input={"path": "changed"})})
    paths: list[str] = []

    async def write_file(path: str) -> str:
        """Write a file."""
        paths.append(path)
        return "written"

    @hooked_tool(hooks.config)
    def read_file(path: str) -> str:
        """Read a file."""
        paths.append(path)
        return "read"

    async with hooks.config, closing_client(client_of("genai", model_server)) as plain:
        client = hooked(plain, hooks.config)
        for tool, call in (
            (write_file, WRITE),
            (read_file, Answer("", (("read_file", {"path": "a"}),))),
        ):
            model_server.answers(call, "ok")
            await WAYS["genai"]["aio generate"](client, config={"tools": [tool]})
    assert paths == ["changed", "changed"]
    assert hooks.names == ["BeforeTool"] * 2


async def test_the_declaration_of_a_hooked_function_is_its_own(
    model_server: ScriptedServer,
) -> None:
    model_server.answers("ok", "ok")
    hooks = RecordedHooks({"BeforeTool": None})
    tools: Any = {"tools": RecordedFunctions().plain()}
    async with hooks.config, closing_client(client_of("genai", model_server)) as plain:
        await WAYS["genai"]["generate"](plain, config=tools)
        await WAYS["genai"]["generate"](hooked(plain, hooks.config), config=tools)
    without, with_hooks = (body["tools"] for body in model_server.bodies)
    assert with_hooks == without
    assert "write_file" in str(without)


async def test_genai_chunks_pass_before_after_model_in_mode_pass(
    model_server: ScriptedServer,
) -> None:
    model_server.answers("one two", "one two")
    hooks = RecordedHooks({"AfterModel": None})
    async with hooks.config, closing_client(client_of("genai", model_server)) as plain:
        models = hooked(plain, hooks.config, stream_mode="pass").models
        aborted = models.generate_content_stream(**CONTENT)
        next(aborted)
        aborted.close()
        stream = models.generate_content_stream(**CONTENT)
        next(stream)
        assert hooks.names == []  # of the aborted one neither
        list(stream)
        assert hooks.names == ["AfterModel"]


async def test_genai_clients_are_closed_like_their_own(
    model_server: ScriptedServer,
) -> None:
    model_server.answers("one", "two")
    config = Config("s-1")
    blocking = RecordedHooks({"BeforeModel": DENY})
    async with hooked(client_of("genai", model_server), config).aio as client:
        assert (await client.models.generate_content(**CONTENT)).text == "one"
    original = client_of("genai", model_server)
    blocked = hooked(original, blocking.config).models.generate_content(**CONTENT)
    assert blocked.prompt_feedback is not None
    assert blocked.prompt_feedback.block_reason_message == "no"
    assert original.models.generate_content(**CONTENT).text == "two"
    with hooked(original, config) as plain:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        plain.models.generate_content(**CONTENT)
    await config.dispose()
    await blocking.config.dispose()


async def test_mcp_servers_without_tool_hooks_are_warned_about_once() -> None:
    """Inside: such a configuration reaches no local server."""
    call = GenAICall(ClientHooks(session_of(Config("s-1"))), is_async=True)
    with warnings_of() as log:
        for _ in range(2):
            call.with_hooked_tools({"tools": [{"mcp_servers": [{"name": "far"}]}]})
    assert [line[:20] for line in log] == ["tools of mcp_servers"]


@pytest.mark.parametrize("policy", ["allow", "block"])
def test_chunks_that_cannot_be_read_are_replaced_when_a_policy_is_closed(
    policy: str,
) -> None:
    """Inside: the SDK itself makes nothing but readable chunks. No hook has seen it."""
    hook = {"$process": {"command": "true", "onError": policy}}
    config = RecordedHooks({"AfterModel": hook}).config
    call = GenAICall(ClientHooks(session_of(config)), is_async=False)
    chunks = [object()]
    stream = call.stream(lambda **_: iter(chunks), {**CONTENT, "config": None})
    shown: list[Any] = list(iterate_to_end(stream))
    asyncio.run(config.dispose())
    if policy == "allow":
        assert shown == chunks
    else:
        assert isinstance(shown[0], types.GenerateContentResponse)
        assert "Blocked by the policy" in (shown[0].text or "")


class McpSession:
    """Has what the SDK uses of an MCP session."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def list_tools(self) -> list[str]:
        return ["add"]

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        self.calls.append((name, dict(arguments or {})))
        return {"content": "3"}


CHANGE = specific(tool_input={"a": 40}, additionalContext="checked")
MCP_CALLS: dict[str, tuple[Any, Any, list[Any], list[str]]] = {
    "changed": (
        CHANGE,
        {"content": "3"},
        [("add", {"a": 40, "b": 2})],
        ["checked\n\n[System] A hook changed the tool's input: a"],
    ),
    "blocked": (DENY, "no", [], []),
    "stopped": (STOP, "enough", [], []),
}


@pytest.mark.parametrize("name", list(MCP_CALLS))
async def test_calls_over_an_mcp_session_pass_their_hooks(name: str) -> None:
    """Inside: the SDK calls sessions only of servers that run elsewhere."""
    output, result, calls, added = MCP_CALLS[name]
    hooks = RecordedHooks({"BeforeTool": output, "AfterTool": None})
    session = McpSession()
    call = GenAICall(ClientHooks(session_of(hooks.config)), is_async=True)
    guarded = HookedSession(session, call)
    assert isinstance(guarded, McpSession)
    assert is_session(guarded)
    assert copy.deepcopy(guarded) is guarded
    assert await guarded.list_tools() == ["add"]
    async with hooks.config:
        assert await guarded.call_tool("add", arguments={"a": 1, "b": 2}) == result
        request = {"model": "m", "messages": [{"role": "user", "content": "go on"}]}
        following = await call.run.begin_model(request)
        if name == "stopped":
            assert call.run.stop_reason == "enough"
            assert await guarded.call_tool("add", {}) == "Not run: enough"
    assert session.calls == calls
    assert hooks.events[0]["mcp_context"] == {}
    notes = [message["content"] for message in following.request["messages"][1:]]
    assert notes == added


class Browser(BetaRunnableToolset):
    """A toolset, and the members that were called."""

    toolset_name = "browser"

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, object]]] = []

    def to_dict(self) -> Any:
        return {"type": "browser_toolset_20260801"}

    def call(self, context: Any, name: str, input: Mapping[str, object]) -> str:  # noqa: A002 - the SDK's name
        self.calls.append((name, input))
        return "opened"


def as_member(request: Any, go_on: Any) -> Any:
    """A middleware that makes the calls of an answer those of a toolset's member."""
    response = go_on(request)
    body = response.http_response.json()
    member = {"toolset_name": "browser", "name": "navigate", "input": {"url": "x"}}
    for block in body["content"]:
        if block["type"] == "tool_use":
            block.update(member)
    old = response.http_response
    response.http_response = type(old)(200, json=body, request=old.request)
    return response


@pytest.mark.parametrize("output", [DENY, None])
def test_members_of_toolsets_pass_the_hooks(
    model_server: ScriptedServer, output: Any
) -> None:
    model_server.answers(WRITE, "done")
    hooks, browser = RecordedHooks({"BeforeTool": output}), Browser()
    plain = client_of("anthropic", model_server, middleware=[as_member])
    with hooked(plain, hooks.config) as client:
        messages: Any = client.beta.messages
        messages.tool_runner(**MESSAGES, tools=[browser]).until_done()
    sent = model_server.bodies[1]["messages"][-1]["content"][0]
    assert hooks.events[0]["tool_name"] == "browser.navigate"
    assert (sent["toolset_name"], sent["content"]) == (
        "browser",
        "no" if output else "opened",
    )
    assert browser.calls == ([] if output else [("navigate", {"url": "x"})])


def test_a_tool_that_is_added_while_a_runner_works_passes_the_hooks(
    model_server: ScriptedServer,
) -> None:
    model_server.answers(WRITE, "done")
    hooks, functions = RecordedHooks({"BeforeTool": DENY}), RecordedFunctions()
    with hooked(client_of("anthropic", model_server), hooks.config) as client:
        messages: Any = client.beta.messages
        runner = messages.tool_runner(**MESSAGES, tools=[])
        assert isinstance(runner, BetaToolRunner)
        for _ in runner:
            runner.add_tools(*functions.of("anthropic", "sync"))
    assert functions.calls == []
    assert hooks.names == ["BeforeTool"]


def test_a_runner_made_by_hand_is_refused_while_there_are_tool_hooks(
    model_server: ScriptedServer,
) -> None:
    model_server.answers(WRITE, "done")
    tools = RecordedFunctions().of("anthropic", "sync")
    hooks = RecordedHooks({"BeforeTool": None})
    with hooked(client_of("anthropic", model_server), hooks.config) as client:
        params: Any = {**MESSAGES, "tools": [tool.to_dict() for tool in tools]}
        runner = BetaToolRunner(params=params, options={}, tools=tools, client=client)
        with pytest.raises(UnhookedCallError, match="tool_runner"):
            runner.until_done()
    assert not model_server.requests


async def test_tools_of_two_conversations_at_once_do_not_mix(
    model_server: ScriptedServer,
) -> None:
    hooks = RecordedHooks({"BeforeTool": None, "AfterTool": None})
    both = asyncio.Barrier(2)

    @beta_async_tool
    async def write_file(path: str) -> str:
        """Write a file, while the other conversation does the same."""
        await both.wait()
        return path

    async def talk(client: Any, name: str) -> None:
        messages: Any = hooked(client, hooks.config.session(name)).beta.messages
        await messages.tool_runner(**MESSAGES, tools=[write_file]).until_done()

    model_server.answers(WRITE, WRITE, "done", "done")
    plain = client_of("anthropic", model_server, "async")
    async with hooks.config, closing_client(plain) as client:
        await asyncio.gather(talk(client, "a"), talk(client, "b"))
    assert sorted(event["session_id"] for event in hooks.events) == [*"aabb"]
    assert hooks.names[:2] == ["BeforeTool", "BeforeTool"]


async def test_a_cancelled_tool_of_a_runner_fires_no_after_tool(
    model_server: ScriptedServer,
) -> None:
    hooks = RecordedHooks({"BeforeTool": None, "AfterTool": None})
    started = asyncio.Event()

    @beta_async_tool
    async def write_file(path: str) -> str:
        """Wait for ever."""
        started.set()
        await asyncio.Event().wait()
        return path

    model_server.answers(WRITE, "done")
    plain = client_of("anthropic", model_server, "async")
    async with hooks.config, closing_client(plain):
        messages: Any = hooked(plain, hooks.config).beta.messages
        runner = messages.tool_runner(**MESSAGES, tools=[write_file])
        work = asyncio.create_task(runner.until_done())
        await started.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    assert hooks.names == ["BeforeTool"]
