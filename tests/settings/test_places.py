"""Where settings and state are looked for, and which projects apply in a folder."""

from __future__ import annotations

import pwd
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import platformdirs
import pytest

from hookline import Settings, SettingsError
from hookline._internal.state_files import state_dir
from hookline.settings.places import (
    SettingsPlaces,
    default_user_dir,
    find_settings_file,
    find_workspace,
    is_within,
)
from tests.support.project import Project


def unknown_user(uid: int) -> NoReturn:
    """As in a container whose user is not in the password database."""
    raise KeyError(uid)


linux_only = pytest.mark.skipif(sys.platform != "linux", reason="XDG is Linux's")


def folders() -> list[tuple[str, str]]:
    return [(place.source.value, place.folder) for place in SettingsPlaces().folders()]


@linux_only
@pytest.mark.parametrize("configured", ["", "relative", "./here", None])
def test_user_folder_is_never_relative_to_a_project(
    configured: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be trusted, and be whatever a cloned repository holds."""
    monkeypatch.setenv("XDG_CONFIG_HOME", configured or "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_user_dir() == str(tmp_path / ".config" / "hookline")
    monkeypatch.setenv("HOME", "here")
    monkeypatch.chdir(tmp_path)
    for _, folder in folders():
        assert Path(folder).is_absolute()
        assert not Path(folder).is_relative_to(tmp_path)


@linux_only
@pytest.mark.parametrize("folder", [default_user_dir, state_dir])
def test_user_folders_are_none_when_no_home_is_known(
    folder: Callable[[], str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "here")
    monkeypatch.setattr(pwd, "getpwuid", unknown_user)
    assert folder() is None


@linux_only
@pytest.mark.parametrize("configured", ["/etc/xdg", "", "relative", "~/here", None])
def test_user_folders_are_those_of_platformdirs(
    configured: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 0007: the same answers without the import."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
        if configured is not None:
            monkeypatch.setenv(name, configured)
    assert default_user_dir() == platformdirs.user_config_dir("hookline")
    assert state_dir() == platformdirs.user_state_dir("hookline")


def test_no_environment_variable_moves_the_system_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/config")
    for name in ("XDG_CONFIG_DIRS", "HOOKLINE_SYSTEM_DIR", "HOOKLINE_CONFIG", "HOME"):
        monkeypatch.setenv(name, "/elsewhere")
    assert folders() == [("user", "/config/hookline"), ("system", "/etc/hookline")]


@pytest.mark.parametrize(
    ("path", "within"),
    [("/a", True), ("/a/b", True), ("/ab", False), ("/", False), ("/b/a", False)],
)
def test_path_is_within_a_folder(path: str, within: bool) -> None:
    """What belongs to a project is decided by this alone."""
    assert is_within(path, "/a") is within
    assert is_within(path, "/")


def test_folder_that_cannot_be_looked_into_is_not_one_without_settings(
    tmp_path: Path,
) -> None:
    """A managed hook must not vanish because its folder cannot be read."""
    (tmp_path / "file").write_text("")
    assert find_settings_file(tmp_path / "nowhere") is None
    assert find_settings_file(tmp_path / "file") is None
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for folder in (tmp_path / "loop", Path("a\0b")):
        with pytest.raises(SettingsError, match="cannot be accessed"):
            find_settings_file(folder)


def projects_in(folder: Path) -> list[Path]:
    return [Path(project) for project in Settings.load(folder).projects]


def test_projects_up_to_the_repository_root_apply_outermost_first(
    project: Project, tmp_path: Path
) -> None:
    """protocol.md#settings: and trusted ones above it."""
    repository = tmp_path / "outside" / "repository"
    inner = repository / "a" / "b"
    for folder in (tmp_path / "outside", repository, inner):
        (folder / ".hookline").mkdir(parents=True)
    (repository / ".git").mkdir()
    (inner / "c").mkdir()
    assert projects_in(inner / "c") == [repository, inner]
    assert Settings.load(inner / "c").project_dir == str(inner)
    assert projects_in(repository / "a") == [repository]
    assert projects_in(tmp_path / "outside") == [tmp_path / "outside"]
    outside = Project.__new__(Project)
    outside.folder = tmp_path / "outside"
    outside.guarded()
    assert outside.trust() == 0
    assert projects_in(inner) == [outside.folder, repository, inner]
    assert project.folder not in projects_in(inner)
    for folder in (repository, inner):
        text = '{"hooksConfig": {"journal": "j.db"}}'
        (folder / ".hookline" / "settings.json").write_text(text)
    assert Settings.load(inner).global_options.journal == f"{inner}/j.db"


def test_folders_that_are_gone_or_the_root_are_no_error(tmp_path: Path) -> None:
    """A working directory can be deleted while a session is in it."""
    (tmp_path / ".git").touch()
    (tmp_path / ".hookline").mkdir()
    assert find_workspace(tmp_path / "gone" / "deeper").projects == (str(tmp_path),)
    assert find_workspace("/").folder == "/"
