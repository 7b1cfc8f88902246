"""An approved guard cannot be edited away: a changed project hook blocks."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hookline.protocol.results import FailureCause
from hookline.trust.gate import HookApproval
from hookline.trust.pins import MAX_TREE_ENTRIES
from tests.support.project import DENY, GUARD, Project


async def test_file_that_is_too_large_to_check_blocks_at_once(project: Project) -> None:
    """Issue 26.14: ``truncate -s 200G .hookline/x`` was read to its end."""
    project.guarded()
    project.trust()
    large = project.write(".hookline/x", "")
    os.truncate(large, 200 << 30)
    began = time.monotonic()
    result = await project.fire()
    assert time.monotonic() - began < 10
    assert result.blocked
    assert ".hookline/x is too large to be checked" in (result.reason or "")


@pytest.mark.parametrize("place", [".hookline/x", "tools/x"])
def test_file_that_is_too_large_cannot_be_approved(
    project: Project, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    project.settings({"type": "command", "name": "guard", "command": "sh tools/x"})
    os.truncate(project.write(place, ""), 200 << 30)
    assert project.trust() == 1
    assert f"{place}: is too large to approve" in capsys.readouterr().err
    os.truncate(project.folder / place, 0)
    assert project.trust() == 0


def edit_script(project: Project) -> None:
    project.write(".hookline/hooks/guard.sh", "exit 0")


def edit_script_keeping_its_times(project: Project) -> None:
    path = project.folder / ".hookline/hooks/guard.sh"
    before = path.stat()
    path.write_text(DENY.replace("exit 2", "exit 0"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_script(project: Project) -> None:
    other = project.write("other.sh", DENY.replace("exit 2", "exit 0"))
    other.replace(project.folder / ".hookline/hooks/guard.sh")


def link_script_elsewhere(project: Project) -> None:
    other = project.write("other.sh", DENY)
    script = project.folder / ".hookline/hooks/guard.sh"
    script.unlink()
    script.symlink_to(other)


def make_unreadable(project: Project) -> None:
    """As for root, who may read everything: a folder in its place."""
    script = project.folder / ".hookline/hooks/guard.sh"
    script.unlink()
    script.mkdir()


def let_others_write(project: Project) -> None:
    (project.folder / ".hookline/hooks/guard.sh").chmod(0o666)


def let_others_write_the_folder(project: Project) -> None:
    (project.folder / ".hookline/hooks").chmod(0o777)


def set_user_id(project: Project) -> None:
    (project.folder / ".hookline/hooks/guard.sh").chmod(0o4644)


def hard_link_elsewhere(project: Project) -> None:
    other = project.write("other.sh", "exit 0")
    script = project.folder / ".hookline/hooks/guard.sh"
    script.unlink()
    os.link(other, script)


def write_through_a_hard_link(project: Project) -> None:
    os.link(project.folder / ".hookline/hooks/guard.sh", project.folder / "other.sh")
    project.write("other.sh", "exit 0")


def exchange_folder(project: Project) -> None:
    folder = project.folder / ".hookline/hooks"
    shutil.copytree(folder, project.folder / "other")
    project.write("other/guard.sh", "exit 0")
    folder.rename(project.folder / "kept")
    (project.folder / "other").rename(folder)


def name_the_script_as_the_journal(project: Project) -> None:
    """Issue 12.8: it would be left out."""
    project.settings(GUARD, hooksConfig={"journal": ".hookline/hooks/guard.sh"})
    edit_script(project)


def put_a_database_in_its_place(project: Project) -> None:
    project.write(".hookline/hooks/guard.sh", "SQLite format 3\0\nexit 0")


def delete_script(project: Project) -> None:
    (project.folder / ".hookline/hooks/guard.sh").unlink()


def add_a_file(project: Project) -> None:
    project.write(".hookline/hooks/bash", "exit 0", 0o755)


def put_a_pipe_in_its_place(project: Project) -> None:
    script = project.folder / ".hookline/hooks/guard.sh"
    script.unlink()
    os.mkfifo(script)


def move_folder_away(project: Project) -> None:
    (project.folder / ".hookline").rename(project.folder / ".hookline.old")


def link_folder(project: Project) -> None:
    move_folder_away(project)
    (project.folder / ".hookline").symlink_to(".hookline.old")


def delete_folder(project: Project) -> None:
    shutil.rmtree(project.folder / ".hookline")


def delete_settings(project: Project) -> None:
    (project.folder / ".hookline/settings.json").unlink()


def empty_settings(project: Project) -> None:
    project.write(".hookline/settings.json", "{}")


def break_settings(project: Project) -> None:
    project.write(".hookline/settings.json", "{")


def second_settings(project: Project) -> None:
    project.write(".hookline/settings.toml", "enableHooks = true")


def open_settings_to_all(project: Project) -> None:
    (project.folder / ".hookline/settings.json").chmod(0o666)


def switch_hooks_off(project: Project) -> None:
    project.settings(GUARD, enableHooks=False)


def disable_by_name(project: Project) -> None:
    project.settings(GUARD, hooksConfig={"disabled": ["guard"]})


def observe_only(project: Project) -> None:
    project.settings({**GUARD, "mode": "observe"})


def loosen_its_policy(project: Project) -> None:
    project.settings({**GUARD, "onError": {"changed": "allow"}})


def narrow_its_matcher(project: Project) -> None:
    found = {"hooks": {"BeforeTool": [{"matcher": "nothing", "hooks": [GUARD]}]}}
    project.write(".hookline/settings.json", json.dumps(found))


def change_its_command(project: Project) -> None:
    project.settings({**GUARD, "command": "true"})


TAMPERING = [
    edit_script,
    edit_script_keeping_its_times,
    replace_script,
    link_script_elsewhere,
    make_unreadable,
    let_others_write,
    let_others_write_the_folder,
    set_user_id,
    hard_link_elsewhere,
    write_through_a_hard_link,
    exchange_folder,
    name_the_script_as_the_journal,
    put_a_database_in_its_place,
    delete_script,
    add_a_file,
    put_a_pipe_in_its_place,
    move_folder_away,
    link_folder,
    delete_folder,
    delete_settings,
    empty_settings,
    break_settings,
    second_settings,
    open_settings_to_all,
    switch_hooks_off,
    disable_by_name,
    observe_only,
    loosen_its_policy,
    narrow_its_matcher,
    change_its_command,
]
tampering = pytest.mark.parametrize("tamper", TAMPERING, ids=lambda f: f.__name__)


@tampering
async def test_a_new_session_blocks_when_a_trusted_guard_was_tampered_with(
    project: Project, tamper: Callable[[Project], None]
) -> None:
    project.guarded()
    project.trust()
    tamper(project)
    result = await project.fire()
    assert result.blocked
    assert result.reason is not None
    assert "onError blocks on changed" in result.reason
    assert "since it was approved" in result.reason
    causes = [one.cause for one in result.aggregated.hook_results]
    assert causes == [FailureCause.CHANGED]


@tampering
async def test_a_running_session_blocks_when_a_trusted_guard_is_tampered_with(
    project: Project, tamper: Callable[[Project], None]
) -> None:
    project.guarded()
    project.trust()
    async with project.system() as hooks:
        before = await hooks.event_handler.fire_before_tool_event("x", {})
        tamper(project)
        after = await hooks.event_handler.fire_before_tool_event("x", {})
    assert before.reason == "the guard says no"
    assert after.blocked
    assert after.reason is not None
    assert "since it was approved" in after.reason


async def test_a_restored_guard_runs_again(project: Project) -> None:
    project.guarded()
    project.trust()
    async with project.system() as hooks:
        edit_script(project)
        broken = await hooks.event_handler.fire_before_tool_event("x", {})
        project.write(".hookline/hooks/guard.sh", DENY)
        mended = await hooks.event_handler.fire_before_tool_event("x", {})
    assert broken.reason is not None
    assert "changed since it was approved" in broken.reason
    assert mended.reason == "the guard says no"


async def test_a_running_session_goes_on_when_a_person_trusts_the_change(
    project: Project,
) -> None:
    project.guarded()
    project.trust()
    async with project.system() as hooks:
        project.write(".hookline/hooks/guard.sh", "echo 'better so' >&2; exit 2")
        broken = await hooks.event_handler.fire_before_tool_event("x", {})
        project.trust()
        agreed = await hooks.event_handler.fire_before_tool_event("x", {})
    assert broken.reason is not None
    assert "changed since it was approved" in broken.reason
    assert agreed.reason == "better so"


def fill(folder: Path, count: int) -> None:
    """Put empty files into a folder."""
    for number in range(count):
        (folder / str(number)).touch()


async def test_a_folder_that_is_filled_up_counts_as_changed(
    project: Project,
) -> None:
    """Too many files to check: no other hook's verdict is lost."""
    lists = project.write("lists/words.txt", "secret").parent
    first = {**GUARD, "name": "first", "trustFiles": ["lists"]}
    project.write(".hookline/hooks/guard.sh", DENY)
    project.settings(first, {**GUARD, "name": "second"})
    project.trust()
    async with project.system() as hooks:
        await hooks.event_handler.fire_before_tool_event("x", {})
        fill(lists, MAX_TREE_ENTRIES + 1)
        running = await hooks.event_handler.fire_before_tool_event("x", {})
    new = await project.fire()
    for result in (running, new):
        one, two = result.aggregated.hook_results
        assert one.cause is FailureCause.CHANGED
        assert "were added since it was approved" in (one.error or "")
        assert (two.cause, two.stderr.strip()) == (None, "the guard says no")


