"""The whole agent with a scripted model and real hook processes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, Settings
from hookline.agent import Agent, Ending, Role, ScriptedModel, ScriptedReply
from hookline.agent.turn import MAX_REJECTIONS

from .scenes import BROKEN, config_of, events, names, runs, says, specific

STOP = says({"continue": False, "stopReason": "enough"})
EVENTS = (
    "SessionStart",
    "BeforeAgent",
    "BeforeToolSelection",
    "BeforeModel",
    "AfterModel",
    "BeforeTool",
    "AfterTool",
    "AfterAgent",
    "PreCompress",
    "SessionEnd",
    "Notification",
)


def look(path: str) -> str:
    """Look at a file."""
    return f"text of {path}"


CALL = ScriptedReply("let me look", (("look", {"path": "a"}),))


def texts(model: ScriptedModel, at: int = -1) -> str:
    return str(model.requests[at]["messages"])


async def test_an_agent_works_until_the_model_has_no_more_calls(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, dict.fromkeys(EVENTS, runs("true")))
    model = ScriptedModel([CALL, "it says hello"])
    async with config, Agent(config, model, [look]) as agent:
        result = await agent.run("what does a say?")
    assert (result.ending, result.text) == (Ending.ANSWERED, "it says hello")
    turn = ["BeforeToolSelection", "BeforeModel", "AfterModel"]
    assert names(tmp_path) == [
        "SessionStart",
        "BeforeAgent",
        *turn,
        "BeforeTool",
        "AfterTool",
        *turn,
        "AfterAgent",
        "SessionEnd",
    ]
    given = {event["hook_event_name"]: event for event in events(tmp_path)}
    assert given["SessionStart"]["source"] == "startup"
    assert given["SessionEnd"]["reason"] == "exit"
    assert given["AfterAgent"]["prompt_response"] == "it says hello"
    assert given["AfterAgent"]["stop_hook_active"] is False


async def test_session_start_context_and_message_reach_the_model(
    tmp_path: Path,
) -> None:
    hook = says(
        {
            "systemMessage": "a message",
            "decision": "block",
            "hookSpecificOutput": {"additionalContext": "some <context>"},
        }
    )
    model = ScriptedModel(["ok", "ok"])
    config = config_of(tmp_path, {"SessionStart": hook})
    async with config, Agent(config, model) as agent:
        result = await agent.run("hi")
        await agent.run("again")
    assert result.ending is Ending.ANSWERED
    for at in (0, 1):
        assert "some &lt;context&gt;" in texts(model, at)
        assert "a message" in texts(model, at)


async def test_session_end_tells_when_the_agent_failed(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"SessionEnd": STOP})
    async with config:
        with pytest.raises(KeyError):
            async with Agent(config, ScriptedModel([])):
                raise KeyError
    assert events(tmp_path)[0]["reason"] == "other"


@pytest.mark.parametrize(
    ("hook", "ending", "reason"),
    [
        (runs("echo not now >&2; exit 2"), Ending.BLOCKED, "not now"),
        (STOP, Ending.STOPPED, "enough"),
    ],
    ids=["block", "stop"],
)
async def test_before_agent_block_or_stop_ends_the_turn(
    tmp_path: Path, hook: Any, ending: Ending, reason: str
) -> None:
    model = ScriptedModel(["never"])
    async with config_of(tmp_path, {"BeforeAgent": hook}) as config:
        result = await Agent(config, model).run("hi")
    assert (result.ending, result.reason) == (ending, reason)
    assert model.requests == []


async def test_before_agent_context_is_appended_to_the_prompt(tmp_path: Path) -> None:
    hook = specific(additionalContext="it is <late>")
    model = ScriptedModel(["ok"])
    async with config_of(tmp_path, {"BeforeAgent": hook}) as config:
        await Agent(config, model).run("hi")
    [message] = model.requests[0]["messages"]
    assert message["content"] == "hi\n\nit is &lt;late&gt;"


async def test_after_agent_block_sends_the_reason_back_as_the_next_prompt(
    tmp_path: Path,
) -> None:
    once = f"""test -e '{tmp_path}/once' && exit 0
    touch '{tmp_path}/once'; echo add a source >&2; exit 2"""
    config = config_of(tmp_path, {"AfterAgent": runs(once)})
    model = ScriptedModel(["it rains", "it rains, says the radio"])
    async with config:
        result = await Agent(config, model).run("weather?")
    assert result.text == "it rains, says the radio"
    assert model.requests[1]["messages"][-1]["content"] == "add a source"
    active = [event["stop_hook_active"] for event in events(tmp_path)]
    assert active == [False, True]
    assert [event["prompt"] for event in events(tmp_path)] == ["weather?"] * 2


async def test_after_agent_can_reject_no_more_than_eight_times(tmp_path: Path) -> None:
    """protocol.md#events: bounded."""
    config = config_of(tmp_path, {"AfterAgent": runs("echo no >&2; exit 2")})
    model = ScriptedModel([f"try {at}" for at in range(20)])
    async with config:
        result = await Agent(config, model).run("go")
    assert len(model.requests) == 1 + MAX_REJECTIONS == 9
    assert (result.ending, result.reason) == (Ending.BLOCKED, "no")


