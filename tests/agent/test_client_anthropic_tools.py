"""The tool runner of a hooked anthropic client: its tools pass the hooks too.

Issue 14, "Clients: one line"; protocol.md#events and #callers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from anthropic import beta_async_tool, beta_tool
from anthropic.lib.tools import BetaRunnableToolset, BetaToolRunner
from anthropic.types.beta import BetaMessage

from hookline import Config
from hookline.agent import hooked
from hookline.errors import UnhookedCallError
from hookline.testing.modelapi import Answer, ModelServer

from .anthropic_ways import (
    REQUEST,
    Hooks,
    async_client,
    config_in,
    plain_client,
    specific,
)

WRITE = Answer("", (("write", {"path": "a"}),))
EVENTS = ("BeforeToolSelection", "BeforeModel", "AfterModel", "BeforeTool", "AfterTool")
WAYS = ("plain", "stream", "eager", "async", "async stream")


class Files:
    """A tool in both forms, and what it was called with."""

    def __init__(self, result: Any = "written") -> None:
        self.written: list[str] = []
        self.result = result

    def _write(self, path: str) -> Any:
        self.written.append(path)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def tool(self) -> Any:
        @beta_tool
        def write(path: str) -> Any:
            """Write a file."""
            return self._write(path)

        return write

    def async_tool(self) -> Any:
        @beta_async_tool
        async def write(path: str) -> Any:
            """Write a file."""
            await asyncio.sleep(0)
            return self._write(path)

        return write


async def run(
    way: str, server: ModelServer, config: Config, files: Files, **more: Any
) -> BetaMessage:
    """Run the tools of one conversation; its last message."""
    given: dict[str, Any] = {**REQUEST, "stream": "stream" in way or way == "eager"}
    if way == "eager":
        given["run_tools_eagerly"] = True
    if not way.startswith("async"):
        with hooked(plain_client(server), config, **more) as client:
            messages: Any = client.beta.messages
            runner = messages.tool_runner(tools=[files.tool()], **given)
            last: BetaMessage = runner.until_done()
            return last
    async with hooked(async_client(server), config, **more) as client_:
        messages = client_.beta.messages
        runner = messages.tool_runner(tools=[files.async_tool()], **given)
        found: BetaMessage = await runner.until_done()
        return found


def result_of(server: ModelServer, at: int = 1) -> Any:
    """The result of the first tool call, as it was sent back."""
    return server.requests[at].body["messages"][-1]["content"][0]


@pytest.mark.parametrize("way", WAYS)
async def test_model_and_tools_of_a_runner_fire_their_events(
    way: str, tmp_path: Path
) -> None:
    hooks, files = Hooks(config_in(tmp_path), **dict.fromkeys(EVENTS)), Files()
    with ModelServer([WRITE, "done"]) as server:
        last = await run(way, server, hooks.config, files)
        sent = result_of(server)
        assert "thread" not in server.requests[0].body
    assert hooks.names == [*EVENTS, *EVENTS[:3]]
    assert last.to_dict()["content"] == [{"type": "text", "text": "done"}]
    assert files.written == ["a"]
    assert sent["content"] == "written"
    assert hooks.of("AfterTool")[0]["tool_response"]["llmContent"] == "written"


@pytest.mark.parametrize("way", WAYS)
async def test_a_blocked_tool_does_not_run_and_the_model_is_told(
    way: str, tmp_path: Path
) -> None:
    block = {"decision": "block", "reason": "read only"}
    hooks, files = Hooks(config_in(tmp_path), BeforeTool=block), Files()
    with ModelServer([WRITE, "done"]) as server:
        await run(way, server, hooks.config, files)
        sent = result_of(server)
    assert files.written == []
    assert (sent["content"], sent["is_error"]) == ("read only", True)


@pytest.mark.parametrize("way", WAYS)
async def test_a_changed_input_is_what_runs(way: str, tmp_path: Path) -> None:
    change = specific(tool_input={"path": "b"})
    added = specific(additionalContext="remember")
    config = config_in(tmp_path)
    hooks, files = Hooks(config, BeforeTool=change, AfterTool=added), Files()
    with ModelServer([WRITE, "done"]) as server:
        await run(way, server, hooks.config, files)
        sent = result_of(server)
    assert files.written == ["b"]
    assert sent["content"].startswith("written\n\nremember")
    assert "changed the tool's input: path" in sent["content"]


async def test_what_hooks_add_to_blocks_is_a_block(tmp_path: Path) -> None:
    added = specific(additionalContext="remember")
    blocks = [{"type": "text", "text": "written"}]
    hooks, files = Hooks(config_in(tmp_path), AfterTool=added), Files(blocks)
    with ModelServer([WRITE, "done"]) as server:
        await run("plain", server, hooks.config, files)
        sent = result_of(server)
    assert sent["content"] == [*blocks, {"type": "text", "text": "remember"}]


@pytest.mark.parametrize("way", WAYS)
async def test_a_failing_tool_is_seen_with_its_error(way: str, tmp_path: Path) -> None:
    hooks, files = Hooks(config_in(tmp_path), AfterTool=None), Files(OSError("full"))
    with ModelServer([WRITE, "done"]) as server:
        await run(way, server, hooks.config, files)
        sent = result_of(server)
    assert "full" in hooks.seen[0]["tool_response"]["error"]["message"]
    assert sent["is_error"] is True
    assert "full" in sent["content"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("event", ["BeforeTool", "AfterTool", "AfterModel"])
async def test_a_stop_ends_the_loop_without_another_request(
    event: str, way: str, tmp_path: Path
) -> None:
    stop = {"continue": False, "stopReason": "enough"}
    hooks, files = Hooks(config_in(tmp_path), **{event: stop}), Files()
    told: list[str] = []
    with ModelServer([WRITE, "done"]) as server:
        last = await run(way, server, hooks.config, files, on_stop=told.append)
        assert len(server.requests) == 1
    assert told == ["enough"]
    assert last.stop_reason == "refusal"
    assert files.written == (["a"] if event == "AfterTool" else [])


@pytest.mark.parametrize("way", WAYS)
async def test_a_tool_that_is_not_allowed_is_neither_offered_nor_run(
    way: str, tmp_path: Path
) -> None:
    none = specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": ["read"]})
    hooks, files = Hooks(config_in(tmp_path), BeforeToolSelection=none), Files()
    with ModelServer([WRITE, "done"]) as server:
        await run(way, server, hooks.config, files)
        assert server.requests[0].body["tool_choice"] == {"type": "none"}
        sent = result_of(server)
    assert files.written == []
    assert "not allowed" in sent["content"]


@pytest.mark.parametrize("answer", [True, False])
async def test_a_person_is_asked(answer: bool, tmp_path: Path) -> None:
    hooks, files = Hooks(config_in(tmp_path), BeforeTool={"decision": "ask"}), Files()
    with ModelServer([WRITE, "done"]) as server:
        await run("plain", server, hooks.config, files, confirm=lambda _: answer)
    assert files.written == (["a"] if answer else [])


async def test_tools_of_two_conversations_at_once_do_not_mix(tmp_path: Path) -> None:
    hooks = Hooks(config_in(tmp_path), BeforeTool=None, AfterTool=None)
    both = asyncio.Barrier(2)

    @beta_async_tool
    async def write(path: str) -> str:
        """Write a file, while the other conversation does the same."""
        await both.wait()
        return path

    async def talk(client: Any, name: str) -> None:
        messages: Any = hooked(client, hooks.config.session(name)).beta.messages
        await messages.tool_runner(**REQUEST, tools=[write]).until_done()

    with ModelServer([WRITE, WRITE, "done", "done"]) as server:
        async with async_client(server) as client:
            await asyncio.gather(talk(client, "a"), talk(client, "b"))
    assert sorted(event["session_id"] for event in hooks.seen) == ["a", "a", "b", "b"]
    assert hooks.names[:2] == ["BeforeTool", "BeforeTool"]


def test_a_tool_that_is_added_while_it_runs_passes_the_hooks(tmp_path: Path) -> None:
    block = {"decision": "block", "reason": "read only"}
    hooks, files = Hooks(config_in(tmp_path), BeforeTool=block), Files()
    with ModelServer([WRITE, "done"]) as server:
        client: Any = hooked(plain_client(server), hooks.config)
        runner = client.beta.messages.tool_runner(**REQUEST, tools=[])
        assert isinstance(runner, BetaToolRunner)
        for _ in runner:
            runner.add_tools(files.tool())
        client.close()
    assert files.written == []
    assert hooks.names == ["BeforeTool"]


class Browser(BetaRunnableToolset):
    """A toolset, and the members that were called."""

    toolset_name = "browser"

    def __init__(self) -> None:
        self.called: list[tuple[str, Mapping[str, object]]] = []

    def to_dict(self) -> Any:
        return {"type": "browser_toolset_20260801"}

    def call(self, context: Any, name: str, input: Mapping[str, object]) -> str:  # noqa: A002 - the SDK's name
        self.called.append((name, input))
        return "opened"


def member(name: str, given: dict[str, Any]) -> Callable[[Any, Any], Any]:
    """A middleware that makes the calls of an answer those of a toolset's member."""

    def change(request: Any, go_on: Any) -> Any:
        response = go_on(request)
        body = response.http_response.json()
        for block in body["content"]:
            if block["type"] == "tool_use":
                block |= {"toolset_name": "browser", "name": name, "input": given}
        old = response.http_response
        response.http_response = type(old)(200, json=body, request=old.request)
        return response

    return change


