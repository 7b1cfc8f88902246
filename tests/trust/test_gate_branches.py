"""Approved states are remembered: switching branches needs no new approval."""

from __future__ import annotations

import json
import shutil
from typing import Any

import msgspec
import pytest

from hookline.cli.main import main
from hookline.trust.records import MAX_EARLIER, TrustRecord, load_record
from tests.support.project import GUARD, Project


def branch(project: Project, name: str) -> None:
    """Check out a branch: two guards with scripts of their own."""
    for guard in ("first", "second"):
        project.write(f"tools/{guard}.sh", f"echo {guard} {name} >&2; exit 2")


def guards(project: Project) -> None:
    hooks = [
        {**GUARD, "name": name, "command": f"bash tools/{name}.sh"}
        for name in ("first", "second")
    ]
    project.settings(*hooks)


def approve(project: Project, *names: str) -> None:
    guards(project)
    for name in names:
        branch(project, name)
        assert project.trust() == 0


async def reasons(project: Project) -> list[str]:
    result = await project.fire()
    return [one.stderr.strip() for one in result.aggregated.hook_results]


async def test_a_branch_that_was_approved_before_is_approved(project: Project) -> None:
    approve(project, "main", "topic")
    for name in ("main", "topic", "main"):
        branch(project, name)
        assert await reasons(project) == [f"first {name}", f"second {name}"]


@pytest.mark.parametrize("start", ["main", "topic"])
async def test_a_running_session_follows_a_switch_of_branches(
    project: Project, start: str
) -> None:
    approve(project, "main", "topic")
    branch(project, start)
    async with project.system() as hooks:
        for name in ("topic", "main", "topic"):
            branch(project, name)
            found = await hooks.event_handler.fire_before_tool_event("x", {})
            texts = [one.stderr.strip() for one in found.aggregated.hook_results]
            assert texts == [f"first {name}", f"second {name}"]


async def test_another_branch_with_other_settings_is_approved(
    project: Project,
) -> None:
    project.guarded()
    project.trust()
    project.settings({**GUARD, "command": "echo other >&2; exit 2"})
    project.trust()
    assert (await project.fire()).reason == "other"
    project.guarded()
    assert (await project.fire()).reason == "the guard says no"


async def test_a_mix_of_two_approved_branches_is_not_approved(
    project: Project,
) -> None:
    approve(project, "main", "topic")
    branch(project, "main")
    project.write("tools/first.sh", "echo first topic >&2; exit 2")
    assert await reasons(project) == ["first topic", ""]
    project.write(".hookline/note", "")
    assert await reasons(project) == ["", ""]
    async with project.system() as hooks:
        found = await hooks.event_handler.fire_before_tool_event("x", {})
    errors = [one.error or "" for one in found.aggregated.hook_results]
    assert all("since it was approved" in error for error in errors)


async def test_revoking_forgets_every_branch(project: Project) -> None:
    approve(project, "main", "topic")
    assert project.trust("--revoke") == 0
    for name in ("main", "topic"):
        branch(project, name)
        assert await reasons(project) == []


def test_the_number_of_remembered_states_is_bounded(project: Project) -> None:
    approve(project, *(str(number) for number in range(MAX_EARLIER + 3)))
    (file,) = project.record_files()
    record = load_record(str(file))
    assert record is not None
    assert len(record.earlier) == MAX_EARLIER
    branch(project, "0")
    assert main(["trust", "--cwd", str(project.folder)]) == 1


