"""Files that are exchanged around a run, and put back (issue 12.8 and 12.11)."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from hookline import ProcessedHookResult
from hookline.cli.main import main
from hookline.protocol.results import FailureCause
from tests.support.project import DENY, GUARD, Project

EVIL = "echo foreign; exit 0"

SWAPS = {
    "rename": "mv tools t; mv evil tools; mv tools evil; mv t tools",
    "rename_and_cover_the_tracks": (
        "mv tools t; mv evil tools; mv tools evil; mv t tools; touch tools/x; "
        "rm tools/x"
    ),
    "outer_folder": "mv lib l; mkdir lib; rmdir lib; mv l lib",
    "link_in_place_of_the_folder": "mv tools t; ln -s evil tools; rm tools; mv t tools",
    "link_on_the_way": "ln -sfn evil current; ln -sfn tools current",
    "target_of_the_link": "mv tools t; mv evil tools; mv tools evil; mv t tools",
    "script": "mv tools/guard.sh t; cp evil/guard.sh tools/; mv t tools/guard.sh",
}
PATHS = {
    "outer_folder": "lib/deep/guard.sh",
    "link_on_the_way": "current/guard.sh",
    "target_of_the_link": "current/guard.sh",
}


def guarded_in_tools(project: Project, path: str, script: str) -> None:
    project.write("tools/guard.sh", script)
    project.write("lib/deep/guard.sh", script)
    project.write("evil/guard.sh", EVIL)
    (project.folder / "current").symlink_to("tools")
    project.settings({**GUARD, "command": f"bash {path}"})
    assert project.trust() == 0


def causes(result: ProcessedHookResult) -> list[FailureCause | None]:
    return [one.cause for one in result.aggregated.hook_results]


@pytest.mark.parametrize("swap", SWAPS)
async def test_a_folder_that_is_exchanged_and_put_back_during_the_run_is_noticed(
    project: Project, swap: str
) -> None:
    """Nobody can tell which bytes said yes; times of the files are all the same."""
    path = PATHS.get(swap, "tools/guard.sh")
    guarded_in_tools(project, path, f"{SWAPS[swap]}; exit 0")
    result = await project.fire()
    assert result.blocked
    assert causes(result) == [FailureCause.CHANGED]
    assert "changed during the run" in str(result.reason)


async def test_a_folder_of_the_project_itself_that_is_exchanged_is_noticed(
    project: Project,
) -> None:
    script = 'cd ..; mv "$PWD/project" p; mkdir project; rmdir project; mv p project'
    guarded_in_tools(project, "tools/guard.sh", f"{script}; exit 0")
    assert causes(await project.fire()) == [FailureCause.CHANGED]


@pytest.mark.parametrize(
    "work",
    [
        "touch tools/log.txt",
        "echo x > report.txt; echo x >> report.txt",
        "mkdir -p tools/cache; touch tools/cache/x",
        "rm -f tools/old.txt",
        "chmod 600 notes.txt",
    ],
)
async def test_a_file_that_appears_beside_a_pinned_one_is_no_change(
    project: Project, work: str
) -> None:
    project.write("tools/old.txt", "")
    project.write("notes.txt", "")
    guarded_in_tools(project, "tools/guard.sh", f"{work}; {DENY}")
    async with project.system() as hooks:
        for _ in range(2):
            result = await hooks.event_handler.fire_before_tool_event("x", {})
            assert result.reason == "the guard says no"
            project.write(f"tools/{time.time_ns()}.txt", "")


ATTACK = """
import ctypes, os, random, sys, time
renameat2 = ctypes.CDLL(None).renameat2
one, other = map(os.fsencode, sys.argv[1:])
print("ready", flush=True)
while os.getppid() != 1:
    for _ in range(2):
        renameat2(-100, one, -100, other, 2)
        time.sleep(random.random() * 0.003)
    time.sleep(random.random() * 0.01)
"""


@contextmanager
def attacking(places: list[str]) -> Iterator[None]:
    """Exchange two places over and over meanwhile."""
    with Popen([sys.executable, "-c", ATTACK, *places], stdout=PIPE) as attacker:
        assert attacker.stdout is not None
        attacker.stdout.readline()
        try:
            yield
        finally:
            attacker.kill()


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        ("tools/guard.sh", "tools", "evil"),
        ("tools/guard.sh", "tools/guard.sh", "evil/guard.sh"),
        ("current/guard.sh", "current", "elsewhere"),
        (".hookline/hooks/guard.sh", ".hookline/hooks", "evil"),
        ("../project/tools/guard.sh", "tools", "evil"),
    ],
)
async def test_no_foreign_verdict_counts_while_folders_are_exchanged(
    project: Project, path: str, one: str, other: str
) -> None:
    """``renameat2`` exchanges both at once: up to 30 % of the runs got through."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        pytest.skip("renameat2 is Linux's")
    project.write(".hookline/hooks/guard.sh", DENY)
    guarded_in_tools(project, path, DENY)
    (project.folder / "elsewhere").symlink_to("evil")
    places = [str(project.folder / name) for name in (one, other)]
    with attacking(places):
        async with project.system() as hooks:
            for _ in range(150):
                result = await hooks.event_handler.fire_before_tool_event("x", {})
                assert result.blocked, result.aggregated.hook_results


