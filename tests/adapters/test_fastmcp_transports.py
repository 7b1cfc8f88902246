"""Hooks of a FastMCP server over its real transports (issue 14 adapters)."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport

from hookline.adapters.fastmcp import HooklineMiddleware
from hookline.testing.adapters import AdapterSuite

from .drivers.fastmcp import FastMCPDriver
from .noting import ASKS, BLOCKS, Event, NotingHooks, specific

SERVER = """
import json
import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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


@pytest.mark.parametrize("mode", ["auto", "legacy"])
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
    assert no.content[0].text == "Declined by the user: so many?"
    assert len(asked) == 2
    sessions = set((tmp_path / "sessions").read_text().split())
    assert len(sessions) == 1
    assert (sessions == {"own"}) is (mode == "auto")


def shop(hooks: NotingHooks) -> FastMCP:
    server: FastMCP = FastMCP("shop", middleware=[HooklineMiddleware(hooks.config)])

    @server.tool
    def take(amount: int) -> int:
        return amount

    return server


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


def judge(event: Event) -> dict[str, Any]:
    amount = event["tool_input"]["amount"]
    verdicts = {3: BLOCKS, 4: ASKS, 5: specific(tool_input={"amount": 50})}
    return verdicts.get(amount, {})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_hooks_work_over_http(tmp_path: Path, mode: Any) -> None:
    hooks = NotingHooks(tmp_path, BeforeTool=judge)

    async def handler(message: str, kind: Any, params: Any, context: Any) -> Any:
        return kind(value=True)

    async with serving(shop(hooks)) as url:
        clients = [Client(url, mode=mode, elicitation_handler=handler) for _ in "ab"]
        for client in clients:
            async with client:
                got = [
                    await client.call_tool("take", {"amount": n}, raise_on_error=False)
                    for n in (3, 4, 5)
                ]
            assert [result.is_error for result in got] == [True, False, False]
            assert [result.data for result in got[1:]] == [4, 50]
    sessions = [event["session_id"] for event in hooks.events]
    # Requests of 2026-07-28 stand alone; with a handshake there is a session each.
    assert len(set(sessions)) == (len(clients) if mode == "legacy" else len(sessions))


class TestSuite(AdapterSuite):
    """The policy that all adapters run."""

    driver = FastMCPDriver()
