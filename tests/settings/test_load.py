"""Settings as a program loads them: all places, one file, or a mapping."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import ChainMap, UserDict
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from hookline import Config, HookEventName, Settings, SettingsError
from tests.support.loaded import install_extension, installed

GROUPS = {"BeforeTool": [{"hooks": [{"type": "command", "command": "x"}]}]}
MAPPING = f"settings = {{'hooks': {GROUPS}}}"


def names_of(settings: Settings) -> list[str]:
    return [hook.name for layer in settings.layers for _, _, hook in layer.hooks()]


def test_load_names_files_by_their_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / ".hookline" / "settings.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"hooks": GROUPS}))
    monkeypatch.chdir(tmp_path)
    assert [layer.file for layer in Settings.load(".").layers] == [str(file)]


def test_from_file_raises_when_the_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.json: cannot be read: No such"):
        Settings.from_file(tmp_path / "nowhere.json")


def test_from_mapping_takes_mappings_and_lists_of_any_kind() -> None:
    """protocol.md#settings: no guard is dropped for the class of a mapping."""
    hook = UserDict({"type": "command", "command": "true", "name": "g"})
    group = MappingProxyType({"hooks": (hook,)})
    groups = ChainMap({HookEventName.BeforeTool: (group,)})
    settings = Settings.from_mapping(MappingProxyType({"hooks": groups}))
    assert (names_of(settings), settings.warnings) == (["g"], ())
    (layer,) = settings.layers
    assert (layer.explicit, layer.file) == (True, None)


@pytest.mark.parametrize("value", [[], (), None, "hooks", b"{}", 5, True, {1}], ids=str)
def test_from_mapping_names_what_it_was_given(value: Any) -> None:
    """protocol.md#settings: a caller's mistake, not an AttributeError."""
    with pytest.raises(SettingsError, match="expected a mapping, got "):
        Settings.from_mapping(value)
    nested = Settings.from_mapping({"hooks": value, "hooksConfig": value})
    assert len(nested.warnings) == 2
    events = Settings.from_mapping({"hooks": {"BeforeTool": [value]}})
    assert "BeforeTool[0]" in "".join(events.warnings)


def test_config_names_settings_of_the_wrong_type() -> None:
    """protocol.md#settings: a mapping in place of Settings is not no settings."""
    wrong: tuple[Any, ...] = ({}, {"hooks": {}}, [])
    for settings in wrong:
        with pytest.raises(TypeError, match="expected Settings, got"):
            Config(settings=settings)


@pytest.fixture
def packages(tmp_path: Path) -> Iterator[Path]:
    """A folder of installed packages on the import path."""
    with installed(tmp_path / "packages"):
        yield tmp_path / "packages"


def extensions(folder: Path) -> list[str | None]:
    """The extensions that add hooks to a project."""
    layers = Settings.load(folder / "project").layers
    return [layer.file for layer in layers if layer.groups]


def test_extension_is_named_after_its_entry_point_and_the_first_one_counts(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_extension(packages, "acme", MAPPING)
    metadata = install_extension(tmp_path / "later", "other", "settings = {}")
    points = metadata / "entry_points.txt"
    points.write_text(points.read_text().replace("other = ", "acme = "))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "later")])
    assert extensions(tmp_path) == ["extension 'acme'"]


@pytest.mark.parametrize("line", [b"no equals sign", b"acme = \xff"], ids=str)
def test_malformed_metadata_is_a_warning_and_the_others_work(
    packages: Path, tmp_path: Path, line: bytes
) -> None:
    metadata = install_extension(packages, "bad", MAPPING)
    install_extension(packages, "good", MAPPING)
    (metadata / "entry_points.txt").write_bytes(b"[hookline.extensions]\n" + line)
    (warning,) = Settings.load(tmp_path / "project").warnings
    assert warning.startswith(f"{metadata}/entry_points.txt: ignored: it is malformed")
    assert extensions(tmp_path) == ["extension 'good'"]


def test_packages_without_extensions_are_never_imported(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor are folders that cannot be listed an error."""
    for name, points in (("other", "[x]\na = b:c"), ("bare", None)):
        metadata = packages / f"{name}-1.0.dist-info"
        metadata.mkdir(parents=True)
        if points:
            (metadata / "entry_points.txt").write_text(points)
    (tmp_path / "archive.zip").write_text("")
    path = [str(tmp_path / "archive.zip"), str(tmp_path / "gone"), *sys.path]
    monkeypatch.setattr(sys, "path", path)
    assert Settings.load(tmp_path / "project").layers == ()


@pytest.mark.parametrize("place", ["project", "above", "empty entry"])
def test_project_cannot_pose_as_an_installed_package(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A cloned repository must not run code because it contains a file."""
    install_extension(packages, "evil", "raise SystemExit('imported')")
    if place == "empty entry":
        monkeypatch.chdir(packages)
        others = [entry for entry in sys.path if entry != str(packages)]
        monkeypatch.setattr(sys, "path", ["", *others])
    (tmp_path / ".git").mkdir()
    folder = packages if place == "project" else tmp_path
    assert Settings.load(folder).layers == ()


def test_environment_inside_the_project_counts(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user made it."""
    install_extension(packages, "acme", MAPPING)
    monkeypatch.setattr(sys, "prefix", str(packages))
    layers = Settings.load(packages.parent).layers
    assert [layer.file for layer in layers] == ["extension 'acme'"]


def test_loading_settings_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from hookline import Settings; Settings.load(sys.argv[1]);"
        "print({'importlib.metadata', 'platformdirs', 'pathlib', 'tomllib', 'shlex'}"
        " & set(sys.modules))"
    )
    argv = [sys.executable, "-I", "-c", code, str(tmp_path)]
    run = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
