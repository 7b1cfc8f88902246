"""Config and HookSystem: lifetime, management, hooks registered in code."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hookline import (
    Config,
    HookEventName,
    HooklineError,
    HookSystem,
    HookSystemNotInitializedError,
    ProcessedHookResult,
    Settings,
)
from hookline.engine.system import HookSystemStatus
from hookline.errors import HookSystemExistsError, UnknownHookError
from hookline.protocol.results import FailureCause
from tests.support.workshop import Workshop


async def test_parts_are_there_after_initialize_only() -> None:
    """Seed 004 section 3.1."""
    hooks = HookSystem(Config())
    assert hooks.status == HookSystemStatus(initialized=False, total_hooks=0)
    with pytest.raises(HookSystemNotInitializedError, match="event_handler"):
        _ = hooks.event_handler
    with pytest.raises(HookSystemNotInitializedError, match="registry"):
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


def test_switched_off_hooks_have_no_hook_system() -> None:
    """PROTOCOL 2: no objects, no processes."""
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


async def test_hooks_are_switched_by_name_and_listed(workshop: Workshop) -> None:
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


async def fire_with(function: Any, **options: Any) -> ProcessedHookResult:
    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool", **options)(function)
        return await hooks.event_handler.fire_before_tool_event("write_file", {"a": 1})


async def test_a_plain_function_blocks() -> None:
    result = await fire_with(lambda event: {"decision": "block", "reason": "no"})
    assert (result.blocked, result.reason) == (True, "no")
    assert result.aggregated.hook_results[0].source == "runtime"


async def test_an_async_function_blocks_and_the_decorator_gives_it_back() -> None:
    async with HookSystem(Config()) as hooks:

        @hooks.on(HookEventName.BeforeTool, matcher="write_.*")
        async def guard(event: dict[str, Any]) -> dict[str, Any]:
            await asyncio.sleep(0)
            return {"decision": "block", "reason": event["tool_name"]}

        result = await hooks.event_handler.fire_before_tool_event("write_file", {})
        other = await hooks.event_handler.fire_before_tool_event("read_file", {})
        assert (await guard({"tool_name": "x"}))["reason"] == "x"
    assert (result.reason, other.blocked) == ("write_file", False)
    assert result.aggregated.hook_results[0].hook_name == "guard"


async def test_a_value_of_hookline_script_is_an_answer() -> None:
    from hookline.script import block

    assert (await fire_with(lambda event: block("never"))).reason == "never"


async def test_a_function_gets_a_private_copy_of_the_event() -> None:
    given = {"deep": {"list": [1]}}

    def meddler(event: dict[str, Any]) -> None:
        event["tool_input"]["deep"]["list"].append(2)
        event.clear()

    seen: list[Any] = []
    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool")(meddler)
        hooks.on("BeforeTool")(lambda event: seen.append(event["tool_input"]))
        await hooks.event_handler.fire_before_tool_event("t", given)
    assert given == {"deep": {"list": [1]}}
    assert seen == [given]


async def test_a_function_that_raises_fails_open() -> None:
    def broken(event: dict[str, Any]) -> None:
        raise KeyError("missing")

    result = await fire_with(broken)
    hook = result.aggregated.hook_results[0]
    assert (hook.success, hook.cause, result.blocked) == (
        False,
        FailureCause.CRASH,
        False,
    )
    assert "KeyError: 'missing'" in (hook.error or "")
    assert "broken" in hook.stderr


async def test_a_timeout_error_of_the_functions_own_is_a_crash() -> None:
    async def broken(event: dict[str, Any]) -> None:
        raise TimeoutError("mine")

    hook = (await fire_with(broken)).aggregated.hook_results[0]
    assert (hook.cause, hook.timed_out) == (FailureCause.CRASH, False)


async def test_an_async_function_is_cancelled_at_its_timeout() -> None:
    cancelled = []

    async def slow(event: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    hook = (await fire_with(slow, timeout_ms=50)).aggregated.hook_results[0]
    assert (hook.success, hook.timed_out) == (False, True)
    assert "timed out after 50 ms" in (hook.error or "")
    assert cancelled == [True]


async def test_cancelling_the_caller_cancels_the_function() -> None:
    state: list[str] = []
    started = asyncio.Event()

    async def slow(event: dict[str, Any]) -> None:
        state.append("started")
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            state.append("ended")

    task = asyncio.create_task(fire_with(slow))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert state == ["started", "ended"]


@pytest.mark.parametrize(
    ("code", "blocked", "success"),
    [(2, True, False), (0, False, True), (None, False, True), (3, False, False)],
)
async def test_system_exit_is_read_by_the_table(
    code: int | None, blocked: bool, success: bool
) -> None:
    def leaves(event: dict[str, Any]) -> None:
        raise SystemExit(code)

    result = await fire_with(leaves)
    assert (result.blocked, result.aggregated.success) == (blocked, success)


async def test_system_exit_with_a_text_is_a_warning() -> None:
    def leaves(event: dict[str, Any]) -> None:
        raise SystemExit("went wrong")

    assert (await fire_with(leaves)).system_message == "Warning: went wrong"


async def test_an_answer_of_no_known_kind_is_a_failure() -> None:
    hook = (await fire_with(lambda event: "block")).aggregated.hook_results[0]
    assert (hook.success, hook.cause) == (False, FailureCause.OUTPUT)
    assert "returned str" in (hook.error or "")


async def test_runtime_hooks_come_first_in_the_plan(workshop: Workshop) -> None:
    """PROTOCOL 2: priority."""
    config = workshop.config(workshop.settings("AfterTool", workshop.runs("echo file")))
    async with HookSystem(config) as hooks:
        hooks.on("AfterTool")(lambda event: {"systemMessage": "code"})
        result = await hooks.event_handler.fire_after_tool_event("t", {}, {})
    assert result.system_message == "code\nfile"


async def test_python_hooks_are_named_in_settings(workshop: Workshop) -> None:
    hook = {"type": "python", "function": "tests.executors.functions:guard"}
    assert (await workshop.fire("BeforeTool", hook)).reason == "write_file"


@pytest.mark.parametrize(
    "function",
    [
        "no.such.module:guard",
        "tests.executors.functions:missing",
        "tests.executors.functions:NOT",
    ],
)
async def test_a_python_hook_that_cannot_be_loaded_fails_open(
    workshop: Workshop, function: str
) -> None:
    hook = {"type": "python", "function": function}
    found = (await workshop.fire("BeforeTool", hook)).aggregated.hook_results[0]
    assert (found.success, found.cause) == (False, FailureCause.SPAWN)
    assert function in (found.error or "")


async def test_a_plugin_hook_fails_open_and_says_what_to_use(
    workshop: Workshop,
) -> None:
    hook = {"type": "plugin", "command": "x", "name": "p"}
    found = (await workshop.fire("BeforeTool", hook)).aggregated.hook_results[0]
    assert not found.success
    assert '"command"' in (found.error or "")


def test_an_event_name_that_does_not_exist_is_refused_at_the_edge() -> None:
    with pytest.raises(HooklineError, match="did you mean 'BeforeTool'"):
        HookSystem(Config()).on("BeforTool")
