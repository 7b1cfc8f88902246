"""Google ADK: several agents in one run (protocol.md#events, issue 14 adapters)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="google-adk has an environment of its own")

from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import START, Workflow

from hookline.agent import ScriptedReply

from .adk_support import Hooks, Kit, deny, function_responses, specific, stop
from .drivers.google_adk import (
    ScriptedLlm,
    answer_of,
    call,
    offered,
    scripted,
    sent,
    text_of,
)

pytestmark = [
    # ADK prefers graphs to its workflow agents, which are what people have.
    pytest.mark.filterwarnings(
        "ignore:.*Agent is deprecated in favor of Workflow:DeprecationWarning"
    ),
    # This is how AgentTool hands on the plugins of its caller.
    pytest.mark.filterwarnings(
        "ignore:The `plugins` argument is deprecated:DeprecationWarning"
    ),
]


def agent(name: str, *replies: Any, **options: Any) -> LlmAgent:
    return LlmAgent(name=name, model=scripted(*(replies or [f"{name}!"])), **options)


def requests(of: LlmAgent) -> list[str]:
    assert isinstance(of.model, ScriptedLlm)
    return [sent(one) for one in of.model.seen]


class Steps:
    """A tool that notes who called it."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def step(self, who: str) -> str:
        """Do one step."""
        self.ran.append(who)
        return f"step of {who}"


def types_of(hooks: Hooks, event: str) -> list[str]:
    return [one["agent_type"] for one in hooks.seen(event)]


async def test_an_agent_as_a_tool_is_a_subagent_of_the_same_session() -> None:
    """Its own runner and session are ADK's business: hooks see one conversation."""
    steps = Steps()
    child = agent("child", call("step", who="child"), "done", tools=[steps.step])
    hooks = Hooks()
    for event in ("BeforeAgent", "SubagentStart", "BeforeTool", "SubagentStop"):
        hooks.on(event)
    hooks.on("AfterAgent")
    boss = agent("boss", call("child", request="work"), tools=[AgentTool(child)])
    assert await Kit(hooks, boss).ask("go") == "the end"
    assert hooks.names == [
        *("BeforeAgent", "BeforeTool", "SubagentStart", "BeforeTool"),
        *("SubagentStop", "AfterAgent"),
    ]
    assert {one["session_id"] for one in hooks.events} == {"s1"}
    start, end = hooks.seen("SubagentStart")[0], hooks.seen("SubagentStop")[0]
    assert (start["agent_type"], start["prompt"]) == ("child", "work")
    assert end["prompt_response"] == "done"
    assert start["agent_id"] == end["agent_id"]


async def test_a_stop_in_an_agent_as_a_tool_ends_the_whole_run() -> None:
    steps = Steps()
    child = agent("child", call("step", who="child"), tools=[steps.step])
    hooks = (
        Hooks()
        .on("AfterAgent")
        .on("BeforeTool", lambda e: stop("halt") if e["tool_name"] == "step" else None)
    )
    boss = agent("boss", call("child", request="work"), tools=[AgentTool(child)])
    assert await Kit(hooks, boss).ask("go") == "halt"
    assert steps.ran == []
    assert len(requests(boss)) == 1
    assert hooks.seen("AfterAgent") == []


async def test_a_rejected_answer_of_an_agent_as_a_tool_is_the_reason() -> None:
    hooks = Hooks().on("SubagentStop", lambda _: deny("sources missing"))
    boss = agent("boss", call("child", request="x"), tools=[AgentTool(agent("child"))])
    (result,) = function_responses(await Kit(hooks, boss).say("go"))
    assert result == {"result": "sources missing"}


async def test_a_question_in_an_agent_as_a_tool_is_decided_by_the_settings() -> None:
    """ADK cannot resume it, so that nobody could answer."""
    steps = Steps()
    child = agent("child", call("step", who="child"), tools=[steps.step])
    hooks = Hooks().on(
        "BeforeTool",
        lambda e: (
            {"decision": "ask", "reason": "?"} if "who" in e["tool_input"] else None
        ),
    )
    boss = agent("boss", call("child", request="work"), tools=[AgentTool(child)])
    assert await Kit(hooks, boss).ask("go") == "the end"
    assert steps.ran == []
    assert "confirmation is not available" in requests(child)[-1]


