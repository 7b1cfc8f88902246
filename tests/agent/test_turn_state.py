"""A turn as plain data: gone on with in another process (issue 14 adapters)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline.agent import HookedTurn

from .scenes import Hook, config_of, events, says, specific

REJECT = says({"decision": "deny", "reason": "again"})
STOP = says({"continue": False, "stopReason": "enough"})


async def resumed(turn: HookedTurn) -> HookedTurn:
    """The turn in another process of the same config."""
    state: dict[str, Any] = json.loads(json.dumps(turn.state))
    return turn.session.config.session("other").resume_turn(state)


async def test_a_resumed_turn_ends_as_the_one_that_began(tmp_path: Path) -> None:
    async with config_of(tmp_path, {"AfterAgent": REJECT}) as config:
        turn = await config.session("one").begin_turn("hello")
        for _ in range(8):
            turn = await resumed(turn)
            assert await turn.finish("no") == "again"
        turn = await resumed(turn)
        assert await turn.finish("no") is None
        assert (await resumed(turn)).blocked
        assert (await resumed(turn)).reason == "again"
    assert [one["stop_hook_active"] for one in events(tmp_path)] == [False] + [True] * 8
    assert {one["prompt"] for one in events(tmp_path)} == {"hello"}


async def test_a_resumed_turn_stays_stopped(tmp_path: Path) -> None:
    async with config_of(tmp_path, {"BeforeTool": STOP}) as config:
        turn = await config.session("one").begin_turn("hello")
        await turn.begin_tool("read", {})
        call = await (await resumed(turn)).begin_tool("write", {})
    assert call.refused
    assert "enough" in call.message


async def test_a_resumed_turn_allows_the_same_tools(tmp_path: Path) -> None:
    only = specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": ["read"]})
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with config_of(tmp_path, {"BeforeToolSelection": only}) as config:
        turn = await config.session("one").begin_turn("hello")
        await turn.begin_model(request, available_tools=["read", "write"])
        turn = await resumed(turn)
        assert (await turn.begin_tool("write", {})).refused
        assert not (await turn.begin_tool("read", {})).refused


@pytest.mark.parametrize(
    ("hooks", "expected"),
    [({"SubagentStop": REJECT}, "again"), ({}, None)],
    ids=["rejected", "accepted"],
)
async def test_a_resumed_subagent_is_the_same_one(
    tmp_path: Path, hooks: dict[str, Hook], expected: str | None
) -> None:
    given = {"SubagentStart": says({}), "SubagentStop": says({}), **hooks}
    async with config_of(tmp_path, given) as config:
        turn = await config.session("one").begin_subagent("scout", "look")
        assert await (await resumed(turn)).finish("seen") == expected
    start, stop = events(tmp_path)
    assert start["agent_id"] == stop["agent_id"]
    assert stop["agent_type"] == "scout"
