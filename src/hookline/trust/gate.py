"""Let a project's hooks run only as a person approved them.

A project that is not approved contributes only candidates for approval. An approved
one counts as it was approved: editing or deleting its settings does not remove its
hooks. They fail as ``changed``, and the policy they were approved with decides.

Checking takes a few microseconds while the file system says that nothing changed:
nobody can set the change time (ctime) of a file. Bytes are read again only where it
says otherwise, or where a change is so recent that a second one might not show.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from hookline._internal.log import logger
from hookline._internal.state_files import file_name, make_folder, state_dir
from hookline.errors import SettingsError, StateFileError
from hookline.protocol.events import HookEventName
from hookline.settings.load import Settings
from hookline.settings.model import (
    FailurePolicy,
    HookConfig,
    HookGroup,
    HooksOptions,
    HookSource,
    HookType,
    SettingsLayer,
    Stamp,
    Untrusted,
)
from hookline.settings.places import is_within, record_path, record_problem

from .pins import (
    ABSENT,
    FileTimes,
    NamedPaths,
    PinKind,
    Pins,
    differences,
    pin_named_files,
    pin_project,
    times_of,
)
from .records import (
    VERSION,
    Manifest,
    find_holding,
    hook_id,
    load_record,
    settings_texts,
)

_COARSEST_CLOCK_NS = 2_000_000_000
"""Of the file systems in use: a younger file may have changed twice unseen."""
_MAX_CACHES = 16
_PYCACHE = "PYTHONPYCACHEPREFIX"


def apply_trust(settings: Settings, cwd: str) -> Settings:
    """Reduce the settings of each project to what is approved."""
    # Settings that a host read itself are of the project that it works in.
    current = [
        layer if layer.project else replace(layer, project=os.path.realpath(cwd))
        for layer in settings.layers
        if layer.is_project
    ]
    named = (layer.project for layer in current if layer.project is not None)
    projects = tuple(dict.fromkeys((*settings.projects, *named)))
    if not projects:
        return settings
    # Nobody knows what a file guards that cannot be read.
    closes = settings.untrusted is Untrusted.BLOCK
    unreadable = [error.file or "" for error in settings.errors] if closes else []
    layers: list[SettingsLayer] = []
    for project in projects:
        present = [layer for layer in current if layer.project == project]
        broken = [file for file in unreadable if is_within(file, project)]
        layers += _approved_layers(project, present, broken)
    layers += (layer for layer in settings.layers if not layer.is_project)
    return replace(settings, layers=tuple(layers), projects=projects)


def trusts_all() -> bool:
    """Whether every project is approved: for sealed environments such as CI."""
    value = os.environ.get("HOOKLINE_TRUST", "")
    if value not in {"", "all"}:
        logger.warning("HOOKLINE_TRUST=%r is ignored: the only value is 'all'", value)
    return value == "all"


def _approved_layers(
    project: str, current: list[SettingsLayer], unreadable: list[str]
) -> Iterator[SettingsLayer]:
    """What a project contributes: its approved hooks, and candidates for approval."""
    if trusts_all():
        yield from (replace(layer, trust=lambda _: None) for layer in current)
        return
    path, record, problem = record_path(project), None, ""
    try:
        record = None if path is None else load_record(path)
    except StateFileError as error:
        problem = str(error)
        if isinstance(error.__cause__, OSError):
            hint = "nobody knows what was approved: make it readable"
            raise SettingsError(f"{problem}: {hint}") from error
        logger.warning("%s", problem)
    if path is None or (record is None and not problem):
        yield from (_candidates(layer, project) for layer in current)
        yield from (_guarding_everything(file, project) for file in unreadable)
        return
    approved = record.states[0].layers() if record and record.states else []
    if record is not None and (where := record_problem(project)):
        # A new repository around the project must not take its guards away.
        problem = where
        logger.warning("%s: %s", project, problem)
    if record is None or problem:
        # What was approved is unknown: no hook runs, and the default policy applies.
        default = FailurePolicy()
        for layer in (*approved, *current):
            groups = layer.map_hooks(
                lambda _, __, hook: replace(hook, on_error=default)
            )
            closed = _unapproved(replace(layer, groups=groups))
            yield replace(closed, trust=_failing(problem))
    elif record.version != VERSION:
        by = "an older" if record.version < VERSION else "a newer"
        problem = f"{project} was approved with {by} version of hookline"
        warning = f"{problem}: run 'hookline trust' in {project} to approve it again"
        for layer in approved or current:
            yield replace(layer, trust=_failing(problem), warnings=(warning,))
    else:
        # Edited since: only the approved state counts that it was last in.
        several = len(record.states) > 1
        manifest = (several and find_holding(path, record)) or record.states[0]
        yield from _layers_of_state(path, manifest, current)


def _layers_of_state(
    path: str, manifest: Manifest, current: list[SettingsLayer]
) -> Iterator[SettingsLayer]:
    """An approved state, whose hooks run while nothing has changed, and new hooks."""
    project, added = manifest.project, current
    layers = [replace(layer, warnings=()) for layer in manifest.layers()]
    if settings_texts(current) == manifest.settings:
        layers, added = current, []
    approval = ProjectApproval(path, manifest, layers)
    if layers and (changed := approval.tree.check()[0]) is not None:
        warning = (
            f"{project}: {changed}: its hooks do not run, and what they guard "
            "is blocked unless their onError allows it: "
            f"run 'hookline trust' in {project} to review the change"
        )
        layers[0] = replace(layers[0], warnings=(*layers[0].warnings, warning))
    yield from (replace(one, trust=partial(HookApproval, approval)) for one in layers)
    approved = manifest.placed_hooks() if added else []
    for layer in added:
        groups = layer.map_hooks(
            lambda event, group, hook: (
                None if (event, group.matcher, hook) in approved else hook
            )
        )
        yield _unapproved(replace(layer, groups=groups))


def _candidates(layer: SettingsLayer, project: str) -> SettingsLayer:
    candidates = _unapproved(layer)
    count = len(list(candidates.hooks()))
    if not count:
        return candidates
    what, them = ("1 hook is", "it") if count == 1 else (f"{count} hooks are", "them")
    warning = (
        f"{layer.file or project}: {what} not trusted and will not run: "
        f"run 'hookline trust' in {project} to review and approve {them}"
    )
    return replace(candidates, warnings=(*candidates.warnings, warning))


def _unapproved(layer: SettingsLayer) -> SettingsLayer:
    """A layer that can be shown, and that switches and loosens nothing."""
    groups = layer.groups if layer.enable_hooks else {}
    return replace(
        layer, groups=groups, options=HooksOptions(), enable_hooks=True, trust=None
    )


def _guarding_everything(file: str, project: str) -> SettingsLayer:
    group = HookGroup(hooks=(HookConfig(type=HookType.PLUGIN, name=file),))
    return SettingsLayer(
        source=HookSource.PROJECT,
        file=file,
        project=project,
        groups=dict.fromkeys(HookEventName, (group,)),
    )


class _PathsStamp(Struct, frozen=True):
    """What the file system says about some paths."""

    files: FileTimes
    listed: FileTimes
    """Folders whose list of files decides which files count."""
    ways: FileTimes
    """The folders and links that lead to the files."""


class PinnedFiles:
    """Some paths, and whether they are as they were approved."""

    def __init__(
        self,
        project: str,
        approved: Pins,
        take_pins: Callable[[], Pins],
        *,
        files: Iterable[str],
        folders: Iterable[str] = (),
        listed: Iterable[str] = (),
    ) -> None:
        """``folders`` are pinned too, but what they hold does not count."""
        self._project = project
        self._approved = approved
        self._take_pins = take_pins
        self._files, self._folders = tuple(files), tuple(folders)
        self._listed = tuple(listed)
        self._checked: tuple[_PathsStamp, str | None] | None = None
        self._ways = self._find_ways()

    def check(self) -> tuple[str | None, _PathsStamp]:
        """What changed, if anything, and a stamp for later.

        The stamp is taken before the bytes are read: it misses no later change.
        """
        stamp = self._stamp()
        if self._checked is not None:
            checked, problem = self._checked
            if stamp.files == checked.files and stamp.listed == checked.listed:
                return problem, stamp
        self._ways = self._find_ways()
        now_ns = time.time_ns()
        stamp = self._stamp()
        problem = self._problem()
        changes = (*stamp.files.values(), *stamp.listed.values())
        newest_ns = max((times[-1] for times in changes if times), default=0)
        is_old = now_ns - newest_ns > _COARSEST_CLOCK_NS
        self._checked = (stamp, problem) if is_old else None
        return problem, stamp

    def unchanged_since(self, stamp: _PathsStamp) -> bool:
        """Whether nothing was touched, exchanged or put beside since then."""
        now = self._stamp()
        if stamp.files != now.files or _is_exchanged(stamp.ways, now.ways):
            return False
        return stamp.listed == now.listed or self._problem() is None

    def _stamp(self) -> _PathsStamp:
        return _PathsStamp(
            {path: times_of(path) for path in self._files},
            {path: times_of(path) for path in self._listed},
            {path: times_of(path, os.lstat) for path in self._ways},
        )

    def _find_ways(self) -> list[str]:
        """The links and folders that lead to the paths now."""
        ways, traced = list[str](), set[str]()
        pending, files = [*self._files, *self._folders], set(self._files)
        while pending:
            path = pending.pop()
            is_inside = path.startswith(f"{self._project}/")
            outermost = self._project if is_inside else os.path.dirname(path)  # noqa: PTH120
            while path not in traced:
                traced.add(path)
                folder = os.path.dirname(path)  # noqa: PTH120
                if os.path.islink(path):  # noqa: PTH114
                    ways.append(path)
                    with suppress(OSError):
                        target = os.readlink(path)  # noqa: PTH115
                        target = os.path.join(os.path.realpath(folder), target)  # noqa: PTH118
                        pending.append(os.path.normpath(target))
                elif path not in files and os.path.isdir(path):  # noqa: PTH112
                    ways.append(path)
                if path == outermost:
                    break
                path = folder
        return ways

    def _problem(self) -> str | None:
        pins = self._take_pins()
        changed = differences(self._approved, pins)
        if not changed:
            return None
        path = changed[0]
        name = os.path.relpath(path, self._project)
        if pins.get(path, ABSENT).kind is PinKind.TOO_LARGE:
            return f"{name} is too large to be checked"
        is_new = self._approved.get(path, ABSENT) == ABSENT
        return f"{name} {'was added' if is_new else 'changed'} since it was approved"


def _is_exchanged(before: FileTimes, after: FileTimes) -> bool:
    """Whether a folder or link was exchanged, even if it was put back.

    Files that come and go in a folder set both of its times, and those of nothing else.
    A move sets its ctime and both times of the folder around it; whoever sets an mtime
    sets a ctime. So one that was only worked in has another mtime, and has nothing
    changed around it.
    """
    if before == after:
        return False
    if before.keys() != after.keys():
        return True
    changed = {path for path, times in before.items() if after[path] != times}
    for path in changed:
        old, new = before[path], after[path]
        if old is None or new is None or old[:2] != new[:2] or old[3] == new[3]:
            return True
        if os.path.dirname(path) in changed:  # noqa: PTH120
            return True
    return False


class ProjectApproval:
    """The approved state that one project is in, for all its hooks."""

    def __init__(
        self, path: str, manifest: Manifest, layers: list[SettingsLayer]
    ) -> None:
        self._path, self._layers = path, layers
        self._record_times: object = None
        self._has_several = False
        self._follow(manifest)

    def _follow(self, manifest: Manifest) -> None:
        self.manifest = manifest
        tree, project = manifest.tree, manifest.project
        take_pins = partial(pin_project, self._layers, project, None, tree)
        self.tree = PinnedFiles(project, tree, take_pins, files=tree)

    def renew(self) -> bool:
        """Follow the project into another state that was approved, if it is in one.

        Only one with the same settings: others count from the next session on.
        """
        times, manifest = times_of(self._path), None
        if times == self._record_times and not self._has_several:
            return False
        self._record_times = times
        with suppress(StateFileError):
            record = load_record(self._path)
            if record is not None and record.version == VERSION:
                self._has_several = len(record.states) > 1
                manifest = find_holding(self._path, record, self.manifest.settings)
        if manifest is None or manifest.covers_the_same(self.manifest):
            return False
        self._follow(manifest)
        return True


class HookApproval:
    """Tells whether one hook, and every file it was approved with, is unchanged."""

    def __init__(self, project: ProjectApproval, hook: HookConfig) -> None:
        self._project, self._hook = project, hook
        self._callbacks: list[Callable[[], object]] = []
        self._stamp: tuple[_PathsStamp, ...] = ()
        self._follow()

    def _follow(self) -> None:
        """Take the files that the hook names, now or when it was approved."""
        hook, self._manifest = self._hook, self._project.manifest
        project, approved = self._manifest.project, self._manifest.named_by(hook)
        pins = {**approved, **self._manifest.tree}
        self.digests = {path: pin.digest for path, pin in pins.items() if pin.digest}
        named = NamedPaths(hook, project)
        folders = [path for path in approved if approved[path].kind is PinKind.FOLDER]
        self._files = PinnedFiles(
            project,
            approved,
            partial(pin_named_files, hook, project, None, approved),
            files=sorted({*approved, *named.outside} - {*folders}),
            folders=folders,
            listed=dict.fromkeys((*named.folders, *(folders if named.listed else ()))),
        )

    def check(self) -> tuple[str | None, Stamp]:
        """What changed, as a message or None, and a stamp for ``unchanged_since``."""
        changed, self._stamp = self._check()
        if changed is not None and self._project.renew():
            changed, self._stamp = self._check()
        if changed is not None:
            self._abandon()
        return changed, self._stamp

    def _check(self) -> tuple[str | None, tuple[_PathsStamp, ...]]:
        try:
            if self._manifest is not self._project.manifest:
                # The project was found in another approved state.
                self._follow()
                self._abandon()
            if hook_id(self._hook) not in self._manifest.files:
                # Another version of hookline ignored it, so nobody was shown it.
                return "it was not among the hooks that were approved", ()
            tree_problem, tree = self._project.tree.check()
            problem, files = self._files.check()
        # Whatever keeps files from being checked: they are not known to be the same.
        except Exception as error:  # noqa: BLE001
            return f"its files could not be checked ({error!r})", ()
        return tree_problem or problem, (tree, files)

    def unchanged_since(self, stamp: Stamp) -> bool:
        """Whether no file was touched since the stamp was taken."""
        is_unchanged = False
        # Raises only where it cannot be told: so it is taken as changed.
        with suppress(Exception):
            tree, files = stamp
            is_unchanged = self._project.tree.unchanged_since(tree)
            is_unchanged = is_unchanged and self._files.unchanged_since(files)
        if not is_unchanged:
            self._abandon()
        return is_unchanged

    def when_changed(self, callback: Callable[[], object]) -> None:
        """Call back whenever the files turn out not to be the approved ones."""
        self._callbacks.append(callback)

    def _abandon(self) -> None:
        """What was compiled or loaded meanwhile may come from other files."""
        cache = cache_folder(self._manifest.project)
        if cache is not None and os.path.lexists(cache):
            _remove_folder(cache)
        for callback in self._callbacks:
            callback()

    def environment(self) -> dict[str, str]:
        """Python's caches are kept where only this user can write."""
        state = [tuple(part.files.values()) for part in self._stamp]
        return private_cache(self._manifest.project, state)


