"""A FastMCP server under the suite for adapters, with a client as small as can be."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from fastmcp import Client, FastMCP

from hookline.adapters.fastmcp import HooklineMiddleware
from hookline.agent import Session
from hookline.testing.adapters import ModelRequest, Ran, Task

_NO_MODEL = "the model is in the client"
_NO_TURN = "the turns are in the client"


class FastMCPDriver:
    """Runs the calls of a script over MCP: once without sessions, once with them."""

    entries: Sequence[str] = ("auto", "legacy")
    cannot: Mapping[str, str] = {
        **dict.fromkeys(("model-block", "model-answer", "model-change"), _NO_MODEL),
        **dict.fromkeys(("answer-change", "answer-stop", "events"), _NO_MODEL),
        **dict.fromkeys(("turn-block", "turn-stop", "turn-context"), _NO_TURN),
        **dict.fromkeys(("turn-reject", "turn-reject-limit"), _NO_TURN),
        **dict.fromkeys(
            ("tool-stop", "result-stop"), "a stop is an error; the client goes on"
        ),
        "tool-recorded": "the client records what its model wrote",
        **dict.fromkeys(
            ("selection", "selection-refused"),
            "there is no prompt to see; test_fastmcp.py tests the selection",
        ),
    }

    async def run(self, session: Session | None, task: Task, entry: str) -> Ran:
        hooks = [] if session is None else [HooklineMiddleware(session)]
        server: FastMCP = FastMCP("box", middleware=hooks)
        for tool in (task.tools.read, task.tools.write, task.tools.fail):
            server.tool(tool)
        sent, requests = [task.prompt], []

        async def answer(message: str, kind: Any, params: Any, context: Any) -> Any:
            return kind(value=task.confirm)

        handler = None if task.confirm is None else answer
        mode = cast("Literal['auto', 'legacy']", entry)
        async with Client(server, mode=mode, elicitation_handler=handler) as client:
            while True:
                names = [tool.name for tool in await client.list_tools()]
                requests.append(ModelRequest("\n".join(sent), names))
                reply = task.reply(len(requests) - 1)
                if not reply.calls:
                    break
                sent += await asyncio.gather(
                    *(_result(client, name, given) for name, given in reply.calls)
                )
        return Ran(answer=reply.text, requests=requests, recorded="\n".join(sent))


async def _result(client: Client[Any], name: str, given: Mapping[str, Any]) -> str:
    result = await client.call_tool(name, dict(given), raise_on_error=False)
    return f"{result.content} {result.structured_content}"
