"""MCP sessions among a hooked client's tools."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from hookline import Config
from hookline.agent import session_of
from hookline.agent.client import ClientHooks
from hookline.agent.client_genai import GenAICall, HookedSession, is_session

from .scenes import config_of, events, names, runs, says, specific


class Session:
    """Has what the SDK uses of an MCP session."""

    def __init__(self) -> None:
        self.called: list[tuple[str, dict[str, Any]]] = []

    async def list_tools(self) -> list[str]:
        return ["add"]

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        self.called.append((name, dict(arguments or {})))
        return {"content": "3"}


def hooked_session(config: Config) -> tuple[HookedSession, Session, GenAICall]:
    session, call = Session(), GenAICall(ClientHooks(session_of(config)), is_async=True)
    return HookedSession(session, call), session, call


async def test_a_session_stays_what_the_sdk_takes_it_for(tmp_path: Path) -> None:
    hooked, session, _ = hooked_session(config_of(tmp_path, {}))
    assert isinstance(hooked, Session)
    assert is_session(hooked)
    assert copy.deepcopy(hooked) is hooked
    assert await hooked.list_tools() == await session.list_tools()


async def test_a_call_over_a_session_passes_its_hooks(tmp_path: Path) -> None:
    hooks = {"BeforeTool": specific(tool_input={"a": 40}), "AfterTool": runs("true")}
    config = config_of(tmp_path, hooks)
    hooked, session, call = hooked_session(config)
    async with config:
        value = await hooked.call_tool(name="add", arguments={"a": 1, "b": 2})
        stable = {"model": "m", "messages": [{"role": "user", "content": "go on"}]}
        following = await call.run.begin_model(stable)
    assert session.called == [("add", {"a": 40, "b": 2})]
    assert value == {"content": "3"}
    assert "A hook changed the tool's input: a" in str(following.request)
    assert names(tmp_path) == ["BeforeTool", "AfterTool"]
    assert events(tmp_path)[0]["mcp_context"] == {}


async def test_a_blocked_call_does_not_reach_the_session(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"BeforeTool": runs("echo no >&2; exit 2")})
    hooked, session, _ = hooked_session(config)
    async with config:
        assert await hooked.call_tool("add", {}) == "no"
    assert session.called == []


async def test_added_context_reaches_the_model_after_the_result(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"AfterTool": specific(additionalContext="checked")})
    hooked, _, call = hooked_session(config)
    async with config:
        assert await hooked.call_tool("add", {}) == {"content": "3"}
        stable = {"model": "m", "messages": [{"role": "user", "content": "go on"}]}
        assert "checked" in str((await call.run.begin_model(stable)).request)


async def test_a_stop_over_a_session_ends_the_call(tmp_path: Path) -> None:
    hook = says({"continue": False, "stopReason": "enough"})
    config = config_of(tmp_path, {"BeforeTool": hook})
    hooked, session, call = hooked_session(config)
    async with config:
        await hooked.call_tool("add", {})
        assert call.run.stop_reason == "enough"
        assert await hooked.call_tool("add", {}) == "Not run: enough"
    assert session.called == []
    assert names(tmp_path) == ["BeforeTool"]
