from __future__ import annotations

import pwd
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import platformdirs
import pytest

from hookline.errors import SettingsError
from hookline.settings.locations import (
    Place,
    SettingsPlaces,
    default_user_dir,
    find_settings_file,
    is_within,
    state_dir,
)
from hookline.settings.model import HookSource


def unknown_user(uid: int) -> NoReturn:
    """As in a container whose user is not in the password database."""
    raise KeyError(uid)


linux_only = pytest.mark.skipif(sys.platform != "linux", reason="XDG is Linux's")


def test_folders_are_those_of_the_protocol(tmp_path: Path) -> None:
    """protocol.md#settings."""
    (tmp_path / ".hookline").mkdir()
    places = SettingsPlaces(project_dir=tmp_path)
    assert places.folders(places.workspace()) == [
        Place(HookSource.PROJECT, str(tmp_path / ".hookline"), str(tmp_path)),
        Place(HookSource.USER, platformdirs.user_config_dir("hookline")),
        Place(HookSource.SYSTEM, "/etc/hookline"),
    ]


@linux_only
def test_user_folder_follows_xdg_config_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert default_user_dir() == str(tmp_path / "hookline")


@linux_only
@pytest.mark.parametrize("configured", ["", "relative", "./here"])
def test_user_folder_is_never_relative_to_a_project(
    configured: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be trusted, and be whatever a cloned repository holds."""
    monkeypatch.setenv("XDG_CONFIG_HOME", configured)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_user_dir() == str(tmp_path / ".config" / "hookline")


@linux_only
def test_user_folder_ignores_a_relative_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", "here")
    monkeypatch.chdir(tmp_path)
    for place in SettingsPlaces().folders():
        assert Path(place.folder).is_absolute()
        assert not Path(place.folder).is_relative_to(tmp_path)


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
    for name in ("XDG_CONFIG_DIRS", "HOOKLINE_SYSTEM_DIR", "HOOKLINE_CONFIG", "HOME"):
        monkeypatch.setenv(name, "/elsewhere")
    assert SettingsPlaces().folders()[-1].folder == "/etc/hookline"


@pytest.mark.parametrize(
    ("path", "within"),
    [("/a", True), ("/a/b", True), ("/ab", False), ("/", False), ("/b/a", False)],
)
def test_path_is_within_a_folder(path: str, within: bool) -> None:
    assert is_within(path, "/a") is within
    assert is_within(path, "/")


@pytest.mark.parametrize("name", ["settings.json", "settings.toml"])
def test_settings_file_is_found_in_either_language(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    assert find_settings_file(tmp_path) == str(tmp_path / name)


def test_settings_file_is_absent_in_an_absent_folder(tmp_path: Path) -> None:
    assert find_settings_file(tmp_path / "nowhere") is None
    (tmp_path / "file").write_text("")
    assert find_settings_file(tmp_path / "file") is None


def test_inaccessible_folder_is_not_a_missing_file(tmp_path: Path) -> None:
    """A managed hook must not vanish because its folder cannot be read."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(SettingsError, match="cannot be accessed"):
        find_settings_file(tmp_path / "loop")
    with pytest.raises(SettingsError, match="cannot be accessed"):
        find_settings_file(Path("a\0b"))
