"""What a person reviews: a project now, compared with what was approved.

The files are read once: what is shown is what is recorded, even if somebody edits them
during the review.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from difflib import unified_diff
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import SettingsError
from hookline.protocol.events import HookEventName
from hookline.protocol.values import encode
from hookline.settings.check import risky_variables
from hookline.settings.fields import REQUIRED_BY_TYPE
from hookline.settings.model import HookConfig, HookSource, HookType, SettingsLayer
from hookline.settings.parse import parse_layer
from hookline.settings.places import (
    PROJECT_FOLDER,
    Place,
    is_within,
    record_path,
    record_problem,
)
from hookline.settings.read import read_settings
from hookline.shell.uses import Role, modules_beside

from .pins import (
    ABSENT,
    MAX_PINNED_BYTES,
    MAX_TREE_ENTRIES,
    NamedPaths,
    Pin,
    PinKind,
    TooManyFilesError,
    differences,
    is_python,
    is_within_any,
    pin_named_files,
    pin_project,
)
from .records import (
    VERSION,
    Manifest,
    copy_of,
    hook_id,
    load_record,
    settings_texts,
)

MAX_COMPARED_LINES = 500
"""Comparing takes time that grows with the square of the lines, and more."""
_UNUSUAL = {
    PinKind.ABSENT: "does not exist; creating it is a change",
    PinKind.UNREADABLE: "cannot be read, so its content is not pinned",
    PinKind.OTHER: "is not a regular file, so its content is not pinned",
}


class Change(StrEnum):
    """How a hook or a file differs from its approval."""

    NEW = "new"
    CHANGED = "changed"
    REMOVED = "removed"
    SAME = "trusted"


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
        return _json_lines({"group": group, "hook": self.raw})


class ReviewedHook(Struct, frozen=True, kw_only=True):
    """One hook, compared with its approval."""

    change: Change
    definition: Definition
    before: Definition | None = None
    """Its approved definition, where that is different."""
    files: tuple[str, ...] = ()
    """The existing files that it names."""
    notes: tuple[tuple[str, str], ...] = ()
    """What an approval does not cover: of which path, and the fact."""


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


class ChangedOptions(Struct, frozen=True):
    """What a settings file says beside its hooks, where that is not as approved."""

    file: str
    before: dict[str, Any]
    """Empty where nothing was approved."""
    now: dict[str, Any]

    def diff(self) -> list[str]:
        """The change, in lines."""
        return definition_diff(_json_lines(self.before), _json_lines(self.now))


class Review(Struct, frozen=True, kw_only=True):
    """A project as it was read once, and what of it is approved."""

    manifest: Manifest
    """What an approval would record."""
    layers: list[SettingsLayer]
    """Empty where the project has no settings."""
    copies: dict[str, bytes]
    before: Manifest | None = None
    is_unchanged: bool = False
    """Whether there is nothing to approve."""

    @property
    def has_hooks(self) -> bool:
        """Whether there is anything that could run."""
        return any(layer.groups for layer in self.layers)

    def hooks(self) -> list[ReviewedHook]:
        """Every hook of the project and of the approval."""
        layers = self.before.layers() if self.before else ()
        approved = [hook for layer in layers for hook in _definitions(layer)]
        defined = [hook for layer in self.layers for hook in _definitions(layer)]
        changed = {path for path, _, _ in self.changed_files()}
        reviewed = [self._reviewed(hook, approved, changed) for hook in defined]
        covered = [*defined, *(hook.before for hook in reviewed)]
        removed = (
            ReviewedHook(change=Change.REMOVED, definition=hook)
            for hook in approved
            if hook not in covered
        )
        return [*reviewed, *removed]

    def _reviewed(
        self, now: Definition, approved: list[Definition], changed: set[str]
    ) -> ReviewedHook:
        hook, name = now.hook, (now.event, now.hook.name)
        pins = self.manifest.files[hook_id(hook)]
        notes = list(_notes(hook, self.manifest.project))
        change, before = Change.NEW, None
        if now in approved and self.before is not None:
            files = self.before.files.get(hook_id(hook), {}).keys()
            change = Change.SAME
            if files & changed or self.before.tree != self.manifest.tree:
                change = Change.CHANGED
                text = "it is the same, but files that it is approved with changed"
                notes.insert(0, ("", text))
        else:
            same_name = (d for d in approved if (d.event, d.hook.name) == name)
            before = next(same_name, None)
            change = Change.CHANGED if before is not None else Change.NEW
        return ReviewedHook(
            change=change,
            definition=now,
            before=before,
            files=tuple(path for path in pins if pins[path].kind is PinKind.FILE),
            notes=tuple(notes),
        )

    def changed_options(self) -> list[ChangedOptions]:
        """The settings files with other options than were approved."""
        old = _other_settings(self.before.layers() if self.before else [])
        new = _other_settings(self.layers)
        return [
            ChangedOptions(file, old.get(file, {}), new.get(file, {}))
            for file in {**old, **new}
            if old.get(file, {}) != new.get(file, {})
        ]

    def pinned_files(self) -> list[PinnedFile]:
        """Everything that is approved with the hooks, but for plain folders."""
        approved = {} if self.before is None else self.before.pins()
        files = []
        for path, pin in sorted(self.manifest.pins().items()):
            if pin.kind is PinKind.FOLDER and pin.link is None:
                continue
            size = None
            if pin.digest in self.copies:
                size = len(self.copies[pin.digest])
            elif pin.kind is PinKind.FILE:
                with suppress(OSError):
                    size = os.stat(path).st_size  # noqa: PTH116
            known = Change.SAME if approved.get(path) == pin else Change.CHANGED
            change = known if path in approved else Change.NEW
            files.append(PinnedFile(path=path, pin=pin, size=size, change=change))
        return files

    def changed_files(self) -> list[tuple[str, Pin, Pin]]:
        """The paths that changed since they were approved, with old and new pin."""
        if self.before is None:
            return []
        old, new = self.before.pins(), self.manifest.pins()
        return [
            (path, old.get(path, ABSENT), new.get(path, ABSENT))
            for path in differences(old, new)
        ]

    def content_lines(self, file: PinnedFile) -> list[str]:
        """The text of a file as it was read for the approval, in lines."""
        text = _text_of(self.copies.get(file.pin.digest), file.pin)
        if text is None:
            return [f"(not text, or too long to show; SHA-256 {file.pin.digest})"]
        return _text_lines(text)

    def file_diff(
        self, name: str, old: Pin, new: Pin, *, quick: bool = False
    ) -> list[str]:
        """The diff of a file, in lines; a note where no line tells the change."""
        lines = []
        if old.kind is not new.kind:
            lines.append(f"was {old.kind}, is {new.kind}")
        if old.link != new.link:
            lines.append(f"link: was {old.link!r}, is {new.link!r}")
        if old.mode != new.mode and old.kind is new.kind:
            lines.append(f"permissions: were {old.mode:o}, are {new.mode:o}")
        if PinKind.FILE not in {old.kind, new.kind} or old.digest == new.digest:
            return lines
        before = _text_of(copy_of(old.digest), old)
        after = _text_of(self.copies.get(new.digest), new)
        if before is None or after is None:
            return [*lines, "its bytes changed (not text, or too long to show)"]
        names = (f"{name} (trusted)", f"{name} (now)")
        old_lines, new_lines = _text_lines(before), _text_lines(after)
        diff = list(_line_diff(old_lines, new_lines, names, quick=quick))
        return [*lines, *(diff or ["its bytes changed, and no line that can be shown"])]


def review_project(project: str) -> Review:
    """Compare a project with its approval; raises ``HooklineError``."""
    path, record = record_path(project), None
    if path is not None and record_problem(project) is None:
        record = load_record(path)
    now = _read_project(project)
    if record is None:
        return replace(now, is_unchanged=not now.has_hooks)
    pins, settings = now.manifest.pins(), now.manifest.settings
    alike = [state for state in record.states if state.settings == settings]
    is_unchanged = (
        bool(now.layers)
        and record.version == VERSION
        and any(not differences(state.pins(), pins) for state in alike)
    )
    before = alike[0] if alike and not is_unchanged else next(iter(record.states), None)
    return replace(now, before=before, is_unchanged=is_unchanged)


def _read_project(project: str) -> Review:
    """Read a project; raises ``SettingsError`` where it cannot be approved."""
    place = Place(HookSource.PROJECT, f"{project}/{PROJECT_FOLDER}", project)
    copies: dict[str, bytes] = {}
    layers = [
        parse_layer(read_settings(file), HookSource.PROJECT, file, project=project)
        for file in map(place.find, place.stems)
        if file is not None
    ]
    if not layers:
        return Review(manifest=Manifest(project=project), layers=[], copies={})
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
    manifest = Manifest(
        project=project,
        settings=settings_texts(layers),
        tree=tree,
        files=files,
        trusted_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    )
    for path, pin in manifest.pins().items():
        if pin.kind is PinKind.TOO_LARGE:
            limit = f"more than {MAX_PINNED_BYTES >> 20} MiB"
            hint = "move it out of .hookline, or write '!path' into trustFiles"
            raise SettingsError(f"is too large to approve ({limit}): {hint}", path)
    return Review(manifest=manifest, layers=layers, copies=copies)


def _definitions(layer: SettingsLayer) -> Iterator[Definition]:
    """The hooks of a layer; parsed one by one, so that each keeps what is written."""
    events = layer.raw.get("hooks")
    for name, groups in events.items() if isinstance(events, dict) else ():
        for group in _objects(groups):
            others = {k: v for k, v in group.items() if k not in {"hooks", "matcher"}}
            for raw in _objects(group.get("hooks")):
                alone = {"hooks": {name: [{**group, "hooks": [raw]}]}}
                for event, parsed, hook in parse_layer(alone, layer.source).hooks():
                    yield Definition(
                        event=event,
                        matcher=parsed.matcher,
                        hook=hook,
                        group=others,
                        raw=raw,
                    )


def _objects(values: Any) -> list[dict[str, Any]]:
    values = values if isinstance(values, list) else []
    return [value for value in values if isinstance(value, dict)]


def _other_settings(layers: list[SettingsLayer]) -> dict[str, dict[str, Any]]:
    """What each settings file says beside its hooks, as it is written."""
    return {
        layer.file or "": {
            key: value
            for key, value in layer.raw.items()
            if key != "hooks" and (key, value) != ("enableHooks", True)
        }
        for layer in layers
    }


def _notes(hook: HookConfig, project: str) -> Iterator[tuple[str, str]]:
    """What an approval of a hook does not cover: of which path, and the fact."""
    named = NamedPaths(hook, project)
    pinned = dict.fromkeys((*named.roles, *named.listed))
    if hook.type is HookType.HTTP:
        text = "what it does with them and what it answers is not pinned"
        yield "", f"the service sees these events: {text}"
    elif hook.type is not HookType.RULE and not any(
        os.path.lexists(path) and not os.path.isdir(path)  # noqa: PTH112
        for path in pinned
    ):
        text = "only the command itself is pinned, not the programs it runs"
        yield "", f"no file of the project is named: {text}"
    unpinned: dict[tuple[str, str], None] = {}
    folders = [f"{project}/{PROJECT_FOLDER}", *named.listed]
    for path in named.roles:
        if os.path.isdir(path) and not is_within_any(path, folders):  # noqa: PTH112
            why = "it is a folder: list it in trustFiles if code is loaded from there"
            unpinned[path, why] = None
    for use in named.unpinned:
        is_data = use.path not in pinned and os.path.isfile(use.path)  # noqa: PTH113
        if use.why or is_data:
            unpinned[use.path, use.why] = None
    for script, role in named.roles.items():
        is_script = role is Role.CODE and hook.type is not HookType.CEDAR
        if not is_script or is_within(script, folders[0]) or not is_python(script):
            continue
        for module in modules_beside(script):
            is_pinned = any(is_within(path, module) for path in pinned)
            if not is_pinned and not is_within_any(module, folders):
                name = os.path.basename(script)  # noqa: PTH119
                why = f"{name} can import it: move both into .hookline, or list it in "
                unpinned[module, f"{why}trustFiles"] = None
    for path, why in unpinned:
        yield path, f"cannot be pinned: {why}" if why else "is data, and not pinned"


def _text_lines(text: str) -> list[str]:
    """The lines as programs see them: a form feed, say, ends none."""
    return text.removesuffix("\n").split("\n") if text else []


def _json_lines(value: dict[str, Any]) -> list[str]:
    """Settings as indented JSON, in lines."""
    return msgspec.json.format(encode(value), indent=2).decode().split("\n")


def definition_diff(
    before: list[str], now: list[str], *, quick: bool = False
) -> list[str]:
    """The diff of definitions or of other settings, in lines."""
    names = ("trusted", "now")
    return list(_line_diff(before, now, names, context=100, quick=quick))


def _line_diff(
    old: list[str],
    new: list[str],
    names: tuple[str, str],
    *,
    context: int = 3,
    quick: bool = False,
) -> Iterator[str]:
    """A unified diff; a quick one, or one of long texts, has a single hunk."""
    if old == new:
        return
    if not quick and max(len(old), len(new)) <= MAX_COMPARED_LINES:
        yield from unified_diff(old, new, *names, lineterm="", n=context)
        return
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    gone, added = (side[head : len(side) - tail] for side in (old, new))
    start = max(0, head - context)
    before, after = old[start:head], old[head + len(gone) :][:context]
    around = len(before) + len(after)
    yield from (f"--- {names[0]}", f"+++ {names[1]}")
    sizes = (len(gone) + around, len(added) + around)
    yield f"@@ -{start + 1},{sizes[0]} +{start + 1},{sizes[1]} @@"
    marked = ((" ", before), ("-", gone), ("+", added), (" ", after))
    yield from (f"{mark}{line}" for mark, lines in marked for line in lines)


def _common(old: list[str], new: list[str]) -> int:
    """How many lines both start with."""
    pairs = enumerate(zip(old, new, strict=False))
    different = (at for at, (a, b) in pairs if a != b)
    return next(different, min(len(old), len(new)))


def _text_of(content: bytes | None, pin: Pin) -> str | None:
    """The content of a pinned file, None where it is not text or was not kept."""
    if pin.kind is not PinKind.FILE:
        return ""
    if content is None:
        return None
    # A few odd bytes keep no shell from running a script: they must not hide it.
    text = content.decode("utf-8", "replace")
    odd = sum(c == "\ufffd" or not (c.isprintable() or c.isspace()) for c in text)
    return text if odd * 10 <= len(text) else None
