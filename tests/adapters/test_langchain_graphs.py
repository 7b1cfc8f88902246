"""LangChain: other middleware, handoffs and graphs of one's own (issue 14 adapters)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from hookline.adapters.langchain import HooklineMiddleware
from hookline.agent import ScriptedReply

from .drivers.langchain import ScriptedChat
from .langchain_scenes import (
    agent_of,
    answer,
    ask,
    calls,
    deny,
    hooked,
    named,
    specific,
    thread,
)


@tool
def read(path: str) -> str:
    """Read a file."""
    return f"content of {path}"


class Rewriting(AgentMiddleware[Any, Any, Any]):
    """Changes requests, calls and answers around whatever is inside of it."""

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        only = [one for one in request.tools if one.name == "read"]
        return await handler(request.override(tools=only, tool_choice="read"))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        call = {**request.tool_call, "args": {"path": "b"}}
        return await handler(request.override(tool_call=call))


async def test_the_last_middleware_sees_what_is_sent_and_run() -> None:
    async with hooked() as (config, events):
        model = ScriptedChat(
            reply=lambda at: (
                ScriptedReply("done") if at else calls(("read", {"path": "a"}))
            )
        )
        agent: Any = create_agent(
            model, [read], middleware=[Rewriting(), HooklineMiddleware(config)]
        )
        await agent.ainvoke(ask("go"))
    assert named(events, "BeforeToolSelection")[0]["available_tools"] == ["read"]
    assert named(events, "BeforeTool")[0]["tool_input"] == {"path": "b"}
    assert "content of b" in model.requests[1].text


async def test_other_middleware_gets_the_answer_alone() -> None:
    """Also after a call was recorded with another input."""
    answers: list[list[str]] = []

    class Reading(AgentMiddleware[Any, Any, Any]):
        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            response = await handler(request)
            answers.append([str(one.text) for one in response.result])
            return response

    replies = [calls(("read", {"path": "a"}), text="reading"), ScriptedReply("done")]
    async with hooked(BeforeTool=lambda _: specific(tool_input={"path": "b"})) as (
        config,
        _,
    ):
        model = ScriptedChat(reply=lambda at: replies[at])
        agent: Any = create_agent(
            model, [read], middleware=[Reading(), HooklineMiddleware(config)]
        )
        result = await agent.ainvoke(ask("go"))
    assert answers == [["reading"], ["done"]]
    assert result["messages"][1].tool_calls[0]["args"] == {"path": "b"}


async def test_a_retried_tool_is_hooked_once_or_each_time_by_its_place() -> None:
    for outside, expected in ((True, 2), (False, 1)):
        tries: list[str] = []

        @tool
        def shaky(path: str) -> str:
            """Fail the first time."""
            tries.append(path)  # noqa: B023 - called within this round
            if len(tries) == 1:  # noqa: B023
                raise OSError("busy")
            return "fine"

        retry = ToolRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
        async with hooked() as (config, events):
            hooks = HooklineMiddleware[None](config)
            model = ScriptedChat(
                reply=lambda at: (
                    ScriptedReply("done") if at else calls(("shaky", {"path": "a"}))
                )
            )
            agent: Any = create_agent(
                model, [shaky], middleware=[retry, hooks] if outside else [hooks, retry]
            )
            await agent.ainvoke(ask("go"))
        assert len(tries) == 2
        assert len(named(events, "AfterTool")) == expected


@pytest.mark.parametrize(
    ("mode", "names", "choice"),
    [("ANY", ["read"], "any"), ("AUTO", ["read"], "read"), ("NONE", [], None)],
)
async def test_hooks_choose_the_mode_of_the_tools(
    mode: str, names: list[str], choice: str | None
) -> None:
    hook = specific(toolConfig={"mode": mode, "allowedFunctionNames": names})
    async with hooked(BeforeToolSelection=lambda _: hook) as (config, _):
        model = ScriptedChat(reply=lambda _: ScriptedReply("done"))
        agent: Any = create_agent(
            model, [read], middleware=[Rewriting(), HooklineMiddleware(config)]
        )
        await agent.ainvoke(ask("go"))
    assert model.requests[0].tools == names
    assert model.settings[0].get("tool_choice") == choice


def handoff(*, silent: bool = False) -> Any:
    @tool
    def to_writer(runtime: ToolRuntime) -> Command[Any]:
        """Hand the conversation over."""
        if silent:
            return Command(goto="writer", graph=Command.PARENT)
        done = ToolMessage("handed over", tool_call_id=runtime.tool_call_id)
        messages = [*runtime.state["messages"], done]
        return Command(
            goto="writer", graph=Command.PARENT, update={"messages": messages}
        )

    return to_writer


def pair(config: Any, *, silent: bool = False) -> tuple[Any, ScriptedChat]:
    """A graph in which one agent hands over to the other."""
    tools = [handoff(silent=silent)]
    first, _ = agent_of(config, calls(("to_writer", {})), tools=tools, name="clerk")
    second, model = agent_of(config, "written", name="writer")
    graph: Any = StateGraph(MessagesState)
    graph.add_node("clerk", first, destinations=("writer",))
    graph.add_node("writer", second)
    graph.add_edge(START, "clerk")
    return graph.compile(), model


async def test_a_handoff_carries_what_hooks_add() -> None:
    hook = specific(additionalContext="mind it")
    async with hooked(AfterTool=lambda _: hook) as (config, events):
        graph, model = pair(config)
        result = await graph.ainvoke(ask("go"), thread("1"))
    assert answer(result) == "written"
    assert "handed over\n\nmind it" in model.requests[0].text
    assert len(named(events, "BeforeAgent")) == 2
    assert {one["session_id"] for one in events} == {"1"}


async def test_a_command_without_a_message_is_left_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hook = specific(additionalContext="mind it")
    async with hooked(AfterTool=lambda _: hook) as (config, _):
        graph, _ = pair(config, silent=True)
        result = await graph.ainvoke(ask("go"))
    assert answer(result) == "written"
    assert "a command without a message drops ['mind it']" in caplog.text


async def test_a_stop_at_a_handoff_ends_the_run() -> None:
    stop = {"continue": False, "stopReason": "enough"}
    async with hooked(AfterTool=lambda _: stop) as (config, _):
        graph, model = pair(config)
        result = await graph.ainvoke(ask("go"))
    assert model.requests == []
    assert answer(result) == "enough"


async def test_a_blocked_handoff_does_not_happen() -> None:
    async with hooked(BeforeTool=deny("stay")) as (config, _):
        graph, model = pair(config)
        result = await graph.ainvoke(ask("go"))
    assert model.requests == []
    assert answer(result) == "the end"


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
async def test_the_tool_node_of_a_graph_can_be_hooked(is_sync: bool) -> None:
    """Graphs of one's own: the tools, by the same middleware."""
    async with hooked(BeforeTool=deny("not that file")) as (config, events):
        own = HooklineMiddleware[None](config)
        node = ToolNode(
            [read],
            wrap_tool_call=own.wrap_tool_call,
            awrap_tool_call=own.awrap_tool_call,
        )
        graph: Any = StateGraph(MessagesState)
        graph.add_node("tools", node)
        graph.add_edge(START, "tools")
        call = {"name": "read", "args": {"path": "a"}, "id": "1"}
        given = {"messages": [AIMessage("", tool_calls=[call])]}
        if is_sync:
            result = graph.compile().invoke(given, thread("1"))
        else:
            result = await graph.compile().ainvoke(given, thread("1"))
    assert answer(result) == "not that file"
    assert named(events, "BeforeTool")[0]["session_id"] == "1"


