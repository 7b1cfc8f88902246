"""``hookline paths``: every file and folder that Hookline uses on this machine.

Reads only. A test runs many commands and finds all their files below these paths.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, to_builtins

from hookline._internal.state_files import state_dir
from hookline.config import Config
from hookline.engine.breaker import timeouts_file
from hookline.engine.registry import HookRegistry
from hookline.errors import HooklineError
from hookline.hosts.host_files import Scope
from hookline.hosts.install.changes import recorded_files
from hookline.hosts.install.status import Installed, find_installed
from hookline.journal.store import journal_files, journal_path
from hookline.recipes.state import project_folder
from hookline.settings.places import (
    FILE_STEM,
    PROJECT_FOLDER,
    Place,
    SettingsPlaces,
    Workspace,
    absolute,
    find_workspace,
    record_path,
)
from hookline.trust.gate import cache_folder

from .common import Options, Parser, note
from .terminal import one_line, paint, print_json

SUMMARY = "show where Hookline keeps its files on this machine"
DESCRIPTION = """\
Show the files and folders that Hookline reads or writes for this project, for you and
for the whole machine, which of them exist and how large they are: settings, approvals,
the journal, the files of the resident helper, caches, and the settings of coding agents
that 'hookline install' has changed, in other projects too. Nothing is changed, and no
hook is run.

  hookline paths
  hookline paths --cwd ~/code/shop
  hookline paths --json

A size of '-' means that there is no such file. A folder counts with its content."""

_SCOPES = _PROJECT, _USER, _SYSTEM, _PACKAGE = "project", "user", "system", "package"
_STATE = {
    "trust": "approvals",
    "journals": "journals of projects",
    "timeouts": "timeouts of hooks",
    "pycache": "compiled hooks",
    "installed": "records of 'install'",
    "conversations": "agent conversations",
}
"""The folders in the state folder."""
_UNITS = ("B", "kB", "MB", "GB", "TB")


class Found(Struct, frozen=True, kw_only=True):
    """One file or folder."""

    scope: str
    what: str
    path: str
    exists: bool
    bytes: int
    files: int


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_cwd()
    parser.add_flag("--json", "print a JSON list")


def run(options: Options) -> None:
    """Print the paths."""
    config = Config.load(options.cwd)
    workspace = find_workspace(options.cwd)
    rows = sorted(_paths(config, workspace), key=lambda row: _SCOPES.index(row[0]))
    by_path = {path: (scope, what) for scope, what, path in reversed(rows)}
    listed = [_measured(*by_path[path], path) for path in reversed(by_path)]
    if state_dir() is None:
        note("hookline: no home folder is known, so nothing is kept: set HOME", options)
    if options.json:
        print_json([to_builtins(found) for found in listed])
    else:
        _print(listed)


_Row = tuple[str, str, str]
"""Whose it is, what it is, and its path."""


def _paths(config: Config, workspace: Workspace) -> Iterator[_Row]:
    installed = find_installed(workspace, HookRegistry(config.settings).all_hooks())
    places = SettingsPlaces(project_dir=workspace.folder).folders(workspace)
    projects = workspace.projects or (workspace.root,)
    if not workspace.projects:
        folder = f"{workspace.root}/{PROJECT_FOLDER}"
        yield _PROJECT, "settings", f"{folder}/{FILE_STEM}.json"
    for place in places:
        yield from _settings(place)
    for project in projects:
        yield from _of_project(project)
    yield from _of_folder(workspace.folder)
    yield from _journal(config)
    yield from _agents(installed)
    yield from _of_user()
    yield _PACKAGE, "program files", str(Path(__file__).parents[1])


def _settings(place: Place) -> Iterator[_Row]:
    for stem in place.stems:
        names = [f"{place.folder}/{stem}.{ending}" for ending in ("json", "toml")]
        there = [name for name in names if os.path.lexists(name)]
        about = "settings" if stem == FILE_STEM else "settings, this machine"
        for name in there or names[:1]:
            yield place.source.value, about, name


def _of_project(project: str) -> Iterator[_Row]:
    yield _PROJECT, "hooks", f"{project}/{PROJECT_FOLDER}"
    if record := record_path(project):
        yield _PROJECT, "approval", record
    if cache := cache_folder(project):
        yield _PROJECT, "compiled hooks", cache


def _of_folder(folder: str) -> Iterator[_Row]:
    """What is kept by the folder that an agent works in."""
    if timeouts := timeouts_file(folder):
        yield _PROJECT, "timeouts of hooks", timeouts
    recipes = os.environ.get("HOOK_STATE_DIR") or project_folder(folder)
    yield _PROJECT, "state of recipes", absolute(recipes)


def _journal(config: Config) -> Iterator[_Row]:
    option = config.settings.global_options.journal
    folder = config.settings.project_dir or config.working_dir
    with suppress(HooklineError):  # no home is known
        usual = journal_path(option=True, working_dir=folder)
        path = journal_path(option, folder)
        yield from ((_USER, "journal", one) for one in journal_files(usual))
        if path != usual:
            yield from ((_PROJECT, "journal", one) for one in journal_files(path))


def _agents(installed: Iterable[Installed]) -> Iterator[_Row]:
    for one in installed:
        scope = _PROJECT if one.scope is Scope.PROJECT else _USER
        yield from ((scope, f"hooks of {one.host}", file) for file in one.files)
    for path in recorded_files():  # one that is listed above stays there
        yield _USER, "other agent files", path


def _of_user() -> Iterator[_Row]:
    if (state := state_dir()) is not None:
        yield _USER, "state, all of it", state
        for name, about in _STATE.items():
            yield _USER, about, f"{state}/{name}"
    yield _USER, "state of recipes", absolute(project_folder("").parent)
    if sys.platform == "linux":
        from hookline.hosts.client import LOG, folder

        yield _USER, "resident helper", folder()
        if os.path.exists(log := f"{folder()}/{LOG}"):  # noqa: PTH110 - a string
            yield _USER, "its log", log


def _measured(scope: str, what: str, path: str) -> Found:
    sizes = [*_sizes(path)]
    return Found(
        scope=scope,
        what=what,
        path=path,
        exists=os.path.lexists(path),
        bytes=sum(sizes),
        files=len(sizes),
    )


def _sizes(path: str) -> Iterator[int]:
    """The size of a file, or of each file in a folder; links are not followed."""
    with suppress(OSError):
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode):
            yield found.st_size
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):  # removed in the meantime
                yield os.lstat(f"{folder}/{name}").st_size


def _print(found: list[Found]) -> None:
    width = max(len(one.what) for one in found)
    for scope in _SCOPES:
        print(paint(scope, "bold"))
        for one in found:
            if one.scope == scope:
                size = _human(one.bytes) if one.exists else "-"
                print(f"  {one.what:{width}}  {size:>8}  {one_line(one.path)}")


def _human(size: int) -> str:
    power = min((len(str(size)) - 1) // 3, len(_UNITS) - 1)
    return f"{size / 1000**power:.1f} {_UNITS[power]}" if power else f"{size} B"
