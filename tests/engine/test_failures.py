"""What breaks around hooks: a failure of that hook or of its event, and of no other.

Faults of our own cannot be reached from outside, so some tests put a part into the
pipeline that is broken. Failures of hooks are in ``tests/pins/engine``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hookline import Config, HookEventName, HookSystem, ProcessedHookResult, Settings
from hookline.protocol.results import FailureCause, Stage
from hookline.settings.model import Approval, HookSource, SettingsLayer, Stamp
from tests.support.project import Project
from tests.support.workspace import Workspace

GUARD = {"type": "command", "name": "guard", "command": "echo no >&2; exit 2"}
PASSES = {"type": "command", "name": "passes", "command": "exit 0"}


class NoTextError(Exception):
    """An error that cannot be described."""

    def __str__(self) -> str:
        raise ZeroDivisionError

    __repr__ = __str__


class Unreadable(dict[str, Any]):
    """The fields of a caller that cannot be read."""

    def items(self) -> Any:
        if "tool_name" in self:
            raise NoTextError
        raise RuntimeError("outer") from KeyError("inner")

    keys = __iter__ = items


async def test_failure_outside_the_hooks_tells_its_cause(workspace: Workspace) -> None:
    """DELTA-HFAIL-001: ``details`` have what was raised, and what caused that.

    What cannot be described must not raise either.
    """
    strict = workspace.settings("BeforeTool", {**GUARD, "onError": "block"})
    async with workspace.config(strict) as config:
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        for firer in (system.event_handler, config.session("c")):
            result = await firer.fire("SessionStart", Unreadable(source="clear"))
            [error] = result.aggregated.errors
            assert error.message == "outer"
            assert error.details == "RuntimeError('outer'), caused by KeyError('inner')"
            result = await firer.fire("BeforeTool", Unreadable(tool_name="denied"))
            assert result.blocked
            assert result.aggregated.errors[0].message == "NoTextError"


class Broken:
    """A part of the pipeline that raises on any use."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{name} is broken")


@pytest.mark.parametrize("policy", ["allow", "block"])
@pytest.mark.parametrize(
    ("part", "stage"), [("planner", Stage.PLANNING), ("runner", Stage.EXECUTION)]
)
async def test_broken_part_is_a_failure_at_its_stage_and_follows_the_policy(
    workspace: Workspace, part: str, stage: Stage, policy: str
) -> None:
    """DELTA-HFAIL-001, rule F4: nothing raises out of fire_*."""
    hook = workspace.runs("true", "guard", onError=policy)
    config = workspace.config(workspace.settings("BeforeTool", hook))
    async with HookSystem(config) as hooks:
        handler = hooks.event_handler
        handler.pipeline = structs.replace(handler.pipeline, **{part: Broken()})
        result = await handler.fire_before_tool_event("t", {})
    [error] = result.aggregated.errors
    assert (result.aggregated.success, error.stage) == (False, stage)
    assert "is broken" in error.message
    assert result.blocked is (policy == "block")


@pytest.mark.parametrize("who", ["trusted", "untrusted", "disabled"])
async def test_only_a_hook_that_may_run_closes_an_event_that_fails_before_the_hooks(
    project: Project, who: str
) -> None:
    """An untrusted project contributes nothing, its policy included.

    protocol.md#settings
    """
    hook = {"type": "command", "name": "h", "command": "exit 0", "onError": "block"}
    off = {"hooksConfig": {"disabled": ["h"]}} if who == "disabled" else {}
    project.settings(hook, event="BeforeModel", **off)
    if who != "untrusted":
        project.trust()
    unreadable = {"llm_request": object()}
    async with project.system() as hooks:
        handler = hooks.event_handler
        result = await handler.fire_fields(
            HookEventName.BeforeModel, unreadable, trace={}
        )
    assert result.aggregated.errors[0].stage is Stage.TRANSLATION
    assert result.blocked is (who == "trusted")


class FailingApproval(Approval):
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


def project_layer(hook: dict[str, Any], step: str, state: list[bool]) -> SettingsLayer:
    """A trusted project's layer whose approval breaks."""
    (layer,) = Settings.from_mapping(
        {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    ).layers
    approval = FailingApproval(step, lambda: bool(state))
    return structs.replace(layer, explicit=False, trust=lambda _: approval)


async def fire_beside(
    user_hooks: list[dict[str, Any]], folder: Path, step: str, policy: Any
) -> ProcessedHookResult:
    """Fire on hooks of the user, beside a project's hook whose approval breaks."""
    state: list[bool] = []
    user = Settings.from_mapping(
        {"hooks": {"BeforeTool": [{"hooks": user_hooks}]}}, HookSource.USER
    )
    config = Config("s-1", folder)
    broken = project_layer({**PASSES, "onError": policy}, step, state)
    config.settings = Settings(layers=(broken, *user.layers))
    async with HookSystem(config) as hooks:
        state.append(True)
        return await hooks.event_handler.fire_before_tool_event("write_file", {})


ALLOW = {"crash": "allow", "changed": "allow"}


@pytest.mark.parametrize("step", ["registration", "check", "after the run"])
async def test_fault_around_one_hook_follows_its_policy_and_leaves_anothers_block(
    tmp_path: Path, step: str
) -> None:
    """One hook's failure never takes another's output away.

    protocol.md#several-hooks
    """
    result = await fire_beside([GUARD], tmp_path, step, ALLOW)
    assert (result.blocked, result.reason) == (True, "no")
    failed, guard = result.aggregated.hook_results
    assert "the approval broke" in (failed.error or "")
    assert guard.exit_code == 2
    closed = await fire_beside([], tmp_path, step, "block")
    assert closed.blocked
    assert "the approval broke" in (closed.reason or "")
    assert not (await fire_beside([], tmp_path, step, ALLOW)).blocked


async def test_only_a_block_counts_if_the_files_of_its_hook_changed_during_the_run(
    project: Project,
) -> None:
    """Which bytes ran is unknown."""
    touch = "cp .hookline/hooks/guard.sh k; cp k .hookline/hooks/guard.sh"
    hook = {**GUARD, "command": "bash .hookline/hooks/guard.sh", "onError": ALLOW}
    for ending, reason in (
        ("echo 'not this' >&2; exit 2", "not this"),
        ("echo x", None),
    ):
        project.write(".hookline/hooks/guard.sh", f"{touch}; {ending}")
        project.settings(hook)
        project.trust()
        result = await project.fire()
        assert (result.blocked, result.reason) == (reason is not None, reason)
        assert result.system_message is None
    (failed,) = result.aggregated.hook_results
    assert failed.cause is FailureCause.CHANGED
    assert failed.error == "its files changed during the run"