async def test_after_agent_may_clear_the_context_or_stop(tmp_path: Path) -> None:
    clear = specific(clearContext=True)
    async with config_of(tmp_path, {"AfterAgent": clear}) as config:
        agent = Agent(config, ScriptedModel(["ok"]))
        await agent.run("hi")
    assert agent.chat.history == []
    async with config_of(tmp_path, {"AfterAgent": STOP}) as config:
        result = await Agent(config, ScriptedModel(["ok"])).run("hi")
    assert (result.ending, result.reason, result.text) == (
        Ending.STOPPED,
        "enough",
        "ok",
    )


@pytest.mark.parametrize(
    "event", ["BeforeTool", "AfterTool", "BeforeModel", "AfterModel"]
)
async def test_a_stop_anywhere_ends_the_turn_with_an_answer_to_every_call(
    tmp_path: Path, event: str
) -> None:
    model = ScriptedModel([CALL, "never"])
    async with config_of(tmp_path, {event: STOP}) as config:
        agent = Agent(config, model, [look])
        result = await agent.run("go")
    assert (result.ending, result.reason) == (Ending.STOPPED, "enough")
    assert len(model.requests) == (0 if event == "BeforeModel" else 1)
    called = [turn for turn in agent.chat.history if turn.calls]
    answered = [turn for turn in agent.chat.history if turn.role is Role.TOOLS]
    assert len(called) == len(answered)


def open_calls(agent: Agent) -> int:
    called = sum(len(turn.calls) for turn in agent.chat.history)
    return called - sum(len(turn.answers) for turn in agent.chat.history)


async def test_a_failing_model_leaves_no_call_without_an_answer(
    tmp_path: Path,
) -> None:
    def fail(_: Any) -> str:
        raise ConnectionError("gone")

    config = Config("s-1", tmp_path, Settings())
    agent = Agent(config, ScriptedModel([CALL, fail, "back"]), [look])
    with pytest.raises(ConnectionError):
        await agent.run("go")
    assert open_calls(agent) == 0
    assert (await agent.run("again")).text == "back"