class FailedApproval(Struct, frozen=True):
    """The approval of a hook whose files or record cannot be checked: it never runs."""

    problem: str
    digests: dict[str, str] = {}

    def check(self) -> tuple[str, Stamp]:
        """The problem, and no stamp."""
        return self.problem, ()

    def unchanged_since(self, _: Stamp) -> bool:
        """Never."""
        return False

    def when_changed(self, callback: Callable[[], object]) -> None:
        """Nothing runs that could be called back."""

    def environment(self) -> dict[str, str]:
        """Nothing runs."""
        return {}


def _failing(problem: str) -> Callable[[HookConfig], FailedApproval]:
    return lambda _: FailedApproval(problem)


def cache_folder(project: str) -> str | None:
    """Where Python keeps what it compiles for a project; None where that is nowhere."""
    state = state_dir()
    if state is None or state.startswith(f"{project}/"):
        return None
    return f"{state}/pycache/{file_name(project)}"


def private_cache(project: str, state: object) -> dict[str, str]:
    """The variables for a private folder of compiled modules.

    Python believes a ``.pyc`` beside a module, and whoever can write there can forge
    one. The folder is kept between runs, or every cold hook would compile all that it
    imports. Its name follows the ``state`` of the pinned files: what was compiled from
    a file that was swapped for a moment is never looked at again.
    """
    import hashlib

    folders = cache_folder(project)
    if folders is not None:
        folder = f"{folders}/{hashlib.sha256(repr(state).encode()).hexdigest()[:16]}"
        with suppress(StateFileError, OSError):
            if not os.path.lexists(folder):
                make_folder(folder)
                caches = [f"{folders}/{name}" for name in os.listdir(folders)]  # noqa: PTH208
                for cache in sorted(caches, key=os.path.getmtime)[:-_MAX_CACHES]:
                    _remove_folder(cache)
            # Others may have put something into a folder that they can write.
            if all(map(_is_private, (folders, folder))):
                return {_PYCACHE: folder, "PYTHONDONTWRITEBYTECODE": ""}
    return {_PYCACHE: f"{os.devnull}/hookline", "PYTHONDONTWRITEBYTECODE": "1"}


def _is_private(folder: str) -> bool:
    status = os.lstat(folder)
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_own and not status.st_mode & 0o077


def _remove_folder(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
