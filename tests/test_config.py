"""Config: which settings it is made of, and what it says about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookline import Config, Settings, SettingsError

RULE = {"type": "command", "name": "guard", "command": "true"}
SETTINGS = {"hooks": {"BeforeTool": [{"hooks": [RULE]}]}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".hookline").mkdir()
    (tmp_path / ".hookline" / "settings.json").write_text(json.dumps(SETTINGS))
    return tmp_path


@pytest.mark.parametrize("reload", [False, True])
def test_a_folder_that_is_not_there_is_not_loaded(tmp_path: Path, reload: bool) -> None:
    """A misspelt path would be an agent without its rules."""
    missing = tmp_path / "desk"
    with pytest.raises(SettingsError, match=f"{missing}: no such folder"):
        Config.load(missing, reload=reload)


def test_a_file_is_not_loaded_as_a_folder(project: Path) -> None:
    """The settings file in place of the project."""
    file = project / ".hookline" / "settings.json"
    with pytest.raises(SettingsError, match=r"not a folder: .*from_file\(") as caught:
        Config.load(file)
    assert caught.value.file == str(file)


def test_a_config_says_that_it_has_no_settings(tmp_path: Path) -> None:
    """Loaded in the wrong folder."""
    assert repr(Config.load(tmp_path)) == f"<Config of '{tmp_path}': no settings>"


def test_a_config_says_which_settings_apply(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what is not trusted."""
    description = f"1 hook in {project}/.hookline/settings.json"
    assert repr(Config.load(project)).endswith(f": {description}, not trusted>")
    monkeypatch.setenv("HOOKLINE_TRUST", "all")
    assert repr(Config.load(project)).endswith(f": {description}>")
    config = Config(working_dir=project, settings=Settings.from_mapping(SETTINGS))
    assert repr(config).endswith(": 1 hook in the given settings>")
