"""Questions of hooks in Strands: interrupts, and what else pauses a turn.

Issue 14 adapters: ``ask`` uses the framework's own approval, ``confirm`` or ``onAsk``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands", reason="strands-agents is not installed: make adapters")

from strands.session import FileSessionManager

from hookline.adapters.strands import HooklineHooks

from .drivers.strands import agent_of, approvals, calls, text_of
from .hooks import Hooked


def ask_first(event: dict[str, Any]) -> Any:
    return {"decision": "ask", "reason": f"look at {event['tool_input']['path']}?"}


@pytest.mark.parametrize(
    ("response", "runs"), [("yes", True), (True, True), ("no", False), ({}, False)]
)
async def test_a_question_is_an_interrupt(response: Any, runs: bool) -> None:
    hooked = Hooked({"BeforeTool": ask_first})
    agent = agent_of(hooked, calls("a", "b"), "done")
    paused = await agent.invoke_async("go")
    assert paused.stop_reason == "interrupt"
    assert [one.reason for one in paused.interrupts or ()] == [
        {
            "reason": f"look at {path}?",
            "tool_name": "look",
            "tool_input": {"path": path},
        }
        for path in "ab"
    ]
    assert "AfterAgent" not in hooked.names
    result = await agent.invoke_async(approvals(paused, response))
    assert str(result) == "done\n"
    assert ("content of a" in text_of(agent.messages)) is runs
    assert hooked.names.count("BeforeAgent") == hooked.names.count("AfterAgent") == 1
    assert hooked.names.count("BeforeTool") == 4


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
async def test_an_answer_counts_for_one_input_when_ids_repeat(
    replies: list[Any],
) -> None:
    """A person who lets the agent look at a has not seen b."""
    hooked = Hooked({"BeforeTool": ask_first})
    agent = agent_of(hooked, *replies, "done")
    result = await agent.invoke_async("go")
    asked: list[str] = []
    while result.stop_reason == "interrupt" and len(asked) < 9:
        answers: Any = []
        for one in result.interrupts or ():
            path = one.reason["tool_input"]["path"]
            asked.append(path)
            response = {"interruptId": one.id, "response": path == "a"}
            answers.append({"interruptResponse": response})
        result = await agent.invoke_async(answers)
    assert "b" in asked
    assert "content of b" not in text_of(agent.messages)


async def test_every_result_is_seen_when_ids_repeat() -> None:
    specific = {"withholdResult": True}
    withholds = {"reason": "confidential", "hookSpecificOutput": specific}
    hooked = Hooked({"AfterTool": lambda _: withholds})
    agent = agent_of(hooked, same_id("a", "b"), "done")
    await agent.invoke_async("go")
    assert hooked.names.count("AfterTool") == 2
    assert "content of" not in text_of(agent.messages)


async def test_an_interrupt_is_answered_after_a_restart(tmp_path: Path) -> None:
    hooked = Hooked({"BeforeTool": ask_first})
    store = {"session_manager": FileSessionManager("thread-1", str(tmp_path))}
    paused = await agent_of(hooked, calls("a"), **store).invoke_async("go")
    again = {"session_manager": FileSessionManager("thread-1", str(tmp_path))}
    agent = agent_of(hooked, "done", **again)
    assert str(await agent.invoke_async(approvals(paused, True))) == "done\n"
    assert "content of a" in text_of(agent.messages)
    assert {event["session_id"] for event in hooked.seen} == {"thread-1"}
    for name in ("BeforeAgent", "Notification", "AfterAgent"):
        assert hooked.names.count(name) == 1
    assert agent.state.get() == {}


async def test_a_checkpoint_is_a_pause_within_a_turn() -> None:
    hooked = Hooked()
    agent = agent_of(hooked, calls("a"), "done", checkpointing=True)
    result = await agent.invoke_async("go")
    while result.checkpoint is not None:
        given: Any = {"checkpoint": result.checkpoint.to_dict()}
        result = await agent.invoke_async({"checkpointResume": given})  # type: ignore[arg-type, unused-ignore]
    assert str(result) == "done\n"
    assert hooked.names.count("BeforeAgent") == hooked.names.count("AfterAgent") == 1


async def test_confirm_is_asked_in_place_of_an_interrupt() -> None:
    hooked = Hooked({"BeforeTool": ask_first})
    hooks = HooklineHooks(hooked.config, confirm=lambda one: one.reason == "look at a?")
    agent = agent_of(hooked, calls("a", "b"), "done", hooks=[hooks])
    assert str(await agent.invoke_async("go")) == "done\n"
    assert "content of a" in text_of(agent.messages)
    assert "content of b" not in text_of(agent.messages)
