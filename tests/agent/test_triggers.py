"""No trigger builds infrastructure (seed 004, invariants 1 and 2)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

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
)
from hookline.engine.handler import HookEventHandler
from hookline.engine.planner import HookPlanner
from hookline.engine.registry import HookRegistry
from hookline.engine.runner import HookRunner
from hookline.engine.system import HookSystem

from .scenes import config_of, runs

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
    tmp_path: Path, built: Counter[str]
) -> None:
    config = config_of(tmp_path, {"BeforeTool": runs("true")}, seen=False)
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
            await fire_session_end_hook(config)
    assert built == {kind.__name__: 1 for kind in KINDS}
