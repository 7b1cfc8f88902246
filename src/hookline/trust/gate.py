"""Let a project's hooks run only as a person approved them.

A project that is not approved contributes only candidates for approval. An approved
one counts as it was approved: editing or deleting its settings does not remove its
hooks. They fail as ``changed``, and the policy they were approved with decides.

Checking takes a few microseconds while the file system says that nothing changed, see
``stamps``. The bytes of files are read again only where it says otherwise, or where a
change is so recent that a second one might not show.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from hookline._internal.log import logger
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

from .caches import forget_caches, private_cache
from .pins import ABSENT, NamedPaths, PinKind, Pins, differences, pin_project
from .records import (
    VERSION,
    Manifest,
    find_holding,
    hook_id,
    load_record,
    placed_hooks,
    settings_texts,
)
from .stamps import PathsStamp, StampedPaths, file_stamp

_COARSEST_CLOCK_NS = 2_000_000_000
"""Of the file systems in use: a younger file may have changed twice unseen."""
_MANY = 100


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
    broken = [error.file or "" for error in settings.errors] if closes else []
    approved = [
        layer
        for project in projects
        for layer in _approved_layers(
            project, [layer for layer in current if layer.project == project], broken
        )
    ]
    others = (layer for layer in settings.layers if not layer.is_project)
    return replace(settings, layers=(*approved, *others), projects=projects)


def trusts_all() -> bool:
    """Whether every project is approved: for sealed environments such as CI."""
    value = os.environ.get("HOOKLINE_TRUST", "")
    if value not in {"", "all"}:
        logger.warning("HOOKLINE_TRUST=%r is ignored: the only value is 'all'", value)
    return value == "all"


def _approved_layers(
    project: str, current: list[SettingsLayer], broken: list[str]
) -> list[SettingsLayer]:
    if trusts_all():
        return [replace(layer, trust=lambda _: None) for layer in current]
    path = record_path(project)
    try:
        record = None if path is None else load_record(path)
    except StateFileError as error:
        if isinstance(error.__cause__, OSError):
            hint = "nobody knows what was approved: make it readable"
            raise SettingsError(f"{error}: {hint}") from error
        logger.warning("%s", error)
        return _closed(current, str(error))
    if path is None or record is None:
        unreadable = (file for file in broken if is_within(file, project))
        return [
            *(_candidates(layer, project) for layer in current),
            *(_guards_everything(file, project) for file in unreadable),
        ]
    if problem := record_problem(project):
        # A new repository around the project must not take its guards away.
        logger.warning("%s: %s", project, problem)
        return _closed([*record.layers(), *current], problem)
    if record.version != VERSION:
        by = "an older" if record.version < VERSION else "a newer"
        problem = f"{project} was approved with {by} version of hookline"
        hint = f"run 'hookline trust' in {project} to approve it again"
        failed = FailedApproval(problem)
        return [
            replace(layer, trust=lambda _: failed, warnings=(f"{problem}: {hint}",))
            for layer in record.layers() or current
        ]
    # Edited since: only the approved state counts that the project was last in.
    manifest = (record.earlier and find_holding(path, record)) or record
    if settings_texts(current) == manifest.settings:
        return _as_approved(path, manifest, current)
    layers = [replace(layer, warnings=()) for layer in manifest.layers()]
    approved = _as_approved(path, manifest, layers)
    known = [placed for layer in layers for placed in placed_hooks(layer)]
    return [*approved, *(_new_hooks(layer, known) for layer in current)]


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


def _guards_everything(file: str, project: str) -> SettingsLayer:
    group = HookGroup(hooks=(HookConfig(type=HookType.PLUGIN, name=file),))
    return SettingsLayer(
        source=HookSource.PROJECT,
        file=file,
        project=project,
        groups=dict.fromkeys(HookEventName, (group,)),
    )


def _unapproved(layer: SettingsLayer) -> SettingsLayer:
    """A layer that can be shown, and that switches and loosens nothing."""
    groups = layer.groups if layer.enable_hooks else {}
    return replace(
        layer, groups=groups, options=HooksOptions(), enable_hooks=True, trust=None
    )


def _new_hooks(
    layer: SettingsLayer, known: list[tuple[HookEventName, str | None, HookConfig]]
) -> SettingsLayer:
    """The hooks of a changed layer that are not among the approved ones."""
    groups = layer.map_hooks(
        lambda event, group, hook: (
            None if (event, group.matcher, hook) in known else hook
        )
    )
    return _unapproved(replace(layer, groups=groups))


def _closed(layers: list[SettingsLayer], problem: str) -> list[SettingsLayer]:
    """What was approved is unknown: no hook runs, and the default policy applies."""
    failed, default = FailedApproval(problem), FailurePolicy()

    def close(layer: SettingsLayer) -> SettingsLayer:
        groups = layer.map_hooks(lambda _, __, hook: replace(hook, on_error=default))
        return replace(
            _unapproved(replace(layer, groups=groups)), trust=lambda _: failed
        )

    return [close(layer) for layer in layers]


def _as_approved(
    path: str, manifest: Manifest, layers: list[SettingsLayer]
) -> list[SettingsLayer]:
    """The layers of an approval, whose hooks run while nothing has changed."""
    project = ProjectApproval(path, manifest, layers)
    trusted = [replace(layer, trust=partial(HookApproval, project)) for layer in layers]
    if trusted and (changed := project.tree.check()[0]) is not None:
        warning = (
            f"{manifest.project}: {changed}: its hooks do not run, and what they guard "
            "is blocked unless their onError allows it: "
            f"run 'hookline trust' in {manifest.project} to review the change"
        )
        first = trusted[0]
        trusted[0] = replace(first, warnings=(*first.warnings, warning))
    return trusted


class PinnedFiles:
    """Some paths, and whether they are as they were approved."""

    def __init__(
        self,
        approved: Pins,
        take: Callable[[], Pins],
        project: str,
        paths: StampedPaths,
    ) -> None:
        self._approved = approved
        self._take = take
        self._project = project
        self._paths = paths
        self._checked: tuple[PathsStamp, str | None] | None = None

    def check(self) -> tuple[str | None, PathsStamp | None]:
        """What changed, if anything, and a stamp for later.

        The stamp is taken before the bytes are read: it misses no later change.
        """
        stamp = self._paths.take_settled()
        if stamp is not None and self._checked is not None:
            before, problem = self._checked
            if stamp.same_files(before) and stamp.listed == before.listed:
                return problem, stamp
        self._checked = None
        self._paths.trace()  # other links and folders may lead there now
        now_ns = time.time_ns()
        stamp = self._paths.take_settled()
        if stamp is None:
            return "its files do not stop changing since it was approved", None
        problem = self._problem(self._take())
        if now_ns - stamp.newest_ns() > _COARSEST_CLOCK_NS:
            self._checked = stamp, problem
        return problem, stamp

    def unchanged_since(self, stamp: PathsStamp) -> bool:
        """Whether nothing was touched, exchanged or put beside since then."""
        now = self._paths.take()
        if not (stamp.same_files(now) and stamp.same_places(now)):
            return False
        return stamp.listed == now.listed or self._problem(self._take()) is None

    def _problem(self, pins: Pins) -> str | None:
        approved = self._approved
        changed = differences(approved, pins)
        if not changed:
            return None
        name = os.path.relpath(changed[0], self._project)
        if pins.get(changed[0], ABSENT).kind is PinKind.TOO_LARGE:
            return f"{name} is too large to be checked"
        added = [path for path in changed if approved.get(path, ABSENT) == ABSENT]
        if len(added) >= _MANY:
            return f"{name} and many more were added since it was approved"
        happened = "was added" if changed[0] in added else "changed"
        return f"{name} {happened} since it was approved"


class ProjectApproval:
    """The approved state that one project is in, for all its hooks."""

    def __init__(
        self, path: str, manifest: Manifest, layers: list[SettingsLayer]
    ) -> None:
        self._path, self._layers = path, layers
        self._record_stamp: object = None
        self._has_earlier = False
        self._follow(manifest)

    def _follow(self, manifest: Manifest) -> None:
        self.manifest = manifest
        tree, project = manifest.tree, manifest.project
        take = partial(pin_project, self._layers, project, approved=tree)
        self.tree = PinnedFiles(tree, take, project, StampedPaths(tree, project))

    def pinned_files(self, hook: HookConfig) -> PinnedFiles:
        """The files that one hook names, now or when it was approved."""
        manifest, project = self.manifest, self.manifest.project
        named = NamedPaths(hook, project)
        approved = manifest.files.get(hook_id(hook), {})
        folders = [path for path in approved if approved[path].kind is PinKind.FOLDER]
        listed = dict.fromkeys((*named.folders, *(folders if named.listed else ())))
        files = dict.fromkeys((*approved, *named.outside)).keys() - set(folders)
        paths = StampedPaths(sorted(files), project, folders=folders, listed=listed)
        return PinnedFiles(
            approved, lambda: manifest.named_pins(hook)[1], project, paths
        )

    def renewed(self) -> bool:
        """Whether the project is in another state that was approved.

        Only one with the same settings: others count from the next session on.
        """
        stamp, manifest = file_stamp(self._path), None
        if stamp == self._record_stamp and not self._has_earlier:
            return False
        self._record_stamp = stamp
        with suppress(StateFileError):
            record = load_record(self._path)
            if record is not None and record.version == VERSION:
                self._has_earlier = bool(record.earlier)
                manifest = find_holding(self._path, record, self.manifest.settings)
        if manifest is None or manifest.covers_the_same(self.manifest):
            return False
        self._follow(manifest)
        return True


class HookApproval:
    """Tells whether one hook, and every file it was approved with, is unchanged."""

    def __init__(self, project: ProjectApproval, hook: HookConfig) -> None:
        self._project = project
        self._hook = hook
        self._manifest = project.manifest
        self._files = project.pinned_files(hook)
        self._callbacks: list[Callable[[], object]] = []
        self._stamp: Stamp = ()

    def check(self) -> tuple[str | None, Stamp]:
        """What changed, as a message or None, and a stamp for ``unchanged_since``."""
        changed, stamp = self._check()
        if changed is not None and self._project.renewed():
            changed, stamp = self._check()
        if changed is not None:
            self._did_not_hold()
        self._stamp = stamp
        return changed, stamp

    def unchanged_since(self, stamp: Stamp) -> bool:
        """Whether no file was touched since the stamp was taken."""
        holds = False
        if stamp:
            # Raises only where it cannot be told: so nothing holds.
            with suppress(Exception):
                tree, files = stamp
                holds = self._project.tree.unchanged_since(tree)
                holds = holds and self._files.unchanged_since(files)
        if not holds:
            self._did_not_hold()
        return holds

    def when_changed(self, callback: Callable[[], object]) -> None:
        """Call back whenever the files turn out not to be the approved ones."""
        self._callbacks.append(callback)

    def environment(self) -> dict[str, str]:
        """Python's caches are kept where only this user can write."""
        return private_cache(self._project.manifest.project, self._stamp)

    def digest_of(self, path: str) -> str | None:
        """The approved digest of a file, if it is one of the hook's."""
        pins = (pins.get(path) for pins in self._pins())
        return next((pin.digest for pin in pins if pin and pin.digest), None)

    def has_files_in(self, folder: str) -> bool:
        """Whether any approved file of the hook is somewhere in a folder."""
        inside = f"{folder}/"
        return any(
            path.startswith(inside) and pin.kind is PinKind.FILE
            for pins in self._pins()
            for path, pin in pins.items()
        )

    def _pins(self) -> tuple[Pins, Pins]:
        manifest = self._project.manifest
        return manifest.tree, manifest.files.get(hook_id(self._hook), {})

    def _check(self) -> tuple[str | None, Stamp]:
        if hook_id(self._hook) not in self._project.manifest.files:
            # Another version of hookline ignored it, so nobody was shown it.
            return "it was not among the hooks that were approved", ()
        try:
            if self._manifest is not self._project.manifest:
                # Another hook's check found the project in another approved state.
                self._manifest = self._project.manifest
                self._files = self._project.pinned_files(self._hook)
                self._did_not_hold()  # what is loaded is of the state before
            tree, tree_stamp = self._project.tree.check()
            files, files_stamp = self._files.check()
        # Whatever keeps files from being checked: they are not known to be the same.
        except Exception as error:  # noqa: BLE001
            return f"its files could not be checked ({error!r})", ()
        return tree or files, (tree_stamp, files_stamp)

    def _did_not_hold(self) -> None:
        # What was compiled or loaded meanwhile may come from other files.
        forget_caches(self._project.manifest.project)
        for callback in self._callbacks:
            callback()


class FailedApproval(Struct, frozen=True):
    """The approval of a hook whose files or record cannot be checked."""

    problem: str

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

    def digest_of(self, path: str) -> None:
        """No file is approved."""

    def has_files_in(self, folder: str) -> bool:
        """None is."""
        return False
