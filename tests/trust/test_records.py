"""Where trust records are, who can write them, and when one is not used."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from pathlib import Path
from typing import NoReturn

import pytest

from hookline import Settings
from hookline.cli.main import main
from hookline.engine.registry import HookRegistry
from hookline.errors import StateFileError
from hookline.settings.locations import record_path, trust_folder
from hookline.settings.model import TrustStatus
from hookline.trust.gate import apply_trust
from hookline.trust.records import (
    TrustRecord,
    all_records,
    load_record,
    remove_record,
    save_record,
)
from tests.support.project import Project


def is_approved(project: Path) -> bool:
    """Whether the hooks of a project would run, in a new session."""
    settings = apply_trust(Settings.load(project), str(project))
    hooks = HookRegistry(settings).all_hooks()
    return any(hook.trust is TrustStatus.TRUSTED for hook in hooks)


def test_record_is_in_the_state_folder_and_named_after_the_project(
    project: Project,
) -> None:
    project.guarded()
    project.trust()
    (file,) = project.record_files()
    assert record_path(str(project.folder)) == str(file)
    assert file.parent == project.state / "hookline" / "trust"
    assert file.name.endswith("%2Fproject.json")
    assert TrustRecord(project=str(project.folder)).project in file.read_text()


def test_record_is_private(project: Project) -> None:
    project.guarded()
    project.trust()
    files = [path for path in project.state.rglob("*") if path.is_file()]
    assert files
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    folder = project.state / "hookline" / "trust"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o277])
@pytest.mark.parametrize("first", ["approval", "journal"])
def test_folders_of_approvals_do_not_follow_the_umask(
    project: Project, umask: int, first: str
) -> None:
    """protocol.md#settings: whoever can write one of them can take guards away."""
    project.guarded()
    before = os.umask(umask)
    try:
        if first == "journal":
            project.settings(hooksConfig={"journal": True})
            project.folder.joinpath(".hookline/settings.json").chmod(0o600)
            options = ["--settings", str(project.folder / ".hookline/settings.json")]
            call = ["fire", "BeforeTool", "--tool", "x", "--cwd", str(project.folder)]
            assert main([*call, *options]) == 0
        assert project.trust() == 0
    finally:
        os.umask(before)
    made = [project.state, *project.state.rglob("*")]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in made}
    assert {modes[path] for path in made if path.is_dir()} == {0o700}
    assert not any(mode & 0o077 for mode in modes.values())


@pytest.mark.parametrize("name", [".", "trust"])
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
async def test_approvals_in_a_folder_that_others_can_write_are_not_used(
    project: Project, name: str, mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """protocol.md#settings: not even if the record is gone."""
    project.guarded()
    assert project.trust() == 0
    folder = project.state / "hookline" / name
    folder.chmod(mode)
    project.record_files()[0].unlink()
    result = await project.fire()
    assert result.blocked
    assert f"run chmod 700 on {folder}" in (result.reason or "")
    assert project.trust() == 1
    assert f"run chmod 700 on {folder}" in capsys.readouterr().err
    folder.chmod(0o755)
    assert project.trust() == 0
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("inside", ["state", ".", ".hookline/state"])
def test_state_folder_inside_the_project_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    """A repository must not bring its own approval along."""
    project.guarded()
    monkeypatch.setenv("XDG_STATE_HOME", str(project.folder / inside))
    assert record_path(str(project.folder)) is None
    with pytest.raises(StateFileError, match="XDG_STATE_HOME to a folder outside"):
        save_record(TrustRecord(project=str(project.folder)), {})
    assert project.trust() == 1
    assert not is_approved(project.folder)


def test_record_shipped_with_the_project_is_not_used(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.guarded()
    project.trust()
    assert is_approved(project.folder)
    shipped = project.folder / "state"
    project.state.rename(shipped)
    monkeypatch.setenv("XDG_STATE_HOME", str(shipped))
    assert not is_approved(project.folder)


@pytest.mark.parametrize("settings", ["kept", "deleted"])
async def test_new_repository_around_project_and_home_takes_no_guard_away(
    project: Project, monkeypatch: pytest.MonkeyPatch, settings: str
) -> None:
    """Issue 12.14: a record that a repository could have brought along only closes."""
    monkeypatch.setenv("XDG_STATE_HOME", str(project.folder.parent / "state"))
    project.guarded()
    project.trust()
    (project.folder.parent / ".git").mkdir()
    if settings == "deleted":
        shutil.rmtree(project.folder / ".hookline")
    result = await project.fire()
    assert result.blocked
    assert "is inside the repository" in (result.reason or "")
    if settings == "kept":
        assert project.trust() == 1
    (project.folder.parent / ".git").rmdir()
    assert (await project.fire()).blocked


def test_link_from_outside_into_the_project_is_refused(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.guarded()
    (project.folder / "state").mkdir()
    (tmp_path / "link").symlink_to(project.folder / "state")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "link"))
    assert record_path(str(project.folder)) is None
    assert project.trust() == 1


def test_state_folder_beside_the_project_with_the_same_prefix_is_used(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.guarded()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "project-state"))
    assert project.trust() == 0
    assert is_approved(project.folder)


