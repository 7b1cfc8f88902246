"""A session whose folder is gone or leads elsewhere is still guarded.

An agent's own command may delete or replace the folder that its session is in; hooks
of the projects above it must be found all the same.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.resident import SCRIPT, Desk

ATTACKS = {
    "deleted": "rm -rf ../sub",
    "deleted with those above": "rm -rf ../../deep",
    "link out": "mv ../sub ../old; ln -s $OUTSIDE ../sub",
    "link into a repository": "rm -r ../sub; ln -s $OUTSIDE/repository ../sub",
    "link above": "mv ../../deep ../../old; ln -s $OUTSIDE ../../deep",
    "dangling link": "rm -r ../sub; ln -s /nowhere ../sub",
    "file": "rm -r ../sub; touch ../sub",
}
"""What an agent's command does to ``deep/sub``, where its session is."""


@pytest.fixture
def outside(desk: Desk) -> Path:
    folder = desk.project.folder.parent / "outside"
    (folder / "repository" / ".git").mkdir(parents=True)
    (folder / "sub").mkdir()
    return folder


def bridge(
    desk: Desk, folder: Path, attack: str, *words: str, own: str, **sent: Any
) -> str:
    """The answer to an event after an attack, from a process in that folder."""
    script = f'{attack}; exec "$PYTHON" {SCRIPT} bridge "$@"'
    keys = {"PYTHON": sys.executable, "OUTSIDE": str(folder)}
    argv = ["sh", "-c", script, "sh", *words]
    done = desk.run(argv, desk.event(**sent), cwd=own, env={**desk.env, **keys})
    return done.stdout.decode()


@pytest.mark.parametrize("has_git", [True, False], ids=["repository", "folder"])
@pytest.mark.parametrize("is_warm", [False, True], ids=["cold", "warm"])
def test_guard_of_a_session_whose_folder_was_replaced_holds(
    desk: Desk, outside: Path, subtests: pytest.Subtests, has_git: bool, is_warm: bool
) -> None:
    """protocol.md#settings: nobody leaves a guard behind. Codex names no project."""
    desk.project.guarded()
    desk.project.trust()
    if has_git:
        (desk.project.folder / ".git").mkdir()
    if is_warm:
        desk.warm_up()
    words = ("codex",) if is_warm else ("--no-resident", "codex")
    for name, attack in ATTACKS.items():
        folder = desk.project.folder / name.replace(" ", "-") / "deep" / "sub"
        folder.mkdir(parents=True)
        sent = {"own": str(folder), "cwd": str(folder)}
        with subtests.test(name):
            answer = bridge(desk, outside, attack, *words, **sent)
            assert "the guard says no" in answer
    assert bool(desk.helpers()) is is_warm


@pytest.mark.parametrize(
    ("own", "cwd", "variable"),
    [
        ("project", "outside", ""),
        ("outside", "project", ""),
        ("outside", "outside", "project"),
        ("outside", "", "project"),
        ("outside", "project/gone/\0/x", ""),
        ("outside", "project/\ud800", ""),
        ("outside", "project" + "/x" * 5000, ""),
        ("outside", "outside", "project/gone"),
        ("project", "relative", "relative"),
    ],
)
def test_every_folder_that_a_session_names_finds_its_projects(
    desk: Desk, outside: Path, own: str, cwd: str, variable: str
) -> None:
    desk.project.guarded()
    desk.project.trust()
    places = {"project": str(desk.project.folder), "outside": str(outside)}

    def path(name: str) -> str:
        first, slash, rest = name.partition("/")
        return places.get(first, first) + slash + rest

    desk.env["CLAUDE_PROJECT_DIR"] = path(variable)
    sent = {"own": path(own), "cwd": path(cwd)}
    answer = bridge(desk, outside, "true", "--no-resident", "claude", **sent)
    assert "the guard says no" in answer


def test_project_that_is_replaced_by_a_link_does_not_lose_its_guard(
    desk: Desk, outside: Path
) -> None:
    """Its files are not what was approved: that closes, by the hook's own policy."""
    desk.project.guarded(onError="block")
    desk.project.trust()
    project = desk.project.folder
    sent = {"own": str(outside), "cwd": str(project)}
    attack = f"mv {project} {project}-old; ln -s $OUTSIDE {project}"
    answer = bridge(desk, outside, attack, "--no-resident", "codex", **sent)
    decision = json.loads(answer)["hookSpecificOutput"]
    assert decision["permissionDecision"] == "deny"


def test_roots_of_a_workspace_find_their_projects(desk: Desk, outside: Path) -> None:
    """Cursor names them beside the folder of a shell command."""
    desk.project.guarded()
    desk.project.trust()
    sent = {"own": str(outside), "cwd": str(outside), "hook_event_name": "preToolUse"}
    roots = [str(outside), str(desk.project.folder)]
    words = ("--no-resident", "cursor")
    answer = bridge(desk, outside, "true", *words, **sent, workspace_roots=roots)
    assert "the guard says no" in answer
