"""A FastMCP server under the suite for adapters, with a client as small as can be."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from fastmcp import Client, FastMCP
from fastmcp.client.elicitation import ElicitResult

from hookline.adapters.fastmcp import HooklineMiddleware
from hookline.agent import Session
from hookline.testing.adapters import ModelRequest
from tests.adapters.scenarios import Scenario, ScenarioDriver

_NO_MODEL = "the model is in the client"
_NO_TURN = "the turns are in the client"


class FastMCPDriver(ScenarioDriver):
    """Runs the calls of a script over MCP: once without sessions, once with them."""

    entries: Sequence[str] = ("auto", "legacy")
    usual_entries: Sequence[str] = ("auto", "legacy")
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

    offers = frozenset({"parallel answers"})

    async def play(
        self, session: Session | None, scenario: Scenario, entry: str
    ) -> None:
        hooks: list[Any] = []
        if session is not None:
            hooks.append(HooklineMiddleware(session, confirm=scenario.callback))
        server: FastMCP = FastMCP("box", middleware=hooks)
        for tool in scenario.functions():
            server.tool(tool, **scenario.options.get(tool.__name__, {}))
        sent = list(scenario.turns)

        async def answer(message: str, kind: Any, params: Any, context: Any) -> Any:
            scenario.questions.append(message)
            answer = scenario.answers[0]
            if isinstance(answer, str):
                return ElicitResult(action=cast("Any", answer))
            return kind(value=answer)

        handler = answer if scenario.answers else None
        mode = cast("Literal['auto', 'legacy']", entry)
        async with Client(server, mode=mode, elicitation_handler=handler) as client:
            while True:
                names = [tool.name for tool in await client.list_tools()]
                scenario.requests.append(ModelRequest("\n".join(sent), names))
                reply = scenario.reply(len(scenario.requests) - 1)
                if not reply.calls:
                    break
                sent += await asyncio.gather(
                    *(_result(client, name, given) for name, given in reply.calls)
                )
        scenario.results.append(reply.text)
        scenario.recorded = "\n".join(sent)


async def _result(client: Client[Any], name: str, given: Mapping[str, Any]) -> str:
    result = await client.call_tool(name, dict(given), raise_on_error=False)
    texts = " | ".join(
        repr(block.text) if block.type == "text" else block.type
        for block in result.content
    )
    return f"{'error' if result.is_error else 'result'}: {texts} {result.data}"
