"""protocol.md#events: each event has its method, and other names and choices none."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hookline import Config, HookEventName, HookSystem
from hookline.errors import HooklineError, UnknownEventError
from tests.support.pins import FOLDER
from tests.support.workspace import TOOL, Workspace

IN_EVERY_INPUT = {"session_id", "cwd", "hook_event_name", "timestamp"}


async def test_every_fire_method_reaches_the_hooks_of_its_event() -> None:
    """protocol.md#results: every fire_*_event returns a ProcessedHookResult.

    Hooks here are shown what remote ones are sent.
    """
    table = json.loads((FOLDER / "bus" / "sent.json").read_text()).values()
    calls = [row for row in table if row["fire"] != "fire" and "options" not in row]
    seen: list[dict[str, Any]] = []
    async with HookSystem(Config()) as hooks:
        handler = hooks.event_handler
        methods = {name for name in dir(handler) if name.startswith("fire_")}
        methods -= {"fire_fields"}
        assert methods == {row["fire"] for row in calls}
        for event in HookEventName:
            hooks.on(event)(seen.append)
        for row in calls:
            call = getattr(handler, row["fire"])
            result = await call(*row["args"], **row.get("named", {}))
            assert result.aggregated.success is ("input" in row["then"])
            if result.aggregated.success:
                shown = seen.pop()
                assert shown["hook_event_name"] == row["then"]["eventName"]
                assert shown.pop("transcript_path") == ""
                fields = {k: v for k, v in shown.items() if k not in IN_EVERY_INPUT}
                assert fields == row["then"]["input"]
    assert seen == []


@pytest.mark.parametrize(
    "name", ["beforetool", "BeforTool", "", [], {}, 5, None], ids=repr
)
async def test_unknown_event_raises_wherever_it_is_fired(
    workspace: Workspace, name: Any
) -> None:
    """protocol.md#results: the caller's mistake, also with hooks switched off."""
    async with workspace.config({}) as config:
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        for fire in (system.event_handler.fire, config.session("s").fire):
            with pytest.raises(UnknownEventError) as raised:
                await fire(name, TOOL)
        for fire_sync in (system.fire_sync, config.session().fire_sync):
            with pytest.raises(UnknownEventError):
                await asyncio.to_thread(fire_sync, name, TOOL)
        assert isinstance(raised.value, HooklineError)
        assert repr(name) in str(raised.value)
        if name in ("beforetool", "BeforTool"):
            assert "did you mean 'BeforeTool'?" in str(raised.value)
    async with workspace.config({"enableHooks": False}) as disabled:
        with pytest.raises(UnknownEventError):
            await disabled.session().fire(name, TOOL)
