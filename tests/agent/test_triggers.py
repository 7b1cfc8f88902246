"""Triggers reuse one hook system, and never raise (protocol.md#callers)."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline import Config, HookEventName, HookSystem
from hookline.agent import (
    execute_tool_with_hooks,
    fire_after_agent_hook,
    fire_after_model_hook,
    fire_before_agent_hook,
    fire_before_model_hook,
    fire_before_tool_selection_hook,
    fire_notification_hook,
    fire_pre_compress_hook,
    fire_session_end_hook,
    fire_session_start_hook,
    fire_subagent_start_hook,
    fire_subagent_stop_hook,
)
from hookline.bus import HookBusClient, InMemoryMessageBus, RemoteHooks
from tests.support.recorded_events import DENY, RecordedHooks

REQUEST = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
RESPONSE = {"candidates": [{"content": {"role": "model", "parts": [{"text": "yo"}]}}]}


async def test_triggers_fire_every_event_on_the_hook_system_of_their_config() -> None:
    """Another one would not have the functions that are registered on the first."""
    hooks = RecordedHooks(dict.fromkeys(HookEventName))
    async with hooks.config as config:
        for _ in range(2):
            await fire_session_start_hook(config)
            await fire_before_agent_hook(config, "p")
            await fire_before_tool_selection_hook(config, REQUEST)
            await fire_before_model_hook(config, REQUEST)
            await fire_after_model_hook(config, REQUEST, RESPONSE)
            await execute_tool_with_hooks(config, "t", {}, lambda given: given)
            await fire_notification_hook(config, "m")
            await fire_subagent_start_hook(config, "a-1", "reviewer")
            await fire_subagent_stop_hook(config, "a-1", "reviewer")
            await fire_pre_compress_hook(config)
            await fire_after_agent_hook(config, "p", "r")
            await fire_session_end_hook(config)
        assert config.get_hook_system() is hooks.system
    assert set(hooks.names) == set(HookEventName)
    assert (
        hooks.names
        == [
            *("SessionStart", "BeforeAgent", "BeforeToolSelection", "BeforeModel"),
            *("AfterModel", "BeforeTool", "AfterTool", "Notification", "SubagentStart"),
            *("SubagentStop", "PreCompress", "AfterAgent", "SessionEnd"),
        ]
        * 2
    )


class BrokenSystem(HookSystem):
    """A hook system that cannot be started."""

    async def initialize(self) -> None:
        raise MemoryError("no room")


async def run_tool(config: Config) -> str:
    result = await execute_tool_with_hooks(config, "t", {}, lambda _: "ran")
    return result.text


async def before_model(config: Config) -> str:
    return str((await fire_before_model_hook(config, REQUEST)).reason)


async def after_model(config: Config) -> str:
    return str((await fire_after_model_hook(config, REQUEST, RESPONSE)).response)


async def before_tool_selection(config: Config) -> str:
    selected = await fire_before_tool_selection_hook(config, REQUEST)
    return "Blocked by" if selected.allowed_names == frozenset() else "allowed"


CALLS = {
    "BeforeTool": run_tool,
    "BeforeModel": before_model,
    "AfterModel": after_model,
    "BeforeToolSelection": before_tool_selection,
}


class BrokenConfig(Config):
    """A config that cannot build its hook system."""

    def get_hook_system(self) -> HookSystem | None:
        raise MemoryError("no room")


@pytest.mark.parametrize("policy", ["allow", "block"])
@pytest.mark.parametrize("event", list(CALLS))
@pytest.mark.parametrize("broken", ["construction", "initialisation"])
async def test_hooks_that_cannot_be_reached_block_only_where_their_policy_says_so(
    tmp_path: Path, event: str, policy: str, broken: str
) -> None:
    """A hook with ``onError: block`` that did not run must not count as an allow."""
    hook = {"$process": {"command": "true", "onError": policy}}
    config = RecordedHooks({event: hook}, tmp_path).config
    if broken == "construction":
        config = BrokenConfig("s-1", tmp_path, config.settings)
    else:
        BrokenSystem(config)
    assert ("Blocked by" in await CALLS[event](config)) is (policy == "block")
    assert await config.session("a").has_hooks(event)  # so that nothing is shown early


async def test_hooks_on_a_bus_are_asked_when_those_here_cannot_be_reached() -> None:
    bus = InMemoryMessageBus()
    there = RecordedHooks({"BeforeTool": DENY}, bus=bus)
    config = BrokenConfig("s-1")
    config.use_hooks(RemoteHooks(HookBusClient(bus)))
    session = config.session("a", transcript_path="t")
    async with there.system:
        result = await execute_tool_with_hooks(session, "t", {}, lambda _: "ran")
    assert result.text == "no"
    [event] = there.events
    assert (event["session_id"], event["transcript_path"]) == ("a", "t")