def account_with_home(home: Path) -> pwd.struct_passwd:
    return pwd.struct_passwd(("me", "x", 1000, 1000, "", str(home), "/bin/sh"))


@pytest.mark.parametrize("home", [".", "me", "users/me"])
def test_project_that_contains_the_home_of_the_account_can_be_approved(
    project: Project, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    """A person's own home, or a folder above it, can be a project."""
    folder = project.folder / home
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: account_with_home(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / ".local" / "state"))
    project.guarded()
    assert project.trust() == 0
    assert is_approved(project.folder)


@pytest.mark.parametrize("place", ["project", "repository", "link"])
def test_home_inside_the_project_brings_no_approval_along(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Issue 12.12: HOME is a variable, the home folder is the account's."""
    project.guarded()
    project.trust()
    home = project.folder / "home"
    if place == "repository":
        (tmp_path / ".git").mkdir()
        home = tmp_path / "home"
    home.mkdir()
    if place == "link":
        (tmp_path / "link").symlink_to(home)
        home = tmp_path / "link"
    project.state.rename(home / "state")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    assert not is_approved(project.folder)
    assert project.trust() == 1


def test_project_opened_through_a_link_has_the_same_record(
    project: Project, tmp_path: Path
) -> None:
    project.guarded()
    (tmp_path / "link").symlink_to(project.folder)
    assert main(["trust", "--yes", "--cwd", str(tmp_path / "link")]) == 0
    assert is_approved(project.folder)
    assert is_approved(tmp_path / "link")


def test_other_projects_are_not_approved_with_one(
    project: Project, tmp_path: Path
) -> None:
    project.guarded()
    project.trust()
    (tmp_path / "sub").mkdir()
    for folder in (tmp_path / "sub" / "project", tmp_path / "project%2F"):
        other = Project(folder, project.state)
        other.guarded()
        assert not is_approved(other.folder)
    assert [record.project for record in all_records()] == [str(project.folder)]


def test_long_paths_have_different_records(project: Project) -> None:
    long = f"{'x' * 150}/{'y' * 150}"
    paths = {record_path(f"{project.folder}{middle}{long}") for middle in "/ab"}
    assert len(paths) == 3
    assert all(len(Path(path or "").name) < 255 for path in paths)


def test_nothing_can_be_approved_without_a_state_folder(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown_user(uid: int) -> NoReturn:
        raise KeyError(uid)

    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "relative")
    monkeypatch.setattr(pwd, "getpwuid", unknown_user)
    assert (trust_folder(), record_path(str(project.folder))) == (None, None)
    assert (all_records(), remove_record(str(project.folder))) == ([], False)
    with pytest.raises(StateFileError, match="set HOME or XDG_STATE_HOME"):
        save_record(TrustRecord(project=str(project.folder)), {})


@pytest.mark.parametrize("content", ["{", "[]", '{"project": 5}', "\xff"])
def test_invalid_record_is_an_error_and_not_listed(
    project: Project, content: str
) -> None:
    project.guarded()
    project.trust()
    (file,) = project.record_files()
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(StateFileError, match="not a valid trust record"):
        load_record(str(file))
    assert all_records() == []


def test_record_that_other_users_can_write_is_an_error(project: Project) -> None:
    project.guarded()
    project.trust()
    (file,) = project.record_files()
    file.chmod(0o660)
    with pytest.raises(StateFileError, match="other users can write it"):
        load_record(str(file))


def test_revoking_removes_the_record_and_the_copies(project: Project) -> None:
    project.guarded()
    project.trust()
    assert list(project.state.rglob("copies/*"))
    assert remove_record(str(project.folder))
    assert not remove_record(str(project.folder))
    assert project.record_files() == []
    assert list(project.state.rglob("copies/*")) == []
    assert not is_approved(project.folder)
