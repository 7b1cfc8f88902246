"""Hooks that run elsewhere, for an agent that also has hooks of its own."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hookline import (
    Config,
    HookBusClient,
    HookSystem,
    InMemoryMessageBus,
    RemoteHooks,
)
from tests.support.bus_rows import rule, settings_of

DENY_THERE = rule("far", decision="deny", reason="far says no")
DENY_HERE = rule("near", decision="deny", reason="near says no")


def agent_and_server(
    there: list[Any], here: list[Any], **options: Any
) -> tuple[Config, HookSystem]:
    """A config with hooks of its own, and a server with others."""
    bus = InMemoryMessageBus()
    config = Config("here", ".", settings_of("BeforeTool", here, **options))
    config.use_hooks(RemoteHooks(HookBusClient(bus, timeout_s=60)))
    server = Config("there", ".", settings_of("BeforeTool", there))
    return config, HookSystem(server, bus)


async def test_functions_registered_in_code_and_remote_hooks_both_run() -> None:
    config, server = agent_and_server([rule("far", systemMessage="m")], [])
    async with server, config:
        system = config.get_hook_system()
        assert system is not None

        @system.on("BeforeTool")
        def near(_: dict[str, Any]) -> dict[str, Any]:
            return {"decision": "deny", "reason": "in code"}

        result = await config.session("s").fire_before_tool_event("t", {})
    assert (result.reason, result.system_message) == ("in code", "m")


async def test_remote_hooks_are_asked_where_local_ones_cannot_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config, server = agent_and_server([DENY_THERE], [])
    async with server, config:

        def broken() -> None:
            raise RuntimeError("no hook system")

        monkeypatch.setattr(config, "get_hook_system", broken)
        result = await config.session("s").fire_before_tool_event("t", {})
        monkeypatch.undo()
    assert result.reason == "far says no"


async def test_requests_from_a_bus_are_answered_by_local_hooks_only() -> None:
    """A config that serves and asks on one bus does not ask itself for ever."""
    bus = InMemoryMessageBus()
    config = Config("both", ".", settings_of("BeforeTool", [DENY_HERE]))
    config.use_hooks(RemoteHooks(HookBusClient(bus, timeout_s=5)))
    async with HookSystem(config, bus):
        result = await config.session("s").fire_before_tool_event("t", {})
    assert result.reason == "near says no"


async def test_journal_records_what_both_sides_said(tmp_path: Path) -> None:
    """protocol.md#results: what is recorded is what the caller was told."""
    journal = tmp_path / "journal.db"
    options: dict[str, Any] = {"hooksConfig": {"journal": str(journal)}}
    here = [rule("near", "tool_name == 'b'")]
    config, server = agent_and_server([DENY_THERE], here, **options)
    async with server, config:
        for tool in ("a", "b"):
            await config.session("s").fire_before_tool_event(tool, {})
    connection = sqlite3.connect(journal)
    rows = connection.execute("SELECT blocked, reason FROM events").fetchall()
    connection.close()
    assert rows == [(1, "far says no")] * 2