async def test_a_tool_node_that_handles_errors_gives_them_to_hooks_too() -> None:
    @tool
    def fail() -> str:
        """Fail."""
        raise OSError("no disk")

    hook = specific(additionalContext="mind it")
    async with hooked(AfterTool=lambda _: hook) as (config, events):
        own = HooklineMiddleware[None](config)
        node = ToolNode(
            [fail], handle_tool_errors=True, awrap_tool_call=own.awrap_tool_call
        )
        graph: Any = StateGraph(MessagesState)
        graph.add_node("tools", node)
        graph.add_edge(START, "tools")
        call = {"name": "fail", "args": {}, "id": "1"}
        given = {"messages": [AIMessage("", tool_calls=[call])]}
        result = await graph.compile().ainvoke(given)
    (event,) = named(events, "AfterTool")
    assert "no disk" in event["tool_response"]["error"]["message"]
    assert answer(result).endswith("mind it")


async def test_a_plain_run_within_an_event_loop_does_not_block_its_hooks() -> None:
    """As in a notebook, where a loop is already running in this thread."""
    async with hooked() as (config, events):
        agent, _ = agent_of(config, calls(("read", {"path": "a"})), tools=[read])
        result = agent.invoke(ask("go"))
    assert answer(result) == "the end"
    assert len(named(events, "AfterTool")) == 1


async def test_a_run_that_was_paused_before_its_tools_stays_restricted() -> None:
    only = specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": []})
    async with hooked(BeforeToolSelection=lambda _: only) as (config, events):
        agent, _ = agent_of(
            config,
            calls(("read", {"path": "a"})),
            tools=[read],
            checkpointer=InMemorySaver(),
            interrupt_before=["tools"],
        )
        await agent.ainvoke(ask("go"), thread("1"))
        result = await agent.ainvoke(None, thread("1"))
    assert named(events, "BeforeTool") == []
    assert "not allowed" in repr(result)


async def test_many_threads_at_once_do_not_mix() -> None:
    def block(event: dict[str, Any]) -> dict[str, Any] | None:
        wrong = event["tool_input"]["path"] != event["session_id"]
        return {"decision": "deny", "reason": "mixed up"} if wrong else None

    class Echo(ScriptedChat):
        def _message(self, messages: Any, given: Any) -> AIMessage:
            if isinstance(messages[-1], ToolMessage):
                return AIMessage(str(messages[-1].text))
            path = str(messages[-1].text)
            call = {"name": "read", "args": {"path": path}, "id": path}
            return AIMessage("", tool_calls=[call])

    async with hooked(BeforeTool=block) as (config, _):
        agent: Any = create_agent(
            Echo(reply=lambda _: ScriptedReply()),
            [read],
            middleware=[HooklineMiddleware(config)],
        )
        names = [f"t{at}" for at in range(20)]
        plain = [asyncio.to_thread(agent.invoke, ask(n), thread(n)) for n in names[:10]]
        later = [agent.ainvoke(ask(n), thread(n)) for n in names[10:]]
        results = await asyncio.gather(*plain, *later)
    assert [answer(one) for one in results] == [f"content of {name}" for name in names]
