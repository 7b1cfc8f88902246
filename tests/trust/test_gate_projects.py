"""Several projects in one session: each is trusted by itself and only adds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, ProcessedHookResult
from hookline.settings.model import TrustStatus
from tests.support.project import DENY, Project

INNER = {"type": "command", "name": "inner", "command": "true"}


@pytest.fixture
def outer(project: Project) -> Project:
    """A guarded repository."""
    project.write(".git/HEAD", "")
    project.guarded()
    return project


@pytest.fixture
def inner(outer: Project) -> Project:
    """A project inside it, with a hook that says nothing."""
    found = Project(outer.folder / "inner", outer.state)
    found.settings(INNER)
    return found


async def fire_in(folder: Path, tool: str = "write_file") -> ProcessedHookResult:
    async with HookSystem(Config.load(folder)) as hooks:
        return await hooks.event_handler.fire_before_tool_event(tool, {"a": 1})


def names(result: ProcessedHookResult) -> list[str]:
    return [hook.hook_name for hook in result.aggregated.hook_results]


async def test_guard_of_the_repository_holds_in_a_subfolder(outer: Project) -> None:
    """Issue 12.14."""
    outer.trust()
    sub = outer.folder / "a" / "b"
    sub.mkdir(parents=True)
    assert (await fire_in(sub)).reason == "the guard says no"


async def test_each_project_is_trusted_by_itself(
    outer: Project, inner: Project
) -> None:
    """protocol.md#settings."""
    assert names(await fire_in(inner.folder)) == []
    inner.trust()
    assert names(await fire_in(inner.folder)) == ["inner"]
    outer.trust()
    assert names(await fire_in(inner.folder)) == ["guard", "inner"]
    inner.trust("--revoke")
    assert names(await fire_in(inner.folder)) == ["guard"]


@pytest.mark.parametrize(
    "more",
    [
        {"enableHooks": False},
        {"hooksConfig": {"disabled": ["guard"]}},
        {"hooksConfig": {"onError": "allow", "maxDepth": 1, "breaker": False}},
        {"hooksConfig": {"maxOutputBytes": 1, "envPolicy": "clean"}},
    ],
    ids=str,
)
async def test_options_of_a_project_reach_its_own_hooks_only(
    outer: Project, inner: Project, more: dict[str, Any]
) -> None:
    """protocol.md#settings: a project can only add, also to the project around it."""
    outer.guarded(onError="block")
    inner.settings(INNER, **more)
    outer.trust()
    before = Config.load(outer.folder).get_hook_system()
    inner.trust()
    after = Config.load(inner.folder).get_hook_system()
    assert before is not None
    assert after is not None
    (old,) = before.get_all_hooks()
    new = next(hook for hook in after.get_all_hooks() if hook.name == "guard")
    assert (new.options, new.enabled) == (old.options, old.enabled)
    assert (await fire_in(inner.folder)).blocked


async def test_local_settings_belong_to_the_project_and_need_trust(
    outer: Project,
) -> None:
    """protocol.md#settings: ``settings.local.json`` needs trust like the other."""
    outer.trust()
    group = {"hooks": [{"type": "command", "name": "mine", "command": "true"}]}
    local = {"hooks": {"BeforeTool": [group]}, "hooksConfig": {"disabled": ["guard"]}}
    outer.write(".hookline/settings.local.json", json.dumps(local))
    refused = await fire_in(outer.folder)
    assert names(refused) == ["guard"]
    assert refused.blocked
    outer.trust()
    allowed = await fire_in(outer.folder)
    assert names(allowed) == ["mine"]
    assert not allowed.blocked


@pytest.mark.parametrize("way", ["edit", "delete"])
async def test_changed_local_settings_block(outer: Project, way: str) -> None:
    outer.write(".hookline/settings.local.json", '{"hooksConfig": {"maxDepth": 2}}')
    outer.trust()
    path = outer.folder / ".hookline" / "settings.local.json"
    if way == "edit":
        path.write_text('{"enableHooks": false}')
    else:
        path.unlink()
    result = await fire_in(outer.folder)
    assert result.blocked
    assert "changed since it was approved" in (result.reason or "")


async def test_deleted_project_around_the_working_directory_blocks(
    outer: Project, inner: Project
) -> None:
    """A guard cannot be removed from below either."""
    outer.trust()
    (outer.folder / ".hookline").rename(outer.state / "gone")
    assert (await fire_in(inner.folder)).blocked


async def test_new_repository_in_a_subfolder_keeps_the_guard(
    outer: Project, inner: Project
) -> None:
    """Issue 12.14: ``git init`` does not leave a guard behind."""
    outer.trust()
    inner.write(".git/HEAD", "")
    result = await fire_in(inner.folder)
    assert result.reason == "the guard says no"


async def test_command_runs_in_the_folder_of_its_project(
    outer: Project, inner: Project, tmp_path: Path
) -> None:
    """protocol.md#process: folder, PWD, variables, for a hook of each source."""
    names_of = "HOOKLINE_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "PWD", "HOOKLINE_CWD"
    shown = " ".join(f"${name}" for name in names_of)

    def tells(name: str) -> dict[str, Any]:
        command = f'echo "$(pwd -P) {shown}" > {tmp_path}/{name}.txt'
        return {"type": "command", "name": name, "command": command}

    outer.settings(tells("outer"))
    inner.settings(tells("inner"))
    user = tmp_path / "config" / "hookline"
    user.mkdir(parents=True)
    hooks = {"BeforeTool": [{"hooks": [tells("user")]}]}
    (user / "settings.json").write_text(json.dumps({"hooks": hooks}))
    outer.trust()
    inner.trust()
    cwd = inner.folder / "deep"
    cwd.mkdir()
    await fire_in(cwd)
    a, b = outer.folder, inner.folder
    said = {one: (tmp_path / f"{one}.txt").read_text().split() for one in names_in(cwd)}
    assert said["outer"] == [str(one) for one in (a, a, a, a, cwd)]
    assert said["inner"] == [str(one) for one in (b, b, b, b, cwd)]
    assert said["user"] == [str(one) for one in (cwd, b, b, cwd, cwd)]


def names_in(folder: Path) -> list[str]:
    system = Config.load(folder).get_hook_system()
    assert system is not None
    return [hook.name for hook in system.get_all_hooks()]


async def test_worker_of_a_project_runs_in_its_folder(outer: Project) -> None:
    outer.write(
        ".hookline/worker.py",
        "import os\nfrom hookline.script import block, run\n"
        "run(lambda event: block(os.getcwd() + ' ' + os.environ['HOOKLINE_CWD']))\n",
    )
    command = "$HOOKLINE_PYTHON .hookline/worker.py"
    outer.settings({"type": "worker", "name": "w", "command": command})
    outer.trust()
    sub = outer.folder / "sub"
    sub.mkdir()
    assert (await fire_in(sub)).reason == f"{outer.folder} {sub}"


def test_hooks_say_which_project_they_are_from(outer: Project, inner: Project) -> None:
    outer.write(".hookline/hooks/guard.sh", DENY)
    outer.trust()
    system = Config.load(inner.folder).get_hook_system()
    assert system is not None
    found = [(hook.name, hook.project, hook.trust) for hook in system.get_all_hooks()]
    assert found == [
        ("guard", str(outer.folder), TrustStatus.TRUSTED),
        ("inner", str(inner.folder), TrustStatus.UNTRUSTED),
    ]
