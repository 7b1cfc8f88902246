"""What a person reviews: a project now, compared with what was approved.

The files are read once: what is shown is what is recorded, even if somebody edits them
during the review.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from hookline.errors import SettingsError
from hookline.protocol.events import HookEventName
from hookline.settings.fields import REQUIRED_BY_TYPE
from hookline.settings.lint_hooks import risky_variables
from hookline.settings.model import HookConfig, HookSource, HookType, SettingsLayer
from hookline.settings.parse import parse_layer
from hookline.settings.places import (
    PROJECT_FOLDER,
    Place,
    record_path,
    record_problem,
)
from hookline.settings.read import read_settings

from .comparison import definition_diff, json_lines, text_lines, text_of
from .pins import (
    ABSENT,
    MAX_PINNED_BYTES,
    MAX_TREE_ENTRIES,
    HookFile,
    Pin,
    PinKind,
    TooManyFilesError,
    Treatment,
    differences,
    hook_files,
    names_nothing,
    pin_named_files,
    pin_project,
)
from .records import (
    VERSION,
    TrustRecord,
    hook_id,
    load_record,
    settings_texts,
)

_UNUSUAL = {
    PinKind.ABSENT: "does not exist; creating it is a change",
    PinKind.UNREADABLE: "cannot be read, so its content is not pinned",
    PinKind.OTHER: "is not a regular file, so its content is not pinned",
}
_UNPINNED = {
    Treatment.UNPINNABLE: "cannot be pinned",
    Treatment.DATA: "is data, and not pinned",
}


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


class Definition(Struct, frozen=True, kw_only=True):
    """One hook, with everything that its settings say about it."""

    event: HookEventName
    matcher: str | None
    hook: HookConfig
    group: dict[str, Any]
    """The other keys of its group, as they are written."""
    raw: dict[str, Any]
    """All its keys as they are written, those that nobody knows too."""

    @property
    def runs(self) -> dict[str, str]:
        """The key that says what a hook of its type runs."""
        key = REQUIRED_BY_TYPE.get(self.hook.type, "")
        value = getattr(self.hook, key, None)
        return {key: value} if isinstance(value, str) else {}

    def other_keys(self) -> Iterator[tuple[str, Any]]:
        """Every other key that is set, whether Hookline knows it or not."""
        hook = self.hook
        shown = {"type": hook.type.value, "name": hook.name, **self.runs}
        for key, value in self.group.items():
            yield f"{key} of the group", value
        for key, value in self.raw.items():
            if value != shown.get(key):
                yield key, value

    def cautions(self) -> Iterator[tuple[str, str]]:
        """The variables that need a closer look, and why."""
        for name in risky_variables(self.hook.env):
            text = "changes which programs or files the command uses"
            yield name, f"{text}: look at it closely"
        for name in self.hook.allowed_env:
            yield name, "of your environment may be sent to this url"

    def lines(self) -> list[str]:
        """The definition as text, for a diff."""
        group = {"event": self.event.value, "matcher": self.matcher, **self.group}
        return json_lines({"group": group, "hook": self.raw})


class ReviewedHook(Struct, frozen=True, kw_only=True):
    """One hook, compared with its approval."""

    change: Change
    definition: Definition
    before: Definition | None = None
    """Its approved definition, where that is different."""
    files: tuple[str, ...] = ()
    """The existing files that it names."""
    names_nothing: bool = False
    unpinned: tuple[HookFile, ...] = ()
    """What it names and what is not pinned: data, and what cannot be known."""

    def notes(self) -> Iterator[tuple[str, str]]:
        """What an approval does not cover: of what, and the fact."""
        hook = self.definition.hook
        if self.change is Change.REMOVED:
            return
        if self.change is Change.CHANGED and self.before is None:
            yield "", "it is the same, but files that it is approved with changed"
        if hook.type is HookType.HTTP:
            pinned = "what it does with them and what it answers is not pinned"
            yield "", f"the service sees these events: {pinned}"
        elif self.names_nothing and hook.type is not HookType.RULE:
            pinned = "only the command itself is pinned, not the programs it runs"
            yield "", f"no file of the project is named: {pinned}"
        for file in self.unpinned:
            why = f": {file.why}" if file.why else ""
            yield file.path, f"{_UNPINNED[file.treatment]}{why}"


class PinnedFile(Struct, frozen=True, kw_only=True):
    """One path that is approved with the hooks."""

    path: str
    pin: Pin
    size: int | None
    """Of a file, in bytes."""
    change: Change

    @property
    def note(self) -> str:
        """What is unusual about it, if anything."""
        return _UNUSUAL.get(self.pin.kind, "")


class Review(Struct, frozen=True):
    """A project, and what of it is approved."""

    now: Snapshot
    before: TrustRecord | None

    @property
    def is_unchanged(self) -> bool:
        """Whether there is nothing to approve."""
        return is_unchanged(self.now, self.before)


def review_project(project: str) -> Review:
    """Compare a project with its approval; raises ``HooklineError``."""
    path = record_path(project)
    before = None
    if path is not None and record_problem(project) is None:
        before = load_record(path)
    now = take_snapshot(project)
    if before is not None and not is_unchanged(now, before):
        before = before.with_settings(now.record.settings) or before
    return Review(now, before)


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
        tree = pin_project(layers, project, copies)
        files = {
            hook_id(hook): pin_named_files(hook, project, copies)
            for layer in layers
            for _, _, hook in layer.hooks()
        }
    except TooManyFilesError as error:
        problem = f"{error} holds more than {MAX_TREE_ENTRIES} files"
        raise SettingsError(f"{problem}, too many to approve") from error
    for pins in (tree, *files.values()):
        for path, pin in pins.items():
            if pin.kind is PinKind.TOO_LARGE:
                limit = f"more than {MAX_PINNED_BYTES >> 20} MiB"
                hint = "move it out of .hookline, or write '!path' into trustFiles"
                problem = f"is too large to approve ({limit}): {hint}"
                raise SettingsError(problem, path)
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
    old = [one for layer in before.layers() for one in _definitions(layer)]
    new = [one for layer in now.layers for one in _definitions(layer)]
    found = [_reviewed(one, old, now, before) for one in new]
    shown = [*new, *(one.before for one in found)]
    gone = (
        ReviewedHook(change=Change.REMOVED, definition=one)
        for one in old
        if one not in shown
    )
    return [*found, *gone]


def other_settings(layers: list[SettingsLayer]) -> dict[str, dict[str, Any]]:
    """What each settings file says beside its hooks, as it is written."""
    return {
        layer.file or "": {
            key: value
            for key, value in layer.raw.items()
            if key != "hooks" and (key, value) != ("enableHooks", True)
        }
        for layer in layers
    }


class ChangedOptions(Struct, frozen=True):
    """What a settings file says beside its hooks, where that is not as approved."""

    file: str
    before: dict[str, Any]
    """Empty where nothing was approved."""
    now: dict[str, Any]

    def diff(self) -> list[str]:
        """The change, in lines."""
        return definition_diff(json_lines(self.before), json_lines(self.now))


def changed_options(now: Snapshot, before: TrustRecord | None) -> list[ChangedOptions]:
    """The settings files with other options than were approved."""
    old = other_settings(before.layers() if before else [])
    new = other_settings(now.layers)
    found = [
        ChangedOptions(file, old.get(file, {}), new.get(file, {}))
        for file in {**old, **new}
    ]
    return [one for one in found if one.before != one.now]


def pinned_files(now: Snapshot, before: TrustRecord | None) -> list[PinnedFile]:
    """Everything that is approved with the hooks, but for plain folders."""
    old = {} if before is None else before.pins()
    return [
        PinnedFile(
            path=path,
            pin=pin,
            size=_size(path, pin, now.copies),
            change=_change(old.get(path), pin),
        )
        for path, pin in sorted(now.record.pins().items())
        if pin.kind is not PinKind.FOLDER or pin.link is not None
    ]


def content_lines(file: PinnedFile, copies: dict[str, bytes]) -> list[str]:
    """The text of a file as it was read for the approval, in lines."""
    text = text_of(copies.get(file.pin.digest), file.pin)
    if text is None:
        return [f"(not text, or too long to show; SHA-256 {file.pin.digest})"]
    return text_lines(text)


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
    if not now.layers or before.version != VERSION:
        return False
    return any(
        now.record.settings == one.settings and not changed_files(now, one)
        for one in before.sets()
    )


def _definitions(layer: SettingsLayer) -> Iterator[Definition]:
    """The hooks of a layer; parsed one by one, so that each keeps what is written."""
    hooks = layer.raw.get("hooks")
    for name, groups in hooks.items() if isinstance(hooks, dict) else ():
        for group in filter(_is_object, groups if isinstance(groups, list) else ()):
            listed = group.get("hooks")
            others = {k: v for k, v in group.items() if k not in {"hooks", "matcher"}}
            for raw in filter(_is_object, listed if isinstance(listed, list) else ()):
                alone = {"hooks": {name: [{**group, "hooks": [raw]}]}}
                for event, parsed, hook in parse_layer(alone, layer.source).hooks():
                    yield Definition(
                        event=event,
                        matcher=parsed.matcher,
                        hook=hook,
                        group=others,
                        raw=raw,
                    )


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _reviewed(
    now: Definition, old: list[Definition], snapshot: Snapshot, before: TrustRecord
) -> ReviewedHook:
    hook = now.hook
    named = snapshot.record.files[hook_id(hook)]
    same_name = [
        one for one in old if (one.event, one.hook.name) == (now.event, hook.name)
    ]
    change, former = Change.NEW, None
    if now in old:
        approved = before.files.get(hook_id(hook), {}).keys()
        changed = approved & set(differences(before.pins(), snapshot.record.pins()))
        is_same = before.tree == snapshot.record.tree and not changed
        change = Change.SAME if is_same else Change.CHANGED
    elif same_name:
        change, former = Change.CHANGED, same_name[0]
    return ReviewedHook(
        change=change,
        definition=now,
        before=former,
        files=tuple(path for path, pin in named.items() if pin.kind is PinKind.FILE),
        names_nothing=names_nothing(hook, snapshot.record.project),
        unpinned=tuple(
            file
            for file in hook_files(hook, snapshot.record.project)
            if file.treatment is not Treatment.PINNED
        ),
    )


def _change(old: Pin | None, new: Pin) -> Change:
    if old is None:
        return Change.NEW
    return Change.SAME if old == new else Change.CHANGED


def _size(path: str, pin: Pin, copies: dict[str, bytes]) -> int | None:
    if pin.kind is not PinKind.FILE:
        return None
    if pin.digest in copies:
        return len(copies[pin.digest])
    with suppress(OSError):
        return os.stat(path).st_size  # noqa: PTH116
    return None
