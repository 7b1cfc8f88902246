"""LangChain: a hook that asks interrupts the run (issue 14 adapters)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from hookline.agent import Confirmation

from .langchain_scenes import (
    Events,
    agent_of,
    answer,
    ask,
    calls,
    hooked,
    named,
    thread,
)


def asks(event: dict[str, Any]) -> dict[str, Any] | None:
    """Ask about some paths, stop at another."""
    path = event["tool_input"]["path"]
    if path == "stop":
        return {"continue": False, "stopReason": "enough"}
    question = {"decision": "ask", "reason": f"write {path}?"}
    return question if path.startswith("ask") else None


class Files:
    """A tool that notes what it wrote."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def tool(self) -> Any:
        """The tool for an agent."""

        @tool
        def write(path: str) -> str:
            """Write a file."""
            self.written.append(path)
            return f"wrote {path}"

        return write


def write(*paths: str) -> Any:
    return calls(*(("write", {"path": path}) for path in paths))


def resumes(value: Any) -> Command[Any]:
    return Command(resume=value)


APPROVALS: list[Any] = [
    True,
    "approve",
    {"type": "approve"},
    {"decisions": [{"type": "approve"}]},
]
REJECTIONS: list[Any] = [
    False,
    "no",
    1,
    {"type": "reject", "message": "keep it"},
    {"type": "edit", "edited_action": {"name": "write", "args": {"path": "b"}}},
    {"decisions": [{"type": "approve"}, {"type": "approve"}]},
    {"approve": True},
    [],
]


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
@pytest.mark.parametrize("reply", [*APPROVALS, *REJECTIONS], ids=repr)
async def test_only_a_clear_yes_lets_the_tool_run(reply: Any, is_sync: bool) -> None:
    files = Files()
    async with hooked(BeforeTool=asks) as (config, _):
        agent, model = agent_of(
            config, write("ask"), tools=[files.tool()], checkpointer=InMemorySaver()
        )
        for given in (ask("go"), resumes(reply)):
            if is_sync:
                result = await asyncio.to_thread(agent.invoke, given, thread("1"))
            else:
                result = await agent.ainvoke(given, thread("1"))
    approved = reply in APPROVALS[1:] or reply is True
    assert files.written == (["ask"] if approved else [])
    assert answer(result) == "the end"
    assert ("wrote ask" in model.requests[1].text) is approved
    assert ("Declined by the user" in model.requests[1].text) is not approved


async def test_the_question_is_an_interrupt_of_langgraph() -> None:
    async with hooked(BeforeTool=asks) as (config, events):
        agent, _ = agent_of(
            config, write("ask"), tools=[Files().tool()], checkpointer=InMemorySaver()
        )
        result = await agent.ainvoke(ask("go"), thread("1"))
    (interrupt,) = result["__interrupt__"]
    assert interrupt.value == {
        "type": "tool_approval",
        "tool_call_id": "call-0-0",
        "name": "write",
        "args": {"path": "ask"},
        "description": "write ask?",
    }
    assert len(named(events, "Notification")) == 1
    assert named(events, "AfterAgent") == []


async def test_hooks_run_once_more_when_the_run_goes_on() -> None:
    """LangGraph starts the interrupted step again; nothing else fires twice."""
    async with hooked(BeforeTool=asks) as (config, events):
        agent, _ = agent_of(
            config, write("ask"), tools=[Files().tool()], checkpointer=InMemorySaver()
        )
        await agent.ainvoke(ask("go"), thread("1"))
        assert len(named(events, "BeforeTool")) == 1
        await agent.ainvoke(resumes(True), thread("1"))
    assert len(named(events, "BeforeTool")) == 2
    assert len(named(events, "AfterTool")) == len(named(events, "AfterAgent")) == 1


