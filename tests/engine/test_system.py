"""Config and HookSystem: lifetime, management, hooks registered in code."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hookline import (
    Config,
    HookBusClient,
    HookRegistryNotInitializedError,
    HookSystem,
    HookSystemNotInitializedError,
    InMemoryMessageBus,
    Settings,
)
from hookline.agent import execute_tool_with_hooks
from hookline.bus import MessageBusType
from hookline.engine.system import HookSystemStatus
from hookline.errors import (
    HookSystemExistsError,
    UnknownHookError,
    UnknownTranslatorError,
)
from hookline.protocol.results import Stage
from hookline.settings.model import HookSource
from tests.support.workspace import TOOL, Workspace


async def test_parts_of_a_system_are_there_between_initialize_and_dispose() -> None:
    """Seed 004 section 3.1, and invariant 1 of section 13: both may be repeated."""
    async with Config() as config:
        hooks = config.get_hook_system()
        assert hooks is not None
        assert config.get_hook_system() is hooks
        assert hooks.status == HookSystemStatus(initialized=False, total_hooks=0)
        with pytest.raises(HookSystemNotInitializedError, match="event_handler"):
            _ = hooks.event_handler
        with pytest.raises(HookRegistryNotInitializedError, match="registry"):
            _ = hooks.registry
        await asyncio.gather(*(hooks.initialize() for _ in range(10)))
        assert hooks.status == HookSystemStatus(initialized=True, total_hooks=0)
        handler = hooks.event_handler
        await hooks.initialize()
        assert hooks.event_handler is handler
        await hooks.dispose()
        await hooks.dispose()
        assert hooks.status == HookSystemStatus(initialized=False, total_hooks=0)
        await hooks.initialize()
    assert not hooks.status.initialized
    async with Config():
        pass


def test_config_has_one_hook_system_that_wants_a_config() -> None:
    """A folder or a session in its place. Disabled hooks have none."""
    config = Config()
    assert config.get_hook_system() is not None
    with pytest.raises(HookSystemExistsError):
        HookSystem(config)
    other = Config()
    made = HookSystem(other)
    assert other.get_hook_system() is made
    make: Any = HookSystem
    for wrong in (".", Config().session("s-1")):
        wanted = rf"expected a Config, got {type(wrong).__name__}: write HookSystem\("
        with pytest.raises(TypeError, match=wanted):
            make(wrong)
    off = Settings.from_mapping({"enableHooks": False, "hooks": {}})
    assert Config(settings=off).get_hook_system() is None


def test_config_has_a_session_of_its_own_and_an_absolute_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Config().session_id != Config().session_id
    assert Config(working_dir=".").working_dir == str(tmp_path)


@pytest.mark.parametrize("make", [Config, Config.load])
def test_translator_that_does_not_exist_is_refused_at_once(make: Any) -> None:
    """With the nearest name and the list of names.

    protocol.md#translation
    """
    for name in ("opnai", "OpenAI", "", None, ["openai"]):
        with pytest.raises(UnknownTranslatorError) as error:
            make(translator=name)
        assert isinstance(error.value, ValueError)
        near = "did you mean 'openai'? " if name in ("opnai", "OpenAI") else ""
        hint = f"{near}one of auto, genai, openai, anthropic, stable"
        assert str(error.value) == f"unknown translator {name!r}: {hint}"


async def test_hooks_are_enabled_by_name_and_listed_after_those_of_the_code(
    workspace: Workspace,
) -> None:
    """DELTA-HSYS-002, protocol.md#settings: priority."""
    config = workspace.config(
        workspace.settings("AfterTool", workspace.runs("echo file", "guard"))
    )
    async with HookSystem(config) as hooks:
        hooks.on("AfterTool", name="mine")(lambda event: {"systemMessage": "code"})

        async def message() -> str | None:
            fired = await hooks.event_handler.fire_after_tool_event("t", {}, {})
            return fired.system_message

        assert await message() == "code\nfile"
        hooks.set_hook_enabled("guard", False)
        listed = {hook.name: hook.enabled for hook in hooks.get_all_hooks()}
        assert listed == {"mine": True, "guard": False}
        assert await message() == "code"
        hooks.set_hook_enabled("guard", True)
        assert await message() == "code\nfile"
        with pytest.raises(UnknownHookError, match="did you mean 'guard'"):
            hooks.set_hook_enabled("gard", False)


