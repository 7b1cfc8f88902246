"""Whose settings are the user's: those that no project can bring along."""

from __future__ import annotations

import json
import pwd
from pathlib import Path

import pytest

from hookline import Config, Settings
from hookline.settings.check import check_places
from hookline.settings.places import SettingsPlaces

HOOKS = {"BeforeTool": [{"hooks": [{"type": "command", "name": "u", "command": "x"}]}]}


def write_user_settings(config_home: Path) -> Path:
    folder = config_home / "hookline"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps({"hooks": HOOKS}))
    return folder / "settings.json"


def names_in(folder: Path) -> list[str]:
    layers = Settings.load(folder).layers
    return [hook.name for layer in layers for _, _, hook in layer.hooks()]


@pytest.mark.parametrize("variable", ["HOME", "XDG_CONFIG_HOME"])
@pytest.mark.parametrize("place", ["project", "repository", "working directory"])
def test_user_settings_inside_a_project_are_not_the_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, place: str
) -> None:
    """HOME inside the project brings its hooks along, unapproved."""
    sub = tmp_path / "project" / "sub"
    sub.mkdir(parents=True)
    if place == "project":
        (sub.parent / ".git").mkdir()
        (sub.parent / ".hookline").mkdir()
    elif place == "repository":
        (sub.parent / ".git").touch()
    cwd = sub.parent if place == "working directory" else sub
    home = tmp_path / "project" / "home"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv(variable, str(home))
    config = home if variable == "XDG_CONFIG_HOME" else home / ".config"
    file = write_user_settings(config)
    assert names_in(cwd) == []
    (error,) = Settings.load(cwd).errors
    assert str(error).startswith(f"{file}: is inside {sub.parent}, so it is not used")
    (finding,) = check_places(SettingsPlaces(project_dir=cwd)).findings
    assert finding.message == error.problem


def test_link_into_a_project_does_not_make_settings_the_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_user_settings(tmp_path / "project" / "config")
    (tmp_path / "link").symlink_to(tmp_path / "project" / "config")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "link"))
    assert names_in(tmp_path / "project") == []
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("cwd", [".", ".config", ".config/hookline"])
def test_settings_of_the_account_count_wherever_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cwd: str
) -> None:
    """A home folder with a ``.hookline``, or one under version control."""
    account = ("me", "x", 1000, 1000, "", str(tmp_path), "/bin/sh")
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd(account))
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    write_user_settings(tmp_path / ".config")
    (tmp_path / cwd / ".git").touch()
    (tmp_path / cwd / ".hookline").mkdir()
    assert names_in(tmp_path / cwd) == ["u"]


def test_user_folder_that_a_host_names_is_used(tmp_path: Path) -> None:
    file = write_user_settings(tmp_path)
    places = SettingsPlaces(project_dir=tmp_path, user_dir=file.parent)
    assert [layer.file for layer in Settings.load(places=places).layers] == [str(file)]


def test_deleted_working_directory_is_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The projects around it still apply."""
    (tmp_path / ".git").touch()
    (tmp_path / ".hookline").mkdir()
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    monkeypatch.chdir(cwd)
    monkeypatch.setenv("PWD", str(cwd))
    cwd.rmdir()
    config = Config.load()
    assert config.working_dir == str(cwd)
    assert config.settings.projects == (str(tmp_path),)
    monkeypatch.delenv("PWD")
    assert Config.load().working_dir == "/"