async def test_a_run_goes_on_in_another_process() -> None:
    """A new agent with new hooks, but the same checkpoints."""
    files, saver = Files(), InMemorySaver()
    seen: Events = []
    for given in (ask("go"), resumes(True)):
        async with hooked(BeforeTool=asks) as (config, events):
            replies = (write("ask"),) if not seen else ("all done",)
            agent, _ = agent_of(
                config, *replies, tools=[files.tool()], checkpointer=saver
            )
            result = await agent.ainvoke(given, thread("1"))
            seen += events
    assert files.written == ["ask"]
    assert answer(result) == "all done"
    assert len(named(seen, "BeforeAgent")) == len(named(seen, "AfterAgent")) == 1
    (after,) = named(seen, "AfterAgent")
    assert (after["prompt"], after["prompt_response"]) == ("go", "all done")


async def test_parallel_questions_are_answered_apart() -> None:
    files = Files()
    async with hooked(BeforeTool=asks) as (config, _):
        agent, _ = agent_of(
            config,
            write("ask-1", "free", "ask-2"),
            tools=[files.tool()],
            checkpointer=InMemorySaver(),
        )
        result = await agent.ainvoke(ask("go"), thread("1"))
        assert files.written == ["free"]
        answers = {
            one.id: one.value["args"]["path"] == "ask-2"
            for one in result["__interrupt__"]
        }
        result = await agent.ainvoke(resumes(answers), thread("1"))
    assert files.written == ["free", "ask-2"]
    assert answer(result) == "the end"


async def test_a_stop_beside_a_question_holds_after_the_answer() -> None:
    files = Files()
    async with hooked(BeforeTool=asks) as (config, events):
        agent, model = agent_of(
            config,
            write("ask", "stop"),
            tools=[files.tool()],
            checkpointer=InMemorySaver(),
        )
        await agent.ainvoke(ask("go"), thread("1"))
        result = await agent.ainvoke(resumes(True), thread("1"))
        assert answer(result) == "enough"
        assert len(model.requests) == 1
        assert named(events, "AfterAgent") == []
        # The next turn is a new one.
        result = await agent.ainvoke(ask("and now?"), thread("1"))
    assert answer(result) == "the end"


async def test_a_question_in_a_subagent_interrupts_the_whole_run() -> None:
    files = Files()
    async with hooked(BeforeTool=asks) as (config, events):
        scout, _ = agent_of(
            config, write("ask"), "found it", tools=[files.tool()], name="scout"
        )

        @tool
        async def research(path: str) -> str:
            """Ask the scout."""
            return answer(await scout.ainvoke(ask(path)))

        agent, model = agent_of(
            config,
            calls(("research", {"path": "x"})),
            tools=[research],
            checkpointer=InMemorySaver(),
        )
        await agent.ainvoke(ask("go"), thread("1"))
        assert files.written == []
        await agent.ainvoke(resumes(True), thread("1"))
    assert files.written == ["ask"]
    assert "found it" in model.requests[1].text
    assert (
        len(named(events, "SubagentStart")) == len(named(events, "SubagentStop")) == 1
    )


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
async def test_confirm_is_asked_instead_of_an_interrupt(is_sync: bool) -> None:
    files = Files()
    asked: list[str] = []

    async def confirm(question: Confirmation) -> bool:
        asked.append(question.reason)
        return True

    async with hooked(BeforeTool=asks) as (config, _):
        agent, _ = agent_of(
            config,
            write("ask"),
            tools=[files.tool()],
            checkpointer=InMemorySaver(),
            confirm=confirm,
        )
        if is_sync:
            await asyncio.to_thread(agent.invoke, ask("go"), thread("1"))
        else:
            await agent.ainvoke(ask("go"), thread("1"))
    assert asked == ["write ask?"]
    assert files.written == ["ask"]


@pytest.mark.parametrize("decides", ["allow", "block"])
async def test_without_checkpointer_the_settings_decide(decides: str) -> None:
    files = Files()
    async with hooked({"onAsk": decides}, BeforeTool=asks) as (config, _):
        agent, _ = agent_of(config, write("ask"), tools=[files.tool()])
        await agent.ainvoke(ask("go"), thread("1"))
    assert files.written == (["ask"] if decides == "allow" else [])