@pytest.mark.parametrize("more", [{"onError": "block"}, {"managed": True}, {}])
async def test_hooks_that_cannot_be_registered_fail_by_policy(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    """A host goes on without hooks only where no hook asks for more."""
    hook = {"type": "command", "name": "guard", "command": "exit 0", **more}
    other = {"type": "command", "command": "exit 0"}
    hooks = {"hooks": {"BeforeTool": [{"hooks": [hook, other]}]}}
    (layer,) = Settings.from_mapping(hooks, HookSource.SYSTEM).layers
    unusable = structs.replace(layer.options, disabled=None)
    config = Config("s-1", tmp_path)
    config.settings = Settings(layers=(structs.replace(layer, options=unusable),))
    system = config.get_hook_system()
    assert system is not None
    await system.initialize()
    result = await system.event_handler.fire_before_tool_event("write_file", {})
    assert (result.blocked, result.aggregated.success) == (bool(more), False)
    assert result.aggregated.errors[0].stage is Stage.INTERNAL
    ran: list[object] = []
    called = await execute_tool_with_hooks(config, "write_file", {}, ran.append)
    assert (ran == [], "Blocked by" in called.text) == (bool(more), bool(more))
    assert config.get_hook_system() is system
    await config.dispose()


class OddBus:
    """A bus that does not do what a bus does, until it is ``mended``."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.subscribed = 0
        self.granted = asyncio.Event()

    def mend(self) -> None:
        self.kind = "mended"

    def subscribe(self, message_type: Any, handler: Any) -> Any:
        if self.kind == "refuses":
            raise ConnectionError("no bus")
        if self.kind == "hangs":
            return asyncio.sleep(60)
        self.subscribed += 1
        self.granted.set()
        if self.kind == "returns nothing":
            return None
        if self.kind == "async":
            return asyncio.sleep(0, self._unsubscribe)
        return self._unsubscribe

    def _unsubscribe(self) -> None:
        if self.kind == "keeps":
            raise ConnectionError("still no bus")

    async def publish(self, message_type: Any, payload: Any) -> None:
        raise NotImplementedError


ODD_BUSES = ["refuses", "hangs", "returns nothing", "async", "keeps"]


@pytest.mark.parametrize("kind", ODD_BUSES)
async def test_bus_that_refuses_leaves_the_direct_path(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """HBUS-002: a warning, and the denied tool does not run."""
    ran: list[object] = []
    bus, config = OddBus(kind), Config()
    system = HookSystem(config, bus)
    system.on("BeforeTool")(lambda _: {"decision": "deny", "reason": "no"})
    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(10):
            for _ in range(3):
                result = await execute_tool_with_hooks(config, "t", {}, ran.append)
                assert (result.text, ran) == ("no", [])
            await config.dispose()
    warned = [record for record in caplog.records if "bus" in record.getMessage()]
    assert len(warned) == (0 if kind == "async" else 1)


@pytest.mark.parametrize("again", [False, True], ids=["by itself", "initialize"])
async def test_bus_that_refused_is_asked_again(again: bool) -> None:
    """HBUS-002: later attempts."""
    bus = OddBus("refuses")
    async with HookSystem(Config(), bus) as system:
        bus.mend()
        if again:
            await system.initialize()
        await asyncio.wait_for(bus.granted.wait(), 30)
        await asyncio.gather(*(system.initialize() for _ in range(5)))
    assert bus.subscribed == 1


async def test_call_in_flight_finishes_when_the_system_is_disposed() -> None:
    """DELTA-HEVT-004, rule L2; requests are in ``tests/pins/bus/requests.json``."""
    bus = InMemoryMessageBus()
    system = HookSystem(Config(), bus)
    started, gate = asyncio.Event(), asyncio.Event()
    await system.initialize()

    @system.on("BeforeTool")
    async def slow(_: dict[str, Any]) -> dict[str, Any]:
        started.set()
        await gate.wait()
        return {"decision": "block", "reason": "late but true"}

    asking = asyncio.ensure_future(HookBusClient(bus).request("BeforeTool", TOOL))
    await started.wait()
    disposing = asyncio.ensure_future(system.dispose())
    await asyncio.sleep(0)
    gate.set()
    assert (await asking)["processed"]["reason"] == "late but true"
    await disposing
    response = await HookBusClient(bus).request("BeforeTool", TOOL)
    assert response["error"]["code"] == "no_responders"


async def test_response_that_is_never_taken_keeps_no_system_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit on publishing is five seconds, but for this test."""
    monkeypatch.setattr("hookline.bus.server._PUBLISH_S", 0.1)

    class Deaf(InMemoryMessageBus):
        async def publish(self, message_type: str, payload: Any) -> None:
            if message_type == MessageBusType.HOOK_EXECUTION_RESPONSE:
                await asyncio.sleep(60)
            await super().publish(message_type, payload)

    bus = Deaf()
    async with asyncio.timeout(20):
        async with HookSystem(Config(), bus):
            await bus.publish(MessageBusType.HOOK_EXECUTION_REQUEST, {"eventName": 1})
            await asyncio.sleep(0)
