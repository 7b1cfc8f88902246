"""Triggers reuse one hook system, and never raise (protocol.md#callers)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hookline import Config
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
from hookline.engine.handler import HookEventHandler
from hookline.engine.planner import HookPlanner
from hookline.engine.registry import HookRegistry
from hookline.engine.runner import HookRunner
from hookline.engine.system import HookSystem
from tests.support.recorded_events import RecordedHooks

REQUEST = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
RESPONSE = {"candidates": [{"content": {"role": "model", "parts": [{"text": "yo"}]}}]}
KINDS = (HookSystem, HookRegistry, HookPlanner, HookRunner, HookEventHandler)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts what is constructed."""
    counts: Counter[str] = Counter()

    def counting(kind: type) -> Any:
        original = vars(kind)["__init__"]

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            counts[kind.__name__] += 1
            original(self, *args, **kwargs)

        return init

    for kind in KINDS:
        monkeypatch.setattr(kind, "__init__", counting(kind))
    return counts


async def test_triggers_build_the_hook_system_once_and_reuse_it(
    built: Counter[str],
) -> None:
    config = RecordedHooks({"BeforeTool": {"$process": {"command": "true"}}}).config
    assert built == {}
    async with config:
        for _ in range(3):
            await execute_tool_with_hooks(config, "t", {}, lambda given: given)
            await fire_before_model_hook(config, REQUEST)
            await fire_after_model_hook(config, REQUEST, RESPONSE)
            await fire_before_tool_selection_hook(config, REQUEST)
            await fire_session_start_hook(config)
            await fire_before_agent_hook(config, "p")
            await fire_after_agent_hook(config, "p", "r")
            await fire_notification_hook(config, "m")
            await fire_pre_compress_hook(config)
            await fire_subagent_start_hook(config, "a-1", "reviewer")
            await fire_subagent_stop_hook(config, "a-1", "reviewer")
            await fire_session_end_hook(config)
    assert built == {kind.__name__: 1 for kind in KINDS}


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
