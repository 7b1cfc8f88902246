"""What a person reviews: a project now, compared with what was approved.

The files are read once: what is shown is what is recorded, even if somebody edits them
during the review.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from difflib import unified_diff
from enum import StrEnum

import msgspec
from msgspec import Struct

from hookline.errors import SettingsError
from hookline.protocol.events import HookEventName
from hookline.settings.locations import PROJECT_FOLDER, Place
from hookline.settings.model import HookConfig, HookSource, SettingsLayer
from hookline.settings.parse import parse_layer
from hookline.settings.read import read_settings

from .gate import journal_files
from .pins import (
    ABSENT,
    MAX_TREE_ENTRIES,
    Pin,
    PinKind,
    TooManyFilesError,
    differences,
    names_nothing,
    pin_named_files,
    take_tree,
)
from .records import (
    PlacedHook,
    TrustRecord,
    copy_of,
    hook_id,
    placed_hooks,
    settings_texts,
)


class Change(StrEnum):
    """How a hook differs from its approval."""

    NEW = "new"
    CHANGED = "changed"
    REMOVED = "removed"
    SAME = "trusted"


class Snapshot(Struct, frozen=True):
    """A project at one moment, ready to be recorded."""

    record: TrustRecord
    layers: list[SettingsLayer]
    """Empty where the project has no settings."""
    copies: dict[str, bytes]

    @property
    def has_hooks(self) -> bool:
        """Whether there is anything that could run."""
        return any(layer.groups for layer in self.layers)


class ReviewedHook(Struct, frozen=True, kw_only=True):
    """One hook, compared with its approval."""

    change: Change
    event: HookEventName
    matcher: str | None
    hook: HookConfig
    before: HookConfig | None = None
    """Its approved definition, where that is different."""
    files: tuple[str, ...] = ()
    """The existing files that it names."""
    names_nothing: bool = False


def take_snapshot(project: str) -> Snapshot:
    """Read a project; raises ``SettingsError`` where it cannot be approved."""
    place = Place(HookSource.PROJECT, f"{project}/{PROJECT_FOLDER}", project)
    copies: dict[str, bytes] = {}
    found = map(place.find, place.stems)
    layers = [
        parse_layer(read_settings(file), HookSource.PROJECT, file, project=project)
        for file in found
        if file is not None
    ]
    if not layers:
        return Snapshot(TrustRecord(project=project), layers, copies)
    try:
        tree = take_tree(place.folder, journal_files(layers), copies)
        files = {
            hook_id(hook): pin_named_files(hook, project, copies)
            for layer in layers
            for _, _, hook in layer.hooks()
        }
    except TooManyFilesError as error:
        problem = f"{error} holds more than {MAX_TREE_ENTRIES} files"
        raise SettingsError(f"{problem}, too many to approve") from error
    record = TrustRecord(
        project=project,
        settings=settings_texts(layers),
        tree=tree,
        files=files,
        trusted_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    )
    return Snapshot(record, layers, copies)


def review_hooks(now: Snapshot, before: TrustRecord | None) -> list[ReviewedHook]:
    """Every hook of the project and of the approval."""
    before = before or TrustRecord(project=now.record.project)
    old = before.placed_hooks()
    new = [placed for layer in now.layers for placed in placed_hooks(layer)]
    found = [_reviewed(one, old, now, before) for one in new]
    names = {(event, hook.name) for event, _, hook in new}
    gone = (
        ReviewedHook(change=Change.REMOVED, event=event, matcher=matcher, hook=hook)
        for event, matcher, hook in old
        if (event, hook.name) not in names
    )
    return [*found, *gone]


def changed_files(
    now: Snapshot, before: TrustRecord | None
) -> list[tuple[str, Pin, Pin]]:
    """The paths that changed since they were approved, with old and new pin."""
    if before is None:
        return []
    old, new = before.pins(), now.record.pins()
    return [
        (path, old.get(path, ABSENT), new.get(path, ABSENT))
        for path in differences(old, new)
    ]


def is_unchanged(now: Snapshot, before: TrustRecord | None) -> bool:
    """Whether there is nothing to approve."""
    if before is None:
        return not now.has_hooks
    same = now.record.settings == before.settings and bool(now.layers)
    return same and not changed_files(now, before)


def file_diff(path: str, old: Pin, new: Pin, copies: dict[str, bytes]) -> list[str]:
    """The diff of a file, in lines; a note instead where it is not text."""
    lines = list(_changed_properties(old, new))
    if PinKind.FILE not in {old.kind, new.kind} or old.digest == new.digest:
        return lines
    before, after = _text(copy_of(old.digest), old), _text(copies.get(new.digest), new)
    if before is None or after is None:
        return [*lines, "its bytes changed (not text, or too long to show)"]
    old_lines, new_lines = before.splitlines(), after.splitlines()
    names = (f"{path} (trusted)", f"{path} (now)")
    return [*lines, *unified_diff(old_lines, new_lines, *names, lineterm="")]


def definition_diff(before: HookConfig, now: HookConfig) -> list[str]:
    """The diff of a hook's definition, in lines."""
    old, new = (
        msgspec.json.format(msgspec.json.encode(one), indent=2).decode().splitlines()
        for one in (before, now)
    )
    return list(unified_diff(old, new, "trusted", "now", lineterm=""))


def _reviewed(
    placed: PlacedHook, old: list[PlacedHook], now: Snapshot, before: TrustRecord
) -> ReviewedHook:
    event, matcher, hook = placed
    named = now.record.files[hook_id(hook)]
    same_name = [one for one in old if (one[0], one[2].name) == (event, hook.name)]
    change, former = Change.NEW, None
    if placed in old:
        approved = before.files.get(hook_id(hook), {}).keys()
        changed = approved & set(differences(before.pins(), now.record.pins()))
        is_same = before.tree == now.record.tree and not changed
        change = Change.SAME if is_same else Change.CHANGED
    elif same_name:
        change, former = Change.CHANGED, same_name[0][2]
    return ReviewedHook(
        change=change,
        event=event,
        matcher=matcher,
        hook=hook,
        before=former,
        files=tuple(path for path, pin in named.items() if pin.kind is PinKind.FILE),
        names_nothing=names_nothing(hook, now.record.project),
    )


def _changed_properties(old: Pin, new: Pin) -> Iterator[str]:
    if old.kind is not new.kind:
        yield f"was {old.kind}, is {new.kind}"
    if old.link != new.link:
        yield f"link: was {old.link!r}, is {new.link!r}"
    if old.mode != new.mode and old.kind is new.kind:
        yield f"permissions: were {old.mode:o}, are {new.mode:o}"


def _text(content: bytes | None, pin: Pin) -> str | None:
    if pin.kind is not PinKind.FILE:
        return ""
    with suppress(UnicodeDecodeError):
        return None if content is None or b"\0" in content else content.decode()
    return None
