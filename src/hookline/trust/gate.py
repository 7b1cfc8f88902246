"""Let a project's hooks run only as a person approved them.

A project that is not approved contributes only candidates for approval. An approved
one counts as it was approved: editing or deleting its settings does not remove its
hooks. They fail as ``changed``, and the policy they were approved with decides.

Checking takes a few microseconds while the times, sizes and inodes of the files are the
same. Their bytes are read again only where one of these differs, or is so recent that
a second change within one tick of the file system's clock would not show.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import StateFileError
from hookline.log import logger
from hookline.protocol.events import HookEventName
from hookline.settings.load import Settings
from hookline.settings.locations import PROJECT_FOLDER, is_within, record_path
from hookline.settings.model import (
    FailurePolicy,
    Groups,
    HookConfig,
    HookGroup,
    HooksOptions,
    HookSource,
    HookType,
    SettingsLayer,
    Stamp,
    Untrusted,
)

from .pins import (
    ABSENT,
    PinKind,
    Pins,
    differences,
    newest_ns,
    pin_named_files,
    take_pin,
    take_stamp,
    take_tree,
)
from .records import (
    PlacedHook,
    TrustRecord,
    hook_id,
    load_record,
    placed_hooks,
    settings_texts,
)

_CLOCK_TICK_NS = 2_000_000_000
"""The coarsest clock of a file system in use."""
_MANY = 100
_SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal")


def apply_trust(settings: Settings, cwd: str) -> Settings:
    """Reduce the settings of each project to what is approved."""
    own = [_placed(layer, cwd) for layer in settings.layers if layer.is_project]
    named = (layer.project for layer in own if layer.project is not None)
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
            project, [o for o in own if o.project == project], broken
        )
    ]
    others = (layer for layer in settings.layers if not layer.is_project)
    return replace(settings, layers=(*approved, *others), projects=projects)


def _placed(layer: SettingsLayer, cwd: str) -> SettingsLayer:
    """Settings that a host read itself are of the project that it works in."""
    return layer if layer.project else replace(layer, project=os.path.realpath(cwd))


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
        logger.warning("%s", error)
        return [_with_failed_approval(layer, str(error)) for layer in current]
    if path is None or record is None:
        inside = (file for file in broken if is_within(file, project))
        unknown = [_guards_everything(file, project) for file in inside]
        return [*(_candidates(layer, project) for layer in current), *unknown]
    if settings_texts(current) == record.settings:
        return _as_approved(path, record, current)
    approved = [replace(layer, warnings=()) for layer in record.layers()]
    known = [placed for layer in approved for placed in placed_hooks(layer)]
    new = [_new_hooks(layer, known) for layer in current]
    return [*_as_approved(path, record, approved), *new]


def _candidates(layer: SettingsLayer, project: str) -> SettingsLayer:
    kept = _unapproved(layer)
    count = len(list(kept.hooks()))
    if not count:
        return kept
    what, it = ("1 hook is", "it") if count == 1 else (f"{count} hooks are", "them")
    warning = (
        f"{layer.file or project}: {what} not trusted and will not run: "
        f"run 'hookline trust' in {project} to review and approve {it}"
    )
    return replace(kept, warnings=(*kept.warnings, warning))


def _guards_everything(file: str, project: str) -> SettingsLayer:
    hook = HookConfig(type=HookType.PLUGIN, name=file)
    groups: Groups = {e: (HookGroup(hooks=(hook,)),) for e in HookEventName}
    return SettingsLayer(
        source=HookSource.PROJECT, file=file, project=project, groups=groups
    )


def _unapproved(layer: SettingsLayer) -> SettingsLayer:
    """A layer that can be shown, and that switches and loosens nothing."""
    groups = layer.groups if layer.enable_hooks else {}
    return replace(
        layer, groups=groups, options=HooksOptions(), enable_hooks=True, trust=None
    )


def _with_failed_approval(layer: SettingsLayer, problem: str) -> SettingsLayer:
    """What was approved is unknown: no hook runs, and the default policy applies."""
    default = FailurePolicy()
    groups = layer.map_hooks(lambda _, __, hook: replace(hook, on_error=default))
    approval = FailedApproval(problem)
    return replace(_unapproved(replace(layer, groups=groups)), trust=lambda _: approval)


def _as_approved(
    path: str, record: TrustRecord, layers: list[SettingsLayer]
) -> list[SettingsLayer]:
    """The layers of a record, whose hooks run while nothing has changed."""
    approval = ProjectApproval(path, record, journal_files(layers))
    trusted = [replace(one, trust=partial(HookApproval, approval)) for one in layers]
    if trusted and (changed := approval.tree.check()[0]) is not None:
        warning = (
            f"{record.project}: {changed}: its hooks do not run, and what they guard "
            "is blocked unless their onError allows it: "
            f"run 'hookline trust' in {record.project} to review the change"
        )
        first = trusted[0]
        trusted[0] = replace(first, warnings=(*first.warnings, warning))
    return trusted


def _new_hooks(layer: SettingsLayer, known: list[PlacedHook]) -> SettingsLayer:
    """The hooks of a changed layer that are not among the approved ones."""
    groups = layer.map_hooks(
        lambda event, group, hook: (
            None if (event, group.matcher, hook) in known else hook
        )
    )
    return _unapproved(replace(layer, groups=groups))


def journal_files(layers: Iterable[SettingsLayer]) -> frozenset[str]:
    """The project's own journals, which grow with every event and run nothing."""
    found = set()
    for layer in layers:
        journal = layer.options.journal
        if isinstance(journal, str) and journal.strip():
            path = os.path.normpath(f"{layer.project}/{journal}")
            found |= {f"{path}{suffix}" for suffix in _SQLITE_SUFFIXES}
    return frozenset(found)


