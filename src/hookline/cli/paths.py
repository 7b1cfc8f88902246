"""``hookline paths``: every file and folder that Hookline uses on this machine.

Reads only. A test runs many commands and finds all their files below these paths.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from hookline._internal.state_files import state_dir
from hookline.config import Config
from hookline.engine.breaker import timeouts_file
from hookline.engine.registry import HookRegistry
from hookline.errors import HooklineError
from hookline.hosts.host_files import Scope
from hookline.hosts.install.changes import recorded_files
from hookline.hosts.install.status import find_installed
from hookline.journal.store import journal_files, journal_path
from hookline.recipes.state import project_folder
from hookline.settings.places import (
    FILE_STEM,
    PROJECT_FOLDER,
    SettingsPlaces,
    Workspace,
    absolute,
    find_workspace,
    record_path,
)
from hookline.trust.gate import cache_folder

from .messages import note
from .options import Options, Parser
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


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_cwd()
    parser.add_flag("--json", "print a JSON list")


def run(options: Options) -> None:
    """Print the paths."""
    config = Config.load(options.cwd)
    workspace = find_workspace(options.cwd)
    rows = sorted(_paths(config, workspace), key=lambda row: _SCOPES.index(row[0]))
    by_path = {path: (scope, about) for scope, about, path in reversed(rows)}
    entries: list[dict[str, Any]] = []
    for path in reversed(by_path):
        scope, about = by_path[path]
        sizes = [*_sizes(path)]
        entry: dict[str, Any] = {
            "scope": scope,
            "what": about,
            "path": path,
            "exists": os.path.lexists(path),
            "bytes": sum(sizes),
            "files": len(sizes),
        }
        entries.append(entry)
    if state_dir() is None:
        note("hookline: no home folder is known, so nothing is kept: set HOME")
    if options.json:
        print_json(entries)
        return
    width = max(len(entry["what"]) for entry in entries)
    for scope in _SCOPES:
        print(paint(scope, "bold"))
        for entry in entries:
            if entry["scope"] == scope:
                size = _human(entry["bytes"]) if entry["exists"] else "-"
                path = one_line(entry["path"])
                print(f"  {entry['what']:{width}}  {size:>8}  {path}")


def _paths(config: Config, workspace: Workspace) -> Iterator[tuple[str, str, str]]:
    """Whose each file or folder is, what it is, and its path."""
    yield from _settings(workspace)
    for project in workspace.projects or (workspace.root,):
        yield _PROJECT, "hooks", f"{project}/{PROJECT_FOLDER}"
        if record := record_path(project):
            yield _PROJECT, "approval", record
        if cache := cache_folder(project):
            yield _PROJECT, "compiled hooks", cache
    # What is kept by the folder that an agent works in.
    if timeouts := timeouts_file(workspace.folder):
        yield _PROJECT, "timeouts of hooks", timeouts
    recipes = os.environ.get("HOOK_STATE_DIR") or project_folder(workspace.folder)
    yield _PROJECT, "state of recipes", absolute(recipes)
    yield from _journals(config)
    for agent in find_installed(workspace, HookRegistry(config.settings).all_hooks()):
        scope = _PROJECT if agent.scope is Scope.PROJECT else _USER
        for file in agent.files:
            yield scope, f"hooks of {agent.host}", file
    for file in recorded_files():  # one that is listed above stays there
        yield _USER, "other agent files", file
    if (state := state_dir()) is not None:
        yield _USER, "state, all of it", state
        for name, about in _STATE.items():
            yield _USER, about, f"{state}/{name}"
    yield _USER, "state of recipes", absolute(project_folder("").parent)
    if sys.platform == "linux":
        from hookline.hosts.client import LOG
        from hookline.hosts.client import folder as helper_folder

        yield _USER, "resident helper", helper_folder()
        if os.path.exists(log := f"{helper_folder()}/{LOG}"):  # noqa: PTH110 - a string
            yield _USER, "its log", log
    yield _PACKAGE, "program files", str(Path(__file__).parents[1])


def _settings(workspace: Workspace) -> Iterator[tuple[str, str, str]]:
    if not workspace.projects:
        folder = f"{workspace.root}/{PROJECT_FOLDER}"
        yield _PROJECT, "settings", f"{folder}/{FILE_STEM}.json"
    for place in SettingsPlaces(project_dir=workspace.folder).folders(workspace):
        for stem in place.stems:
            names = [f"{place.folder}/{stem}.{ending}" for ending in ("json", "toml")]
            about = "settings" if stem == FILE_STEM else "settings, this machine"
            for name in [*filter(os.path.lexists, names)] or names[:1]:
                yield place.source.value, about, name


def _journals(config: Config) -> Iterator[tuple[str, str, str]]:
    folder = config.settings.project_dir or config.working_dir
    with suppress(HooklineError):  # no home is known
        usual = journal_path(option=True, working_dir=folder)
        path = journal_path(config.settings.global_options.journal, folder)
        for file in journal_files(usual):
            yield _USER, "journal", file
        if path != usual:
            for file in journal_files(path):
                yield _PROJECT, "journal", file


def _sizes(path: str) -> Iterator[int]:
    """The size of a file, or of each file in a folder; links are not followed."""
    with suppress(OSError):
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode):
            yield status.st_size
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):  # removed in the meantime
                yield os.lstat(f"{folder}/{name}").st_size


def _human(size: int) -> str:
    power = min((len(str(size)) - 1) // 3, len(_UNITS) - 1)
    return f"{size / 1000**power:.1f} {_UNITS[power]}" if power else f"{size} B"
