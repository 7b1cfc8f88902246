"""Several Strands agents: agents as tools, graphs and swarms.

Issue 14 adapters: SubagentStart and SubagentStop.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("strands", reason="strands-agents is not installed: make adapters")

from strands import Agent, tool
from strands.multiagent import GraphBuilder, Swarm

from hookline.adapters.strands import HooklineHooks
from hookline.agent import ScriptedReply

from .drivers.strands import StrandsModel, approvals, text_of
from .hooks import Event, Hooked, adds, denies, stops

CALL_HELPER = ScriptedReply("", (("helper", {"input": "look around"}),))
CALL_LOOK = ScriptedReply("", (("look", {"path": "a"}),))


@tool
def look(path: str) -> str:
    """Look at a file."""
    return f"content of {path}"


def plain(name: str, *replies: Any, **more: Any) -> Agent:
    """An agent without hooks of its own."""
    return Agent(
        model=StrandsModel(*replies),
        name=name,
        tools=more.pop("tools", [look]),
        callback_handler=None,
        **more,
    )


def lead(hooked: Hooked, helper: Agent, *replies: Any) -> Agent:
    """A hooked agent that calls another one as a tool."""
    hooks = [HooklineHooks(hooked.config)]
    return plain("lead", *replies, tools=[helper.as_tool()], hooks=hooks)


def requests(agent: Any) -> list[Any]:
    return list(agent.model.requests)


async def test_an_agent_as_a_tool_is_a_subagent_with_the_same_hooks() -> None:
    hooked = Hooked()
    helper = plain("helper", CALL_LOOK, "seen it")
    agent = lead(hooked, helper, CALL_HELPER, "done")
    assert str(await agent.invoke_async("go")) == "done\n"
    model = ["BeforeToolSelection", "BeforeModel", "AfterModel"]
    assert hooked.names == [
        *("BeforeAgent", *model, "BeforeTool", "SubagentStart"),
        *(*model, "BeforeTool", "AfterTool", *model),
        *("SubagentStop", "AfterTool", *model, "AfterAgent"),
    ]
    assert {event["session_id"] for event in hooked.seen} == {agent.session_id}
    (start,), (stop,) = hooked.events("SubagentStart"), hooked.events("SubagentStop")
    assert (start["agent_type"], start["prompt"]) == ("helper", "look around")
    assert (stop["agent_id"], stop["prompt_response"]) == (
        start["agent_id"],
        "seen it",
    )


async def test_an_agent_that_was_a_tool_has_turns_of_its_own_when_called() -> None:
    hooked = Hooked()
    helper = plain("helper", "one", "two")
    await lead(hooked, helper, CALL_HELPER).invoke_async("go")
    hooked.seen.clear()
    await helper.invoke_async("and now alone")
    assert hooked.names[0] == "BeforeAgent"
    assert hooked.events("BeforeAgent")[0]["session_id"] == helper.session_id


async def test_a_blocked_subagent_is_an_error_for_its_caller() -> None:
    hooked = Hooked({"SubagentStart": lambda _: denies("no helpers")})
    helper = plain("helper")
    agent = lead(hooked, helper, CALL_HELPER, "done")
    await agent.invoke_async("go")
    result = agent.messages[2]["content"][0]["toolResult"]
    assert (result["status"], text_of(result).strip()) == ("error", "no helpers")
    assert requests(helper) == []


async def test_context_reaches_a_subagent() -> None:
    hooked = Hooked({"SubagentStart": lambda _: adds("be quick")})
    helper = plain("helper", "seen it")
    await lead(hooked, helper, CALL_HELPER).invoke_async("go")
    assert "be quick" in text_of(requests(helper)[0]["messages"])


async def test_a_rejected_subagent_goes_on() -> None:
    def reject(event: Event) -> Any:
        return denies("look again") if event["prompt_response"] == "no idea" else None

    hooked = Hooked({"SubagentStop": reject})
    helper = plain("helper", "no idea", "found it")
    agent = lead(hooked, helper, CALL_HELPER, "done")
    await agent.invoke_async("go")
    assert "look again" in text_of(requests(helper)[1]["messages"])
    assert "found it" in text_of(agent.messages)
    assert "no idea" not in text_of(agent.messages)


async def test_a_stop_in_a_subagent_ends_the_whole_run() -> None:
    def stop(event: Event) -> Any:
        return stops("enough") if event["tool_name"] == "look" else None

    hooked = Hooked({"BeforeTool": stop})
    agent = lead(hooked, plain("helper", CALL_LOOK, "never"), CALL_HELPER, "never")
    assert str(await agent.invoke_async("go")) == "enough\n"
    assert len(requests(agent)) == 1


async def test_a_stop_in_a_subagent_that_waited_for_a_person_ends_the_run() -> None:
    def ask(event: Event) -> Any:
        return {"decision": "ask"} if event["tool_name"] == "look" else None

    hooked = Hooked({"BeforeTool": ask, "AfterTool": lambda _: stops("enough")})
    helper = plain("helper", CALL_LOOK, "never")
    agent = lead(hooked, helper, CALL_HELPER, "never")
    paused = await agent.invoke_async("go")
    assert str(await agent.invoke_async(approvals(paused, True))) == "enough\n"
    assert len(requests(agent)) == len(requests(helper)) == 1


async def test_a_question_of_a_subagent_is_an_interrupt_of_the_whole_run() -> None:
    def ask(event: Event) -> Any:
        return {"decision": "ask"} if event["tool_name"] == "look" else None

    hooked = Hooked({"BeforeTool": ask})
    helper = plain("helper", CALL_LOOK, "seen it")
    agent = lead(hooked, helper, CALL_HELPER, "done")
    paused = await agent.invoke_async("go")
    assert paused.stop_reason == "interrupt"
    assert str(await agent.invoke_async(approvals(paused, True))) == "done\n"
    assert "content of a" in text_of(helper.messages)
    assert hooked.names.count("SubagentStart") == 1
    assert hooked.names.count("SubagentStop") == 1


async def test_a_subagent_with_hooks_of_its_own_keeps_them() -> None:
    own, other = Hooked(), Hooked()
    helper = plain("helper", "seen it", hooks=[HooklineHooks(own.config)])
    agent = lead(other, helper, CALL_HELPER)
    await agent.invoke_async("go")
    assert own.names[0] == "SubagentStart"
    assert {event["session_id"] for event in own.seen} == {agent.session_id}
    assert "SubagentStart" not in other.names
    assert other.names.count("BeforeModel") == 2


def graph_of(hooked: Hooked, *agents: Agent, in_parallel: bool = False) -> Any:
    builder = GraphBuilder()
    nodes = [builder.add_node(agent, agent.name) for agent in agents]
    for first, second in pairwise(nodes):
        if not in_parallel:
            builder.add_edge(first, second)
    builder.set_max_node_executions(9)
    return builder.set_hook_providers([HooklineHooks(hooked.config)]).build()


async def test_the_nodes_of_a_graph_are_subagents() -> None:
    hooked = Hooked({"BeforeAgent": lambda _: adds("it is Monday")})
    first, second = plain("first", "one"), plain("second", "two")
    result = await graph_of(hooked, first, second).invoke_async("the task")
    assert result.status.value == "completed"
    assert [event["prompt"] for event in hooked.events("BeforeAgent")] == ["the task"]
    assert [event["agent_type"] for event in hooked.events("SubagentStart")] == [
        "first",
        "second",
    ]
    assert [event["prompt_response"] for event in hooked.events("SubagentStop")] == [
        "one",
        "two",
    ]
    assert len({event["session_id"] for event in hooked.seen}) == 1
    assert "it is Monday" in text_of(requests(first)[0]["messages"])


async def test_nodes_at_the_same_time_share_one_turn() -> None:
    hooked = Hooked()
    agents = [plain(name, CALL_LOOK, f"by {name}") for name in ("a", "b", "c")]
    graph = graph_of(hooked, *agents, in_parallel=True)
    await graph.invoke_async("the task")
    assert hooked.names.count("BeforeAgent") == 1
    answers = [event["prompt_response"] for event in hooked.events("SubagentStop")]
    assert sorted(answers) == ["by a", "by b", "by c"]
    await graph.invoke_async("another")
    assert hooked.names.count("BeforeAgent") == 2


@pytest.mark.parametrize("output", [denies("no"), stops("no")], ids=["block", "stop"])
async def test_a_refused_task_reaches_no_node_of_a_graph(output: Any) -> None:
    hooked = Hooked({"BeforeAgent": lambda _: output})
    first, second = plain("first"), plain("second")
    result = await graph_of(hooked, first, second).invoke_async("the task")
    assert requests(first) == requests(second) == []
    assert "SubagentStart" not in hooked.names
    assert str(result.results["second"].result) == "no\n"


async def test_a_stop_in_one_node_keeps_the_next_from_starting() -> None:
    def stop(event: Event) -> Any:
        return stops("enough") if event["llm_response"]["text"] == "one" else None

    hooked = Hooked({"AfterModel": stop})
    first, second = plain("first", "one"), plain("second", "two")
    result = await graph_of(hooked, first, second).invoke_async("the task")
    assert str(result.results["second"].result) == "enough\n"
    assert requests(second) == []


def test_a_graph_is_called_from_plain_code() -> None:
    hooked = Hooked()
    graph = graph_of(hooked, plain("first", "one"), plain("second", "two"))
    assert graph("the task").status.value == "completed"
    assert hooked.names.count("SubagentStop") == 2
    asyncio.run(hooked.config.dispose())


async def test_the_agents_of_a_swarm_are_subagents() -> None:
    handoff = {"agent_name": "second", "message": "your turn"}
    first = plain("first", ScriptedReply("", (("handoff_to_agent", handoff),)), "over")
    second = plain("second", "done")
    hooked = Hooked()
    swarm = Swarm([first, second], hooks=[HooklineHooks(hooked.config)])
    result = await swarm.invoke_async("the task")
    assert [node.node_id for node in result.node_history] == ["first", "second"]
    assert [event["agent_type"] for event in hooked.events("SubagentStart")] == [
        "first",
        "second",
    ]
    assert [event["tool_name"] for event in hooked.events("BeforeTool")] == [
        "handoff_to_agent"
    ]
    assert len({event["session_id"] for event in hooked.seen}) == 1


async def test_a_blocked_handoff_stays_where_it_is() -> None:
    handoff = {"agent_name": "second", "message": "your turn"}
    first = plain("first", ScriptedReply("", (("handoff_to_agent", handoff),)), "alone")
    hooked = Hooked({"BeforeTool": lambda _: denies("no handoffs")})
    second = plain("second")
    swarm = Swarm([first, second], hooks=[HooklineHooks(hooked.config)])
    result = await swarm.invoke_async("the task")
    assert [node.node_id for node in result.node_history] == ["first"]
    assert requests(second) == []


async def test_a_graph_in_a_graph_is_a_subagent_whose_stop_ends_both() -> None:
    def stop(event: Event) -> Any:
        return stops("enough") if event["llm_response"]["text"] == "one" else None

    hooked = Hooked({"AfterModel": stop})
    nodes = GraphBuilder().set_max_node_executions(9)
    first = plain("first", "one")
    nodes.add_node(first, "first")
    inner = nodes.build()
    last = plain("last", "three")
    builder = GraphBuilder()
    builder.add_edge(builder.add_node(inner, "inner"), builder.add_node(last, "last"))
    builder.set_max_node_executions(9)
    outer = builder.set_hook_providers([HooklineHooks(hooked.config)]).build()
    result = await outer.invoke_async("the task")
    assert len(requests(first)) == 1
    assert requests(last) == []
    assert str(result.results["last"].result) == "enough\n"
    kinds = [event["agent_type"] for event in hooked.events("SubagentStart")]
    assert kinds == ["inner", "first"]


async def test_a_question_in_a_graph_pauses_it_and_keeps_its_turn() -> None:
    hooked = Hooked({"BeforeTool": lambda _: {"decision": "ask"}})
    first, second = plain("first", CALL_LOOK, "one"), plain("second", "two")
    graph = graph_of(hooked, first, second)
    paused = await graph.invoke_async("the task")
    assert paused.status.value == "interrupted"
    result = await graph.invoke_async(approvals(paused, True))
    assert result.status.value == "completed"
    assert "content of a" in text_of(first.messages)
    assert hooked.names.count("BeforeAgent") == 1
    assert hooked.names.count("SubagentStart") == 2
    assert len({event["session_id"] for event in hooked.seen}) == 1