def shadowed(project: Project, folder: str) -> None:
    script = "import json, sys; print('good', file=sys.stderr); sys.exit(2)"
    project.write(f"{folder}/guard.py", script)
    command = f'"$HOOKLINE_PYTHON" {folder}/guard.py'
    project.settings({**GUARD, "command": command})
    assert project.trust() == 0


@pytest.mark.parametrize("folder", ["tools", ".hookline/hooks"])
@pytest.mark.parametrize(
    "name", ["json.py", "json/__init__.py", "json.so", "codecs.py", "encodings.pyc"]
)
async def test_a_module_that_shadows_one_of_pythons_is_a_change(
    project: Project, folder: str, name: str
) -> None:
    shadowed(project, folder)
    async with project.system() as hooks:
        before = await hooks.event_handler.fire_before_tool_event("x", {})
        project.write(f"{folder}/{name}", "import sys; sys.exit(0)")
        after = await hooks.event_handler.fire_before_tool_event("x", {})
    assert before.reason == "good"
    for result in (after, await project.fire()):
        assert causes(result) == [FailureCause.CHANGED]


async def test_a_module_that_a_script_imports_is_pinned_with_it(
    project: Project,
) -> None:
    project.write("tools/helper.py", "from inner import part\nREASON = part.REASON")
    project.write("tools/inner/__init__.py", "")
    project.write("tools/inner/part.py", "REASON = 'good'")
    project.write("tools/unused.py", "")
    script = "import helper, sys; print(helper.REASON, file=sys.stderr); sys.exit(2)"
    project.write("tools/guard.py", script)
    command = '"$HOOKLINE_PYTHON" tools/guard.py'
    project.settings({**GUARD, "command": command})
    project.trust()
    assert (await project.fire()).reason == "good"
    project.write("tools/unused.py", "1")
    assert (await project.fire()).reason == "good"
    project.write("tools/inner/part.py", "REASON = 'other'")
    assert causes(await project.fire()) == [FailureCause.CHANGED]


def journal_in_the_folder(project: Project, script: str) -> Path:
    project.write(".hookline/hooks/guard.sh", script)
    project.settings(GUARD, hooksConfig={"journal": ".hookline/journal.sqlite"})
    assert project.trust() == 0
    return project.folder / ".hookline/journal.sqlite"


async def test_a_module_that_appears_during_a_run_is_noticed_with_a_journal_too(
    project: Project,
) -> None:
    """Issue 12.8: changes to folders were ignored, 40 of 40 modules got through."""
    work = "touch .hookline/hooks/json.py; rm .hookline/hooks/json.py; exit 0"
    journal_in_the_folder(project, work)
    assert causes(await project.fire()) == [FailureCause.CHANGED]


async def test_a_journal_in_the_folder_is_kept_in_the_state_folder(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = journal_in_the_folder(project, DENY)
    for _ in range(3):
        assert (await project.fire()).reason == "the guard says no"
    assert not journal.exists()
    (kept,) = (project.state / "hookline/journals").glob("*.sqlite")
    assert kept.read_bytes().startswith(b"SQLite format 3\0")
    assert main(["log", "--cwd", str(project.folder)]) == 0
    assert "BeforeTool" in capsys.readouterr().out


async def test_a_journal_of_before_is_left_out_while_it_is_one(
    project: Project,
) -> None:
    journal = journal_in_the_folder(project, DENY)
    journal.write_bytes(b"SQLite format 3\0" + bytes(100))
    journal.with_name("journal.sqlite-wal").write_bytes(b"")
    assert (await project.fire()).reason == "the guard says no"
    journal.write_text("exit 0")
    assert causes(await project.fire()) == [FailureCause.CHANGED]


@pytest.mark.parametrize("name", ["journal.sqlite-wal", "journal.sqlite-shm"])
async def test_a_script_is_no_side_file_of_a_journal(
    project: Project, name: str
) -> None:
    journal = journal_in_the_folder(project, DENY)
    journal.write_bytes(b"SQLite format 3\0" + bytes(100))
    journal.with_name(name).write_text("#!/bin/sh\nexit 0")
    assert causes(await project.fire()) == [FailureCause.CHANGED]


@pytest.mark.parametrize(
    "journal", [".hookline/hooks", ".hookline/hooks/guard.sh", ".hookline", "."]
)
async def test_a_journal_unpins_nothing(project: Project, journal: str) -> None:
    """Issue 12.8: edited code ran."""
    project.write(".hookline/hooks/guard.sh", DENY)
    project.settings(GUARD, hooksConfig={"journal": journal})
    assert project.trust() == 0
    for content in (EVIL, f"SQLite format 3\0\n{EVIL}"):
        project.write(".hookline/hooks/guard.sh", content)
        assert causes(await project.fire()) == [FailureCause.CHANGED]
        assert project.trust("--cwd", str(project.folder)) == 1
