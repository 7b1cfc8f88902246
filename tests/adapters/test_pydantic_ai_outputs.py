"""pydantic-ai: output functions are tools, and pass the hooks of tools."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, Choice, Choices, NativeOutput, TextOutput, ToolOutput
from pydantic_ai.exceptions import AgentRunError, UnexpectedModelBehavior, UserError

from hookline.agent import ScriptedReply

from .pydantic_agents import workbench

RAN: list[Any] = []


class Order(BaseModel):
    city: str
    size: int = 1


def ship(city: str, size: int) -> str:
    RAN.append((city, size))
    return f"shipped to {city}"


async def ship_order(order: Order) -> str:
    RAN.append((order.city, order.size))
    return f"shipped to {order.city}"


def ship_to(city: str) -> str:
    RAN.append((city, 1))
    return f"shipped to {city}"


class Shop:
    def ship(self, city: str, size: int) -> str:
        return ship(city, size)


def call(name: str, **args: Any) -> ScriptedReply:
    return ScriptedReply(calls=((name, args),))


OSLO = {"city": "Oslo", "size": 2}
KINDS: dict[str, tuple[Any, Any, str]] = {
    "function": (ship, call("final_result", **OSLO), "ship"),
    "method": (Shop().ship, call("final_result", **OSLO), "ship"),
    "model": (ship_order, call("final_result", **OSLO), "ship_order"),
    "one value": (ship_to, call("final_result", city="Oslo"), "ship_to"),
    "ToolOutput": (ToolOutput(ship), call("final_result", **OSLO), "ship"),
    "named": (ToolOutput(ship, name="send"), call("send", **OSLO), "send"),
    "several": ([ship, ship_to], call("final_result_ship", **OSLO), "ship"),
    "text": (TextOutput(ship_to), "Oslo", "ship_to"),
    "native": (NativeOutput(ship), '{"city": "Oslo", "size": 2}', "ship"),
}


@pytest.fixture(autouse=True)
def _forget() -> None:
    RAN.clear()


@pytest.mark.parametrize("kind", KINDS)
async def test_an_output_function_passes_the_hooks_of_tools(kind: str) -> None:
    output, reply, name = KINDS[kind]
    async with workbench() as bench:
        result: Any = await bench.agent(reply, output_type=output).run("go")
    assert result.output == "shipped to Oslo"
    [before], [after] = bench.seen("BeforeTool"), bench.seen("AfterTool")
    assert before["tool_name"] == after["tool_name"] == name
    assert "Oslo" in before["tool_input"].values()
    assert after["tool_response"]["llmContent"] == "shipped to Oslo"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_blocked_output_function_does_not_run_and_the_model_is_told(
    kind: str,
) -> None:
    output, reply, _ = KINDS[kind]

    def block(_: Any) -> dict[str, Any]:
        return {"decision": "deny", "reason": "not to Oslo"}

    async with workbench(BeforeTool=block) as bench:
        agent = bench.agent(reply, reply, reply, output_type=output)
        with pytest.raises(UnexpectedModelBehavior):
            await agent.run("go")
    assert RAN == []
    assert "not to Oslo" in str(bench.model.requests[1])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_changed_input_is_what_an_output_function_gets(kind: str) -> None:
    output, reply, _ = KINDS[kind]

    def change(event: dict[str, Any]) -> dict[str, Any]:
        key = "text" if "text" in event["tool_input"] else "city"
        return {"hookSpecificOutput": {"tool_input": {key: "Rome"}}}

    async with workbench(BeforeTool=change) as bench:
        result: Any = await bench.agent(reply, output_type=output).run("go")
    assert result.output == "shipped to Rome"
    assert RAN[0][0] == "Rome"


async def test_a_change_that_does_not_fit_an_output_function_refuses_it() -> None:
    extra = {"hookSpecificOutput": {"tool_input": {"extra": 1}}}
    reply = call("final_result", **OSLO)
    async with workbench(BeforeTool=lambda _: extra) as bench:
        with pytest.raises(UnexpectedModelBehavior):
            await bench.agent(reply, reply, output_type=ship).run("go")
    assert RAN == []
    assert "changed the parameters of ship: extra" in str(bench.model.requests[1])


@pytest.mark.parametrize(
    "said",
    [
        {"reason": "secret", "hookSpecificOutput": {"withholdResult": True}},
        {"continue": False, "stopReason": "secret"},
    ],
    ids=["withheld", "stop"],
)
async def test_the_result_of_an_output_function_is_withheld(said: Any) -> None:
    reply = call("final_result", **OSLO)
    async with workbench(AfterTool=lambda _: said) as bench:
        with pytest.raises(AgentRunError, match="secret"):
            await bench.agent(reply, output_type=ship).run("go")
        result: Any = await bench.agent("Oslo", output_type=TextOutput(ship_to)).run(
            "go"
        )
    assert result.output == "secret"


async def test_a_selection_of_tools_does_not_forbid_an_output_function() -> None:
    none = {"hookSpecificOutput": {"toolConfig": {"mode": "NONE"}}}
    async with workbench(BeforeToolSelection=lambda _: none) as bench:
        reply = call("final_result", **OSLO)
        result: Any = await bench.agent(reply, output_type=ship).run("go")
    assert result.output == "shipped to Oslo"


async def test_an_output_function_does_not_run_on_parts_of_a_stream() -> None:
    async with workbench() as bench:
        agent = bench.agent("Oslo and Rome", output_type=TextOutput(ship_to))
        async with agent.run_stream("go") as stream:
            outputs = [
                output async for output in stream.stream_output(debounce_by=None)
            ]
    assert outputs[-1] == "shipped to Oslo and Rome"
    assert {city for city, _ in RAN} == {"Oslo and Rome"}
    assert len(bench.seen("BeforeTool")) == len(RAN)


async def test_output_functions_that_hooks_cannot_tell_apart_are_refused() -> None:
    chosen = '{"result": {"kind": "ship_to", "data": {"city": "Oslo"}}}'
    async with workbench() as bench:
        agent = bench.agent(chosen, output_type=NativeOutput([ship, ship_to]))
        with pytest.raises(UserError, match="which of several output functions"):
            await agent.run("go")
    assert RAN == []


@pytest.mark.parametrize("wrap", [lambda kind: kind, ToolOutput, NativeOutput])
async def test_functions_among_choices_are_refused(wrap: Any) -> None:
    """pydantic-ai does not say which one it calls, nor that it calls one."""
    choices = Choices({"send": Choice("Send it", value=lambda: RAN.append("sent"))})
    picked = call("final_result", response="send")
    reply: Any = '{"response": "send"}' if wrap is NativeOutput else picked
    async with workbench() as bench:
        agent = bench.agent(reply, output_type=wrap(choices))
        with pytest.raises(UserError, match="or Choices"):
            await agent.run("go")
    assert RAN == []


async def test_output_without_a_function_is_no_tool() -> None:
    async with workbench() as bench:
        agent: Agent[None, Any] = bench.agent(
            call("final_result", city="Oslo"), output_type=Order
        )
        assert (await agent.run("go")).output == Order(city="Oslo")
    assert bench.seen("BeforeTool") == []
