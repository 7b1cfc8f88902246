"""LangChain: a hook that asks interrupts the run (issue 14 adapters)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

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
    {"type": "edit", "edited_action": {"name": "other", "args": {"path": "b"}}},
    {"type": "edit", "edited_action": {"name": "write"}},
    {"type": "respond"},
    {"decisions": [{"type": "approve"}, {"type": "approve"}]},
    {"decisions": 1},
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


def both(decision: dict[str, Any]) -> list[Any]:
    """A decision as LangChain's middleware takes it: for one call, and for a batch."""
    return [decision, {"decisions": [decision]}]


async def decided(reply: Any, **hooks: Any) -> tuple[Files, str, Events]:
    """What a tool wrote after an answer, and what the model was told."""
    files = Files()
    async with hooked(**{"BeforeTool": asks, **hooks}) as (config, events):
        agent, model = agent_of(
            config, write("ask"), tools=[files.tool()], checkpointer=InMemorySaver()
        )
        for given in (ask("go"), resumes(reply)):
            await agent.ainvoke(given, thread("1"))
    return files, model.requests[1].text, events


@pytest.mark.parametrize("reply", both({"type": "reject", "message": "keep it"}))
async def test_the_message_of_a_rejection_reaches_the_model(reply: Any) -> None:
    files, told, _ = await decided(reply)
    assert files.written == []
    assert "Declined by the user: write ask?" in told
    assert "keep it" in told


@pytest.mark.parametrize("reply", both({"type": "respond", "message": "it is there"}))
async def test_a_person_may_answer_in_place_of_the_tool(reply: Any) -> None:
    files, told, events = await decided(reply)
    assert files.written == []
    assert "it is there" in told
    assert "Declined" not in told
    assert named(events, "AfterTool") == []


def edit(path: str) -> dict[str, Any]:
    action = {"name": "write", "args": {"path": path}}
    return {"type": "edit", "edited_action": action}


@pytest.mark.parametrize("reply", both(edit("b")))
async def test_an_edited_call_runs_and_hooks_judge_it(reply: Any) -> None:
    files, told, events = await decided(reply)
    assert files.written == ["b"]
    assert "wrote b" in told
    paths = [event["tool_input"]["path"] for event in named(events, "BeforeTool")]
    assert paths == ["ask", "ask", "b"]
    assert named(events, "AfterTool")[0]["tool_input"] == {"path": "b"}


async def test_the_history_has_the_edited_call_that_ran() -> None:
    files = Files()
    async with hooked(BeforeTool=asks) as (config, _):
        agent, _ = agent_of(
            config, write("ask"), tools=[files.tool()], checkpointer=InMemorySaver()
        )
        await agent.ainvoke(ask("go"), thread("1"))
        result = await agent.ainvoke(resumes(edit("b")), thread("1"))
    made = [call for m in result["messages"] for call in getattr(m, "tool_calls", ())]
    assert [call["args"] for call in made] == [{"path": "b"}]


async def test_an_edited_call_may_be_blocked() -> None:
    def guard(event: dict[str, Any]) -> dict[str, Any] | None:
        if event["tool_input"]["path"] == "b":
            return {"decision": "deny", "reason": "not b"}
        return asks(event)

    files, told, _ = await decided(edit("b"), BeforeTool=guard)
    assert files.written == []
    assert "not b" in told


class Twice:
    """A hook that asks only on some attempts."""

    def __init__(self, *attempts: str) -> None:
        self._attempts = list(attempts)

    def __call__(self, event: dict[str, Any]) -> dict[str, Any] | None:
        question = self._attempts.pop(0) if self._attempts else ""
        return {"decision": "ask", "reason": question} if question else None


@pytest.mark.parametrize("by_id", [False, True], ids=["plain", "by id"])
@pytest.mark.parametrize("reply", [True, "approve", {"type": "approve"}], ids=repr)
@pytest.mark.parametrize(
    ("attempts", "questions"),
    [
        (["", "really?", "really?", "really?"], ["which?", "really?", "which?"]),
        (["one?", "", ""], ["one?", "which?"]),
        (["one?", "two?", "two?", "two?"], ["one?", "two?", "which?"]),
        (["one?", "one?", "one?"], ["one?", "which?"]),
    ],
    ids=["later", "first only", "another", "same"],
)
async def test_an_answer_counts_for_the_question_that_was_asked(
    attempts: list[str], questions: list[str], reply: Any, by_id: bool
) -> None:
    """Not the answer to a tool's own interrupt for a hook's question, or vice versa."""
    answers: list[Any] = []

    @tool
    def pick(path: str) -> str:
        """Pick a file."""
        answers.append(interrupt({"description": "which?"}))
        return "picked"

    async with hooked(BeforeTool=Twice(*attempts)) as (config, _):
        agent, _ = agent_of(
            config,
            calls(("pick", {"path": "a"})),
            tools=[pick],
            checkpointer=InMemorySaver(),
        )
        result = await agent.ainvoke(ask("go"), thread("1"))
        seen: list[str] = []
        while "__interrupt__" in result and len(seen) < 9:
            (one,) = result["__interrupt__"]
            seen.append(one.value["description"])
            assert answers == []
            given = {one.id: reply} if by_id else reply
            result = await agent.ainvoke(resumes(given), thread("1"))
    assert seen == questions
    assert answers == [reply]
    assert answer(result) == "the end"


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
