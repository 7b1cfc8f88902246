"""Remote hooks beside local ones: as if all were hooks of one plan."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
from hookline.agent import execute_tool_with_hooks

Rules = list[dict[str, Any]]
STABLE = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def rule(name: str, when: str = "true", **then: Any) -> dict[str, Any]:
    return {"type": "rule", "name": name, "when": when, "then": then}


def deny(name: str, when: str = "true") -> dict[str, Any]:
    return rule(name, when, decision="deny", reason=f"{name} says no")


def changing(name: str, when: str = "true", **tool_input: Any) -> dict[str, Any]:
    return rule(name, when, hookSpecificOutput={"tool_input": tool_input})


def settings(event: str, rules: Rules, **more: Any) -> Settings:
    return Settings.from_mapping({"hooks": {event: [{"hooks": rules}]}, **more})


@asynccontextmanager
async def agent(
    there: Rules,
    here: Rules,
    event: str = "BeforeTool",
    *,
    on_error: str = "allow",
    **options: Any,
) -> AsyncIterator[Config]:
    """A config with hooks of its own, and a server with others."""
    bus = InMemoryMessageBus()
    server = Config("there", ".", settings(event, there))
    config = Config("here", ".", settings(event, here, **options))
    config.use_hooks(RemoteHooks(HookBusClient(bus, on_error)))
    async with HookSystem(server, bus), config:
        yield config


@pytest.mark.parametrize(
    ("there", "here", "reason"),
    [
        ([deny("far")], [], "far says no"),
        ([], [deny("near")], "near says no"),
        ([deny("far")], [deny("near")], "far says no\nnear says no"),
        ([deny("far")], [rule("near", decision="allow")], "far says no"),
        ([rule("far", decision="allow")], [deny("near")], "near says no"),
        ([rule("far", decision="ask")], [deny("near")], "near says no"),
    ],
)
async def test_a_block_of_either_side_keeps_the_tool_from_running(
    there: Rules, here: Rules, reason: str
) -> None:
    """protocol.md#bus: the strictest answer counts."""
    ran: list[Any] = []
    async with agent(there, here) as config:
        result = await execute_tool_with_hooks(config, "t", {"a": 1}, ran.append)
        told = await config.session("s").fire_before_tool_event("t", {})
    assert (ran, result.error) == ([], reason)
    assert (told.blocked, told.reason) == (True, reason)


@pytest.mark.parametrize(
    ("there", "here"),
    [
        ([changing("far", path=".env")], [deny("near", "tool_input.path == '.env'")]),
        ([deny("far", "tool_input.path == '.env'")], [changing("near", path=".env")]),
    ],
    ids=["the remote change", "the local change"],
)
async def test_each_side_judges_what_the_other_one_changed(
    there: Rules, here: Rules
) -> None:
    """protocol.md#several-hooks: what is executed is what the guards have seen."""
    async with agent(there, here) as config:
        result = await config.session("s").fire_before_tool_event("t", {"path": "a"})
    assert result.blocked
    rechecked = [one for one in result.aggregated.hook_results if one.recheck]
    assert [one.hook_name for one in rechecked if one.output] != []


async def test_changes_contexts_and_messages_of_both_sides_are_one_result() -> None:
    there = [
        rule(
            "far",
            systemMessage="m1",
            hookSpecificOutput={"tool_input": {"a": 1}, "additionalContext": "c1"},
        )
    ]
    here = [
        rule(
            "near",
            decision="ask",
            systemMessage="m2",
            hookSpecificOutput={"tool_input": {"b": 2}, "additionalContext": "c2"},
        )
    ]
    async with agent(there, here) as config:
        result = await config.session("s").fire_before_tool_event("t", {"z": 0})
    final = result.final_output
    assert final is not None
    assert final.modified_tool_input == {"z": 0, "a": 1, "b": 2}
    assert (final.additional_context, result.system_message) == ("c1\nc2", "m1\nm2")
    assert (result.ask, result.blocked) == (True, False)
    names = [one.hook_name for one in result.aggregated.hook_results if not one.recheck]
    assert names == ["far", "near"]