class PinnedPaths:
    """Some paths as they were approved."""

    def __init__(
        self,
        approved: Pins,
        take: Callable[[], Pins],
        project: str,
        *,
        watch_folders: bool = True,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._approved = approved
        self._take = take
        self._project = project
        self._paths = tuple(approved)
        files = (path for path in approved if approved[path].kind is not PinKind.FOLDER)
        self._watched = self._paths if watch_folders else tuple(files)
        self._clock_ns = clock_ns
        self._verified: Stamp | None = None

    def check(self) -> tuple[str | None, Stamp]:
        """What changed, if anything, and a stamp for later.

        The stamp is taken before the bytes are read: it misses no later change.
        """
        stamp = take_stamp(self._paths)
        watched = stamp if self._watched is self._paths else self.stamp()
        if stamp == self._verified:
            return None, watched
        self._verified = None
        now_ns = self._clock_ns()
        found = self._take()
        if changed := differences(self._approved, found):
            return self._message(changed[0], found), watched
        if now_ns - newest_ns(stamp) > _CLOCK_TICK_NS:
            self._verified = stamp
        return None, watched

    def stamp(self) -> Stamp:
        """Times, sizes and inodes now."""
        return take_stamp(self._watched)

    def _message(self, path: str, found: Pins) -> str:
        shown = os.path.relpath(path, self._project)
        old = self._approved
        added = sum(old.get(one, ABSENT) == ABSENT != pin for one, pin in found.items())
        if added >= _MANY:
            return f"{shown} and many more were added since it was approved"
        return f"{shown} changed since it was approved"


class ProjectApproval:
    """The approved state of one project: its ``.hookline``, and what hooks name."""

    def __init__(
        self, path: str, record: TrustRecord, skipped: Collection[str] = ()
    ) -> None:
        self._path = path
        self._record_stamp = take_stamp((path,))
        self._skipped = skipped
        self.record, self.tree = record, self._pinned_tree(record)

    def pinned_files(self, hook: HookConfig) -> PinnedPaths:
        """The files that one hook names, now or when it was approved."""
        approved = self.record.files.get(hook_id(hook), {})
        project = self.record.project

        def take() -> Pins:
            again = {path: take_pin(path) for path in approved}
            return again | pin_named_files(hook, project, known=approved)

        named = {path: approved.get(path, ABSENT) for path in take()}
        return PinnedPaths(named, take, project)

    def renewed(self) -> bool:
        """Reload the record; whether the same settings were approved again."""
        stamp = take_stamp((self._path,))
        if stamp == self._record_stamp:
            return False
        self._record_stamp = stamp
        with suppress(StateFileError):
            record = load_record(self._path)
            if record is not None and record.settings == self.record.settings:
                self.record, self.tree = record, self._pinned_tree(record)
                return True
        return False

    def _pinned_tree(self, record: TrustRecord) -> PinnedPaths:
        folder = f"{record.project}/{PROJECT_FOLDER}"
        take = partial(take_tree, folder, self._skipped, known=record.tree)
        # The files beside a journal in there come and go.
        watch = not self._skipped
        return PinnedPaths(record.tree, take, record.project, watch_folders=watch)


class HookApproval:
    """Tells whether one hook, and every file it was approved with, is unchanged."""

    def __init__(self, project: ProjectApproval, hook: HookConfig) -> None:
        self._project = project
        self._hook = hook
        self._files = project.pinned_files(hook)

    def check(self) -> tuple[str | None, Stamp]:
        """What changed, as a message or None, and a stamp for ``unchanged_since``."""
        changed, stamp = self._check()
        if changed is not None and self._project.renewed():
            self._files = self._project.pinned_files(self._hook)
            return self._check()
        return changed, stamp

    def unchanged_since(self, stamp: Stamp) -> bool:
        """Whether no file was touched since the stamp was taken."""
        return self._project.tree.stamp() + self._files.stamp() == stamp

    def digest_of(self, path: str) -> str | None:
        """The approved digest of a file, if it is one of the hook's."""
        record = self._project.record
        named = record.files.get(hook_id(self._hook), {})
        pin = record.tree.get(path) or named.get(path)
        return pin.digest if pin is not None and pin.kind is PinKind.FILE else None

    def _check(self) -> tuple[str | None, Stamp]:
        tree, tree_stamp = self._project.tree.check()
        files, files_stamp = self._files.check()
        return tree or files, tree_stamp + files_stamp


class FailedApproval(Struct, frozen=True):
    """The approval of a hook whose files or record cannot be checked."""

    problem: str

    def check(self) -> tuple[str, Stamp]:
        """The problem, and no stamp."""
        return self.problem, ()

    def unchanged_since(self, _: Stamp) -> bool:
        """Never."""
        return False

    def digest_of(self, path: str) -> None:
        """No file is approved."""
