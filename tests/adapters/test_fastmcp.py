"""FastMCP servers with hooks around their tools: the suite, and what only MCP has.

protocol.md#callers.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types
import pytest
import uvicorn
from fastmcp import Client, Context, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from fastmcp.server import create_proxy
from fastmcp.server.middleware import Middleware
from fastmcp.tools import ToolResult

from hookline.adapters.fastmcp import HooklineMiddleware
from hookline.testing.adapters import AdapterSuite

from .drivers.fastmcp import FastMCPDriver
from .recorded_hooks import ADDS, Event, RecordedHooks, changes, specific

MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])
"""Connections of 2026-07-28, without sessions, and those with a handshake."""


class TestFastMCP(AdapterSuite):
    driver = FastMCPDriver()


def server_of(hooks: RecordedHooks, **options: Any) -> FastMCP:
    """A server with a few tools."""
    server: FastMCP = FastMCP(
        "shop", middleware=[HooklineMiddleware(hooks.config, **options)]
    )

    @server.tool
    def take(amount: int) -> int:
        return amount

    @server.tool
    def whoami(context: Context) -> str:
        return context.session_id

    @server.tool
    def picture() -> ToolResult:
        image = mcp_types.ImageContent(type="image", data="aGk=", mime_type="image/png")
        text = mcp_types.TextContent(type="text", text="a picture")
        return ToolResult([text, image])

    return server


def texts(result: Any) -> list[str]:
    return [block.text for block in result.content if block.type == "text"]


async def call(server: FastMCP, name: str = "take", **arguments: Any) -> Any:
    async with Client(server) as client:
        return await client.call_tool(name, arguments, raise_on_error=False)


def elicits(answer: Any) -> Any:
    async def handler(message: str, kind: Any, params: Any, context: Any) -> Any:
        return kind(value=answer)

    return handler


async def test_blocks_that_are_no_text_are_shown_whole_and_kept() -> None:
    hooks = RecordedHooks({"AfterTool": {"suppressOutput": True, **ADDS}})
    result = await call(server_of(hooks), "picture")
    shown = hooks.of("AfterTool")[0]["tool_response"]["llmContent"]
    assert [block["type"] for block in shown] == ["text", "image"]
    assert [block.type for block in result.content] == ["text", "image", "text"]
    audience = {str(block.annotations.audience) for block in result.content[:2]}
    assert audience == {"['assistant']"}


@MODES
async def test_selection_holds_for_every_call(mode: Any) -> None:
    """For a client that never listed, and for one that listed before."""
    allowed = ["take", "whoami"]

    def choose(_: Event) -> Any:
        return specific(toolConfig={"mode": "ANY", "allowedFunctionNames": allowed})

    hooks = RecordedHooks({"BeforeToolSelection": choose})
    async with Client(server_of(hooks), mode=mode) as client:
        with pytest.raises(ToolError, match="'picture' is not allowed now"):
            await client.call_tool("picture")
        assert [tool.name for tool in await client.list_tools()] == ["take", "whoami"]
        assert (await client.call_tool("take", {"amount": 3})).data == 3
        allowed.remove("take")
        with pytest.raises(ToolError, match="'take' is not allowed now"):
            await client.call_tool("take", {"amount": 3})
    assert len(hooks.of("BeforeTool")) == 1
    first = hooks.events[0]
    assert first["llm_request"]["messages"] == []
    assert set(first["available_tools"]) == {"take", "whoami", "picture"}


async def test_answer_counts_for_its_own_question_only() -> None:
    """A yes to one input is none to another (protocol.md#several-hooks)."""
    hooks = RecordedHooks({"BeforeTool": "ask"})
    handler = elicits(True)
    async with Client(server_of(hooks), elicitation_handler=handler) as client:
        first = await client.session.call_tool(
            "take", {"amount": 1}, allow_input_required=True
        )
        assert isinstance(first, mcp_types.InputRequiredResult)
        (key,) = first.input_requests or {}
        yes = mcp_types.ElicitResult(action="accept", content={"value": True})
        other = await client.session.call_tool(
            "take", {"amount": 2}, input_responses={key: yes}, allow_input_required=True
        )
    assert isinstance(other, mcp_types.CallToolResult)
    assert other.is_error
    assert hooks.of("AfterTool") == []


@MODES
async def test_sessions_are_those_of_mcp(mode: Any) -> None:
    """One for each client with a handshake; without one each request stands alone."""
    hooks = RecordedHooks(unheard=["BeforeToolSelection"])
    server = server_of(hooks)
    async with Client(server, mode=mode) as one, Client(server, mode=mode) as two:
        ids = [
            (await client.call_tool("whoami")).data for client in (one, two, one, two)
        ]
    for name in ("BeforeTool", "AfterTool"):
        assert [event["session_id"] for event in hooks.of(name)] == ids
    assert len(set(ids)) == (2 if mode == "legacy" else 4)


async def test_session_may_be_named_or_given() -> None:
    hooks = RecordedHooks()
    await call(server_of(hooks, session_id=lambda _: "user-7"), amount=1)
    assert hooks.sessions == {"user-7"}
    hooks = RecordedHooks()
    session = hooks.config.session("batch")
    server = FastMCP("shop", middleware=[HooklineMiddleware(session)])
    server.tool(length)
    await server.call_tool("length", {"text": "abc"})  # outside of a request
    assert hooks.sessions == {"batch"}


def length(text: str) -> int:
    return len(text)


async def test_question_of_the_tool_is_not_its_result() -> None:
    hooks = RecordedHooks(unheard=["BeforeToolSelection"])
    server = FastMCP("ask", middleware=[HooklineMiddleware(hooks.config)])
    schema = {"type": "object", "properties": {"value": {"type": "string"}}}

    @server.tool
    def greet(context: Context) -> str | mcp_types.InputRequiredResult:
        answers = context.input_responses
        if answers is not None:
            answer = answers["name"]
            assert isinstance(answer, mcp_types.ElicitResult)
            return f"hello {(answer.content or {})['value']}"
        form = mcp_types.ElicitRequestFormParams(
            message="who?", requested_schema=schema
        )
        asked: mcp_types.InputRequests = {"name": mcp_types.ElicitRequest(params=form)}
        return mcp_types.InputRequiredResult(input_requests=asked)

    async with Client(server, elicitation_handler=elicits("Ann")) as client:
        assert texts(await client.call_tool("greet")) == ["hello Ann"]
    assert hooks.names == ["BeforeTool", "BeforeTool", "AfterTool"]


class Tasks(Middleware):
    """Answers with what is no result of a tool, as background tasks do."""

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        return mcp_types.EmptyResult()


async def test_background_task_has_no_result_and_that_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hooks = RecordedHooks()
    server = server_of(hooks)
    server.add_middleware(Tasks())
    with caplog.at_level(logging.WARNING, "hookline"):
        result: object = await server.call_tool("take", {"amount": 1})
    assert isinstance(result, mcp_types.EmptyResult)
    assert "results of background tasks" in caplog.text
    assert hooks.of("AfterTool") == []


@pytest.mark.parametrize("mount", [True, False], ids=["mounted", "proxied"])
async def test_servers_behind_a_hooked_one_are_covered(mount: bool) -> None:
    hooks = RecordedHooks({"BeforeTool": changes(text="abcd"), "AfterTool": "add"})
    inner: FastMCP = FastMCP("inner")
    inner.tool(length)
    outer: FastMCP = FastMCP("outer") if mount else create_proxy(inner, name="outer")
    outer.add_middleware(HooklineMiddleware(hooks.config))
    if mount:
        outer.mount(inner, namespace="in")
    name = "in_length" if mount else "length"
    result = await call(outer, name, text="a")
    notice = "[System] A hook changed the tool's input: text"
    assert (result.data, texts(result)) == (4, ["4", "mind it", notice])
    context = {"server_name": "outer", "tool_name": name}
    assert hooks.of("BeforeTool")[0]["mcp_context"] == context


SERVER = """
import sys
from pathlib import Path

from fastmcp import FastMCP

from hookline import Config, HookSystem, Settings
from hookline.adapters.fastmcp import HooklineMiddleware

folder = Path(sys.argv[1])
config = Config("own", folder, Settings.from_mapping({}))
server = FastMCP("stock", middleware=[HooklineMiddleware(config)])


@HookSystem(config).on("BeforeTool")
def note(event):
    with (folder / "sessions").open("a") as file:
        print(event["session_id"], file=file)
    if event["tool_input"]["amount"] > 3:
        return {"decision": "ask", "reason": "so many?"}


@server.tool
def take(amount: int) -> int:
    return amount


server.run(show_banner=False)
"""


@MODES
async def test_hooks_work_over_stdio(tmp_path: Path, mode: Any) -> None:
    """One process, one client: one session, also without a handshake."""
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    transport = StdioTransport(sys.executable, [str(script), str(tmp_path)])
    asked: list[str] = []

    async def handler(message: str, kind: Any, params: Any, context: Any) -> Any:
        asked.append(message)
        return kind(value='"amount":4' in message)

    async with Client(transport, mode=mode, elicitation_handler=handler) as client:
        for amount in (1, 4):
            assert (await client.call_tool("take", {"amount": amount})).data == amount
        no = await client.call_tool("take", {"amount": 5}, raise_on_error=False)
    assert texts(no) == ["Declined by the user: so many?"]
    assert len(asked) == 2
    sessions = set((tmp_path / "sessions").read_text().split())
    assert len(sessions) == 1
    assert (sessions == {"own"}) is (mode == "auto")


@asynccontextmanager
async def serving(server: FastMCP) -> AsyncIterator[str]:
    """Serve over HTTP on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        options = uvicorn.Config(server.http_app(), log_level="error")
        http = uvicorn.Server(options)
        task = asyncio.create_task(http.serve([listening]))
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        http.should_exit = True
        await task


@MODES
async def test_hooks_work_over_http(mode: Any) -> None:
    def judge(event: Event) -> Any:
        verdicts = {3: "block", 4: "ask", 5: changes(amount=50)}
        return verdicts[event["tool_input"]["amount"]]

    hooks = RecordedHooks({"BeforeTool": judge})
    handler = elicits(True)
    async with serving(server_of(hooks)) as url:
        for _ in range(2):
            async with Client(url, mode=mode, elicitation_handler=handler) as client:
                got = [
                    await client.call_tool("take", {"amount": n}, raise_on_error=False)
                    for n in (3, 4, 5)
                ]
            assert [result.is_error for result in got] == [True, False, False]
            assert [result.data for result in got[1:]] == [4, 50]
    ids = [event["session_id"] for event in hooks.of("BeforeTool")]
    # Requests of 2026-07-28 stand alone; with a handshake there is a session each.
    assert len(set(ids)) == (2 if mode == "legacy" else len(ids))
