"""One hook: what breaks around it is its own failure, and no other hook's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hookline import Config, HookEventName, HookSystem, ProcessedHookResult, Settings
from hookline.engine.admission import CircuitBreaker
from hookline.engine.runner import HookRunner
from hookline.errors import EncodingError
from hookline.executors.contract import Executor, HookCall, RegisteredHook
from hookline.executors.python import PythonExecutor
from hookline.protocol.results import FailureCause, HookExecutionResult
from hookline.settings.model import HookSource, HookType, SettingsLayer, Stamp
from tests.support.project import Project
from tests.support.workshop import INPUTS, Workshop

GUARD = {"type": "command", "name": "guard", "command": "echo no >&2; exit 2"}
PASSES = {"type": "command", "name": "passes", "command": "exit 0"}


class FailingApproval:
    """An approval that raises at one step, as a fault of our own would."""

    def __init__(self, step: str, registered: Callable[[], bool]) -> None:
        self._step = step
        self._registered = registered

    def check(self) -> tuple[None, Stamp]:
        if self._step == "registration" or (
            self._step == "check" and self._registered()
        ):
            raise RuntimeError("the approval broke")
        return None, ()

    def unchanged_since(self, _: Stamp) -> bool:
        if self._step == "after the run":
            raise RuntimeError("the approval broke")
        return True

    def when_changed(self, callback: Callable[[], object]) -> None:
        return None

    def environment(self) -> dict[str, str]:
        return {}

    def digest_of(self, path: str) -> None:
        return None

    def has_files_in(self, folder: str) -> bool:
        return False


def project_layer(hook: dict[str, Any], step: str, state: list[bool]) -> SettingsLayer:
    """A trusted project's layer whose approval breaks."""
    (layer,) = Settings.from_mapping(
        {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    ).layers
    approval = FailingApproval(step, lambda: bool(state))
    return structs.replace(layer, explicit=False, trust=lambda _: approval)


async def fire_beside_a_guard(
    folder: Path, step: str, **more: Any
) -> ProcessedHookResult:
    """A user's guard blocks, beside a project's hook whose approval breaks."""
    state: list[bool] = []
    user = Settings.from_mapping(
        {"hooks": {"BeforeTool": [{"hooks": more.pop("user", [GUARD])}]}},
        HookSource.USER,
    )
    config = Config("s-1", folder)
    broken = project_layer({**PASSES, **more}, step, state)
    config.settings = Settings(layers=(broken, *user.layers))
    async with HookSystem(config) as hooks:
        state.append(True)
        return await hooks.event_handler.fire_before_tool_event("write_file", {})


ALLOW = {"crash": "allow", "changed": "allow"}
STEPS = ["registration", "check", "after the run"]


@pytest.mark.parametrize("step", STEPS)
async def test_a_fault_around_one_hook_leaves_anothers_block(
    tmp_path: Path, step: str
) -> None:
    """One hook's failure never takes another's output away.

    protocol.md#several-hooks
    """
    result = await fire_beside_a_guard(tmp_path, step, onError=ALLOW)
    assert (result.blocked, result.reason) == (True, "no")
    failed, guard = result.aggregated.hook_results
    assert "the approval broke" in (failed.error or "")
    assert guard.exit_code == 2


@pytest.mark.parametrize("step", STEPS)
async def test_a_fault_around_a_hook_follows_its_policy(
    tmp_path: Path, step: str
) -> None:
    closed = await fire_beside_a_guard(tmp_path, step, onError="block", user=[])
    assert closed.blocked
    assert "the approval broke" in (closed.reason or "")
    open_ = await fire_beside_a_guard(tmp_path, step, onError=ALLOW, user=[])
    assert not open_.blocked


async def spoil(path: Path, how: str) -> None:
    if how == "corrupt":
        path.write_bytes(b"{not json")
    else:
        path.chmod(0o666)


@pytest.mark.parametrize("how", ["corrupt", "world-writable"])
async def test_a_damaged_timeouts_file_takes_no_block_away(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    slow = {**PASSES, "name": "slow", "command": "sleep 60", "timeout": 50}
    settings = workshop.settings("BeforeTool", slow, GUARD)
    async with HookSystem(workshop.config(settings)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert (await fire("x", {})).reason == "no"
        (stored,) = (tmp_path / "state" / "hookline" / "timeouts").glob("*.json")
        await spoil(stored, how)
        result = await fire("x", {})
    assert (result.blocked, result.reason) == (True, "no")
    assert result.aggregated.hook_results[0].cause is FailureCause.TIMEOUT


class UnencodableExecutor:
    """Stands in for an executor whose hook needs an input that cannot be written."""

    async def run(self, hook: RegisteredHook, call: HookCall) -> HookExecutionResult:
        raise EncodingError(f"{hook.name} cannot be shown {call.event.value}")

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("hooks", [1, 2], ids=["alone", "side by side"])
@pytest.mark.parametrize(
    ("event", "blocked"), [("BeforeTool", True), ("AfterTool", False)]
)
async def test_an_event_that_cannot_be_shown_to_a_guard_is_blocked(
    workshop: Workshop, event: str, blocked: bool, hooks: int
) -> None:
    """Should encoding fail all the same, an event that can block is.

    protocol.md#process
    """
    listed = [workshop.runs("true", f"h{number}") for number in range(hooks)]
    config = workshop.config(workshop.settings(event, *listed))
    async with HookSystem(config) as system:
        executors: dict[HookType, Executor] = {HookType.COMMAND: UnencodableExecutor()}
        runner = HookRunner(executors, CircuitBreaker())
        handler = system.event_handler
        handler.pipeline = structs.replace(handler.pipeline, runner=runner)
        result = await system.event_handler.fire(event, INPUTS[HookEventName(event)])
    assert result.blocked is blocked
    assert result.aggregated.success is False
    assert "cannot be shown" in result.aggregated.errors[0].message


async def test_a_hook_that_cannot_be_shown_the_event_leaves_anothers_stop(
    workshop: Workshop,
) -> None:
    config = workshop.config(workshop.settings("BeforeTool", workshop.runs("true")))
    async with HookSystem(config) as hooks:

        @hooks.on("BeforeTool")
        def stops(_: dict[str, Any]) -> dict[str, Any]:
            return {"continue": False, "stopReason": "enough"}

        executors: dict[HookType, Executor] = {
            HookType.COMMAND: UnencodableExecutor(),
            HookType.PYTHON: PythonExecutor(),
        }
        runner, handler = HookRunner(executors, CircuitBreaker()), hooks.event_handler
        handler.pipeline = structs.replace(handler.pipeline, runner=runner)
        result = await hooks.event_handler.fire_before_tool_event("x", {})
    assert result.blocked
    assert result.stop_reason == "enough"


async def test_a_block_counts_though_the_hooks_files_changed_during_the_run(
    project: Project,
) -> None:
    touch = "cp .hookline/hooks/guard.sh k; cp k .hookline/hooks/guard.sh"
    project.write(".hookline/hooks/guard.sh", f"{touch}; echo 'not this' >&2; exit 2")
    project.settings(
        {"type": "command", "name": "guard", "command": "bash .hookline/hooks/guard.sh"}
    )
    project.trust()
    result = await project.fire()
    assert (result.blocked, result.reason) == (True, "not this")
