"""Changed settings are noticed, and each file is taken whole or not at all."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HooklineError, Settings
from hookline.cli.main import main
from hookline.errors import ReloadError
from hookline.settings import watch as watch_module
from hookline.settings.load import SettingsOrigin
from hookline.settings.locations import SettingsPlaces
from hookline.settings.watch import SettingsWatch

DROPPED = [{"hooks": [{"type": "comand", "command": "true"}]}]


def rules(*reasons: str) -> dict[str, Any]:
    """Settings with a rule for each reason."""
    found = [
        {"type": "rule", "name": reason, "when": "true", "description": reason}
        for reason in reasons
    ]
    return {"hooks": {"BeforeTool": [{"hooks": found}]}}


def names(settings: Settings) -> list[str]:
    return [hook.name for layer in settings.layers for _, _, hook in layer.hooks()]


class Places:
    """A repository with a project, and folders of user and system."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "repository" / "src"
        self.project = self.work / ".hookline"
        self.user, self.system = folder / "user", folder / "system"
        for one in (self.work.parent / ".git", self.project, self.user, self.system):
            one.mkdir(parents=True)
        (self.user / "settings.json").write_text(json.dumps(rules("user")))
        (self.project / "settings.json").write_text(json.dumps(rules("project")))

    def watch(self) -> SettingsWatch:
        places = SettingsPlaces(
            project_dir=self.work, user_dir=self.user, system_dir=self.system
        )
        return SettingsWatch.start(SettingsOrigin(places=places))


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Places(tmp_path)


def replace_by_rename(places: Places) -> None:
    new = places.user / "new"
    new.write_text(json.dumps(rules("renamed")))
    new.rename(places.user / "settings.json")


def rewrite_with_the_old_time(places: Places) -> None:
    file = places.user / "settings.json"
    found = file.stat()
    file.write_text(json.dumps(rules("usex")))
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))


def move_the_link(places: Places) -> None:
    (places.user / "settings.json").rename(places.folder / "old.json")
    (places.folder / "new.json").write_text(json.dumps(rules("linked")))
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


def test_a_folder_for_settings_that_appears_is_noticed(tmp_path: Path) -> None:
    user = tmp_path / "user"
    origin = SettingsOrigin(places=SettingsPlaces(user_dir=user, system_dir=tmp_path))
    watch = SettingsWatch.start(origin)
    user.mkdir()
    (user / "settings.json").write_text(json.dumps(rules("first")))
    assert watch.has_changed()
    assert names(watch.load()) == ["first"]


def test_no_rewrite_of_the_same_size_is_missed(tmp_path: Path) -> None:
    """Two changes within one tick of the clock have the same times."""
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(rules("0000")))
    watch = SettingsWatch(Settings.from_file(file))
    watch.load()
    with file.open("r+") as opened:
        for number in range(300):
            opened.seek(0)
            opened.write(json.dumps(rules(f"{number:04}")))
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
    state = (now - 1_900_000_000,) * 2

    def coarse(path: str) -> tuple[int, ...] | int:
        found = real(path)
        return found if isinstance(found, int) else (*state, *found[2:])

    real = watch_module.file_state
    file.write_text(json.dumps(rules("a")))
    monkeypatch.setattr(watch_module, "file_state", coarse)
    watch = SettingsWatch.start(SettingsOrigin(file=str(file)))
    assert not watch.has_changed()
    file.write_text(json.dumps(rules("b")))
    assert watch.has_changed()
    assert names(watch.load()) == ["b"]


def test_the_first_look_loads_what_changed_before_it(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(rules("a")))
    settings = Settings.from_file(file)
    file.write_text(json.dumps(rules("b")))
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
    watch = SettingsWatch.start(SettingsOrigin(file=str(file), label="s"))
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
    watch = SettingsWatch.start(SettingsOrigin(file=str(file), label="s"))
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
            found = names(watch.load())
        except ReloadError:
            continue
        assert len({name.split()[0] for name in found}) == 1
        assert len(found) == 10
    writing.join()


def test_settings_with_new_errors_are_refused_until_they_change(
    places: Places,
) -> None:
    watch = places.watch()
    (places.user / "settings.json").write_text("{ no")
    assert names(watch.load()) == ["project", "user"]
    (problem,) = watch.refused
    assert re.search(r"user/settings\.json:1:3: is not valid", problem)
    assert not watch.has_changed()
    (places.user / "settings.json").write_text(json.dumps(rules("good")))
    assert names(watch.load()) == ["project", "good"]


def test_an_entry_that_would_be_dropped_is_an_error(places: Places) -> None:
    """At a start it is a warning; here a guard that was there would be gone."""
    watch = places.watch()
    broken = rules("new")
    broken["hooks"]["AfterTool"] = DROPPED
    (places.user / "settings.json").write_text(json.dumps(broken))
    assert names(watch.load()) == ["project", "user"]
    assert "unknown type 'comand'" in watch.refused[0]


