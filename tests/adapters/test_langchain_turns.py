"""LangChain: turns, threads, subagents and structured output (issue 14 adapters)."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel

from hookline.adapters.langchain import HooklineMiddleware
from hookline.agent import ScriptedReply

from .drivers.langchain import ScriptedChat
from .langchain_scenes import (
    SECRET,
    agent_of,
    answer,
    ask,
    calls,
    deny,
    hooked,
    named,
    redact,
    specific,
    thread,
)


class Weather(BaseModel):
    """An answer with fields."""

    city: str
    note: str = ""


def picture(text: str) -> list[str | dict[Any, Any]]:
    """The content of a message with a text and an image."""
    return [{"type": "text", "text": text}, {"type": "image", "url": "https://x/a"}]


async def test_a_blocked_prompt_is_not_sent_in_a_later_turn_either() -> None:
    def block(event: dict[str, Any]) -> dict[str, Any] | None:
        return None if event["prompt"] == "hello" else deny("not that")(event)

    async with hooked(BeforeAgent=block) as (config, events):
        agent, model = agent_of(config, checkpointer=InMemorySaver())
        first = await agent.ainvoke(ask(f"the {SECRET}"), thread("1"))
        second = await agent.ainvoke(ask("hello"), thread("1"))
    assert answer(first) == "not that"
    assert answer(second) == "the end"
    assert SECRET not in model.requests[0].text
    assert SECRET not in repr(second)
    assert len(named(events, "AfterAgent")) == 1


async def test_every_message_of_the_person_is_part_of_the_prompt() -> None:
    async with hooked() as (config, events):
        agent, _ = agent_of(config)
        await agent.ainvoke({"messages": [HumanMessage("one"), HumanMessage("two")]})
    assert named(events, "BeforeAgent")[0]["prompt"] == "one\n\ntwo"


async def test_a_system_message_does_not_hide_a_part_of_the_prompt() -> None:
    messages = [HumanMessage("one"), SystemMessage("be brief"), HumanMessage("two")]
    async with hooked() as (config, events):
        agent, _ = agent_of(config)
        await agent.ainvoke({"messages": messages})
    assert [one["prompt"] for one in named(events, "BeforeAgent")] == ["one\n\ntwo"]


@pytest.mark.parametrize(
    ("kept", "expected"),
    [(0, "hi"), (1, "You know [redacted].\nhi")],
    ids=["removed", "edited"],
)
async def test_hooks_see_and_change_the_system_prompt(kept: int, expected: str) -> None:
    seen: list[dict[str, Any]] = []

    def change(event: dict[str, Any]) -> dict[str, Any]:
        system, *others = event["llm_request"]["messages"]
        seen.append(system)
        new = {**system, "content": system["content"].replace(SECRET, "[redacted]")}
        return specific(llm_request={"messages": [*[new][:kept], *others]})

    async with hooked(BeforeModel=change) as (config, _):
        agent, model = agent_of(config, system_prompt=f"You know {SECRET}.")
        await agent.ainvoke(ask("hi"))
    assert seen == [{"role": "system", "content": f"You know {SECRET}."}]
    assert model.requests[0].text == expected


async def test_context_joins_a_prompt_with_pictures() -> None:
    blocks = picture("look")
    hook = specific(additionalContext="it is Monday")
    async with hooked(BeforeAgent=lambda _: hook) as (config, events):
        agent, model = agent_of(config)
        result = await agent.ainvoke({"messages": [HumanMessage(blocks)]})
    assert named(events, "BeforeAgent")[0]["prompt"] == "look"
    assert "it is Monday" in model.requests[0].text
    assert [one["type"] for one in result["messages"][0].content] == [
        *("text", "image", "text")
    ]


async def test_a_thread_is_a_session() -> None:
    async with hooked() as (config, events):
        agent, _ = agent_of(config, "one", "two", "three")
        await agent.ainvoke(ask("hi"), thread("a"))
        await asyncio.to_thread(agent.invoke, ask("hi"), thread("b"))
        await agent.ainvoke(ask("hi"))
    ids = [one["session_id"] for one in named(events, "BeforeModel")]
    assert ids == ["a", "b", "own"]


async def test_a_session_that_was_given_stays() -> None:
    async with hooked() as (config, events):
        session = config.session("mine", transcript_path="/t.jsonl")
        model = ScriptedChat(reply=lambda _: ScriptedReply("done"))
        agent: Any = create_agent(model, middleware=[HooklineMiddleware(session)])
        await agent.ainvoke(ask("hi"), thread("a"))
    seen = {(one["session_id"], one["transcript_path"]) for one in events}
    assert seen == {("mine", "/t.jsonl")}


async def test_a_hook_may_clear_the_history() -> None:
    hook = specific(clearContext=True)
    async with hooked(AfterAgent=lambda _: hook) as (config, _):
        agent, model = agent_of(config, "one", "two", checkpointer=InMemorySaver())
        await agent.ainvoke(ask("first"), thread("1"))
        result = await agent.ainvoke(ask("second"), thread("1"))
    assert [str(one.text) for one in result["messages"]] == ["second", "two"]
    assert "first" in model.requests[1].text  # cleared after its own turn only


async def test_a_system_message_after_the_model_is_in_the_next_request() -> None:
    @tool
    def read() -> str:
        """Read."""
        return "content"

    async with hooked(AfterModel=lambda _: {"systemMessage": "be brief"}) as (
        config,
        _,
    ):
        agent, model = agent_of(
            config, calls(("read", {})), tools=[read], system_prompt="You help."
        )
        await agent.ainvoke(ask("hi"))
    assert "be brief" not in model.requests[0].text
    assert model.requests[1].text.startswith("You help.\n\nbe brief")


async def test_a_changed_request_keeps_what_hooks_do_not_see() -> None:
    def change(event: dict[str, Any]) -> dict[str, Any]:
        messages = [
            {**one, "content": "edited"} for one in event["llm_request"]["messages"]
        ]
        request = {"messages": messages, "config": {"temperature": 0.5}, "model": "m-2"}
        return specific(llm_request=request, additionalContext="mind it")

    sent: list[Any] = []

    class Listening(ScriptedChat):
        def _message(self, messages: Any, given: Any) -> AIMessage:
            sent.extend(messages)
            return super()._message(messages, given)

    blocks = picture("look")
    async with hooked(BeforeModel=change) as (config, _):
        model = Listening(reply=lambda _: ScriptedReply("done"))
        agent: Any = create_agent(model, middleware=[HooklineMiddleware(config)])
        result = await agent.ainvoke({"messages": [HumanMessage(blocks)]})
    assert sent[0].content == [{"type": "text", "text": "edited"}, blocks[1]]
    assert sent[-1].text == "mind it"
    assert model.settings == [{"temperature": 0.5, "model": "m-2"}]
    assert result["messages"][0].content == blocks  # the history is the person's own


async def test_calls_and_results_stay_where_a_hook_removes_the_text() -> None:
    @tool
    def read() -> str:
        """Read."""
        return "content"

    sent: list[list[Any]] = []

    class Listening(ScriptedChat):
        def _message(self, messages: Any, given: Any) -> AIMessage:
            sent.append(messages)
            return super()._message(messages, given)

    def change(event: dict[str, Any]) -> dict[str, Any]:
        messages = [
            {"role": "system", "content": "be brief"},
            {"role": "model", "content": "as I said"},
            {"role": "user", "content": "anew"},
        ]
        return specific(llm_request={"messages": messages})

    replies = [calls(("read", {}), text="let me see"), ScriptedReply("done")]
    async with hooked(BeforeModel=change) as (config, _):
        model = Listening(reply=lambda at: replies[at])
        agent: Any = create_agent(
            model, [read], middleware=[HooklineMiddleware(config)]
        )
        await agent.ainvoke(ask("go"))
    assert [(one.type, str(one.text)) for one in sent[0]] == [
        ("system", "be brief"),
        ("ai", "as I said"),
        ("human", "anew"),
    ]
    kinds = [one.type for one in sent[1]]
    assert kinds.index("tool") - 1 == next(
        at for at, one in enumerate(sent[1]) if getattr(one, "tool_calls", None)
    )
    assert "let me see" not in repr(sent[1])
    assert kinds.count("system") == 1


async def test_hooks_judge_a_structured_answer() -> None:
    def reject(event: dict[str, Any]) -> dict[str, Any] | None:
        bad = "Atlantis" in event["prompt_response"]
        return {"decision": "deny", "reason": "no such city"} if bad else None

    async with hooked(AfterAgent=reject) as (config, events):
        agent, model = agent_of(
            config,
            calls(("Weather", {"city": "Atlantis"})),
            calls(("Weather", {"city": "Oslo"})),
            response_format=ToolStrategy(Weather),
        )
        result = await agent.ainvoke(ask("where?"))
    assert result["structured_response"] == Weather(city="Oslo")
    assert "no such city" in model.requests[1].text
    assert len(named(events, "AfterAgent")) == 2


async def test_a_blocked_turn_has_no_structured_answer_of_an_earlier_one() -> None:
    def block(event: dict[str, Any]) -> dict[str, Any] | None:
        return None if event["prompt"] == "where?" else deny("no")(event)

    async with hooked(BeforeAgent=block) as (config, _):
        agent, _ = agent_of(
            config,
            calls(("Weather", {"city": "Oslo"})),
            response_format=ToolStrategy(Weather),
            checkpointer=InMemorySaver(),
        )
        await agent.ainvoke(ask("where?"), thread("1"))
        result = await agent.ainvoke(ask("and now?"), thread("1"))
    assert answer(result) == "no"
    assert result["structured_response"] is None


async def test_a_rejected_structured_answer_is_not_left_behind() -> None:
    async with hooked(AfterAgent=deny("never")) as (config, _):
        agent, _ = agent_of(
            config,
            *[calls(("Weather", {"city": "Oslo"}))] * 9,
            response_format=ToolStrategy(Weather),
        )
        result = await agent.ainvoke(ask("where?"))
    assert result["structured_response"] is None
    assert answer(result) == "never"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"city": "Oslo", "note": "s3cret"}', Weather(city="Oslo", note="[redacted]")),
        ('{"city": "Oslo", "s3cret": "s3cret"}', Weather(city="Oslo")),
    ],
)
async def test_a_changed_structured_answer_is_read_again(
    reply: str, expected: Weather
) -> None:
    async with hooked(AfterModel=redact) as (config, _):
        agent, _ = agent_of(config, reply, response_format=ProviderStrategy(Weather))
        result = await agent.ainvoke(ask("where?"))
    assert result["structured_response"] == expected
    assert SECRET not in repr(result)


async def test_a_structured_answer_that_hooks_broke_is_none() -> None:
    hook = specific(llm_response={"text": "not for you"})
    async with hooked(AfterModel=lambda _: hook) as (config, _):
        agent, _ = agent_of(
            config, '{"city": "Oslo"}', response_format=ProviderStrategy(Weather)
        )
        result = await agent.ainvoke(ask("where?"))
    assert result["structured_response"] is None
    assert answer(result) == "not for you"


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
async def test_an_agent_in_a_tool_is_a_subagent(is_sync: bool) -> None:
    async with hooked() as (config, events):
        scout, _ = agent_of(config, "found it", name="scout")

        @tool
        def research(question: str) -> str:
            """Ask the scout."""
            return answer(scout.invoke(ask(question)))

        reply = calls(("research", {"question": "where?"}))
        agent, model = agent_of(config, reply, tools=[research])
        if is_sync:
            await asyncio.to_thread(agent.invoke, ask("go"), thread("1"))
        else:
            await agent.ainvoke(ask("go"), thread("1"))
    names = [one["hook_event_name"] for one in events]
    assert names.count("BeforeAgent") == names.count("AfterAgent") == 1
    assert names.index("BeforeTool") < names.index("SubagentStart")
    assert names.index("SubagentStop") < names.index("AfterTool")
    (start,), (stop,) = named(events, "SubagentStart"), named(events, "SubagentStop")
    assert (start["agent_type"], start["prompt"]) == ("scout", "where?")
    assert stop["agent_id"] == start["agent_id"]
    assert stop["prompt_response"] == "found it"
    assert {one["session_id"] for one in events} == {"1"}
    assert "found it" in model.requests[1].text


@pytest.mark.parametrize(
    ("hooks", "expected"),
    [
        ({"SubagentStart": deny("no scouts")}, "no scouts"),
        (
            {
                "SubagentStop": lambda event: (
                    None if event["stop_hook_active"] else deny("look again")(event)
                )
            },
            "found it",
        ),
    ],
    ids=["blocked", "rejected"],
)
async def test_hooks_decide_about_a_subagent(hooks: Any, expected: str) -> None:
    async with hooked(**hooks) as (config, _):
        scout, _ = agent_of(config, "nothing", "found it")

        @tool
        async def research(question: str) -> str:
            """Ask the scout."""
            return answer(await scout.ainvoke(ask(question)))

        reply = calls(("research", {"question": "where?"}))
        agent, model = agent_of(config, reply, tools=[research])
        await agent.ainvoke(ask("go"))
    if expected == "no scouts":
        assert "no scouts" in model.requests[1].text
    else:
        assert "found it" in model.requests[1].text


STOP = {"continue": False, "stopReason": "enough"}


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
@pytest.mark.parametrize("event", ["SubagentStart", "SubagentStop", "AfterModel"])
async def test_a_stop_in_a_subagent_stops_the_whole_run(
    event: str, is_sync: bool
) -> None:
    def stop(given: dict[str, Any]) -> dict[str, Any] | None:
        text = given.get("llm_response", {"text": "found it"})["text"]
        return STOP if text == "found it" else None

    async with hooked(**{event: stop}) as (config, events):  # type: ignore[arg-type]  # hooks
        scout, _ = agent_of(config, "found it")

        @tool
        def research(question: str) -> str:
            """Ask the scout."""
            return answer(scout.invoke(ask(question)))

        reply = calls(("research", {"question": "where?"}))
        agent, model = agent_of(config, reply, tools=[research])
        if is_sync:
            result = await asyncio.to_thread(agent.invoke, ask("go"))
        else:
            result = await agent.ainvoke(ask("go"))
    assert answer(result) == "enough"
    assert len(model.requests) == 1
    assert named(events, "AfterAgent") == []


async def test_an_agent_in_a_graph_has_a_turn_of_its_own() -> None:
    async with hooked() as (config, events):
        agent, _ = agent_of(config, "done", name="writer")
        graph: Any = StateGraph(MessagesState)
        graph.add_node("writer", agent)
        graph.add_edge(START, "writer")
        result = await graph.compile().ainvoke(ask("go"), thread("1"))
    assert answer(result) == "done"
    assert [one["prompt"] for one in named(events, "BeforeAgent")] == ["go"]
    assert named(events, "SubagentStart") == []
    assert {one["session_id"] for one in events} == {"1"}


async def test_hooks_without_effect_are_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "hookline")
    async with hooked(SessionStart=lambda _: None) as (config, _):
        agent, _ = agent_of(config)
        for _ in range(2):
            await agent.ainvoke(ask("hi"))
    lines = [one for one in caplog.messages if one.startswith("SessionStart hooks")]
    assert len(lines) == 1
    assert "LangChain" in lines[0]


def test_a_missing_framework_is_named_with_its_extra() -> None:
    code = "import sys; sys.modules['langgraph'] = None; import hookline.adapters."
    code += "langchain"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "MissingExtraError" in done.stderr
    assert "hookline[langchain]" in done.stderr