async def test_a_transfer_is_a_tool_call_and_starts_a_subagent() -> None:
    child = agent("child", "first", "second")
    boss = agent(
        "boss", call("transfer_to_agent", agent_name="child"), sub_agents=[child]
    )
    hooks = Hooks().on("BeforeTool").on("SubagentStart").on("SubagentStop")
    kit = Kit(hooks, boss)
    assert await kit.ask("go") == "first"
    assert hooks.names == ["BeforeTool", "SubagentStart", "SubagentStop"]
    assert await kit.ask("more") == "second"  # ADK goes on with the subagent
    assert types_of(hooks, "SubagentStart") == ["child", "child"]
    assert hooks.seen("SubagentStart")[1]["prompt"] == "more"


async def test_a_blocked_subagent_does_not_run_and_the_others_do() -> None:
    first, second = agent("first"), agent("second")
    hooks = Hooks().on(
        "SubagentStart",
        lambda e: deny("not him") if e["agent_type"] == "first" else None,
    )
    flow = SequentialAgent(name="flow", sub_agents=[first, second])
    events = await Kit(hooks, flow).say("go")
    assert [text_of(one) for one in events] == ["not him", "second!"]
    assert requests(first) == []


async def test_context_for_a_subagent_is_in_its_requests_alone() -> None:
    first, second = agent("first"), agent("second")
    hooks = Hooks().on(
        "SubagentStart",
        lambda e: (
            specific(additionalContext="be kind")
            if e["agent_type"] == "first"
            else None
        ),
    )
    await Kit(hooks, SequentialAgent(name="flow", sub_agents=[first, second])).say("go")
    assert "be kind" in requests(first)[0]
    assert "be kind" not in requests(second)[0]


@pytest.mark.parametrize("kind", [SequentialAgent, ParallelAgent, LoopAgent])
async def test_a_stop_ends_every_agent_of_a_workflow(kind: Any) -> None:
    steps = Steps()
    first = agent("first", call("step", who="first"), tools=[steps.step])
    second = agent("second", call("step", who="second"), tools=[steps.step])
    hooks = Hooks().on("BeforeTool", lambda _: stop("halt"))
    flow = kind(name="flow", sub_agents=[first, second])
    events = await Kit(hooks, flow).say("go")
    assert answer_of(events) == "halt"
    assert len([one for one in events if text_of(one) == "halt"]) <= 2
    assert steps.ran == []


async def test_a_stop_when_a_subagent_starts_ends_a_loop() -> None:
    hooks = Hooks().on("SubagentStart", lambda _: stop("halt"))
    flow = LoopAgent(name="flow", sub_agents=[agent("first")])
    events = await Kit(hooks, flow).say("go")
    assert [text_of(one) for one in events] == ["halt"]


async def test_a_cancelled_subagent_has_no_answer() -> None:
    waiting = asyncio.Event()

    async def wait() -> str:
        """Wait for ever."""
        waiting.set()
        await asyncio.Event().wait()
        return ""

    hooks = Hooks().on("SubagentStart").on("SubagentStop")
    child = agent("child", call("wait"), tools=[wait])
    kit = Kit(hooks, SequentialAgent(name="flow", sub_agents=[child]))
    run = asyncio.create_task(kit.say("go"))
    await waiting.wait()
    run.cancel()
    await asyncio.wait([run])
    assert hooks.names == ["SubagentStart"]


async def test_agents_at_once_have_tools_of_their_own() -> None:
    """What hooks take from one of them is not taken from another."""
    steps = Steps()
    first, second = (
        agent(name, call("step", who=name), tools=[steps.step]) for name in "ab"
    )

    def only_once(_: Any) -> Any:
        is_first = len(hooks.seen("BeforeToolSelection")) == 1
        return specific(toolConfig={"mode": "NONE"}) if is_first else None

    hooks = Hooks().on("BeforeToolSelection", only_once)
    await Kit(hooks, ParallelAgent(name="flow", sub_agents=[first, second])).say("go")
    models = [one.model for one in (first, second)]
    allowed = [
        name
        for name, model in zip("ab", models, strict=True)
        if isinstance(model, ScriptedLlm) and offered(model.seen[0])
    ]
    assert len(allowed) == 1
    assert steps.ran == allowed


