"""Folders and histories without end are neither approved nor taken as unchanged."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hookline.protocol.results import FailureCause
from hookline.trust import pins, review
from hookline.trust.gate import HookApproval
from hookline.trust.records import MAX_STATES, load_record
from tests.support.project import DENY, GUARD, Project

MANY = 500


@pytest.fixture
def many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 500 be too many: the limit stands, but so many files take long to make."""
    assert pins.MAX_PATHS == 20_000
    for module in (pins, review):
        monkeypatch.setattr(module, "MAX_PATHS", MANY)


async def test_file_that_is_too_large_to_check_blocks_at_once(project: Project) -> None:
    """``truncate -s 200G .hookline/x`` was read to its end."""
    project.guarded()
    project.trust()
    os.truncate(project.write(".hookline/x", ""), 200 << 30)
    began = time.monotonic()
    assert (await project.fire()).blocked
    assert time.monotonic() - began < 10


def fill(folder: Path) -> None:
    """Put more empty files into a folder than there may be."""
    for number in range(MANY + 1):
        (folder / str(number)).touch()


@pytest.mark.usefixtures("many_files")
async def test_folder_that_is_filled_up_counts_as_changed(project: Project) -> None:
    """Too many files to check: no other hook's verdict is lost."""
    lists = project.write("lists/words.txt", "secret").parent
    first = {**GUARD, "name": "first", "trustFiles": ["lists"]}
    project.write(".hookline/hooks/guard.sh", DENY)
    project.settings(first, {**GUARD, "name": "second"})
    project.trust()
    async with project.system() as hooks:
        await hooks.event_handler.fire_before_tool_event("x", {})
        fill(lists)
        running = await hooks.event_handler.fire_before_tool_event("x", {})
    for result in (running, await project.fire()):
        first_ran, second_ran = result.aggregated.hook_results
        assert first_ran.cause is FailureCause.CHANGED
        assert "was added since it was approved" in (first_ran.error or "")
        assert second_ran.cause is None
        assert second_ran.stderr.strip() == "the guard says no"


@pytest.mark.usefixtures("many_files")
def test_folder_with_too_many_files_cannot_be_approved(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = project.write("lists/words.txt", "secret").parent
    fill(lists)
    project.guarded(trustFiles=["lists"])
    assert project.trust() == 1
    message = capsys.readouterr().err
    assert f"hook 'guard' names more than {MANY} files" in message
    assert project.record_files() == []


@pytest.mark.usefixtures("many_files")
async def test_pattern_with_too_many_matches_counts_as_changed(
    project: Project,
) -> None:
    tools = project.write("tools/a.sh", DENY).parent
    project.settings({**GUARD, "command": "for f in tools/*; do . $f; done"})
    project.trust()
    fill(tools)
    result = await project.fire()
    assert result.aggregated.hook_results[0].cause is FailureCause.CHANGED


async def test_files_that_cannot_be_checked_count_as_changed(project: Project) -> None:
    """A crash would be allowed by default; no event brings such a stamp about."""
    project.write("a/guard.sh", DENY)
    project.settings({**GUARD, "command": "bash a/guard.sh"})
    project.trust()
    async with project.system() as hooks:
        (hook,) = hooks.get_all_hooks()
        assert isinstance(hook.approval, HookApproval)
        assert not hook.approval.unchanged_since(("not", "a stamp"))
        assert not hook.approval.unchanged_since(())


async def test_number_of_remembered_states_is_bounded(project: Project) -> None:
    for number in range(MAX_STATES + 2):
        project.guarded(description=str(number))
        assert project.trust() == 0
    (file,) = project.record_files()
    record = load_record(str(file))
    assert record is not None
    assert len(record.states) == MAX_STATES
    for number, cause in ((2, None), (1, FailureCause.CHANGED)):
        project.guarded(description=str(number))
        (hook,) = (await project.fire()).aggregated.hook_results
        assert (number, hook.cause) == (number, cause)
