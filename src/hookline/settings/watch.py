"""Notice that settings changed, and load each file whole or not at all.

A look costs one ``stat`` for each path that decides: settings files, trust records, the
folders that make a project, the import path for extensions. A load happens between two
equal looks, after the files have rested: no load sees half of a change. A file that
vanished or is empty may be one that an editor is saving, so it gets a moment to return.

A file with new errors of its own stays as it was, and holds up no other: whoever can
write to a project must not decide whether the settings of others apply.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import HooklineError, ReloadError, SettingsError

from .load import Settings, SettingsOrigin, import_path
from .model import HookSource, SettingsLayer
from .places import PROJECT_FOLDER, Workspace, folders_above, record_path
from .places import trust_folder as records_folder
from .read import read_bytes

REST_S = 0.03
"""How long a file must be left alone before it is read."""
LONGEST_WAIT_S = 0.3
"""For files that do not rest."""
RETURN_S = 0.5
"""How long a vanished or empty file has to return."""
_STEP_S = 0.005
_TRIES = 20
_TICK_NS = 2_000_000_000
"""Of the coarsest clock of a file system: changes within one can look the same."""
_SUFFIXES = (".json", ".toml")

FileState = tuple[int, ...] | int
"""What ``stat`` says of a file, or the number of its error."""


class SettingsWatch:
    """Watches what settings were loaded from; any thread, but one load at a time."""

    def __init__(self, settings: Settings, folder: str | None = None) -> None:
        """Take settings as they were loaded; the first look always finds a change.

        Nobody looked before that load, so what changed since then is unknown.
        ``folder`` is the working directory, where it is known.
        """
        if settings.origin is None:
            raise HooklineError(
                "settings that were not read from files cannot be reloaded: "
                "use Config.load(), Settings.load() or Settings.from_file()"
            )
        self.settings = settings
        """The ones in use, before their projects are checked for approval."""
        self.refused: tuple[str, ...] = ()
        """Why files stay as they were, of the last load."""
        self._origin = settings.origin
        self._folder = folder
        self._seen: _Look | None = None

    @classmethod
    def start(cls, origin: SettingsOrigin, folder: str | None = None) -> SettingsWatch:
        """Load settings for the first time; raises ``SettingsError``."""
        look = _Look(origin)
        watch = cls(origin.load(), folder)
        watch._seen = look
        return watch

    def has_changed(self) -> bool:
        """Whether there is anything to load."""
        return self._seen is None or not self._seen.holds()

    def load(self) -> Settings:
        """Load the settings as they are now, but files with new errors as they were.

        Raises ``ReloadError`` if the files do not stop changing.
        """
        self._wait_for_rest()
        for _ in range(_TRIES):
            look = _Look(self._origin)
            found = self._origin.load(strict=False)
            if look.holds():
                break
            time.sleep(_STEP_S)
        else:
            raise ReloadError(("the settings files do not stop changing",))
        self._seen = look
        problems = new_problems(self.settings, found, self._folder)
        self.refused = tuple(problem.text for problem in problems)
        broken = {problem.place for problem in problems}
        self.settings = _with_old_files(found, self.settings, broken)
        return self.settings

    def _wait_for_rest(self) -> None:
        before = {} if self._seen is None else self._seen.files
        start = time.monotonic()
        while (waited := time.monotonic() - start) < RETURN_S:
            now = {path: file_state(path) for path in settings_files(self._origin)}
            lost = any(_is_lost(before.get(path), now[path]) for path in now)
            if not lost and (waited > LONGEST_WAIT_S or _rest(now)):
                return
            time.sleep(_STEP_S)


class _Look:
    """The state of all that decides, before it is read."""

    def __init__(self, origin: SettingsOrigin) -> None:
        now_ns = time.time_ns()
        workspace = origin.workspace()
        zones = workspace.zones if workspace else ()
        packages = import_path(zones) if origin.places else ()
        paths = (*settings_files(origin, workspace), *_records(workspace), *packages)
        self.files = {path: file_state(path) for path in paths}
        marks = {path: _identity(path) for path in _marks(origin, workspace)}
        # Asking whether a missing file is there takes a fifth of a failed stat.
        self._files, missing_files = _apart(self.files)
        self._marks, missing_marks = _apart(marks)
        self._missing = missing_files + missing_marks
        recent = (path for path, one in self._files if _is_recent(one, now_ns))
        self._contents = {path: _content(path) for path in recent}
        self._settled_ns = now_ns + _TICK_NS

    def holds(self) -> bool:
        """Whether all of it is as it was."""
        return (
            not any(os.access(path, os.F_OK) for path in self._missing)
            and all(file_state(path) == state for path, state in self._files)
            and all(_identity(path) == state for path, state in self._marks)
            and self._has_same_contents()
        )

    def _has_same_contents(self) -> bool:
        """Of the files that a second change would not have made look different."""
        is_settled = time.time_ns() > self._settled_ns
        if any(_content(path) != text for path, text in self._contents.items()):
            return False
        if is_settled:
            self._contents = {}
        return True


def _apart(
    states: dict[str, FileState],
) -> tuple[list[tuple[str, tuple[int, ...]]], list[str]]:
    """What is there with its state, and what is missing."""
    there = [(path, one) for path, one in states.items() if isinstance(one, tuple)]
    return there, [path for path, one in states.items() if isinstance(one, int)]


class Problem(Struct, frozen=True):
    """Something in a settings file that has no effect, or never works."""

    text: str
    place: str
    """What it holds up: a project, or else one file."""


def new_problems(
    old: Settings, new: Settings, folder: str | None = None
) -> list[Problem]:
    """The errors of settings that others do not have: files, entries, expressions."""
    known = {error.file for error in old.errors}
    problems = [
        Problem(str(error), _place_of(error.file, new))
        for error in new.errors
        if error.file not in known
    ]
    before = {layer.file: layer for layer in old.layers}
    for layer in new.layers:
        earlier = before.get(layer.file)
        if earlier is not None and earlier.raw == layer.raw:
            continue
        # What is wrong with the earlier one counts as it is now: the files that
        # policies are in may have changed since then.
        texts = () if earlier is None else _errors_in(earlier, folder)
        counts = Counter(map(_without_positions, texts))
        for text in _errors_in(layer, folder):
            counts[_without_positions(text)] -= 1
            if counts[_without_positions(text)] < 0:
                problems.append(Problem(text, layer.project or _stem(layer.file)))
    return problems


def _errors_in(layer: SettingsLayer, folder: str | None) -> Iterator[str]:
    from .lint import undecidable  # hosts that never reload need not load it

    yield from layer.dropped
    start = layer.project or (folder if layer.explicit else None)
    for problem in undecidable(layer.raw, None if start is None else Path(start)):
        yield f"{layer.file}: {problem}"


def _place_of(file: str | None, settings: Settings) -> str:
    folders = {f"{one}/{PROJECT_FOLDER}": one for one in settings.projects}
    origin = settings.origin
    if origin is not None and file == origin.file:
        return _stem(origin.label)
    return folders.get(os.path.dirname(file or ""), _stem(file))  # noqa: PTH120


def _stem(file: str | None) -> str:
    """A file without its language: both languages in one place are an error."""
    return (file or "").removesuffix(".json").removesuffix(".toml")


def _with_old_files(new: Settings, old: Settings, broken: set[str]) -> Settings:
    """New settings, where broken projects and files have the layers that they had.

    A project that had none is taken as at a start: it can take no guard away.
    """
    had = {layer.project for layer in old.layers if layer.is_project}
    kept = {place for place in broken if place in had or place not in new.projects}
    if not kept:
        return new

    def is_kept(layer: SettingsLayer) -> bool:
        return (layer.project or _stem(layer.file)) in kept

    layers = [layer for layer in new.layers if not is_kept(layer)]
    layers += (layer for layer in old.layers if is_kept(layer))
    sources, projects = list(HookSource), ("", *new.projects)
    layers.sort(
        key=lambda layer: (
            sources.index(layer.source),
            projects.index(layer.project or ""),
        )
    )
    errors = [one for one in new.errors if _place_of(one.file, new) not in kept]
    errors += (one for one in old.errors if _place_of(one.file, old) in kept)
    return replace(new, layers=tuple(layers), errors=tuple(errors))


def _without_positions(problem: str) -> str:
    # An entry that is put in front of others moves what is wrong with them.
    return re.sub(r"\[\d+\]", "[]", problem)


def settings_files(
    origin: SettingsOrigin, workspace: Workspace | None = None
) -> list[str]:
    """Where settings can be, in files that exist and in those that do not."""
    workspace = workspace or origin.workspace()
    files = [
        f"{place.folder}/{stem}{suffix}"
        for place in origin.folders(workspace)
        for stem in place.stems
        for suffix in _SUFFIXES
    ]
    return files if origin.file is None else [origin.file, *files]


def _records(workspace: Workspace | None) -> list[str]:
    """The trust records of the projects, and the folder where others may appear."""
    if workspace is None:
        return []
    found = (records_folder(), *map(record_path, workspace.projects))
    return [path for path in found if path is not None]


def _marks(origin: SettingsOrigin, workspace: Workspace | None) -> Iterator[str]:
    """What makes a folder a repository or a project; not what is inside of it."""
    if workspace is None or origin.places is None:
        return
    yield from (os.fspath(origin.places.project_dir or os.curdir), *origin.places.also)
    above = folders_above(workspace.folder)
    inside = above[: above.index(workspace.root) + 1]
    is_repository = os.path.lexists(f"{workspace.root}/.git")
    yield from (f"{one}/.git" for one in (inside if is_repository else above))
    yield from (f"{one}/{PROJECT_FOLDER}" for one in inside)


def file_state(path: str) -> FileState:
    """What tells that a file changed."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a string
    except (OSError, ValueError) as error:
        return getattr(error, "errno", None) or -1
    # Anybody can set the time of the last change of the text, but not the other.
    return (
        *(found.st_mtime_ns, found.st_ctime_ns, found.st_size),
        *(found.st_mode, found.st_ino, found.st_dev),
    )


def _identity(path: str) -> FileState:
    found = file_state(path)
    return found if isinstance(found, int) else found[3:]


def _is_recent(found: FileState, now_ns: int) -> bool:
    """Whether another change of the file could look the same."""
    if isinstance(found, int) or stat.S_ISDIR(found[3]):
        return False
    return max(found[:2]) > now_ns - _TICK_NS


def _content(path: str) -> bytes | None:
    try:
        return read_bytes(path)
    except SettingsError:
        return None


def _is_lost(before: FileState | None, now: FileState) -> bool:
    if not isinstance(before, tuple) or not before[2]:
        return False
    return isinstance(now, int) or not now[2]


def _rest(files: dict[str, FileState]) -> bool:
    now_ns = time.time_ns()
    changes = (max(one[:2]) for one in files.values() if isinstance(one, tuple))
    # A time in the future says nothing.
    return not any(0 <= now_ns - change < REST_S * 1e9 for change in changes)