def test_an_earlier_state_needs_no_second_review(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    approve(project, "main", "topic")
    branch(project, "main")
    capsys.readouterr()
    assert project.trust("--yes") == 0
    assert "already trusted" in capsys.readouterr().out


async def test_a_record_of_an_older_version_asks_for_a_new_approval(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    project.guarded()
    project.trust()
    (file,) = project.record_files()
    raw = json.loads(file.read_text())
    file.write_text(json.dumps({**raw, "version": 1}))
    result = await project.fire()
    assert result.blocked
    assert "was approved with an older version of hookline" in str(result.reason)
    assert "run 'hookline trust' in" in caplog.text
    assert project.trust() == 0
    assert (await project.fire()).reason == "the guard says no"


def test_a_record_without_the_new_fields_can_be_read() -> None:
    old = b'{"project": "/p", "tree": {}, "files": {}, "version": 1}'
    assert msgspec.json.decode(old, type=TrustRecord).earlier == ()


@pytest.mark.parametrize("last", ["no hooks", "another event", "disabled", "off"])
@pytest.mark.parametrize("attack", ["script", "settings", "options", "folder"])
async def test_no_guard_gives_way_to_what_was_approved_on_another_branch(
    project: Project, last: str, attack: str
) -> None:
    """Issue 12.13: in no approved state, the guards of the one last seen fail."""
    project.guarded()
    project.trust()
    if last == "no hooks":
        project.settings()
    elif last == "another event":
        project.settings({**GUARD, "name": "other"}, event="AfterTool")
    elif last == "disabled":
        project.settings(GUARD, hooksConfig={"disabled": ["guard"]})
    else:
        project.settings(GUARD, enableHooks=False)
    project.trust()
    project.guarded()
    assert (await project.fire()).reason == "the guard says no"
    if attack == "script":
        project.write(".hookline/hooks/guard.sh", "exit 0")
    elif attack == "settings":
        project.settings({**GUARD, "command": "true"})
    elif attack == "options":
        project.settings(GUARD, enableHooks=False, hooksConfig={"disabled": ["guard"]})
    else:
        shutil.rmtree(project.folder / ".hookline")
    result = await project.fire()
    assert result.blocked
    assert "onError blocks on changed" in (result.reason or "")


def rule(name: str, when: str = "true") -> dict[str, Any]:
    then = {"decision": "deny", "reason": name}
    return {"type": "rule", "name": name, "when": when, "then": then}


@pytest.mark.parametrize("edit", ["settings", "folder", "file beside", "older rule"])
async def test_only_the_last_approved_state_counts_for_an_edited_project(
    project: Project, edit: str
) -> None:
    """protocol.md#settings: no hook of an older approval comes back."""
    for version in ("one", "two", "three"):
        project.settings(rule(version))
        assert project.trust() == 0
    if edit == "settings":
        project.settings(rule("three", when="false"))
    elif edit == "folder":
        shutil.rmtree(project.folder / ".hookline")
    else:
        project.write(".hookline/note", "")
    if edit == "older rule":
        project.settings(rule("one"))
    result = await project.fire("x")
    assert result.blocked
    names = [one.hook_name for one in result.aggregated.hook_results]
    assert names == ["three"]
    assert (result.reason or "").count("approved") == 1


async def test_branch_that_was_used_last_counts_once_it_is_edited(
    project: Project,
) -> None:
    """protocol.md#settings: what another branch guards is not blocked on this one."""
    for name in ("main", "topic"):
        project.settings(rule(name))
        assert project.trust() == 0
    project.settings(rule("main"))
    assert (await project.fire()).reason == "main"
    project.settings(rule("main", when="false"))
    result = await project.fire()
    assert result.blocked
    assert [one.hook_name for one in result.aggregated.hook_results] == ["main"]
    project.settings(rule("topic"))
    assert (await project.fire()).reason == "topic", "it is still approved"


async def test_policy_of_the_approval_decides_for_every_branch(
    project: Project,
) -> None:
    project.settings(GUARD, hooksConfig={"onError": {"changed": "allow"}})
    project.trust()
    project.settings(event="AfterTool")
    project.trust()
    shutil.rmtree(project.folder / ".hookline")
    assert not (await project.fire()).blocked


def test_change_is_shown_against_the_state_with_the_same_settings(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.guarded()
    project.trust()
    project.settings({**GUARD, "name": "other"}, event="AfterTool")
    project.trust()
    project.guarded()
    project.write(".hookline/hooks/guard.sh", "exit 0")
    capsys.readouterr()
    project.trust()
    shown = capsys.readouterr().out
    assert "changed  guard" in shown
    assert "other" not in shown