async def test_a_cancelled_tool_leaves_no_call_without_an_answer(
    tmp_path: Path,
) -> None:
    started = asyncio.Event()

    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    config = Config("s-1", tmp_path, Settings())
    agent = Agent(config, ScriptedModel([ScriptedReply("", (("wait", {}),))]), [wait])
    task = asyncio.create_task(agent.run("go"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [turn.role for turn in agent.chat.history][-1] is Role.TOOLS
    assert open_calls(agent) == 0


async def test_a_synthetic_response_is_the_agents_answer(tmp_path: Path) -> None:
    hook = says(
        {"decision": "block", "hookSpecificOutput": {"llm_response": {"text": "no!"}}}
    )
    async with config_of(tmp_path, {"BeforeModel": hook}) as config:
        result = await Agent(config, ScriptedModel([])).run("hi")
    assert (result.ending, result.text) == (Ending.ANSWERED, "no!")


async def test_the_limit_on_turns_ends_a_runaway(tmp_path: Path) -> None:
    config = Config("s-1", tmp_path, Settings())
    model = ScriptedModel([CALL] * 9)
    agent = Agent(config, model, [look], max_turns=3)
    result = await agent.run("go")
    assert result.ending is Ending.OUT_OF_TURNS
    assert len(model.requests) == 3
    assert agent.chat.history[-1].role is Role.TOOLS


async def test_the_history_is_compressed_when_it_reaches_its_limit(
    tmp_path: Path,
) -> None:
    hook = says({"systemMessage": "older words are gone", "decision": "block"})
    config = config_of(tmp_path, {"PreCompress": hook})
    model = ScriptedModel(["one", "two", "three"])
    async with config:
        agent = Agent(config, model, history_limit=4)
        for prompt in ("first", "second", "third"):
            await agent.run(prompt)
    assert [event["trigger"] for event in events(tmp_path)] == ["auto"]
    assert "first" not in texts(model)
    assert "second" in texts(model)
    assert "older words are gone" in texts(model)


async def test_a_person_may_clear_or_compress_the_history(tmp_path: Path) -> None:
    hooks = dict.fromkeys(["SessionStart", "SessionEnd", "PreCompress"], runs("true"))
    config = config_of(tmp_path, hooks)
    async with config:
        agent = Agent(config, ScriptedModel(["one", "two"]))
        await agent.run("first")
        await agent.run("second")
        await agent.compress()
        assert [turn.text for turn in agent.chat.history] == ["second", "two"]
        await agent.clear()
    assert agent.chat.history == []
    said = [
        event.get("trigger") or event.get("reason") or event.get("source")
        for event in events(tmp_path)
    ]
    assert said == ["manual", "compress", "clear", "clear"]


async def test_a_hosts_own_compression_is_used(tmp_path: Path) -> None:
    config = Config("s-1", tmp_path, Settings())

    async def forget(_: Any) -> list[Any]:
        return []

    model = ScriptedModel(["one", "two"])
    agent = Agent(config, model, history_limit=2, compress=forget)
    await agent.run("first")
    await agent.run("second")
    assert "first" not in texts(model)


async def test_suppressed_answers_are_not_shown(tmp_path: Path) -> None:
    chunks: list[str] = []
    config = config_of(tmp_path, {"AfterModel": says({"suppressOutput": True})})
    async with config:
        agent = Agent(config, ScriptedModel(["a b"]), on_chunk=chunks.append)
        result = await agent.run("hi")
    assert (chunks, result.suppress_display) == ([], True)


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("failure", list(BROKEN))
async def test_the_agent_goes_on_as_without_hooks_when_one_fails(
    tmp_path: Path, event: str, failure: str
) -> None:
    """Seed 004 section 9: fail-open in every position, but for the warning."""
    config = config_of(tmp_path, {event: BROKEN[failure]}, seen=False)
    model = ScriptedModel(["warm-up", CALL, "it says hello"])
    async with config, Agent(config, model, [look], history_limit=2) as agent:
        await agent.run("hi")
        result = await agent.run("what does a say?")
    assert (result.ending, result.text) == (Ending.ANSWERED, "it says hello")
    assert len(model.requests) == 3
    warned = f"{model.requests} {agent.chat.history}".count("Warning: oh no") > 0
    fired = event not in {"Notification", "SessionEnd"}
    assert warned == (failure == "crash with a word" and fired)
