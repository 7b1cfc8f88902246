"""Notice that settings changed, and load each file whole or not at all.

A look costs one ``stat`` for each path that decides: settings files, trust records, the
folders that make a project, the import path for extensions. A load happens between two
equal looks, after the files have rested: no load sees half of a change. A file that
vanished or is empty may be one that an editor is saving, so it gets a moment to return.

A file with new errors of its own stays as it was, and holds up no other: whoever can
write to a project must not decide whether the settings of others apply.

One thread loads, however many events wait for it in however many event loops.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import HooklineError, ReloadError, SettingsError

from .extensions import import_path
from .load import Settings, load_settings
from .model import HookSource, SettingsLayer
from .places import (
    PROJECT_FOLDER,
    SettingsPlaces,
    Workspace,
    folders_above,
    record_path,
    trust_folder,
)
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


class FileState(Struct, frozen=True):
    """What tells that a file changed; nothing but the error where it is not there."""

    changed_ns: tuple[int, int] = (0, 0)
    """By both clocks: anybody can set the time when the text changed."""
    size: int = 0
    identity: tuple[int, ...] = ()
    """What a folder has whatever is in it."""
    error: int = 0


def file_state(path: str) -> FileState:
    """Look at one file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a string
    except (OSError, ValueError) as error:
        return FileState(error=getattr(error, "errno", None) or -1)
    return FileState(
        (status.st_mtime_ns, status.st_ctime_ns),
        status.st_size,
        (status.st_mode, status.st_ino, status.st_dev),
    )


class _Look:
    """The state of all that decides, before it is read."""

    def __init__(self, places: SettingsPlaces) -> None:
        started_ns = time.time_ns()
        workspace = places.workspace()
        paths, marks = _settings_files(places, workspace), list[str]()
        if places.file is None:
            paths += import_path(workspace.zones if workspace else ())
        if workspace is not None:
            # The records of the projects, and the folder where others may appear.
            records = (trust_folder(), *map(record_path, workspace.projects))
            paths += filter(None, records)
            # What makes a folder a repository or a project, not what is inside of it.
            marks += (os.fspath(places.project_dir or os.curdir), *places.also)
            for folder in folders_above(workspace.folder):
                marks += f"{folder}/.git", f"{folder}/{PROJECT_FOLDER}"
        self.files = {path: file_state(path) for path in paths}
        self._identities = {path: file_state(path).identity for path in marks}
        self._contents = {
            path: _content(path)
            for path, state in self.files.items()
            if max(state.changed_ns) > started_ns - _TICK_NS
            and not stat.S_ISDIR(state.identity[0])
        }
        """Of files that a second change would not have made look different."""
        self._settled_ns = started_ns + _TICK_NS

    def rests(self) -> bool:
        """Whether all files were left alone; a time in the future says nothing."""
        states = self.files.values()
        ages = (time.time_ns() - max(state.changed_ns) for state in states)
        return not any(0 <= age < REST_S * 1e9 for age in ages)

    def lacks(self, before: dict[str, FileState]) -> bool:
        """Whether a file is gone or empty: somebody may be saving it."""
        return any(
            not state.size and before.get(path, state).size
            for path, state in self.files.items()
        )

    def holds(self) -> bool:
        """Whether all of it is as it was."""
        is_settled = time.time_ns() > self._settled_ns
        is_same = (
            all(file_state(path) == state for path, state in self.files.items())
            and all(file_state(p).identity == i for p, i in self._identities.items())
            and all(_content(path) == text for path, text in self._contents.items())
        )
        if is_same and is_settled:
            self._contents = {}
        return is_same


def _settings_files(places: SettingsPlaces, workspace: Workspace | None) -> list[str]:
    """Where settings can be, in files that exist and in those that do not."""
    files = [
        f"{place.folder}/{stem}.{ending}"
        for place in places.folders(workspace)
        for stem in place.stems
        for ending in ("json", "toml")
    ]
    return files if places.file is None else [places.file, *files]


def _content(path: str) -> bytes | None:
    try:
        return read_bytes(path)
    except SettingsError:
        return None


class Reloaded(Struct, frozen=True):
    """Outcome of loading settings again."""

    changed: bool = False
    """Whether other settings are in use now."""
    problems: tuple[str, ...] = ()
    """Why changed settings are not used: all of them, or those of some projects."""


