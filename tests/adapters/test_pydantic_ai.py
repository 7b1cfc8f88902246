"""The pydantic-ai adapter (issue 14 adapters)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunError, ModelMessage, ModelRetry, RunContext
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.output import NativeOutput

from hookline.adapters.pydantic_ai import HooklineCapability
from hookline.agent import ScriptedReply
from hookline.testing.adapters import AdapterSuite

from .drivers.pydantic_ai import FakeModel, PydanticAIDriver, in_thread
from .pydantic_agents import block, calls, specific, stop, workbench

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "frameworks" / "pydantic-ai.md"
EXAMPLE = ROOT / "examples" / "frameworks" / "pydantic_ai_agent.py"


class TestPydanticAI(AdapterSuite):
    driver = PydanticAIDriver()


class City(BaseModel):
    name: str


def ids(bench: Any) -> list[str]:
    return [event["session_id"] for event in bench.seen("BeforeAgent")]


async def test_a_conversation_is_a_session_over_all_its_runs() -> None:
    async with workbench() as bench:
        agent = bench.agent()
        first = await agent.run("one")
        await agent.run("two", message_history=first.all_messages())
        await agent.run("three")
        await agent.run("four", conversation_id="chat-4")
    assert ids(bench)[0] == ids(bench)[1] == first.conversation_id
    assert ids(bench)[2] != ids(bench)[0]
    assert ids(bench)[3] == "chat-4"


async def test_a_session_that_is_given_is_the_one_of_every_run() -> None:
    async with workbench() as bench:
        session = bench.config.session("mine", transcript_path="/tmp/mine.jsonl")
        agent = Agent(bench.model.model, capabilities=[HooklineCapability(session)])
        await agent.run("one", conversation_id="chat-1")
    (event,) = bench.seen("BeforeAgent")
    assert event["session_id"] == "mine"
    assert event["transcript_path"] == "/tmp/mine.jsonl"


async def test_runs_of_one_agent_at_once_do_not_share_a_stop() -> None:
    both_run = asyncio.Barrier(2)

    async def guard(event: Any) -> Any:
        await both_run.wait()
        return stop() if event["session_id"] == "a" else None

    async with workbench(BeforeAgent=guard) as bench:
        agent = bench.agent()
        runs = (agent.run("go", conversation_id=name) for name in "ab")
        first, second = await asyncio.gather(*runs)
    assert (first.output, second.output) == ("enough", "the end")


async def test_a_blocked_prompt_is_in_no_later_request() -> None:
    def guard(event: Any) -> Any:
        return block("no secrets") if "s3cret" in event["prompt"] else None

    async with workbench(BeforeAgent=guard) as bench:
        agent = bench.agent()
        first = await agent.run("the s3cret")
        assert first.output == "no secrets"
        second = await agent.run("hello", message_history=first.all_messages())
    assert second.output == "the end"
    assert "s3cret" not in str(second.all_messages())
    assert "s3cret" not in bench.sent[0]


async def test_a_prompt_at_the_end_of_a_history_is_seen() -> None:
    async with workbench() as bench:
        agent = bench.agent()
        history = (await agent.run("the question")).all_messages()[:1]
        await agent.run(message_history=history)
    assert [event["prompt"] for event in bench.seen("BeforeAgent")] == [
        "the question",
        "the question",
    ]


async def test_the_prompt_of_several_parts_is_seen_as_one_text() -> None:
    async with workbench() as bench:
        await bench.agent().run(["see ", "this"])
    assert bench.seen("BeforeAgent")[0]["prompt"] == "see this"


def delegating(bench: Any, **options: Any) -> Agent[None, Any]:
    """An agent with a tool that runs another agent."""
    helper_model = FakeModel(lambda _: ScriptedReply("helped"))
    hooks = HooklineCapability(bench.config)
    helper = Agent(helper_model.model, name="helper", capabilities=[hooks])
    agent: Agent[None, Any] = bench.agent(calls(("ask", {})), **options)

    @agent.tool
    async def ask(ctx: RunContext[None]) -> str:
        return (await helper.run("help me")).output

    return agent


async def test_an_agent_that_a_tool_runs_is_a_subagent_of_the_session() -> None:
    async with workbench() as bench:
        await delegating(bench).run("go", conversation_id="chat-1")
    assert [event["prompt"] for event in bench.seen("BeforeAgent")] == ["go"]
    (start,) = bench.seen("SubagentStart")
    (end,) = bench.seen("SubagentStop")
    assert (start["agent_type"], start["prompt"]) == ("helper", "help me")
    assert end["agent_id"] == start["agent_id"]
    assert end["prompt_response"] == "helped"
    assert {event["session_id"] for event in bench.events} == {"chat-1"}


async def test_a_blocked_subagent_gives_the_reason_to_its_tool() -> None:
    async with workbench(SubagentStart=lambda _: block("no helpers")) as bench:
        result = await delegating(bench).run("go")
    assert result.output == "the end"
    assert "no helpers" in bench.sent[1]


async def test_a_stop_in_a_subagent_stops_the_outer_run() -> None:
    async with workbench(SubagentStart=lambda _: stop("no helpers")) as bench:
        result = await delegating(bench).run("go")
    assert result.output == "no helpers"
    assert len(bench.sent) == 1


async def test_a_rejected_answer_of_a_subagent_continues() -> None:
    def reject(event: Any) -> Any:
        return None if event["stop_hook_active"] else block("more")

    async with workbench(SubagentStop=reject) as bench:
        result = await delegating(bench).run("go")
    assert result.output == "the end"
    assert len(bench.seen("SubagentStop")) == 2


async def test_an_agent_that_a_plain_tool_runs_in_its_thread_is_a_subagent() -> None:
    async with workbench() as bench:
        helper_model = FakeModel(lambda _: ScriptedReply("helped"))
        hooks = HooklineCapability(bench.config)
        helper = Agent(helper_model.model, name="helper", capabilities=[hooks])
        agent = bench.agent(calls(("ask", {})))

        @agent.tool_plain
        def ask() -> str:
            with asyncio.Runner() as runner:
                return runner.run(helper.run("help me")).output

        await in_thread(lambda: agent.run_sync("go", conversation_id="chat-1"))
    (start,) = bench.seen("SubagentStart")
    assert (start["agent_type"], start["session_id"]) == ("helper", "chat-1")


async def test_a_run_that_is_not_in_a_tool_is_a_turn_of_its_own() -> None:
    async with workbench() as bench:
        agent = bench.agent()
        async with agent.run_stream("one") as result:
            await bench.agent().run("two")
            await result.get_output()
    assert [event["prompt"] for event in bench.seen("BeforeAgent")] == ["one", "two"]
    assert bench.seen("SubagentStart") == []


async def test_an_answer_beside_calls_that_ends_the_run_is_seen() -> None:
    answers: list[str] = []

    def reject(event: Any) -> Any:
        answers.append(event["prompt_response"])
        return block("again") if len(answers) == 1 else None

    reply = ScriptedReply('{"name": "Oslo"}', calls(("read", {})).calls)
    async with workbench(AfterAgent=reject) as bench:
        agent = bench.agent(
            reply,
            '{"name": "Rome"}',
            end_strategy="early",
            output_type=NativeOutput(City),
        )

        @agent.tool_plain
        def read() -> str:
            return "text"

        result = await agent.run("go")
    assert answers == ['{"name":"Oslo"}', '{"name": "Rome"}']
    assert result.output == City(name="Rome")


@pytest.mark.parametrize("stream", [False, True], ids=["run", "run_stream"])
async def test_the_hooks_of_two_configs_are_all_obeyed(stream: bool) -> None:
    def rejecting(word: str) -> Any:
        return lambda event: block() if word in event["prompt_response"] else None

    async with (
        workbench(AfterAgent=rejecting("bad")) as bench,
        workbench(AfterAgent=rejecting("poor")) as other,
    ):
        more = [HooklineCapability(other.config)]
        agent = bench.agent("bad", "poor", "fine", capabilities=more)
        if stream:
            async with agent.run_stream("go") as result:
                output = await result.get_output()
        else:
            output = (await agent.run("go")).output
    assert output == "fine"


async def test_a_stop_at_the_end_gives_its_reason() -> None:
    async with workbench(AfterAgent=lambda _: stop("that is all")) as bench:
        assert (await bench.agent().run("go")).output == "that is all"


@pytest.mark.parametrize("event", ["BeforeAgent", "BeforeModel", "AfterAgent"])
async def test_no_output_validator_takes_a_stop_for_an_answer(event: str) -> None:
    async with workbench(**{event: lambda _: stop("that is all")}) as bench:
        agent = bench.agent()

        @agent.output_validator
        def check(output: str) -> str:
            raise ModelRetry("not good enough")

        assert (await agent.run("go")).output == "that is all"


@pytest.mark.parametrize("strategy", ["graceful", "exhaustive"])
async def test_a_stop_at_a_tool_beside_the_output_is_the_result(strategy: Any) -> None:
    reply = calls(("read", {}), ("final_result", {"name": "Oslo"}))
    async with workbench(BeforeTool=lambda _: stop()) as bench:
        kinds = [City, str]
        agent = bench.agent(*[reply] * 3, output_type=kinds, end_strategy=strategy)

        @agent.tool_plain
        def read() -> str:
            return "text"

        assert (await agent.run("go")).output == "enough"
        with pytest.raises(AgentRunError, match="enough"):
            async with agent.run_stream("go") as result:
                await result.get_output()
        with pytest.raises(AgentRunError, match="enough"):
            await agent.run("go", output_type=City)


async def test_an_error_of_the_model_reaches_the_caller() -> None:
    async def stream(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
        yield "half"
        raise ConnectionError("gone")

    async with workbench(AfterModel=lambda _: None) as bench:
        model = FunctionModel(stream_function=stream)
        with pytest.raises(ConnectionError, match="gone"):
            async with bench.agent().run_stream("go", model=model) as result:
                await result.get_output()


async def test_a_hook_that_would_have_no_effect_is_warned_about_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    context = specific(additionalContext="x")
    async with workbench(SessionStart=lambda _: context) as bench:
        for _ in range(2):
            await bench.agent().run("go")
    assert caplog.text.count("SessionStart hooks have no effect in pydantic-ai") == 1
    assert "PreCompress" not in caplog.text


def test_a_missing_framework_is_said_with_its_extra() -> None:
    hide = "import sys; sys.modules['pydantic_ai'] = None"
    code = f"{hide}; import hookline.adapters.pydantic_ai"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "pydantic-ai-slim is missing" in done.stderr
    assert "hookline[pydantic-ai]" in done.stderr


def test_the_page_shows_the_example_and_its_output() -> None:
    """The hooks on the page are in the example, which prints what it says."""
    page, example = PAGE.read_text(), EXAMPLE.read_text()
    blocks = [one.split("```")[0] for one in page.split("```python\n")[2:]]
    shown = [line for block in blocks for line in block.splitlines()]
    assert [line for line in shown if line not in example] == []
    printed = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, text=True, check=True
    ).stdout
    assert page.split("```text\n")[1].split("```")[0] == printed
