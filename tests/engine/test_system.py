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
    HooklineError,
    HookRegistryNotInitializedError,
    HookSystem,
    HookSystemNotInitializedError,
    InMemoryMessageBus,
    Settings,
)
from hookline.agent import execute_tool_with_hooks
from hookline.bus import MessageBusType
from hookline.engine.system import HookSystemStatus
from hookline.errors import HookSystemExistsError, UnknownHookError
from hookline.protocol.results import Stage
from hookline.settings.model import HookSource
from tests.support.workshop import Workshop


async def test_parts_are_available_after_initialize_only() -> None:
    """Seed 004 section 3.1."""
    hooks = HookSystem(Config())
    assert hooks.status == HookSystemStatus(initialized=False, total_hooks=0)
    with pytest.raises(HookSystemNotInitializedError, match="event_handler"):
        _ = hooks.event_handler
    with pytest.raises(HookRegistryNotInitializedError, match="registry"):
        _ = hooks.registry
    await hooks.initialize()
    assert hooks.status == HookSystemStatus(initialized=True, total_hooks=0)
    assert hooks.event_handler is hooks.event_handler
    await hooks.dispose()
    assert hooks.status == HookSystemStatus(initialized=False, total_hooks=0)


async def test_initialize_is_idempotent_and_shared() -> None:
    """Invariant 1 of seed 004 section 13."""
    hooks = HookSystem(Config())
    await asyncio.gather(*(hooks.initialize() for _ in range(10)))
    handler = hooks.event_handler
    await hooks.initialize()
    assert hooks.event_handler is handler
    await hooks.dispose()
    await hooks.dispose()


def test_a_config_has_one_hook_system() -> None:
    config = Config()
    system = config.get_hook_system()
    assert config.get_hook_system() is system
    with pytest.raises(HookSystemExistsError):
        HookSystem(config)
    other = Config()
    made = HookSystem(other)
    assert other.get_hook_system() is made


def test_a_hook_system_wants_a_config() -> None:
    """Issue 17: a folder or a session in its place."""
    make: Any = HookSystem
    for given in (".", Config().session("s-1")):
        wanted = rf"expected a Config, got {type(given).__name__}: write HookSystem\("
        with pytest.raises(TypeError, match=wanted):
            make(given)


def test_disabled_hooks_have_no_hook_system() -> None:
    """protocol.md#settings: no objects, no processes."""
    off = Settings.from_mapping({"enableHooks": False, "hooks": {}})
    assert Config(settings=off).get_hook_system() is None


async def test_leaving_the_config_disposes_what_was_built() -> None:
    async with Config() as config:
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
    assert not system.status.initialized
    async with Config():
        pass


def test_a_config_has_a_session_of_its_own_and_an_absolute_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Config().session_id != Config().session_id
    assert Config(working_dir=".").working_dir == str(tmp_path)


@pytest.mark.parametrize("make", [Config, Config.load])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("opnai", "did you mean 'openai'?"),
        ("OpenAI", "did you mean 'openai'?"),
        ("", "one of auto, genai, openai, anthropic, stable"),
        (None, "one of auto, genai, openai, anthropic, stable"),
        (["openai"], "one of auto, genai, openai, anthropic, stable"),
    ],
)
def test_a_translator_that_does_not_exist_is_refused_at_once(
    make: Any, name: Any, hint: str
) -> None:
    """Issue 12.5: with the nearest name and the list of names.

    protocol.md#translation
    """
    with pytest.raises(ValueError, match="unknown translator") as error:
        make(translator=name)
    assert isinstance(error.value, HooklineError)
    assert hint in str(error.value)
    assert "auto, genai, openai, anthropic, stable" in str(error.value)


async def test_a_loaded_config_reads_the_projects_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("HOOKLINE_TRUST", "all")
    folder = tmp_path / ".hookline"
    folder.mkdir()
    (folder / "settings.toml").write_text(
        '[[hooks.BeforeTool]]\nhooks = [{type = "command", command = "exit 2"}]\n'
    )
    config = Config.load(tmp_path)
    assert config.working_dir == str(tmp_path)
    async with HookSystem(config) as hooks:
        assert hooks.status.total_hooks == 1
        assert (await hooks.event_handler.fire_before_tool_event("t", {})).blocked


