"""Where trust records are, for which account, and for which of two long paths."""

from __future__ import annotations

import pwd
from pathlib import Path
from typing import NoReturn

import pytest

from hookline.settings.places import record_path
from tests.support.project import Project


def test_long_paths_have_different_records(project: Project) -> None:
    """The name of a file has a limit that paths of projects do not have."""
    long = f"{'x' * 150}/{'y' * 150}"
    paths = {record_path(f"{project.folder}{middle}{long}") for middle in "/ab"}
    assert len(paths) == 3
    assert all(len(Path(path or "").name) < 255 for path in paths)


@pytest.mark.parametrize("home", [".", "me", "users/me"])
async def test_project_that_contains_the_home_of_the_account_can_be_approved(
    project: Project, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    """A person's own home, or a folder above it, can be a project."""
    folder = project.folder / home
    folder.mkdir(parents=True, exist_ok=True)
    account = pwd.struct_passwd(("me", "x", 1000, 1000, "", str(folder), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: account)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / ".local" / "state"))
    project.guarded()
    assert project.trust() == 0
    assert (await project.fire()).reason == "the guard says no"


async def test_nothing_can_be_approved_without_a_state_folder(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As in a container whose user is not in the password database."""

    def unknown_user(uid: int) -> NoReturn:
        raise KeyError(uid)

    project.guarded()
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "relative")
    monkeypatch.setattr(pwd, "getpwuid", unknown_user)
    assert project.trust() == 1
    assert capsys.readouterr().err == (
        "hookline: the state folder is unknown or inside "
        f"{project.folder}: set HOME or XDG_STATE_HOME to a folder outside of it\n"
    )
    assert (project.trust("--revoke"), project.trust("--list")) == (0, 0)
    assert capsys.readouterr().out == (
        f"{project.folder}: was not trusted\nno project is trusted\n"
    )
    result = await project.fire()
    assert (result.blocked, result.aggregated.hook_results) == (False, [])
