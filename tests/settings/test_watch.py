"""Changed settings are noticed, and each file is taken whole or not at all.

Which content counts after a change is in ``tests/pins/settings/changed.json``. The
watch is asked itself: a host looks at each event, and cannot say what it noticed when.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from hookline import HooklineError, Settings
from hookline.cli.main import main
from hookline.errors import ReloadError
from hookline.settings import watch as watch_module
from hookline.settings.places import SettingsPlaces
from hookline.settings.watch import SettingsWatch


def rules(name: str) -> str:
    """Settings with one rule."""
    rule = {"type": "rule", "name": name, "when": "true"}
    return json.dumps({"hooks": {"BeforeTool": [{"hooks": [rule]}]}})


def names(settings: Settings) -> list[str]:
    return [hook.name for layer in settings.layers for _, _, hook in layer.hooks()]


class Places:
    """A repository with a project, and folders of user and system."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "repository" / "src"
        self.project = self.work / ".hookline"
        self.user, self.system = folder / "user", folder / "system"
        for made in (self.work.parent / ".git", self.project, self.user, self.system):
            made.mkdir(parents=True)
        (self.user / "settings.json").write_text(rules("user"))
        (self.project / "settings.json").write_text(rules("project"))

    def watch(self) -> SettingsWatch:
        places = SettingsPlaces(
            project_dir=self.work, user_dir=self.user, system_dir=self.system
        )
        return SettingsWatch.start(places)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Places(tmp_path)


def replace_by_rename(places: Places) -> None:
    new = places.user / "new"
    new.write_text(rules("renamed"))
    new.rename(places.user / "settings.json")


def rewrite_with_the_old_time(places: Places) -> None:
    file = places.user / "settings.json"
    status = file.stat()
    file.write_text(rules("usex"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def move_the_link(places: Places) -> None:
    (places.user / "settings.json").rename(places.folder / "old.json")
    (places.folder / "new.json").write_text(rules("linked"))
    (places.user / "settings.json").symlink_to(places.folder / "new.json")


def exchange_the_folder(places: Places) -> None:
    places.work.rename(places.folder / "away")
    places.work.mkdir()


def approve(places: Places) -> None:
    assert main(["trust", str(places.work), "--yes"]) == 0


CHANGES: dict[str, Callable[[Places], object]] = {
    "edited": lambda p: (p.user / "settings.json").write_text("{}"),
    "renamed": replace_by_rename,
    "same size and time": rewrite_with_the_old_time,
    "linked": move_the_link,
    "removed": lambda p: (p.user / "settings.json").unlink(),
    "system": lambda p: (p.system / "settings.toml").write_text("enableHooks = true"),
    "local": lambda p: (p.project / "settings.local.json").write_text("{}"),
    "project gone": lambda p: p.project.rename(p.work / "away"),
    "new project": lambda p: (p.work.parent / ".hookline").mkdir(),
    "new repository": lambda p: (p.work / ".git").mkdir(),
    "no repository": lambda p: (p.work.parent / ".git").rmdir(),
    "other folder": exchange_the_folder,
    "mode": lambda p: (p.user / "settings.json").chmod(0o666),
    "approved": approve,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_every_change_that_decides_is_noticed_once(
    places: Places, change: Callable[[Places], object]
) -> None:
    watch = places.watch()
    assert not watch.has_changed()
    change(places)
    assert watch.has_changed()
    try:
        watch.load()
    except ReloadError:
        pass
    assert not watch.has_changed()


def test_other_files_beside_the_settings_are_no_change(places: Places) -> None:
    watch = places.watch()
    (places.project / "journal.sqlite").write_text("x")
    (places.work / "main.py").write_text("x")
    assert not watch.has_changed()


def test_no_rewrite_of_the_same_size_is_missed(tmp_path: Path) -> None:
    """Two changes within one tick of the clock have the same times."""
    file = tmp_path / "settings.json"
    file.write_text(rules("0000"))
    watch = SettingsWatch(Settings.from_file(file))
    watch.load()
    with file.open("r+") as opened:
        for number in range(300):
            opened.seek(0)
            opened.write(rules(f"{number:04}"))
            opened.flush()
            assert watch.has_changed() or names(watch.settings) == [f"{number:04}"]
            if number % 10 == 0:
                assert names(watch.load()) == [f"{number:04}"]


def test_no_rewrite_is_missed_where_the_clock_of_the_file_system_is_coarse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAT counts two seconds, ext3 one: nothing but the text tells of the change."""
    file = tmp_path / "s.json"
    now = time.time_ns()

    def coarse(path: str) -> watch_module.FileState:
        state = real(path)
        times = (now - 1_900_000_000,) * 2
        return state if state.error else replace(state, changed_ns=times)

    real = watch_module.file_state
    file.write_text(rules("a"))
    monkeypatch.setattr(watch_module, "file_state", coarse)
    watch = SettingsWatch.start(SettingsPlaces(file=str(file)))
    assert not watch.has_changed()
    file.write_text(rules("b"))
    assert watch.has_changed()
    assert names(watch.load()) == ["b"]


def test_the_first_look_loads_what_changed_before_it(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(rules("a"))
    settings = Settings.from_file(file)
    file.write_text(rules("b"))
    watch = SettingsWatch(settings)
    assert watch.has_changed()
    assert names(watch.load()) == ["b"]


@pytest.mark.parametrize("text", [None, ""], ids=["gone", "empty"])
def test_a_file_that_is_being_saved_gets_a_moment_to_return(
    tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "settings.toml"
    whole = (
        'hooks.BeforeTool = [{hooks = [{type = "rule", name = "r", when = "true"}]}]'
    )
    file.write_text(whole)
    watch = SettingsWatch.start(SettingsPlaces(file=str(file), label="s"))
    for _ in range(5):
        file.unlink()
        if text is not None:
            file.write_text(text)
        with ThreadPoolExecutor() as pool:
            loading = pool.submit(watch.load)
            file.write_text(whole)
            assert names(loading.result()) == ["r"]


def test_a_file_that_is_written_slowly_is_read_whole(tmp_path: Path) -> None:
    """Each line of it alone is valid TOML, and half of it would open a hole."""
    file = tmp_path / "settings.toml"
    head, rule = (
        '[[hooks.BeforeTool]]\nhooks = [{type = "rule", when = "true", ',
        "}]\n",
    )
    file.write_text(f'{head}name = "start"{rule}')
    watch = SettingsWatch.start(SettingsPlaces(file=str(file), label="s"))
    done = threading.Event()

    def write() -> None:
        for version in range(20):
            with file.open("w") as opened:
                for number in range(10):
                    opened.write(f'{head}name = "{version} {number}"{rule}')
                    opened.flush()
        done.set()

    writing = threading.Thread(target=write)
    writing.start()
    while not done.is_set() or watch.has_changed():
        if not watch.has_changed():
            continue
        try:
            loaded = names(watch.load())
        except ReloadError:
            continue
        assert len({name.split()[0] for name in loaded}) == 1
        assert len(loaded) == 10
    writing.join()


def test_a_relative_file_is_found_from_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.json").write_text(rules("a"))
    settings = Settings.from_file("s.json")
    monkeypatch.chdir("/")
    watch = SettingsWatch(settings)
    assert watch.load() == settings


def test_settings_that_are_from_no_file_cannot_be_watched() -> None:
    with pytest.raises(HooklineError, match=r"use Config\.load\(\)"):
        SettingsWatch(Settings.from_mapping({}))