def test_a_file_with_new_errors_holds_up_no_other(places: Places) -> None:
    """protocol.md#settings: it keeps its old content, and the rest is taken."""
    (places.system / "settings.json").write_text(json.dumps(rules("system")))
    watch = places.watch()
    (places.user / "settings.json").write_text("{ no")
    (places.system / "settings.json").write_text(json.dumps(rules("new")))
    assert names(watch.load()) == ["project", "user", "new"]
    (places.user / "settings.toml").write_text("")
    assert names(watch.load()) == ["project", "user", "new"]
    (places.user / "settings.json").unlink()
    (places.system / "settings.json").write_text('{"hooks": {"Befor": []}}')
    assert names(watch.load()) == ["project", "new"]
    assert len(watch.refused) == 1


@pytest.mark.parametrize("whose", ["user", "system"])
def test_a_file_that_cannot_be_read_any_more_holds_up_no_other(
    places: Places, whose: str
) -> None:
    """protocol.md#settings: at a start it raises, later its old content stays."""
    (places.system / "settings.json").write_text(json.dumps(rules("system")))
    watch = places.watch()
    file = places.folder / whose / "settings.json"
    file.unlink()
    file.mkdir()
    (places.project / "settings.json").write_text(json.dumps(rules("new")))
    assert names(watch.load()) == ["new", "user", "system"]
    (problem,) = watch.refused
    assert problem.startswith(f"{file}: cannot be read")
    assert not watch.has_changed(), "it is told once, not at each event"


def test_broken_settings_of_the_system_that_appear_hold_up_no_other(
    places: Places,
) -> None:
    """protocol.md#settings: they had no content before, so none is lost."""
    config = Config(working_dir=places.work)
    watch = places.watch()
    (places.system / "settings.json").write_text("{ no")
    (places.user / "settings.json").write_text(json.dumps(rules("new")))
    assert names(config.prepared(watch.load())) == ["project", "new"]
    assert len(watch.refused) == 1


@pytest.mark.parametrize("broken", ["{ no", json.dumps({"hooks": {"Befor": []}})])
def test_errors_of_a_project_hold_up_no_other_settings(
    places: Places, broken: str
) -> None:
    """Nobody who can write to a project keeps the guards of others from applying."""
    watch = places.watch()
    (places.project / "settings.json").write_text(broken)
    for name in ("one", "two"):
        (places.user / "settings.json").write_text(json.dumps(rules(name)))
        assert names(watch.load()) == ["project", name]
        (problem,) = watch.refused
        assert problem.startswith(f"{places.project}/settings.json")
    (places.project / "settings.json").write_text(json.dumps(rules("mended")))
    assert names(watch.load()) == ["mended", "two"]
    assert watch.refused == ()
    (places.user / "settings.json").write_text("{ no")
    (places.project / "settings.json").write_text(broken)
    assert names(watch.load()) == ["mended", "two"]
    assert len(watch.refused) == 2


def test_a_broken_file_of_a_project_that_had_none_is_taken_as_at_a_start(
    places: Places,
) -> None:
    """With ``untrusted: block`` it closes what nobody can see in it."""
    (places.project / "settings.json").unlink()
    watch = places.watch()
    (places.project / "settings.json").write_text("{ no")
    assert len(watch.load().errors) == len(watch.refused) == 1


def test_errors_that_were_there_before_do_not_matter(places: Places) -> None:
    (places.project / "settings.json").write_text("{ no")
    broken = rules("one")
    broken["hooks"]["AfterTool"] = DROPPED
    (places.user / "settings.json").write_text(json.dumps(broken))
    watch = places.watch()
    assert watch.settings == watch.load()
    (places.project / "settings.json").write_text("{ still not")
    broken["hooks"]["BeforeTool"] += rules("two")["hooks"]["BeforeTool"]
    broken["hooks"]["AfterTool"] = [*rules("three")["hooks"]["BeforeTool"], *DROPPED]
    (places.user / "settings.json").write_text(json.dumps(broken))
    assert names(watch.load()) == ["one", "two", "three"]
    broken["hooks"]["AfterTool"] *= 2
    (places.user / "settings.json").write_text(json.dumps(broken))
    assert names(watch.load()) == ["one", "two", "three"]
    assert len(watch.refused) == 1


def test_a_relative_file_is_found_from_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.json").write_text(json.dumps(rules("a")))
    settings = Settings.from_file("s.json")
    monkeypatch.chdir("/")
    watch = SettingsWatch(settings)
    assert watch.load() == settings


def test_settings_that_are_from_no_file_cannot_be_watched() -> None:
    with pytest.raises(HooklineError, match=r"use Config\.load\(\)"):
        SettingsWatch(Settings.from_mapping({}))