async def test_agents_of_a_graph_are_subagents() -> None:
    steps = Steps()
    first, second = agent("first"), agent("second", call("step", who="second"))
    second.tools = [steps.step]
    hooks = Hooks().on("BeforeAgent").on("SubagentStart").on("BeforeTool")
    hooks.on("SubagentStop").on("AfterAgent")
    flow = Workflow(name="flow", edges=[(START, first, second)])
    events = await Kit(hooks, flow).say("go")
    assert answer_of(events) == "the end"
    assert types_of(hooks, "SubagentStart") == ["first", "second"]
    assert types_of(hooks, "SubagentStop") == ["first", "second"]
    assert hooks.names[0] == "BeforeAgent"
    assert hooks.names[-1] == "AfterAgent"
    assert steps.ran == ["second"]


async def test_an_inline_subagent_gets_its_own_prompt() -> None:
    child = agent("child", mode="single_turn")
    boss = agent("boss", call("child", request="work"), sub_agents=[child])
    hooks = Hooks().on("SubagentStart").on("AfterTool")
    await Kit(hooks, boss).say("go")
    assert [one["prompt"] for one in hooks.seen("SubagentStart")] == ["work"]
    (result,) = hooks.seen("AfterTool")
    assert result["tool_response"]["llmContent"] == "child!"


async def test_a_task_that_hooks_block_does_not_start_in_later_turns_either() -> None:
    """ADK starts the agent of a task by itself, without the callbacks of a tool."""
    child = agent("child", call("finish_task", result="42"), mode="task")
    boss = agent("boss", call("child", request="work"), sub_agents=[child])
    hooks = Hooks().on(
        "BeforeTool", lambda e: deny("no tasks") if e["tool_name"] == "child" else None
    )
    kit = Kit(hooks, boss)
    assert "no tasks" in await kit.ask("go")
    await kit.say("and now?")
    assert requests(child) == []


async def test_a_task_runs_with_its_changed_input() -> None:
    child = agent("child", call("finish_task", result="42"), mode="task")
    boss = agent("boss", call("child", request="work"), sub_agents=[child])
    hooks = Hooks().on(
        "BeforeTool",
        lambda e: (
            specific(tool_input={"request": "rest"})
            if e["tool_name"] == "child"
            else None
        ),
    )
    await Kit(hooks, boss).say("go")
    assert "rest" in requests(child)[0]
    assert "work" not in requests(child)[0]


async def test_a_rejected_answer_of_a_workflow_runs_it_again() -> None:
    first, second = agent("first", "a", "b"), agent("second", "draft", "good")
    hooks = Hooks().on(
        "AfterAgent",
        lambda e: deny("again") if e["prompt_response"] == "draft" else None,
    )
    flow = SequentialAgent(name="flow", sub_agents=[first, second])
    events = await Kit(hooks, flow).say("go")
    assert [text_of(one) for one in events] == ["a", "b", "good"]
    assert "again" in requests(second)[-1]


async def test_a_stop_reaches_an_agent_that_works_for_a_tool_call() -> None:
    """A run that is nested in a stopped one makes no further calls."""
    begun = asyncio.Event()

    async def slow() -> str:
        """Work until the other call has stopped the run."""
        begun.set()
        runs = kit.plugin._invocations
        while not any(  # noqa: ASYNC110 - a run has no event to wait for
            one.run.stop_reason for one in runs.values()
        ):
            await asyncio.sleep(0)
        return "slow"

    async def quick() -> str:
        """End while the other one works."""
        await begun.wait()
        return "quick"

    def after(event: dict[str, Any]) -> Any:
        return stop("halt") if event["tool_name"] == "quick" else None

    child = agent("child", call("slow"), tools=[slow])
    both = ScriptedReply(calls=(("child", {"request": "x"}), ("quick", {})))
    boss = agent("boss", both, tools=[AgentTool(child), quick])
    kit = Kit(Hooks().on("AfterTool", after), boss)
    assert await kit.ask("go") == "halt"
    assert len(requests(child)) == 1
