from __future__ import annotations

import json
from collections import ChainMap, UserDict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import hookline
from hookline import Config, HookEventName, Settings, SettingsError
from hookline.settings.locations import SettingsPlaces
from hookline.settings.model import HookSource


def hook(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": f"run-{name}", "name": name, **more}


def settings_with(*hooks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"hooks": {"BeforeTool": [{"hooks": list(hooks)}]}, **more}


def write(folder: Path, settings: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "settings.json"
    file.write_text(settings if isinstance(settings, str) else json.dumps(settings))
    return file


@pytest.fixture
def places(tmp_path: Path) -> SettingsPlaces:
    (tmp_path / "project" / ".hookline").mkdir(parents=True)
    return SettingsPlaces(
        project_dir=tmp_path / "project",
        user_dir=tmp_path / "user",
        system_dir=tmp_path / "system",
    )


def names_of(settings: Settings) -> list[str]:
    return [
        hook.name
        for layer in settings.layers
        for group in settings.groups_of(layer).get(HookEventName.BeforeTool, ())
        for hook in group.hooks
    ]


def fill(places: SettingsPlaces, **settings: Any) -> None:
    for source, content in settings.items():
        write(folder_of(places, HookSource(source)), content)


def folder_of(places: SettingsPlaces, source: HookSource) -> Path:
    found = places.folders(places.workspace())
    return next(Path(place.folder) for place in found if place.source is source)


def test_settings_is_a_public_name() -> None:
    assert hookline.Settings is Settings


def test_load_orders_layers_by_priority(places: SettingsPlaces) -> None:
    """protocol.md#settings: project, user, system."""
    fill(
        places,
        system=settings_with(hook("s")),
        project=settings_with(hook("p")),
        user=settings_with(hook("u")),
    )
    settings = Settings.load(places=places)
    assert names_of(settings) == ["p", "u", "s"]
    sources = [layer.source for layer in settings.layers]
    assert sources == [HookSource.PROJECT, HookSource.USER, HookSource.SYSTEM]
    assert not any(layer.explicit for layer in settings.layers)


def test_load_finds_nothing_where_there_is_nothing(places: SettingsPlaces) -> None:
    settings = Settings.load(places=places)
    assert (settings.layers, settings.errors, settings.warnings) == ((), (), ())
    assert settings.hooks_enabled


def test_load_takes_the_project_directory_alone(tmp_path: Path) -> None:
    write(tmp_path / ".hookline", settings_with(hook("p")))
    settings = Settings.load(str(tmp_path))
    assert "p" in names_of(settings)


def test_load_names_files_by_their_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / ".hookline", settings_with(hook("p")))
    monkeypatch.chdir(tmp_path)
    assert Settings.load(".").layers[0].file == str(file)


def test_load_reads_toml(places: SettingsPlaces) -> None:
    folder = folder_of(places, HookSource.USER)
    folder.mkdir()
    (folder / "settings.toml").write_text(
        '[[hooks.BeforeTool]]\nhooks = [{type = "command", command = "x"}]\n'
    )
    assert names_of(Settings.load(places=places)) == ["x"]


def test_load_keeps_other_sources_when_one_file_is_broken(
    places: SettingsPlaces,
) -> None:
    """A clear error naming file, line and column; the others work.

    protocol.md#settings
    """
    fill(places, project='{"hooks": \n  {,}}', user=settings_with(hook("u")))
    settings = Settings.load(places=places)
    assert names_of(settings) == ["u"]
    (error,) = settings.errors
    assert str(places.project_dir) in str(error)
    assert (error.line, error.column) == (2, 4)


def test_load_refuses_both_languages_in_one_place(places: SettingsPlaces) -> None:
    """protocol.md#settings: the error names both."""
    fill(places, project=settings_with(hook("p")), user=settings_with(hook("u")))
    folder = folder_of(places, HookSource.PROJECT)
    (folder / "settings.toml").write_text("")
    settings = Settings.load(places=places)
    assert names_of(settings) == ["u"]
    (error,) = settings.errors
    assert str(folder / "settings.json") in str(error)
    assert str(folder / "settings.toml") in str(error)


def test_load_collects_the_warnings_of_all_layers(places: SettingsPlaces) -> None:
    fill(places, project={"hooks": {"BeforTool": []}}, user={"enableHooks": "no"})
    first, second = Settings.load(places=places).warnings
    assert "project" in first
    assert "did you mean 'BeforeTool'" in first
    assert "user" in second
    assert "enableHooks" in second


def test_from_file_replaces_everything_but_managed_hooks(
    places: SettingsPlaces, tmp_path: Path
) -> None:
    """An explicit file replaces all except managed system hooks.

    protocol.md#settings
    """
    fill(
        places,
        project=settings_with(hook("p")),
        user=settings_with(hook("u")),
        system=settings_with(hook("s"), hook("m", managed=True)),
    )
    file = write(tmp_path / "own", settings_with(hook("x")))
    settings = Settings.from_file(file, system_dir=places.system_dir)
    assert names_of(settings) == ["x", "m"]
    assert settings.layers[0].explicit
    assert settings.layers[0].source is HookSource.EXPLICIT
    assert settings.has_managed


def test_from_file_leaves_the_system_out_when_it_manages_nothing(
    places: SettingsPlaces, tmp_path: Path
) -> None:
    fill(places, system=settings_with(hook("s"), hooksConfig={"maxProcesses": 1}))
    file = write(tmp_path / "own", settings_with(hook("x")))
    settings = Settings.from_file(file, system_dir=places.system_dir)
    assert [layer.explicit for layer in settings.layers] == [True]
    assert not settings.has_managed


def test_from_file_reports_a_broken_system_file(
    places: SettingsPlaces, tmp_path: Path
) -> None:
    fill(places, system="{")
    file = write(tmp_path / "own", settings_with(hook("x")))
    settings = Settings.from_file(file, system_dir=places.system_dir)
    assert names_of(settings) == ["x"]
    assert str(places.system_dir) in str(settings.errors[0])


def test_from_file_raises_when_the_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.json: cannot be read: No such"):
        Settings.from_file(tmp_path / "nowhere.json")


def test_from_mapping_is_explicit_and_reads_no_file() -> None:
    settings = Settings.from_mapping(settings_with(hook("x")))
    assert names_of(settings) == ["x"]
    assert settings.layers[0].explicit
    assert settings.layers[0].file is None


def test_from_mapping_takes_enum_members_as_words() -> None:
    mapping = {"hooks": {HookEventName.BeforeTool: ({"hooks": (hook("x"),)},)}}
    assert names_of(Settings.from_mapping(mapping)) == ["x"]


@pytest.mark.parametrize("given", [[], (), None, "hooks", b"{}", 5, True, {1}])
def test_from_mapping_names_what_it_was_given(given: Any) -> None:
    """protocol.md#settings: a caller's mistake, not an AttributeError."""
    with pytest.raises(SettingsError, match="expected a mapping, got "):
        Settings.from_mapping(given)
    nested = Settings.from_mapping({"hooks": given, "hooksConfig": given})
    assert len(nested.warnings) == 2
    events = Settings.from_mapping({"hooks": {"BeforeTool": [given]}})
    assert "BeforeTool[0]" in "".join(events.warnings)


def test_from_mapping_takes_mappings_of_any_kind() -> None:
    """protocol.md#settings: no guard is dropped for the class of a mapping."""
    group = MappingProxyType({"hooks": [UserDict(hook("g"))]})
    given = MappingProxyType({"hooks": ChainMap({"BeforeTool": [group]})})
    settings = Settings.from_mapping(given)
    assert names_of(settings) == ["g"]
    assert not settings.warnings


def test_config_names_settings_of_the_wrong_type() -> None:
    """protocol.md#settings: a mapping in place of Settings is not no settings."""
    wrong: tuple[Any, ...] = ({}, {"hooks": {}}, [])
    for given in wrong:
        with pytest.raises(TypeError, match="expected Settings, got"):
            Config(settings=given)
