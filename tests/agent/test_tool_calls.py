"""Tool calls with odd tools and inputs, hooks that are out of reach, and cancellation.

What hooks do to the calls of every caller is recorded in
``tests/pins/agent/tool_calls.json``. Seed 004 section 5.1; protocol.md#callers.
"""

from __future__ import annotations

import asyncio
import functools
import json
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.agent import (
    ToolResult,
    execute_tool_with_hooks,
    fire_after_tool_hook,
    fire_before_tool_hook,
)
from hookline.settings.model import OnFailure
from tests.support.recorded_events import RecordedHooks, specific

INPUT = {"path": "a.txt", "content": "hello"}


async def run(config: Config) -> tuple[ToolResult, list[Any]]:
    inputs: list[Any] = []

    def write_file(tool_input: dict[str, Any]) -> str:
        inputs.append(tool_input)
        return "wrote it"

    async with config:
        result = await execute_tool_with_hooks(config, "write_file", INPUT, write_file)
    return result, inputs


async def test_ask_is_decided_by_the_settings_of_its_verdict(tmp_path: Path) -> None:
    """One event, one version, though telling of it loads the next one."""
    file = tmp_path / "hooks.json"
    ask = {"type": "rule", "when": "true", "then": {"decision": "ask"}}
    hooks = {"BeforeTool": [{"hooks": [ask]}]}
    text = json.dumps({"hooksConfig": {"onAsk": "block"}, "hooks": hooks})
    file.write_text(text)
    config = Config("s", tmp_path, Settings.from_file(file))
    system = HookSystem(config, reload=True)

    @system.on("BeforeTool")
    def loosen(_: object) -> None:
        file.write_text(text.replace("block", "allow"))

    _, inputs = await run(config)
    assert inputs == []
    assert config.settings.global_options.on_ask is OnFailure.ALLOW


async def test_exception_of_a_tool_is_the_caller_s_where_hooks_are_off(
    tmp_path: Path,
) -> None:
    """Seed 004 section 5.1: the tool is called directly then."""
    config = Config("s", tmp_path, Settings.from_mapping({"enableHooks": False}))

    async def breaks(_: dict[str, Any]) -> str:
        raise LookupError("mine")

    def breaks_at_once() -> str:
        raise LookupError("mine")

    for execute in (breaks, breaks_at_once):
        for owner in (config, config.session("x")):
            with pytest.raises(LookupError, match="mine"):
                await execute_tool_with_hooks(owner, "t", INPUT, execute)
    found = await execute_tool_with_hooks(config, "t", INPUT, lambda given: given)
    assert found == ToolResult(llm_content=INPUT)


async def test_result_is_withheld_where_the_error_has_no_text(tmp_path: Path) -> None:
    class TextlessError(Exception):
        def __str__(self) -> str:
            raise LookupError

    def breaks(_: dict[str, Any]) -> None:
        raise TextlessError

    then = {"hookSpecificOutput": {"withholdResult": True, "additionalContext": "no"}}
    rule = {"type": "rule", "name": "guard", "when": "true", "then": then}
    settings = Settings.from_mapping({"hooks": {"AfterTool": [{"hooks": [rule]}]}})
    config = Config("s", tmp_path, settings)
    assert (await execute_tool_with_hooks(config, "t", {}, breaks)).text == "no"
    found = await execute_tool_with_hooks(
        Config("s", tmp_path, Settings()), "t", {}, breaks
    )
    assert found.error == "TextlessError"


async def test_input_that_cannot_be_read_is_a_result(tmp_path: Path) -> None:
    class Unreadable(dict[str, Any]):
        def keys(self) -> Any:
            raise LookupError("mine")

        def __iter__(self) -> Any:
            raise LookupError("mine")

    ran: list[object] = []
    config = Config("s", tmp_path, Settings())
    result = await execute_tool_with_hooks(config, "t", Unreadable(), ran.append)
    assert (ran, result.error) == ([], "LookupError: mine")


async def test_tool_without_parameters_runs_unless_its_input_is_changed(
    tmp_path: Path,
) -> None:
    """Seed 004 section 5.1: the tool may know its input already."""
    ran: list[str] = []

    def tool() -> str:
        ran.append("once")
        return "done"

    async def later() -> str:
        return tool()

    for execute in (tool, later, functools.partial(tool)):
        async with Config("s-1", tmp_path, Settings()) as config:
            result = await execute_tool_with_hooks(config, "t", INPUT, execute)
        assert result.llm_content == "done"
    assert ran == ["once"] * 3
    change = specific(tool_input={"path": "b.txt"})
    async with RecordedHooks({"BeforeTool": change}).config as config:
        result = await execute_tool_with_hooks(config, "t", INPUT, tool)
    assert "changed the input" in result.text
    assert ran == ["once"] * 3


async def test_triggers_answer_none_when_hooks_are_switched_off(tmp_path: Path) -> None:
    settings = Settings.from_mapping({"enableHooks": False})
    config = Config("s-1", tmp_path, settings)
    assert await fire_before_tool_hook(config, "t", {}) is None
    assert await fire_after_tool_hook(config, "t", {}, {}) is None
    result, inputs = await run(config)
    assert (result.llm_content, inputs) == ("wrote it", [INPUT])


async def test_triggers_go_on_when_the_hooks_cannot_be_reached(tmp_path: Path) -> None:
    """The edge of the triggers: no exception gets out."""
    config = Config("s-1", tmp_path, Settings())
    config.use_hooks(object())
    result, inputs = await run(config)
    assert (result.llm_content, inputs) == ("wrote it", [INPUT])


async def test_triggers_are_cancelled_with_their_caller() -> None:
    started = asyncio.Event()

    async def slow(_: dict[str, Any]) -> None:
        started.set()
        await asyncio.Event().wait()

    async with RecordedHooks({"BeforeTool": slow}).config as config:
        task = asyncio.create_task(fire_before_tool_hook(config, "write_file", {}))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