class SettingsWatch:
    """Watches what settings were loaded from, and loads them again for a host.

    What fails leaves the settings in use as they are.
    """

    def __init__(self, settings: Settings, folder: str | None = None) -> None:
        """Take settings as they were loaded; the first look always finds a change.

        Nobody looked before that load, so what changed since then is unknown.
        ``folder`` is the working directory, where it is known.
        """
        if settings.places is None:
            raise HooklineError(
                "settings that were not read from files cannot be reloaded: "
                "use Config.load(), Settings.load() or Settings.from_file()"
            )
        self.settings = settings
        """The ones in use, before their projects are checked for approval."""
        self.refused: tuple[str, ...] = ()
        """Why files stay as they were, of the last load."""
        self.last = Reloaded()
        """Of the settings as they are now, as far as somebody looked."""
        self._places = settings.places
        self._folder = folder
        self._look: _Look | None = None
        self._apply: Callable[[Settings], bool] = lambda _: True
        self._tell: Callable[[Reloaded], None] = lambda _: None
        self._lock = threading.Lock()
        self._running: Future[Reloaded] | None = None
        self._process = os.getpid()

    @classmethod
    def start(cls, places: SettingsPlaces, folder: str | None = None) -> SettingsWatch:
        """Load settings for the first time; raises ``SettingsError``."""
        look = _Look(places)
        watch = cls(load_settings(places), folder)
        watch._look = look
        return watch

    def follow(
        self, apply: Callable[[Settings], bool], tell: Callable[[Reloaded], None]
    ) -> None:
        """``apply`` puts settings to use, and says whether they are others."""
        self._apply, self._tell = apply, tell

    def has_changed(self) -> bool:
        """Whether there is anything to load."""
        return self._look is None or not self._look.holds()

    def load(self) -> Settings:
        """Load the settings as they are now, but files with new errors as they were.

        Raises ``ReloadError`` if the files do not stop changing. Only for one thread at
        a time, unlike ``reload``.
        """
        self.refused = ()
        before = {} if self._look is None else self._look.files
        start, tries = time.monotonic(), 0
        while True:
            look = _Look(self._places)
            waited = time.monotonic() - start
            rests = look.rests() or waited > LONGEST_WAIT_S
            if waited > RETURN_S or (rests and not look.lacks(before)):
                loaded = load_settings(self._places, strict=False)
                if look.holds():
                    break
                if (tries := tries + 1) == _TRIES:
                    raise ReloadError(("the settings files do not stop changing",))
            time.sleep(_STEP_S)
        self._look = look
        earlier = Counter(map(_without_indices, self._errors(self.settings, loaded)))
        broken: set[str] = set()
        for error in self._errors(loaded, self.settings):
            if earlier[_without_indices(error)] > 0:
                earlier[_without_indices(error)] -= 1
            else:
                broken.add(error[0])
                self.refused += (error[1],)
        self.settings = self._with_old_files(loaded, broken)
        return self.settings

    def _place_of(self, file: str | None) -> str:
        """What an error in a file holds up: the settings of one folder."""
        path = self._places.file if file == self._places.label else file
        return os.path.dirname(path or "") or str(file)  # noqa: PTH120 - a string

    def _errors(self, settings: Settings, other: Settings) -> Iterator[tuple[str, str]]:
        """What is wrong in files that are not the same in others, and what it holds up.

        What is wrong with old files counts as it is now: the files that policies are in
        may have changed since they were loaded.
        """
        from .check import undecidable  # hosts that never reload need not load it

        for error in settings.errors:
            yield self._place_of(error.file), str(error)
        for layer in settings.layers:
            if layer not in other.layers:
                folder = layer.project or (self._folder if layer.explicit else None)
                problems = (
                    f"{layer.file}: {it}" for it in undecidable(layer.raw, folder)
                )
                for text in (*layer.dropped, *problems):
                    yield self._place_of(layer.file), text

    def _with_old_files(self, loaded: Settings, broken: set[str]) -> Settings:
        """What was loaded, but broken projects and files with the layers they had.

        A project that had none is taken as at a start: it can take no guard away.
        """
        old = self.settings
        old_places = {self._place_of(it.file) for it in old.layers if it.is_project}
        projects = {f"{project}/{PROJECT_FOLDER}" for project in loaded.projects}
        stays = broken - (projects - old_places)
        if not stays:
            return loaded

        def is_old(part: SettingsLayer | SettingsError) -> bool:
            return self._place_of(part.file) in stays

        layers = [layer for layer in loaded.layers if not is_old(layer)]
        layers += filter(is_old, old.layers)
        errors = [error for error in loaded.errors if not is_old(error)]
        errors += filter(is_old, old.errors)
        sources, order = list(HookSource), ("", *loaded.projects)
        layers.sort(
            key=lambda it: (sources.index(it.source), order.index(it.project or ""))
        )
        return replace(loaded, layers=tuple(layers), errors=tuple(errors))

    async def refresh(self) -> None:
        """Load settings that have changed; events that wait share one load."""
        if self._running is not None or self.has_changed():
            await self.reload()

    async def reload(self) -> Reloaded:
        """Load the settings now, whether or not they have changed."""
        joins = self._running is not None
        outcome = await asyncio.wrap_future(self._begin())
        if joins and self.has_changed():
            # That load may have looked before the change that is asked about.
            outcome = await asyncio.wrap_future(self._begin())
        return outcome

    async def finished(self) -> None:
        """Wait until no load is in progress."""
        running = self._running  # read once: the thread sets it to None
        if running is not None and self._process == os.getpid():
            await asyncio.wrap_future(running)

    def _begin(self) -> Future[Reloaded]:
        """Join the load in progress, or start one."""
        if self._process != os.getpid():  # a thread does not survive a fork
            self._process, self._lock = os.getpid(), threading.Lock()
            self._running = None
        with self._lock:
            load = self._running
            if load is None:
                load = self._running = Future[Reloaded]()
                load.set_running_or_notify_cancel()  # whoever waits may be cancelled
                thread = threading.Thread(
                    target=self._run, args=(load,), name="hookline-reload", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError as error:  # no thread is left, or the process ends
                    self._end(load, Reloaded(problems=(str(error),)))
            return load

    def _run(self, load: Future[Reloaded]) -> None:
        before = self.settings
        try:
            changed = self._apply(self.load())
            outcome = Reloaded(changed, self.refused)
        # Extensions run code of others, which may exit too. A host must go on with what
        # it has, and events wait for the end of this.
        except BaseException as error:  # noqa: BLE001
            self.settings = before
            reasons: tuple[str, ...] = (f"{type(error).__name__}: {error}",)
            if isinstance(error, ReloadError):
                reasons = (*error.problems, *self.refused)
            outcome = Reloaded(problems=reasons)
        self._end(load, outcome)

    def _end(self, load: Future[Reloaded], outcome: Reloaded) -> None:
        self.last = outcome
        try:
            self._tell(outcome)
        finally:
            self._running = None
            load.set_result(outcome)


def _without_indices(error: tuple[str, str]) -> tuple[str, str]:
    # An entry that is put in front of others moves what is wrong with them.
    return error[0], re.sub(r"\[\d+\]", "[]", error[1])