def test_a_folder_with_too_many_files_cannot_be_approved(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = project.write("lists/words.txt", "secret").parent
    fill(lists, MAX_TREE_ENTRIES + 1)
    project.guarded(trustFiles=["lists"])
    assert project.trust() == 1
    message = capsys.readouterr().err
    assert f"{lists} holds more than {MAX_TREE_ENTRIES} files" in message
    assert project.record_files() == []


async def test_a_pattern_with_too_many_matches_counts_as_changed(
    project: Project,
) -> None:
    tools = project.write("tools/a.sh", DENY).parent
    project.settings({**GUARD, "command": "for f in tools/*; do . $f; done"})
    project.trust()
    fill(tools, MAX_TREE_ENTRIES + 1)
    result = await project.fire()
    assert result.aggregated.hook_results[0].cause is FailureCause.CHANGED


async def test_files_that_cannot_be_checked_count_as_changed(project: Project) -> None:
    """A crash would be allowed by default."""
    project.write("a/guard.sh", DENY)
    project.settings({**GUARD, "command": "bash a/guard.sh"})
    project.trust()
    async with project.system() as hooks:
        (hook,) = hooks.get_all_hooks()
        assert isinstance(hook.approval, HookApproval)
        assert not hook.approval.unchanged_since(("not", "a stamp"))
        assert not hook.approval.unchanged_since(())
