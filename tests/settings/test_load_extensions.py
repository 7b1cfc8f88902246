from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline import Settings
from hookline.protocol.events import HookEventName
from hookline.settings.load import load_extensions
from hookline.settings.model import HookSource, SettingsLayer

MAPPING = (
    '{"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "x"}]}]}}'
)


class Site:
    """A folder of installed packages on the import path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)

    def install(self, name: str, code: str, target: str = "settings") -> None:
        module = f"hookline_test_{name}"
        (self.folder / f"{module}.py").write_text(code)
        metadata = self.folder / f"{module}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Name: {module}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(
            "[console_scripts]\na = b:c\n"
            f"[hookline.extensions]\n{name} = {module}:{target}\n"
        )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    site = Site(tmp_path / "packages")
    monkeypatch.syspath_prepend(site.folder)
    yield site
    for module in [name for name in sys.modules if name.startswith("hookline_test_")]:
        del sys.modules[module]


def command_of(layer: SettingsLayer) -> str | None:
    return layer.groups[HookEventName.BeforeTool][0].hooks[0].command


@pytest.mark.parametrize(
    "code",
    [
        f"settings = {MAPPING}",
        f"def settings(): return {MAPPING}",
        f"import types; settings = types.MappingProxyType({MAPPING})",
    ],
    ids=["mapping", "function", "foreign mapping"],
)
def test_extension_gives_a_layer(site: Site, code: str) -> None:
    site.install("acme", code)
    (layer,) = load_extensions()
    assert (layer.source, layer.file) == (HookSource.EXTENSIONS, "extension 'acme'")
    assert command_of(layer) == "x"
    assert layer.warnings == ()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("def settings(): 1 / 0", "ZeroDivisionError"),
        ("other = {}", "AttributeError"),
        ("settings = 7", "expected a mapping"),
        ("def settings(): return []", "expected a mapping"),
    ],
    ids=["import fails", "call fails", "absent", "number", "list"],
)
def test_broken_extension_is_a_warning_and_the_others_work(
    site: Site, code: str, problem: str
) -> None:
    site.install("acme", code)
    site.install("good", f"settings = {MAPPING}")
    broken, good = load_extensions()
    (warning,) = broken.warnings
    assert warning.startswith("extension 'acme': ")
    assert problem in warning
    assert broken.groups == {}
    assert command_of(good) == "x"


def test_wrong_settings_of_an_extension_are_warnings_naming_it(site: Site) -> None:
    site.install("acme", "settings = {'hooks': {'BeforTool': []}, 'x': {1: object()}}")
    (layer,) = load_extensions()
    assert layer.warnings[0].startswith("extension 'acme': hooks.BeforTool: dropped")


def test_packages_without_extensions_are_never_imported(site: Site) -> None:
    (site.folder / "other-1.0.dist-info").mkdir()
    (site.folder / "other-1.0.dist-info" / "entry_points.txt").write_text(
        "[x]\na = b:c"
    )
    (site.folder / "bare-1.0.dist-info").mkdir()
    assert load_extensions() == ()


@pytest.mark.parametrize(
    "line",
    [b"no equals sign", b"acme = \xff"],
    ids=["no pair", "not UTF-8"],
)
def test_malformed_metadata_is_a_warning_and_the_others_work(
    site: Site, tmp_path: Path, line: bytes
) -> None:
    site.install("bad", f"settings = {MAPPING}")
    site.install("good", f"settings = {MAPPING}")
    metadata = site.folder / "hookline_test_bad-1.0.dist-info"
    (metadata / "entry_points.txt").write_bytes(b"[hookline.extensions]\n" + line)
    settings = Settings.load(tmp_path / "project")
    (warning,) = settings.warnings
    assert warning.startswith(f"{metadata}/entry_points.txt: ignored: ")
    assert [layer.file for layer in settings.layers if layer.groups] == [
        "extension 'good'"
    ]


def test_folders_that_cannot_be_listed_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "archive.zip").write_text("")
    path = [str(tmp_path / "archive.zip"), str(tmp_path / "gone"), *sys.path]
    monkeypatch.setattr(sys, "path", path)
    assert load_extensions() == ()


def test_first_package_of_a_name_counts(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install("acme", f"settings = {MAPPING}")
    other = Site(tmp_path / "later")
    other.install("acme", "settings = {}")
    monkeypatch.setattr(sys, "path", [*sys.path, str(other.folder)])
    layers = load_extensions()
    assert [layer.file for layer in layers] == ["extension 'acme'"]
    assert command_of(layers[0]) == "x"


def test_project_cannot_pose_as_an_installed_package(site: Site) -> None:
    """A cloned repository must not run code because it contains a file."""
    site.install("evil", "raise SystemExit('imported')")
    assert load_extensions([str(site.folder)]) == ()
    assert load_extensions([str(site.folder.parent)]) == ()


def test_empty_path_entry_is_not_searched(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install("evil", "raise SystemExit('imported')")
    monkeypatch.chdir(site.folder)
    others = [entry for entry in sys.path if entry != str(site.folder)]
    monkeypatch.setattr(sys, "path", ["", *others])
    assert load_extensions() == ()


def test_environment_inside_the_project_counts(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install("acme", f"settings = {MAPPING}")
    monkeypatch.setattr(sys, "prefix", str(site.folder))
    (layer,) = load_extensions([str(site.folder.parent)])
    assert command_of(layer) == "x"


def test_loading_settings_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from hookline import Settings; Settings.load(sys.argv[1]);"
        "print({'importlib.metadata', 'platformdirs', 'pathlib', 'tomllib', 'shlex'}"
        " & set(sys.modules))"
    )
    argv = [sys.executable, "-I", "-c", code, str(tmp_path)]
    run = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
