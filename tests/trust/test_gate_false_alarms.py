"""What is no change of a trusted project (issue 12.13)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.project import DENY, GUARD, Project


def swap_file_of_vim(project: Project) -> None:
    project.write(".hookline/hooks/.guard.sh.swp", "b0VIM")


def backup_of_an_editor(project: Project) -> None:
    project.write(".hookline/hooks/guard.sh~", "exit 0")


def autosave_of_emacs(project: Project) -> None:
    project.write(".hookline/hooks/#guard.sh#", "exit 0")


def lock_of_emacs(project: Project) -> None:
    (project.folder / ".hookline/hooks/.#guard.sh").symlink_to("me@host.1:2")


def finder_file(project: Project) -> None:
    project.write(".hookline/.DS_Store", "x")


def explorer_file(project: Project) -> None:
    project.write(".hookline/hooks/Thumbs.db", "x")


def python_cache(project: Project) -> None:
    project.write(".hookline/hooks/__pycache__/guard.cpython-311.pyc", "x")


def changed_hooktest(project: Project) -> None:
    project.write(".hookline/hooks/guard.hooktest.toml", "# another comment")


def narrower_permissions(project: Project) -> None:
    (project.folder / ".hookline/hooks/guard.sh").chmod(0o600)


def another_executable_bit(project: Project) -> None:
    (project.folder / ".hookline/hooks/guard.sh").chmod(0o755)


def permissions_of_the_folder(project: Project) -> None:
    (project.folder / ".hookline/hooks").chmod(0o700)


def file_of_the_project(project: Project) -> None:
    project.write("notes.txt", "x")


def same_bytes_again(project: Project) -> None:
    path = project.folder / ".hookline/hooks/guard.sh"
    path.unlink()
    path.write_text(DENY)


HARMLESS = [
    swap_file_of_vim,
    backup_of_an_editor,
    autosave_of_emacs,
    lock_of_emacs,
    finder_file,
    explorer_file,
    python_cache,
    changed_hooktest,
    narrower_permissions,
    another_executable_bit,
    permissions_of_the_folder,
    file_of_the_project,
    same_bytes_again,
]


@pytest.mark.parametrize("change", HARMLESS, ids=lambda f: f.__name__)
async def test_a_harmless_change_is_none(
    project: Project, change: Callable[[Project], None]
) -> None:
    project.guarded()
    project.write(".hookline/hooks/guard.hooktest.toml", "# a comment")
    project.trust()
    async with project.system() as hooks:
        change(project)
        running = await hooks.event_handler.fire_before_tool_event("x", {})
    assert running.reason == "the guard says no"
    assert (await project.fire()).reason == "the guard says no"


@pytest.mark.parametrize(
    "name",
    [
        *("guard.sh~", ".guard.sh.swp", "#guard.sh#", "Thumbs.db", ".#guard.sh"),
        *("__pycache__/guard.sh", "guard.hooktest.toml"),
    ],
)
async def test_an_ignored_file_that_a_hook_runs_is_pinned(
    project: Project, name: str
) -> None:
    project.write(f".hookline/{name}", DENY)
    project.settings({**GUARD, "command": f"bash '.hookline/{name}'"})
    project.trust()
    assert (await project.fire()).reason == "the guard says no"
    project.write(f".hookline/{name}", "exit 0")
    changed = await project.fire()
    assert changed.reason is not None
    assert "changed since it was approved" in changed.reason


@pytest.mark.parametrize("name", ["hooks~", ".x.swp", "Thumbs.db"])
async def test_a_folder_with_an_ignored_name_is_pinned(
    project: Project, name: str
) -> None:
    project.guarded()
    project.write(f".hookline/{name}/x", "1")
    project.trust()
    project.write(f".hookline/{name}/x", "2")
    assert "changed" in str((await project.fire()).reason)


async def test_a_program_without_its_permission_has_changed(project: Project) -> None:
    project.write(".hookline/guard", f"#!/bin/bash\n{DENY}", 0o755)
    project.settings({**GUARD, "command": ".hookline/guard"})
    project.trust()
    (project.folder / ".hookline/guard").chmod(0o644)
    assert "changed since it was approved" in str((await project.fire()).reason)


@pytest.mark.parametrize(
    "command",
    [
        "jq -c . >> .claude/log.txt; exit 2",
        "cat | tee -a .claude/log.txt >/dev/null; exit 2",
        "touch .claude/log.txt; exit 2",
        "date > .claude/log.txt; exit 2",
    ],
)
async def test_a_hook_may_write_data_in_the_project(
    project: Project, command: str
) -> None:
    """Found in public hook files: it blocked every event from the first on."""
    (project.folder / ".claude").mkdir()
    project.settings({**GUARD, "command": command})
    project.trust()
    for _ in range(3):
        result = await project.fire()
        assert result.aggregated.hook_results[0].cause is None
    async with project.system() as hooks:
        for _ in range(3):
            found = await hooks.event_handler.fire_before_tool_event("x", {})
            assert found.aggregated.hook_results[0].cause is None


async def test_a_file_that_a_hook_reads_may_change(project: Project) -> None:
    project.write("package.json", "{}")
    command = f"grep -q lint package.json; {DENY}"
    project.settings({**GUARD, "command": command})
    project.trust()
    project.write("package.json", '{"scripts": {}}')
    assert (await project.fire()).reason == "the guard says no"


async def test_an_argument_can_be_left_out_of_the_approval(project: Project) -> None:
    project.write("data/x.json", "1")
    project.write("tools/guard.sh", DENY)
    command = "bash tools/guard.sh data/x.json"
    left_out = {"trustFiles": ["!data/x.json", "!tools"]}
    project.settings({**GUARD, "command": command, **left_out})
    project.trust()
    project.write("data/x.json", "2")
    assert (await project.fire()).reason == "the guard says no"
    project.write("tools/guard.sh", "exit 0")
    result = await project.fire()
    assert "tools/guard.sh changed since it was approved" in str(result.reason)


async def test_nothing_in_the_projects_folder_can_be_left_out(
    project: Project,
) -> None:
    project.guarded(trustFiles=["!.hookline", "!.hookline/hooks/guard.sh"])
    project.trust()
    project.write(".hookline/hooks/guard.sh", "exit 0")
    assert "changed since it was approved" in str((await project.fire()).reason)
