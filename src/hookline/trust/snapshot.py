"""Whether trusted files are still what they were: asked before and after every run.

Asking costs a few microseconds as long as the file system says that nothing moved; the
bytes are read again only where it says something else, or where it could not yet tell:
two changes within one tick of its clock look like one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection

from hookline.errors import StateFileError
from hookline.settings.model import HookConfig, Stamp

from .names import named_paths, trust_paths
from .pins import (
    ABSENT,
    Pin,
    PinKind,
    Pins,
    difference,
    newest_ns,
    take_pin,
    take_stamp,
    take_tree,
)
from .records import TrustRecord, hook_id, load_record

_SETTLED_NS = 2_000_000_000
"""The coarsest clock of a file system in use."""


class PinnedPaths:
    """Some paths as they were trusted."""

    def __init__(
        self,
        trusted: Pins,
        take: Callable[[], Pins],
        *,
        heed_folders: bool = True,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._trusted = trusted
        self._take = take
        self._paths = tuple(trusted)
        self._heeded = self._paths if heed_folders else _without_folders(trusted)
        self._clock_ns = clock_ns
        self._seen: Stamp | None = None

    def check(self) -> tuple[str | None, Stamp]:
        """The first path that is not as it was trusted, if any; and a stamp for later.

        The stamp is older than the look at the bytes: it misses no later change.
        """
        stamp = take_stamp(self._paths)
        kept = stamp if self._heeded is self._paths else self.stamp()
        if stamp == self._seen:
            return None, kept
        self._seen = None
        asked_ns = self._clock_ns()
        moved = difference(self._trusted, self._take())
        if moved is None and asked_ns - newest_ns(stamp) > _SETTLED_NS:
            self._seen = stamp
        return moved, kept

    def stamp(self) -> Stamp:
        """What the file system says now."""
        return take_stamp(self._heeded)


class ProjectApproval:
    """The trusted state of one project: its ``.hookline``, and what hooks name."""

    def __init__(
        self, path: str, record: TrustRecord, cwd: str, skipped: Collection[str] = ()
    ) -> None:
        self._path = path
        self._record_stamp = take_stamp((path,))
        self._cwd = cwd
        self._skipped = skipped
        self.record = record
        self.tree = self._pinned_tree()

    def __call__(self, hook: HookConfig) -> HookApproval:
        """The approval of one of the project's hooks."""
        return HookApproval(self, hook)

    def pinned_files(self, hook: HookConfig) -> PinnedPaths:
        """What one hook names, now or when it was trusted."""
        trusted = self.record.files.get(hook_id(hook), {})

        def take() -> Pins:
            again = {path: take_pin(path) for path in trusted}
            return again | take_named(hook, self._cwd)

        named = {path: trusted.get(path, ABSENT) for path in take()}
        return PinnedPaths(named, take)

    def trusted_anew(self) -> bool:
        """Whether a person has trusted the same hooks again since the last look."""
        stamp = take_stamp((self._path,))
        if stamp == self._record_stamp:
            return False
        self._record_stamp = stamp
        try:
            record = load_record(self._path)
        except StateFileError:
            return False
        if record is None or record.settings != self.record.settings:
            return False
        self.record = record
        self.tree = self._pinned_tree()
        return True

    def _pinned_tree(self) -> PinnedPaths:
        tree = self.record.tree

        def take() -> Pins:
            folder = f"{self.record.project}/.hookline"
            return take_tree(folder, self._skipped, known=tree)

        # A journal in there comes and goes with its helper files.
        return PinnedPaths(tree, take, heed_folders=not self._skipped)


class HookApproval:
    """Tells of one hook whether all that it was trusted with is unchanged."""

    def __init__(self, project: ProjectApproval, hook: HookConfig) -> None:
        self._project = project
        self._hook = hook
        self._files = project.pinned_files(hook)

    def check(self) -> tuple[str | None, Stamp]:
        """What has changed, if anything, and a stamp for ``unchanged_since``."""
        moved, stamp = self._check()
        if moved is not None and self._project.trusted_anew():
            self._files = self._project.pinned_files(self._hook)
            moved, stamp = self._check()
        if moved is None:
            return None, stamp
        shown = os.path.relpath(moved, self._project.record.project)
        return f"{shown} is not what was trusted", stamp

    def unchanged_since(self, stamp: Stamp) -> bool:
        """Whether nothing was touched since the stamp was taken."""
        return self._project.tree.stamp() + self._files.stamp() == stamp

    def digest_of(self, path: str) -> str | None:
        """The trusted digest of a file, if it is one of the hook's."""
        record = self._project.record
        named = record.files.get(hook_id(self._hook), {})
        pin = record.tree.get(path) or named.get(path)
        return pin.digest if pin is not None and pin.kind is PinKind.FILE else None

    def _check(self) -> tuple[str | None, Stamp]:
        tree, tree_stamp = self._project.tree.check()
        files, files_stamp = self._files.check()
        return tree or files, tree_stamp + files_stamp


def _without_folders(pins: Pins) -> tuple[str, ...]:
    return tuple(path for path, pin in pins.items() if pin.kind is not PinKind.FOLDER)


def take_named(
    hook: HookConfig, project: str, copies: dict[str, bytes] | None = None
) -> dict[str, Pin]:
    """Look at everything outside ``.hookline`` that a hook names."""
    found = {path: take_pin(path, copies) for path in named_paths(hook, project)}
    for path in trust_paths(hook, project):
        found |= take_tree(path, copies=copies)
        found[path] = take_pin(path, copies)
    return found
