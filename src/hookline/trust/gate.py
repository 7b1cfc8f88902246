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
from collections.abc import Callable, Iterator
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
    Approval,
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
from hookline.settings.places import (
    folders_above,
    is_within,
    record_path,
    record_problem,
)

from .pins import (
    ABSENT,
    YOUNG_NS,
    NamedPaths,
    PinKind,
    Times,
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

_MAX_CACHES = 16


def apply_trust(settings: Settings, cwd: str) -> Settings:
    """Reduce the settings of each project to what is approved."""
    # Settings that a host read itself are of the project that it works in.
    current = [
        layer if layer.project else replace(layer, project=os.path.realpath(cwd))
        for layer in settings.layers
        if layer.is_project
    ]
    of_layers = (layer.project for layer in current if layer.project is not None)
    projects = tuple(dict.fromkeys((*settings.projects, *of_layers)))
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
    if record is not None and record.version != VERSION:
        age = "an older" if record.version < VERSION else "a newer"
        problem = f"{project} was approved with {age} version of hookline"
    elif record is not None:
        # A new repository around the project must not take its guards away.
        problem = record_problem(project) or ""
    if problem:
        # What was approved is unknown: no hook runs, and the default policy applies.
        approved = record.states[0].layers() if record and record.states else []
        contents = [layer.raw for layer in approved]
        edited = [layer for layer in current if layer.raw not in contents]
        for layer in (*approved, *edited):
            groups = layer.map_hooks(
                lambda _, __, hook: replace(hook, on_error=FailurePolicy())
            )
            warning = f"{project}: its hooks do not run: {problem}"
            yield replace(
                _without_options(replace(layer, groups=groups)),
                trust=lambda _: Approval(problem),
                warnings=(warning,),
            )
    elif path is not None and record is not None:
        # Edited since: only the approved state counts that it was last in.
        several = len(record.states) > 1
        manifest = (several and find_holding(path, record)) or record.states[0]
        yield from _layers_of_state(path, manifest, current)
    else:
        yield from (_candidates(layer, project) for layer in current)
        for file in unreadable:
            group = HookGroup(hooks=(HookConfig(type=HookType.PLUGIN, name=file),))
            yield SettingsLayer(
                source=HookSource.PROJECT,
                file=file,
                project=project,
                groups=dict.fromkeys(HookEventName, (group,)),
            )


def _layers_of_state(
    path: str, manifest: Manifest, current: list[SettingsLayer]
) -> Iterator[SettingsLayer]:
    """An approved state, whose hooks run while nothing has changed, and new hooks."""
    project, edited = manifest.project, current
    layers = [replace(layer, warnings=()) for layer in manifest.layers()]
    if settings_texts(current) == manifest.settings:
        layers, edited = current, []
    approval = ProjectApproval(path, manifest, layers)
    if layers and (problem := approval.change()) is not None:
        warning = (
            f"{project}: {problem}: its hooks do not run, and what they guard "
            "is blocked unless their onError allows it: "
            f"run 'hookline trust' in {project} to review the change"
        )
        layers[0] = replace(layers[0], warnings=(*layers[0].warnings, warning))
    for layer in layers:
        yield replace(layer, trust=partial(HookApproval, approval))
    approved_hooks = manifest.placed_hooks() if edited else []
    for layer in edited:
        groups = layer.map_hooks(
            lambda event, group, hook: (
                None if (event, group.matcher, hook) in approved_hooks else hook
            )
        )
        yield _without_options(replace(layer, groups=groups))


def _candidates(layer: SettingsLayer, project: str) -> SettingsLayer:
    candidates = _without_options(layer)
    count = len(list(candidates.hooks()))
    if not count:
        return candidates
    hooks, them = ("1 hook is", "it") if count == 1 else (f"{count} hooks are", "them")
    warning = (
        f"{layer.file or project}: {hooks} not trusted and will not run: "
        f"run 'hookline trust' in {project} to review and approve {them}"
    )
    return replace(candidates, warnings=(*candidates.warnings, warning))


def _without_options(layer: SettingsLayer) -> SettingsLayer:
    """A layer whose hooks can be shown, and that switches and loosens nothing."""
    groups = layer.groups if layer.enable_hooks else {}
    return replace(
        layer, groups=groups, options=HooksOptions(), enable_hooks=True, trust=None
    )


class _FileTimes(Struct, frozen=True):
    """What the file system says about some paths."""

    exact: tuple[Times | None, ...]
    """Of the pinned paths, and of the links that lead to them."""
    listed: tuple[Times | None, ...]
    """Of folders in which files come and go: they decide which files count."""
    folders: dict[str, Times | None]
    """That lead to the others, and are changed by work in them."""


def _are_exchanged(
    before: dict[str, Times | None], after: dict[str, Times | None]
) -> bool:
    """Whether one of some folders was exchanged, even if it was put back.

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
        self._record_path, self._layers = path, layers
        self.manifest = manifest

    def change(self, hook: HookConfig | None = None) -> str | None:
        """What is not as it was approved in ``.hookline``, or of a hook's files."""
        manifest, project = self.manifest, self.manifest.project
        approved = dict(manifest.tree)
        pins = pin_project(self._layers, project)
        if hook is not None:
            hook_pins = manifest.named_by(hook)
            pins = pin_named_files(hook, project, None, hook_pins) | pins
            approved = {**hook_pins, **approved}
        changed = differences(approved, pins)
        if not changed:
            return None
        path = changed[0]
        name = os.path.relpath(path, project)
        if pins.get(path, ABSENT).kind is PinKind.TOO_LARGE:
            return f"{name} is too large to be checked"
        is_new = approved.get(path, ABSENT) == ABSENT
        return f"{name} {'was added' if is_new else 'changed'} since it was approved"

    def renew(self) -> bool:
        """Follow the project into another state that was approved, if it is in one.

        Only one with the same settings: others count from the next session on.
        """
        manifest = None
        with suppress(StateFileError):
            record = load_record(self._record_path)
            if record is not None and record.version == VERSION:
                settings = self.manifest.settings
                manifest = find_holding(self._record_path, record, settings)
        if manifest is None or manifest.covers_the_same(self.manifest):
            return False
        self.manifest = manifest
        return True


class HookApproval(Approval):
    """Tells whether one hook, and every file it was approved with, is unchanged."""

    def __init__(self, project: ProjectApproval, hook: HookConfig) -> None:
        self._project, self._hook = project, hook
        self._callbacks: list[Callable[[], object]] = []
        self._follow()

    def _follow(self) -> None:
        """Take the files that the hook names, now or when it was approved."""
        manifest = self._manifest = self._project.manifest
        approved = manifest.named_by(self._hook)
        pins = {**approved, **manifest.tree}
        self.digests = {path: pin.digest for path, pin in pins.items() if pin.digest}
        paths = NamedPaths(self._hook, manifest.project)
        # Files come and go in these, and they decide which files count.
        folders = {path for path, pin in approved.items() if pin.kind is PinKind.FOLDER}
        self._listed = sorted(folders.union(paths.folders))
        self._exact = dict.fromkeys(sorted({*pins, *paths.outside} - folders))
        self._ways: tuple[list[str], list[str]] = ([], [])
        self._times = _FileTimes((), (), {})
        self._checked: tuple[_FileTimes, str | None] | None = None

    def _find_ways(self) -> None:
        """Find the links and folders that lead to the paths now."""
        links, folders, traced = list[str](), list[str](), set[str]()
        pending, project = [*self._exact, *self._listed], self._manifest.project
        while pending:
            path = pending.pop()
            is_inside = is_within(path, project)
            outermost = project if is_inside else os.path.dirname(path)  # noqa: PTH120
            for place in folders_above(path):
                if place in traced:
                    break
                traced.add(place)
                if os.path.islink(place):  # noqa: PTH114
                    links.append(place)
                    folder = os.path.realpath(os.path.dirname(place))  # noqa: PTH120
                    with suppress(OSError):
                        target = os.path.join(folder, os.readlink(place))  # noqa: PTH115, PTH118
                        pending.append(os.path.normpath(target))
                elif place not in self._exact and os.path.isdir(place):  # noqa: PTH112
                    folders.append(place)
                if place == outermost:
                    break
        self._ways = links, folders  # at once: other threads may look meanwhile

    def _look(self) -> _FileTimes:
        links, folders = self._ways
        exact = [times_of(path) for path in self._exact]
        exact += [times_of(link, os.lstat) for link in links]
        return _FileTimes(
            tuple(exact),
            tuple(times_of(path) for path in self._listed),
            {path: times_of(path) for path in folders},
        )

    def check(self) -> tuple[str | None, Stamp]:
        """What changed, as a message or None, and a stamp for ``unchanged_since``."""
        problem, times = self._compare()
        if problem is not None and self._project.renew():
            problem, times = self._compare()
        if problem is not None:
            self._call_back()
        self._times = times
        return problem, times

    def _compare(self) -> tuple[str | None, _FileTimes]:
        times = self._times
        try:
            if self._manifest is not self._project.manifest:
                # The project was found in another approved state.
                self._follow()
                self._call_back()
            if hook_id(self._hook) not in self._manifest.files:
                # Another version of hookline ignored it, so nobody was shown it.
                return "it was not among the hooks that were approved", times
            times = self._look()
            if self._checked is not None:
                checked, problem = self._checked
                if (times.exact, times.listed) == (checked.exact, checked.listed):
                    return problem, times
            self._find_ways()
            # Looked at before the bytes are read: no later change is missed.
            now_ns, times = time.time_ns(), self._look()
            problem = self._project.change(self._hook)
            changes = (each[-1] for each in (*times.exact, *times.listed) if each)
            is_old = now_ns - max(changes, default=0) > YOUNG_NS
            # What was exchanged meanwhile is not what was read.
            is_settled = is_old and times == self._look()
            self._checked = (times, problem) if is_settled else None
        # Whatever keeps files from being checked: they are not known to be the same.
        except Exception as error:  # noqa: BLE001
            return f"its files could not be checked ({error!r})", times
        return problem, times

    def unchanged_since(self, stamp: Stamp) -> bool:
        """Whether nothing was touched, exchanged or put beside since then."""
        is_same = False
        # Raises only where it cannot be told: so it is taken as changed.
        with suppress(Exception):
            if isinstance(stamp, _FileTimes):
                times = self._look()
                is_same = times.exact == stamp.exact
                is_same = is_same and not _are_exchanged(stamp.folders, times.folders)
                if is_same and times.listed != stamp.listed:
                    is_same = self._project.change(self._hook) is None
        if not is_same:
            self._call_back()
        return is_same

    def when_changed(self, callback: Callable[[], object]) -> None:
        """Call back whenever the files turn out not to be the approved ones."""
        self._callbacks.append(callback)

    def _call_back(self) -> None:
        # What was compiled or loaded meanwhile may come from other files, also where
        # a folder was exchanged and put back: that leaves no trace in its files.
        if (caches := cache_folder(self._manifest.project)) is not None:
            import shutil

            shutil.rmtree(caches, ignore_errors=True)
        for callback in self._callbacks:
            callback()

    def environment(self) -> dict[str, str]:
        """Python's caches are kept where only this user can write."""
        return private_cache(self._manifest.project, self._times.exact)


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
                import shutil

                make_folder(folder)
                caches = [f"{folders}/{name}" for name in os.listdir(folders)]  # noqa: PTH208
                for cache in sorted(caches, key=os.path.getmtime)[:-_MAX_CACHES]:
                    shutil.rmtree(cache, ignore_errors=True)
            # Others may have put something into a folder that they can write.
            status = os.lstat(folder)
            is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if is_own and not status.st_mode & 0o077:
                return {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
    nowhere = f"{os.devnull}/hookline"
    return {"PYTHONPYCACHEPREFIX": nowhere, "PYTHONDONTWRITEBYTECODE": "1"}
