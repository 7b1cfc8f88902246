"""Strands agents with hooks: the shared suite, and what rows of a table cannot say.

What a callback handler is shown, direct calls of tools, checkpoints, agents at the same
time, and call ids that a model uses twice. All else is in
``tests/pins/adapters/strands.json``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands", reason="strands-agents is not installed: make adapters")

from strands import Agent, ToolContext, tool

from hookline.adapters.strands import HooklineHooks
from hookline.errors import HooklineError
from hookline.testing.adapters import AdapterSuite

from .drivers.strands import (
    StrandsDriver,
    StrandsModel,
    agent_of,
    approvals,
    look,
    looks,
    text_of,
)
from .recorded_hooks import RecordedHooks
from .scenarios import City, calls


class TestStrands(AdapterSuite):
    driver = StrandsDriver()


async def test_callback_handler_is_shown_nothing_that_a_hook_removed() -> None:
    """The reasoning goes with the answer that a hook changes."""
    shown: list[str] = []

    def show(**event: Any) -> None:
        shown.append(str({**event, "agent": None}))

    thought = {"reasoningContent": {"text": "the s3cret is 5"}}
    chunks: list[Any] = [
        {"messageStart": {"role": "assistant"}},
        *({"contentBlockDelta": {"delta": thought}}, {"contentBlockStop": {}}),
        {"contentBlockDelta": {"delta": {"text": "a s3cret"}}},
        {"contentBlockStop": {}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]
    hooks = RecordedHooks({"AfterModel": "redact"})
    agent = agent_of(hooks, chunks, callback_handler=show)
    assert str(await asyncio.to_thread(agent, "go")) == "a ***\n"
    assert "'data': 'a ***'" in "".join(shown)
    assert "s3cret" not in "".join(shown)
    assert agent.messages[1]["content"] == [{"text": "a ***"}]


async def test_run_that_is_cut_off_has_no_answer_and_the_next_one_has() -> None:
    """Cancelled in a tool, cancelled by a tool, or with a model that fails."""
    started = asyncio.Event()

    @tool
    async def hang() -> str:
        """Wait forever."""
        started.set()
        return str(await asyncio.Event().wait())

    @tool
    def cancel() -> str:
        """Cancel the run from within."""
        agent.cancel()
        return "cancelled"

    hooks = RecordedHooks()
    cut_off = calls(("hang", {})), calls(("cancel", {})), RuntimeError("no service")
    agent = agent_of(hooks, *cut_off, "next", tools=[hang, cancel])
    run = asyncio.create_task(agent.invoke_async("go"))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert (await agent.invoke_async("go")).stop_reason == "cancelled"
    with pytest.raises(RuntimeError, match="no service"):
        await agent.invoke_async("go")
    assert hooks.of("AfterAgent") == []
    assert str(await agent.invoke_async("go on")) == "next\n"
    assert hooks.names[-1] == "AfterAgent"


async def test_context_joins_the_last_message_of_a_prompt() -> None:
    agent = agent_of(RecordedHooks({"BeforeAgent": "add"}), "fine")
    roles = ("user", "assistant", "user")
    messages: Any = [{"role": role, "content": [{"text": role}]} for role in roles]
    await agent.invoke_async(messages)
    assert agent.messages[2]["content"] == [{"text": "user"}, {"text": "mind it"}]
    assert len(messages[2]["content"]) == 1


@pytest.mark.filterwarnings("ignore:Agent.structured_output:DeprecationWarning")
async def test_old_structured_output_is_refused_as_it_skips_hooks() -> None:
    agent = agent_of(RecordedHooks(), "fine")
    with pytest.raises(HooklineError, match="would skip the BeforeAgent hooks"):
        await agent.structured_output_async(City, "where?")


async def test_tool_that_is_called_directly_obeys_hooks() -> None:
    judge = [['"path": "ask"', "ask"], ["", "change to b"]]
    agent = agent_of(RecordedHooks({"BeforeTool": judge, "AfterTool": "add"}))
    result = await asyncio.to_thread(agent.tool.look, path="a")
    assert result["content"][0] == {"text": "content of b"}
    assert {"text": "mind it"} in result["content"]
    assert agent.messages[1]["content"][0]["toolUse"]["input"] == {"path": "b"}
    asked = await asyncio.to_thread(agent.tool.look, path="ask")
    assert (asked["status"], "really?" in text_of(asked)) == ("error", True)


async def test_stop_in_a_tool_that_a_tool_calls_ends_the_run() -> None:
    @tool(context=True)
    def twice(path: str, tool_context: ToolContext) -> str:
        """Look twice."""
        call = tool_context.agent.tool.look
        return str(call(path=path, record_direct_tool_call=False))

    hooks = RecordedHooks({"BeforeTool": [['"tool_name": "look"', "stop"]]})
    agent = agent_of(
        hooks, calls(("twice", {"path": "a"})), "never", tools=[look, twice]
    )
    assert str(await agent.invoke_async("go")) == "enough\n"
    assert len(hooks.of("BeforeModel")) == 1


async def test_hooks_that_are_added_later_see_model_calls_too() -> None:
    hooks = RecordedHooks({"AfterModel": "redact"})
    agent = agent_of(hooks, "a s3cret", hooks=[])
    provider = HooklineHooks(hooks.config)
    agent.hooks.add_hook(provider)
    agent.hooks.add_hook(provider)
    assert str(await agent.invoke_async("go")) == "a ***\n"
    assert hooks.names.count("BeforeAgent") == 1


async def test_agents_at_the_same_time_share_hooks_and_nothing_else() -> None:
    """Runs of one agent stay apart as well."""
    hooks = RecordedHooks()
    providers = [HooklineHooks(hooks.config)]
    agents = [agent_of(hooks, looks(str(n)), hooks=providers) for n in range(8)]
    runs = [agent.invoke_async(f"{n}") for n, agent in enumerate(agents)]
    await asyncio.gather(*runs)
    for n, agent in enumerate(agents):
        events = hooks.of_session(agent.session_id)
        assert [e["prompt"] for e in events if "prompt" in e] == [f"{n}"] * 2
        paths = [e["tool_input"]["path"] for e in events if "tool_input" in e]
        assert paths == [str(n)] * 2
    hooks = RecordedHooks({"BeforeTool": [['"path": "a"', "stop"]]})
    mode: Any = {"concurrent_invocation_mode": "unsafe_reentrant"}
    agent = agent_of(hooks, looks("a"), looks("b"), "done", **mode)
    results = await asyncio.gather(*(agent.invoke_async(text) for text in "12"))
    assert sorted(map(str, results)) == ["done\n", "enough\n"]
    assert len(hooks.of("AfterTool")) == len(hooks.of("AfterAgent")) == 1


def test_plain_calls_share_one_warm_worker(tmp_path: Path) -> None:
    pids, script = tmp_path / "pids", tmp_path / "hook.py"
    script.write_text(
        "import os\nfrom hookline.script import run\n"
        "def note(event):\n"
        f"    with open({str(pids)!r}, 'a') as file:\n"
        "        print(os.getpid(), file=file)\n"
        "run(note)\n"
    )
    hook = {"type": "worker", "command": f"{sys.executable} {script}"}
    settings = {"hooks": {"BeforeAgent": [{"hooks": [hook]}]}}
    hooks = RecordedHooks(settings=settings)
    agent = agent_of(hooks, "one", "two")
    assert [str(agent(prompt)) for prompt in "ab"] == ["one\n", "two\n"]
    asyncio.run(hooks.config.dispose())
    workers = pids.read_text().split()
    assert (len(workers), len(set(workers))) == (2, 1)


def same_id(*paths: str) -> list[Any]:
    """A message with calls that all have one id, as some models write them."""
    start = {"toolUse": {"name": "look", "toolUseId": "call-1"}}
    chunks: list[Any] = [{"messageStart": {"role": "assistant"}}]
    for path in paths:
        delta = {"toolUse": {"input": json.dumps({"path": path})}}
        chunks += [
            {"contentBlockStart": {"start": start}},
            {"contentBlockDelta": {"delta": delta}},
            {"contentBlockStop": {}},
        ]
    return [*chunks, {"messageStop": {"stopReason": "tool_use"}}]


@pytest.mark.parametrize(
    "replies",
    [[same_id("a"), same_id("b")], [same_id("a", "b")]],
    ids=["later", "at once"],
)
async def test_calls_with_one_id_are_judged_apart(replies: list[Any]) -> None:
    """A person who lets the agent look at a has not seen b."""
    agent = agent_of(RecordedHooks({"BeforeTool": "ask"}), *replies, "done")
    result = await agent.invoke_async("go")
    asked: list[str] = []
    while result.stop_reason == "interrupt" and len(asked) < 9:
        questions = [interrupt.reason for interrupt in result.interrupts or ()]
        asked += [question["tool_input"]["path"] for question in questions]
        answers = approvals(result, {"by": {"a": True, "b": False}})
        result = await agent.invoke_async(answers)
    assert "b" in asked
    assert "content of b" not in text_of(agent.messages)
    hooks = RecordedHooks({"AfterTool": "withhold"})
    agent = agent_of(hooks, *replies, "done")
    await agent.invoke_async("go")
    assert len(hooks.of("AfterTool")) == 2
    assert "content of" not in text_of(agent.messages)


async def test_checkpoint_is_a_pause_within_a_turn() -> None:
    hooks = RecordedHooks()
    agent = agent_of(hooks, looks("a"), "done", checkpointing=True)
    result = await agent.invoke_async("go")
    while result.checkpoint is not None:
        checkpoint: Any = {"checkpoint": result.checkpoint.to_dict()}
        result = await agent.invoke_async({"checkpointResume": checkpoint})  # type: ignore[arg-type, unused-ignore]
    assert str(result) == "done\n"
    assert hooks.names.count("BeforeAgent") == hooks.names.count("AfterAgent") == 1


def plain(name: str, *replies: Any, **more: Any) -> Agent:
    """An agent without hooks of its own."""
    model, tools = StrandsModel(*replies), more.pop("tools", [look])
    options: dict[str, Any] = {"callback_handler": None, **more}
    return Agent(model=model, name=name, tools=tools, **options)


HELPS = calls(("helper", {"input": "look around"}))


async def test_subagent_has_turns_of_its_own_when_called_and_may_have_hooks() -> None:
    hooks, helper_hooks = RecordedHooks(), RecordedHooks()
    helper = plain("helper", "one", "two")
    await agent_of(hooks, HELPS, tools=[helper.as_tool()]).invoke_async("go")
    hooks.events.clear()
    await helper.invoke_async("and now alone")
    assert hooks.names[0] == "BeforeAgent"
    assert hooks.sessions == {helper.session_id}
    helper = plain("helper", "seen it", hooks=[HooklineHooks(helper_hooks.config)])
    hooks.events.clear()
    agent = agent_of(hooks, HELPS, tools=[helper.as_tool()])
    await agent.invoke_async("go")
    assert helper_hooks.names[0] == "SubagentStart"
    assert helper_hooks.sessions == {agent.session_id}
    assert "SubagentStart" not in hooks.names
    assert hooks.names.count("BeforeModel") == 2
