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
from collections.abc import Callable, Iterable
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
from hookline.settings.places import is_within, record_path, record_problem

from .caches import forget_caches, private_cache
from .pins import (
    ABSENT,
    PinKind,
    Pins,
    differences,
    named_paths,
    pin_named_files,
    pin_project,
    take_pin,
)
from .records import (
    VERSION,
    PlacedHook,
    TrustRecord,
    hook_id,
    load_record,
    placed_hooks,
    put_first,
    settings_texts,
)
from .stamps import StampedPaths, file_stamp

_CLOCK_TICK_NS = 2_000_000_000
"""The coarsest clock of a file system in use."""
_MANY = 100


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
        if isinstance(error.__cause__, OSError):
            hint = "nobody knows what was approved: make it readable"
            raise SettingsError(f"{error}: {hint}") from error
        logger.warning("%s", error)
        return [_with_failed_approval(layer, str(error)) for layer in current]
    if path is None or record is None:
        inside = (file for file in broken if is_within(file, project))
        unknown = [_guards_everything(file, project) for file in inside]
        return [*(_candidates(layer, project) for layer in current), *unknown]
    if problem := record_problem(project):
        # A new repository around the project must not take its guards away.
        logger.warning("%s: %s", project, problem)
        layers = (*record.layers(), *current)
        return [_with_failed_approval(layer, problem) for layer in layers]
    if record.version != VERSION:
        return _approved_by_another_version(record)
    state = _holding_state(path, record) if record.earlier else None
    # Edited since: only the approved state counts that the project was last in.
    state = state or record
    if settings_texts(current) == state.settings:
        return _as_approved(path, state, current)
    quiet = [replace(layer, warnings=()) for layer in state.layers()]
    approved = _as_approved(path, state, quiet)
    known = [placed for layer in approved for placed in placed_hooks(layer)]
    return [*approved, *(_new_hooks(layer, known) for layer in current)]


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


def _approved_by_another_version(record: TrustRecord) -> list[SettingsLayer]:
    """The approved hooks, which fail by their policy until they are approved again."""
    by = "an older" if record.version < VERSION else "a newer"
    problem = f"{record.project} was approved with {by} version of hookline"
    warning = f"{problem}: run 'hookline trust' in {record.project} to approve it again"
    approval = FailedApproval(problem)
    return [
        replace(layer, trust=lambda _: approval, warnings=(warning,))
        for layer in record.layers()
    ]


def _without(layer: SettingsLayer, known: list[PlacedHook]) -> SettingsLayer:
    groups = layer.map_hooks(
        lambda event, group, hook: (
            None if (event, group.matcher, hook) in known else hook
        )
    )
    return replace(layer, groups=groups)


def _holding_state(
    path: str, record: TrustRecord, settings: dict[str, str] | None = None
) -> TrustRecord | None:
    """The first approved state, with these settings, that holds as a whole.

    A mix of two was never approved.
    """
    for state in record.sets():
        if settings not in (None, state.settings):
            continue
        tree = pin_project(state.layers(), state.project, known=state.tree)
        if not differences(state.tree, tree) and all(
            not differences(*_named_pins(state, hook))
            for _, _, hook in state.placed_hooks()
        ):
            if not state.covers_the_same(record):
                put_first(path, state)
            return state
    return None


def _named_pins(record: TrustRecord, hook: HookConfig) -> tuple[Pins, Pins]:
    """The files that one hook names or named: as approved, and now."""
    approved = record.files.get(hook_id(hook), {})
    found = {path: take_pin(path) for path in approved}
    return approved, found | pin_named_files(hook, record.project, known=approved)


def _as_approved(
    path: str, record: TrustRecord, layers: list[SettingsLayer]
) -> list[SettingsLayer]:
    """The layers of a record, whose hooks run while nothing has changed."""
    approval = ProjectApproval(path, record, layers)
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
    return _unapproved(_without(layer, known))


