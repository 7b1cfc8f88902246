"""The bus end to end: a real hook system behind a bus."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hookline import (
    Config,
    HookBusClient,
    HookEventName,
    HookSystem,
    InMemoryMessageBus,
    RemoteHooks,
    Settings,
)
from hookline.agent.tool_calls import ToolResult, execute_tool_with_hooks
from hookline.bus import MessageBusType, NatsBus
from tests.support.nats import NatsServer

from .test_handler_logs import ListLogger

TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": ".env"}}
Seen = list[Mapping[str, Any]]


class Site:
    """A hook system with a bus, and what its one recording hook saw."""

    def __init__(self, folder: Path) -> None:
        self.bus = InMemoryMessageBus()
        self.config = Config(session_id="own", working_dir=folder, settings=Settings())
        self.system = HookSystem(self.config, message_bus=self.bus)
        self.client = HookBusClient(self.bus)
        self.seen: Seen = []

    def record(self, event: str) -> None:
        @self.system.on(HookEventName.of(event))
        def remember(event_input: Mapping[str, Any]) -> None:
            self.seen.append(event_input)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    running = Site(tmp_path)
    async with running.system:
        yield running


async def test_request_over_the_bus_runs_the_hooks(site: Site) -> None:
    """DELTA-HEVT-001, DELTA-HEVT-002."""

    @site.system.on("BeforeTool", matcher="write_.*")
    def guard(event: Mapping[str, Any]) -> dict[str, Any]:
        return {"decision": "block", "reason": f"not {event['tool_input']['path']}"}

    response = await site.client.request("BeforeTool", TOOL, correlation_id="c")
    assert response["correlationId"] == "c"
    assert response["success"] is True
    assert response["processed"]["blocked"] is True
    assert response["processed"]["reason"] == "not .env"
    assert response["output"]["hookResults"][0]["success"] is True


async def test_system_gives_its_handler_the_bus_and_the_debug_logger() -> None:
    """DELTA-HSYS-001."""
    bus, log = InMemoryMessageBus(), ListLogger(logging.DEBUG)
    async with HookSystem(Config(), message_bus=bus, debug_logger=log) as hooks:
        hooks.on("BeforeTool")(lambda event: None)
        response = await HookBusClient(bus).request("BeforeTool", TOOL)
    assert response["success"] is True
    assert [record["event"] for record in log.named("hook:result")] == ["BeforeTool"]


async def test_hooks_see_the_handlers_own_directory_event_and_time(site: Site) -> None:
    site.record("BeforeTool")
    forged = {
        "cwd": "/",
        "hook_event_name": "AfterTool",
        "timestamp": "then",
        "session_id": "theirs",
        "requester": {"name": "planner"},
    }
    await site.client.request("BeforeTool", TOOL | forged)
    seen = site.seen[0]
    assert seen["cwd"] == site.config.working_dir
    assert seen["hook_event_name"] == "BeforeTool"
    assert seen["timestamp"].endswith("Z")
    assert seen["session_id"] == "theirs"
    assert seen["requester"] == {"name": "planner"}


async def test_request_without_a_session_runs_in_the_handlers_own(site: Site) -> None:
    site.record("BeforeTool")
    await site.client.request("BeforeTool", TOOL)
    assert site.seen[0]["session_id"] == "own"


@pytest.mark.parametrize("name", ["model_request", "llm_request"])
async def test_model_request_in_an_sdks_shape_is_translated(
    site: Site, name: str
) -> None:
    """DELTA-HPAY-003 over the bus."""
    site.record("BeforeModel")
    request = {"model": "m", "contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    response = await site.client.request("BeforeModel", {name: request})
    assert response["success"] is True
    assert site.seen[0]["llm_request"]["messages"] == [
        {"role": "user", "content": "hi"}
    ]
    assert "model_request" not in site.seen[0]


async def test_untranslatable_request_is_a_translation_failure(site: Site) -> None:
    """DELTA-HPAY-004: a boundary failure, before any planning (rule T3)."""
    site.record("BeforeModel")
    response = await site.client.request("BeforeModel", {"llm_request": {"what": 1}})
    assert response["success"] is False
    assert response["error"]["code"] == "translation_failure"
    assert response["error"]["details"]["stage"] == "translation"
    assert site.seen == []


async def test_untranslatable_request_fails_also_where_no_hook_would_match(
    site: Site,
) -> None:
    """Section 8: translation comes before planning."""
    response = await site.client.request("BeforeModel", {"llm_request": {"what": 1}})
    assert response["error"]["code"] == "translation_failure"


async def test_disposed_system_takes_no_requests(tmp_path: Path) -> None:
    """DELTA-HEVT-004, rule L2."""
    site = Site(tmp_path)
    async with site.system:
        assert site.bus.has_subscribers(MessageBusType.HOOK_EXECUTION_REQUEST)
        assert (await site.client.request("BeforeTool", TOOL))["success"] is True
    response = await site.client.request("BeforeTool", TOOL)
    assert response["error"]["code"] == "no_responders"


async def test_call_in_flight_finishes_when_the_system_is_disposed(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path)
    started, gate = asyncio.Event(), asyncio.Event()
    await site.system.initialize()

    @site.system.on("BeforeTool")
    async def slow(event: Mapping[str, Any]) -> dict[str, Any]:
        started.set()
        await gate.wait()
        return {"decision": "block", "reason": "late but true"}

    asking = asyncio.ensure_future(site.client.request("BeforeTool", TOOL))
    await started.wait()
    disposing = asyncio.ensure_future(site.system.dispose())
    await asyncio.sleep(0)
    gate.set()
    assert (await asking)["processed"]["reason"] == "late but true"
    await disposing


async def test_remote_hooks_give_what_the_handler_gives(site: Site) -> None:
    @site.system.on("BeforeTool")
    def rewrite(event: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "systemMessage": "renamed",
            "hookSpecificOutput": {
                "tool_input": {"path": "safe"},
                "additionalContext": "<see>",
            },
        }

    remote = RemoteHooks(site.client)
    tool_input = {"path": ".env", "content": "x"}
    here = await site.system.event_handler.fire_before_tool_event("write", tool_input)
    there = await remote.fire_before_tool_event("write", tool_input)
    assert there.final_output == here.final_output
    assert there.system_message == here.system_message == "renamed"
    assert there.final_output is not None
    assert there.final_output.modified_tool_input == {"path": "safe", "content": "x"}
    assert there.final_output.additional_context == "&lt;see&gt;"


async def run_tool(config: Config) -> tuple[list[Any], str]:
    """Run a tool as an agent does; returns what it ran with and what came out."""
    ran: list[Any] = []

    async def write(tool_input: Mapping[str, Any]) -> ToolResult:
        ran.append(dict(tool_input))
        return ToolResult(llm_content="written", return_display="written")

    result = await execute_tool_with_hooks(
        config, "write_file", {"path": ".env", "n": 1}, write
    )
    return ran, str(result.llm_content)


async def test_agent_runs_its_tools_with_remote_hooks(site: Site) -> None:
    @site.system.on("BeforeTool")
    def rename(event: Mapping[str, Any]) -> dict[str, Any]:
        return {"hookSpecificOutput": {"tool_input": {"path": "safe"}}}

    agent = Config(settings=Settings())
    agent.use_hooks(RemoteHooks(site.client))
    assert await run_tool(agent) == (
        [{"path": "safe", "n": 1}],
        "written\n\n[System] A hook changed the tool's input: path",
    )

    @site.system.on("BeforeTool")
    def refuse(event: Mapping[str, Any]) -> dict[str, Any]:
        return {"decision": "block", "reason": "not here"}

    ran, content = await run_tool(agent)
    assert ran == []
    assert "not here" in content


@pytest.mark.parametrize(("on_error", "runs"), [("allow", 1), ("block", 0)])
async def test_agent_without_its_hooks_continues_or_blocks_as_configured(
    on_error: str, runs: int
) -> None:
    agent = Config(settings=Settings())
    agent.use_hooks(RemoteHooks(HookBusClient(InMemoryMessageBus(), on_error)))
    ran, content = await run_tool(agent)
    assert len(ran) == runs
    assert ("no_responders" in content) is (runs == 0)


async def test_system_serves_nats_and_leaves_it_when_disposed(
    server: NatsServer, prefix: str, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.json"
    hook = {"type": "command", "command": "echo no >&2; exit 2", "name": "guard"}
    settings.write_text(json.dumps({"hooks": {"BeforeTool": [{"hooks": [hook]}]}}))
    config = Config(working_dir=tmp_path, settings=Settings.from_file(settings))
    async with (
        await NatsBus.connect(server.url, prefix=prefix) as serving,
        await NatsBus.connect(server.url, prefix=prefix) as asking,
    ):
        client = HookBusClient(asking)
        async with HookSystem(config, message_bus=serving):
            await serving.ready()
            response = await client.request("BeforeTool", TOOL)
            assert response["processed"]["reason"] == "no"
        response = await client.request("BeforeTool", TOOL)
        assert response["error"]["code"] == "no_responders"
