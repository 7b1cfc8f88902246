"""A whole replacement of the tool's input means the same on every path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline import (
    Config,
    HookBusClient,
    HookSystem,
    InMemoryMessageBus,
    RemoteHooks,
    Settings,
)
from hookline.journal.query import read_journal
from tests.support.workshop import Workshop

GIVEN = {"command": "rm -rf /", "force": True}


def says(**specific: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": specific}


WHOLE = says(tool_input={"command": "ls"}, replacesToolInput=True)
MORE = says(tool_input={"cwd": "/"})

CASES: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "replaced": ([WHOLE], {"command": "ls"}),
    "emptied": ([says(tool_input={}, replacesToolInput=True)], {}),
    "then changed": ([WHOLE, MORE], {"command": "ls", "cwd": "/"}),
    "changed before": ([MORE, WHOLE], {"command": "ls"}),
    "mark taken back": (
        [WHOLE, says(tool_input={"cwd": "/"}, replacesToolInput=False)],
        {"command": "ls", "cwd": "/"},
    ),
    "mark without an input": (
        [says(replacesToolInput=True), MORE],
        {**GIVEN, "cwd": "/"},
    ),
    "mark of a wrong type": (
        [says(tool_input={"cwd": "/"}, replacesToolInput="yes")],
        {**GIVEN, "cwd": "/"},
    ),
}


def settings(workshop: Workshop, outputs: list[dict[str, Any]]) -> dict[str, Any]:
    hooks = [workshop.says(said, f"hook-{n}") for n, said in enumerate(outputs)]
    return workshop.settings("BeforeTool", *hooks, sequential=True)


@pytest.mark.parametrize(("outputs", "whole"), CASES.values(), ids=list(CASES))
async def test_replaced_input_is_the_same_directly_over_the_bus_and_in_the_journal(
    workshop: Workshop,
    tmp_path: Path,
    outputs: list[dict[str, Any]],
    whole: dict[str, Any],
) -> None:
    """protocol.md#results, #bus and #dialects, issue 12.15."""
    bus, journal = InMemoryMessageBus(), tmp_path / "journal.sqlite"
    chosen = Settings.from_mapping(settings(workshop, outputs))
    hooks = HookSystem(Config("s", workshop.folder, chosen), bus)
    hooks.record_to(str(journal))
    async with hooks:
        here = await hooks.event_handler.fire_before_tool_event("run", dict(GIVEN))
        remote = RemoteHooks(HookBusClient(bus))
        there = await remote.fire_before_tool_event("run", dict(GIVEN))
    assert here.final_output is not None
    assert here.final_output.modified_tool_input == whole
    assert there.final_output == here.final_output
    with read_journal(str(journal)) as reader:
        recorded = [reader.find(number) for number in (1, 2)]
    for one in recorded:
        assert one is not None
        assert one.decided.tool_input is not None
        assert json.loads(one.decided.tool_input) == whole


async def test_updated_input_of_the_claude_dialect_drops_keys_over_the_bus(
    workshop: Workshop,
) -> None:
    hook = workshop.says(
        says(permissionDecision="allow", updatedInput={"command": "ls"})
    )
    bus = InMemoryMessageBus()
    wanted = workshop.settings("BeforeTool", {**hook, "dialect": "claude"})
    config = Config("s", workshop.folder, Settings.from_mapping(wanted))
    async with HookSystem(config, bus):
        remote = RemoteHooks(HookBusClient(bus))
        result = await remote.fire_before_tool_event(
            "run_shell_command", {"command": "rm -rf /", "directory": "/"}
        )
    assert result.final_output is not None
    assert result.final_output.modified_tool_input == {"command": "ls"}