@pytest.mark.parametrize("blocked", [True, False])
def test_members_of_toolsets_pass_the_hooks(blocked: bool, tmp_path: Path) -> None:
    output = {"decision": "block", "reason": "no"} if blocked else None
    hooks, browser = Hooks(config_in(tmp_path), BeforeTool=output), Browser()
    middleware = [member("navigate", {"url": "x"})]
    with ModelServer([WRITE, "done"]) as server:
        client: Any = hooked(plain_client(server, middleware=middleware), hooks.config)
        client.beta.messages.tool_runner(**REQUEST, tools=[browser]).until_done()
        client.close()
        sent = result_of(server)
    assert hooks.seen[0]["tool_name"] == "browser.navigate"
    assert sent["toolset_name"] == "browser"
    assert sent["content"] == ("no" if blocked else "opened")
    assert browser.called == ([] if blocked else [("navigate", {"url": "x"})])


def test_a_runner_made_by_hand_is_refused_while_there_are_tool_hooks(
    tmp_path: Path,
) -> None:
    hooks, files = Hooks(config_in(tmp_path), BeforeTool=None), Files()
    with ModelServer([WRITE, "done"]) as server:
        client = hooked(plain_client(server), hooks.config)
        params: Any = {**REQUEST, "tools": [files.tool().to_dict()]}
        tools = [files.tool()]
        runner = BetaToolRunner(params=params, options={}, tools=tools, client=client)
        with pytest.raises(UnhookedCallError, match="tool_runner"):
            runner.until_done()
        client.close()
        assert not server.requests


async def test_a_cancelled_tool_fires_no_after_tool(tmp_path: Path) -> None:
    hooks = Hooks(config_in(tmp_path), BeforeTool=None, AfterTool=None)
    started = asyncio.Event()

    @beta_async_tool
    async def write(path: str) -> str:
        """Wait for ever."""
        started.set()
        await asyncio.Event().wait()
        return path

    with ModelServer([WRITE, "done"]) as server:
        async with async_client(server) as client:
            messages: Any = hooked(client, hooks.config).beta.messages
            runner = messages.tool_runner(**REQUEST, tools=[write])
            work = asyncio.create_task(runner.until_done())
            await started.wait()
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
    assert hooks.names == ["BeforeTool"]
