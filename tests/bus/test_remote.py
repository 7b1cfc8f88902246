"""Hooks that run elsewhere, for an agent that also has hooks of its own."""

from __future__ import annotations

import sqlite3
from inspect import signature
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
from hookline.engine.handler import HookEventHandler
from hookline.protocol.events import HookEventName
from hookline.protocol.results import Stage
from hookline.translators.genai import GenerateContentRequest
from tests.support.bus_rows import GivenAnswer, rule, settings_of

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


async def test_request_object_of_an_sdk_is_sent_in_the_stable_shape() -> None:
    """DELTA-HPAY-003, 004: one of an unknown shape is a failure, and not sent."""
    carrier = GivenAnswer(None)
    hooks = RemoteHooks(HookBusClient(carrier, "block"))
    await hooks.fire_before_model_event(GenerateContentRequest("gemini", "hello"))
    assert carrier.requests[0]["input"]["llm_request"] == {
        "model": "gemini",
        "messages": [{"role": "user", "content": "hello"}],
    }
    result = await hooks.fire_before_model_event(object())
    assert result.aggregated.errors[0].stage is Stage.TRANSLATION
    assert result.blocked
    assert len(carrier.requests) == 1


def test_remote_hooks_have_the_fire_methods_of_the_handler() -> None:
    public = {name for name in dir(HookEventHandler) if name.startswith("fire_")}
    remote = {name for name in dir(RemoteHooks) if name.startswith("fire_")}
    assert public - {"fire_validated"} == remote
    assert len(remote - {"fire_fields"}) == len(HookEventName)
    for name in remote:
        assert signature(getattr(RemoteHooks, name)) == signature(
            getattr(HookEventHandler, name)
        )