class PinnedPaths:
    """Some paths as they were approved."""

    def __init__(
        self,
        approved: Pins,
        take: Callable[[], Pins],
        project: str,
        *,
        listed: Iterable[str] | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """``listed``: folders whose content decides; None for every approved folder."""
        self._approved = approved
        self._take = take
        self._project = project
        folders = [one for one in approved if approved[one].kind is PinKind.FOLDER]
        if listed is None:
            self._stamps = StampedPaths(approved, project)
        else:
            files = (path for path in approved if path not in folders)
            self._stamps = StampedPaths(files, project, folders=folders, listed=listed)
        self._clock_ns = clock_ns
        self._verified: Stamp | None = None
        self._refused: tuple[Stamp, str] | None = None

    def check(self) -> tuple[str | None, Stamp]:
        """What changed, if anything, and a stamp for later.

        The stamp is taken before the bytes are read: it misses no later change.
        """
        if self._verified is not None:
            now = self._stamps.take()
            if now == self._verified or self._is_verified(now):
                return None, now
        # All hooks of a project ask this of the same files.
        if self._refused is not None and self._refused[0] == self._stamps.take():
            return self._refused[1], self._refused[0]
        self._verified = self._refused = None
        self._stamps.follow()
        stamp, now_ns = self._stamps.take_settled(), self._clock_ns()
        if stamp is None:
            return "its files do not stop changing since it was approved", ()
        found = self._take()
        changed = differences(self._approved, found)
        message = self._message(changed[0], found) if changed else None
        if now_ns - self._stamps.newest_ns(stamp) > _CLOCK_TICK_NS:
            if message is None:
                self._verified = stamp
            else:
                self._refused = stamp, message
        return message, stamp

    def unchanged_since(self, stamp: Stamp) -> bool:
        """Whether nothing was touched, exchanged or put beside since then."""
        now = self._stamps.take()
        if not stamp or not self._stamps.same(stamp, now):
            return False
        same_lists = self._stamps.same_lists(stamp, now)
        return same_lists or not differences(self._approved, self._take())

    def _is_verified(self, stamp: Stamp) -> bool:
        """Whether only folders around the files are busy, and were not moved."""
        known, stamps = self._verified, self._stamps
        if known is None or not stamps.same(known, stamp):
            return False
        return stamps.same_lists(known, stamp) and stamps.is_settled(stamp)

    def _message(self, path: str, found: Pins) -> str:
        shown = os.path.relpath(path, self._project)
        old = self._approved
        if found.get(path, ABSENT).kind is PinKind.TOO_LARGE:
            return f"{shown} is too large to be checked"
        added = sum(old.get(one, ABSENT) == ABSENT != pin for one, pin in found.items())
        if added >= _MANY:
            return f"{shown} and many more were added since it was approved"
        if old.get(path, ABSENT) == ABSENT:
            return f"{shown} was added since it was approved"
        return f"{shown} changed since it was approved"


class ProjectApproval:
    """The approved state of one project: its ``.hookline``, and what hooks name."""

    def __init__(
        self, path: str, record: TrustRecord, layers: list[SettingsLayer]
    ) -> None:
        self._path = path
        self._record_stamp: object = None  # of what is known of other states
        self._layers = layers
        self._known = record
        self.record, self.tree = record, self._pinned_tree(record)

    def pinned_files(self, hook: HookConfig) -> PinnedPaths:
        """The files that one hook names, now or when it was approved."""
        record = self.record
        _, found = _named_pins(record, hook)
        approved = record.files.get(hook_id(hook), {})
        named = {path: approved.get(path, ABSENT) for path in found}
        return PinnedPaths(
            named,
            lambda: _named_pins(record, hook)[1],
            record.project,
            listed=_listed_folders(hook, record.project, named),
        )

    def renewed(self) -> bool:
        """Whether the project is in another state that was approved.

        Only one with the same settings: others count from the next session on.
        """
        stamp = file_stamp(self._path)
        if stamp != self._record_stamp:
            self._record_stamp = stamp
            with suppress(StateFileError):
                self._known = load_record(self._path) or self._known
        elif not self._known.earlier:
            return False
        if self._known.version != VERSION:
            return False
        state = _holding_state(self._path, self._known, self.record.settings)
        if state is None or state.covers_the_same(self.record):
            return False
        self.record, self.tree = state, self._pinned_tree(state)
        return True

    def _pinned_tree(self, record: TrustRecord) -> PinnedPaths:
        take = partial(pin_project, self._layers, record.project, known=record.tree)
        return PinnedPaths(record.tree, take, record.project)


def _listed_folders(hook: HookConfig, project: str, approved: Pins) -> list[str]:
    """The folders of patterns and modules, and those in ``trustFiles``."""
    folders = dict.fromkeys(named_paths(hook, project).folders)
    if hook.trust_files:
        kept = (one for one in approved if approved[one].kind is PinKind.FOLDER)
        folders |= dict.fromkeys(kept)
    return list(folders)


class HookApproval:
    """Tells whether one hook, and every file it was approved with, is unchanged."""

    def __init__(self, project: ProjectApproval, hook: HookConfig) -> None:
        self._project = project
        self._hook = hook
        self._record = project.record
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
        return private_cache(self._project.record.project, self._stamp)

    def digest_of(self, path: str) -> str | None:
        """The approved digest of a file, if it is one of the hook's."""
        tree, named = self._pins()
        pin = tree.get(path) or named.get(path)
        return pin.digest if pin is not None and pin.kind is PinKind.FILE else None

    def has_files_in(self, folder: str) -> bool:
        """Whether any approved file of the hook is somewhere in a folder."""
        inside = f"{folder}/"
        return any(
            path.startswith(inside) and pin.kind is PinKind.FILE
            for pins in self._pins()
            for path, pin in pins.items()
        )

    def _pins(self) -> tuple[Pins, Pins]:
        record = self._project.record
        return record.tree, record.files.get(hook_id(self._hook), {})

    def _check(self) -> tuple[str | None, Stamp]:
        if hook_id(self._hook) not in self._project.record.files:
            # Another version of hookline ignored it, so nobody was shown it.
            return "it was not among the hooks that were approved", ()
        try:
            self._follow_project()
            tree, tree_stamp = self._project.tree.check()
            files, files_stamp = self._files.check()
        # Whatever keeps files from being checked: they are not known to be the same.
        except Exception as error:  # noqa: BLE001
            return f"its files could not be checked ({error!r})", ()
        return tree or files, (tree_stamp, files_stamp)

    def _follow_project(self) -> None:
        """Another hook's check may have found another approved state."""
        if self._record is not self._project.record:
            self._record = self._project.record
            self._files = self._project.pinned_files(self._hook)
            self._did_not_hold()  # what is loaded is of the state before

    def _did_not_hold(self) -> None:
        # What was compiled or loaded meanwhile may come from other files.
        forget_caches(self._project.record.project)
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