async def test_hooks_are_enabled_by_name_and_listed(workshop: Workshop) -> None:
    """DELTA-HSYS-002."""
    hook = workshop.runs("exit 2", "guard")
    config = workshop.config(workshop.settings("BeforeTool", hook))
    async with HookSystem(config) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert (await fire("t", {})).blocked
        hooks.set_hook_enabled("guard", False)
        assert [h.enabled for h in hooks.get_all_hooks()] == [False]
        assert not (await fire("t", {})).blocked
        hooks.set_hook_enabled("guard", True)
        assert (await fire("t", {})).blocked
        with pytest.raises(UnknownHookError, match="did you mean 'guard'"):
            hooks.set_hook_enabled("gard", False)


async def test_runtime_hooks_come_first_in_the_plan(workshop: Workshop) -> None:
    """protocol.md#settings: priority."""
    config = workshop.config(workshop.settings("AfterTool", workshop.runs("echo file")))
    async with HookSystem(config) as hooks:
        hooks.on("AfterTool")(lambda event: {"systemMessage": "code"})
        result = await hooks.event_handler.fire_after_tool_event("t", {}, {})
    assert result.system_message == "code\nfile"


async def test_a_plugin_hook_fails_open_and_says_what_to_use(
    workshop: Workshop,
) -> None:
    hook = {"type": "plugin", "command": "x", "name": "p"}
    found = (await workshop.fire("BeforeTool", hook)).aggregated.hook_results[0]
    assert not found.success
    assert '"command"' in (found.error or "")


def test_an_unknown_event_name_is_rejected() -> None:
    with pytest.raises(HooklineError, match="did you mean 'BeforeTool'"):
        HookSystem(Config()).on("BeforTool")  # type: ignore[type-var] # the mistake


async def test_off_removes_a_function_from_all_its_events() -> None:
    async with HookSystem(Config()) as hooks:

        @hooks.on("BeforeAgent")
        @hooks.on("BeforeTool")
        def guard(event: dict[str, Any]) -> dict[str, str]:
            return {"decision": "block"}

        assert hooks.status.total_hooks == 2
        hooks.off(guard)
        assert hooks.status.total_hooks == 0
        assert not (await hooks.event_handler.fire_before_tool_event("t", {})).blocked
        with pytest.raises(UnknownHookError, match="guard"):
            hooks.off(guard)


def unusable_settings(hook: dict[str, Any]) -> Settings:
    """Settings that no registry can be built from."""
    other = {"type": "command", "command": "exit 0"}
    found = {"hooks": {"BeforeTool": [{"hooks": [hook, other]}]}}
    (layer,) = Settings.from_mapping(found, HookSource.SYSTEM).layers
    options = structs.replace(layer.options, disabled=None)
    return Settings(layers=(structs.replace(layer, options=options),))


@pytest.mark.parametrize("more", [{"onError": "block"}, {"managed": True}, {}])
async def test_hooks_that_cannot_be_registered_fail_by_policy(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    """A host goes on without hooks only where no hook asks for more."""
    hook = {"type": "command", "name": "guard", "command": "exit 0", **more}
    config = Config("s-1", tmp_path)
    config.settings = unusable_settings(hook)
    system = config.get_hook_system()
    assert system is not None
    await system.initialize()
    result = await system.event_handler.fire_before_tool_event("write_file", {})
    assert (result.blocked, result.aggregated.success) == (bool(more), False)
    assert result.aggregated.errors[0].stage is Stage.INTERNAL
    assert config.get_hook_system() is system
    await config.dispose()


async def test_triggers_block_where_the_hooks_cannot_be_registered(
    tmp_path: Path,
) -> None:
    hook = {"type": "command", "name": "g", "command": "exit 0", "onError": "block"}
    config = Config("s-1", tmp_path)
    config.settings = unusable_settings(hook)
    ran = []

    async def write(tool_input: dict[str, Any]) -> str:
        ran.append(tool_input)
        return "written"

    result = await execute_tool_with_hooks(config, "write_file", {}, write)
    assert ran == []
    assert "Blocked by" in str(result.llm_content)
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


async def test_response_that_is_never_taken_keeps_no_system_alive() -> None:
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