async def test_tool_lists_of_both_sides_are_merged_and_none_beats_any() -> None:
    def only(*names: str, mode: str = "ANY") -> dict[str, Any]:
        config = {"mode": mode, "allowedFunctionNames": list(names)}
        return rule(names[0], hookSpecificOutput={"toolConfig": config})

    event = "BeforeToolSelection"
    async with agent([only("a", "b")], [only("b", "c")], event) as config:
        united = await config.session("s").fire_before_tool_selection_event(STABLE)
    options: dict[str, Any] = {"hooksConfig": {"toolSelection": "intersect"}}
    async with agent([only("a", "b")], [only("b", "c")], event, **options) as config:
        common = await config.session("s").fire_before_tool_selection_event(STABLE)
    async with agent([only("a", mode="NONE")], [only("b")], event) as config:
        none = await config.session("s").fire_before_tool_selection_event(STABLE)
    found = [
        one.final_output and one.final_output.tool_config for one in (united, none)
    ]
    assert found[0] == {"mode": "ANY", "allowedFunctionNames": ["a", "b", "c"]}
    assert found[1] == {"mode": "NONE", "allowedFunctionNames": []}
    assert common.final_output is not None
    assert common.final_output.tool_config == {
        "mode": "ANY",
        "allowedFunctionNames": ["b"],
    }


@pytest.mark.parametrize("on_error", ["allow", "block"])
async def test_local_hooks_hold_while_nobody_is_on_the_bus(on_error: str) -> None:
    """protocol.md#bus: the client's ``on_error`` is the answer of the remote side."""
    config = Config(
        "here", ".", settings("BeforeTool", [deny("near", "has(tool_input.x)")])
    )
    config.use_hooks(RemoteHooks(HookBusClient(InMemoryMessageBus(), on_error)))
    async with config:
        denied = await config.session("s").fire_before_tool_event("t", {"x": 1})
        other = await config.session("s").fire_before_tool_event("t", {})
    assert denied.blocked
    assert "near says no" in str(denied.reason)
    assert other.blocked is (on_error == "block")
    assert [error.details for error in other.aggregated.errors] == ["no_responders"]


async def test_functions_registered_in_code_and_remote_hooks_both_run() -> None:
    async with agent([rule("far", systemMessage="m")], []) as config:
        system = config.get_hook_system()
        assert system is not None

        @system.on("BeforeTool")
        def near(_: dict[str, Any]) -> dict[str, Any]:
            return {"decision": "deny", "reason": "in code"}

        result = await config.session("s").fire_before_tool_event("t", {})
    assert (result.reason, result.system_message) == ("in code", "m")


async def test_remote_hooks_are_asked_where_local_ones_are_off_or_cannot_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with agent([deny("far")], [deny("near")], enableHooks=False) as config:
        assert config.get_hook_system() is None
        off = await config.session("s").fire_before_tool_event("t", {})
    async with agent([deny("far")], []) as config:

        def broken() -> None:
            raise RuntimeError("no hook system")

        monkeypatch.setattr(config, "get_hook_system", broken)
        failed = await config.session("s").fire_before_tool_event("t", {})
        monkeypatch.undo()
    assert [off.reason, failed.reason] == ["far says no"] * 2


async def test_requests_from_a_bus_are_answered_by_local_hooks_only() -> None:
    """A config that serves and asks on one bus does not ask itself for ever."""
    bus = InMemoryMessageBus()
    config = Config("both", ".", settings("BeforeTool", [deny("near")]))
    config.use_hooks(RemoteHooks(HookBusClient(bus, timeout_s=5)))
    async with HookSystem(config, bus):
        result = await config.session("s").fire_before_tool_event("t", {})
    assert result.reason == "near says no"


async def test_the_journal_records_what_both_sides_said(tmp_path: Path) -> None:
    """protocol.md#results: what is recorded is what the caller was told."""
    journal = tmp_path / "journal.db"
    options: dict[str, Any] = {"hooksConfig": {"journal": str(journal)}}
    async with agent([deny("far")], [rule("near", "tool_name == 'b'")], **options) as c:
        for tool in ("a", "b"):
            await c.session("s").fire_before_tool_event(tool, {})
    connection = sqlite3.connect(journal)
    found = connection.execute("SELECT blocked, reason FROM events").fetchall()
    connection.close()
    assert found == [(1, "far says no")] * 2
