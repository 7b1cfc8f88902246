"""What a person reviews: a project now, compared with what was approved.

The files are read once: what is shown is what is recorded, even if somebody edits them
during the review.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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
from hookline.settings.model import (
    REQUIRED_BY_TYPE,
    HookConfig,
    HookSource,
    HookType,
    SettingsLayer,
)
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
    MAX_PATHS,
    MAX_PINNED_BYTES,
    NamedPaths,
    Pin,
    PinKind,
    differences,
    is_python,
    is_within_any,
    pin_named_files,
    pin_project,
)
from .records import (
    VERSION,
    Manifest,
    hook_id,
    load_copies,
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


class Definition(Struct, frozen=True):
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
        headline = {"type": hook.type.value, "name": hook.name, **self.runs}
        for key, value in self.group.items():
            yield f"{key} of the group", value
        for key, value in self.raw.items():
            if value != headline.get(key):
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


class ReviewedHook(Struct, frozen=True):
    """One hook, compared with its approval."""

    change: Change
    definition: Definition
    before: Definition | None = None
    """Its approved definition, where that is different."""
    files: tuple[str, ...] = ()
    """The existing files that it names."""
    notes: Sequence[tuple[str, str]] = ()
    """What an approval does not cover: of which path, and the fact."""


class ReviewedFile(Struct, frozen=True):
    """One path that is or was approved with the hooks."""

    path: str
    change: Change
    before: Pin
    """As it was approved."""
    pin: Pin

    @property
    def is_pinned(self) -> bool:
        """Whether it is approved now; of plain folders nobody has to be told."""
        is_plain = self.pin.kind is PinKind.FOLDER and self.pin.link is None
        return self.change is not Change.REMOVED and not is_plain

    @property
    def is_different(self) -> bool:
        """Whether it does not do what was approved."""
        return not self.before.holds(self.pin)

    @property
    def note(self) -> str:
        """What is unusual about it, if anything."""
        return _UNUSUAL.get(self.pin.kind, "")


class ChangedOptions(Struct, frozen=True):
    """What a settings file says beside its hooks, where that is not as approved."""

    file: str
    before: dict[str, Any]
    """Empty where nothing was approved."""
    options: dict[str, Any]

    def diff(self) -> list[str]:
        """The change, in lines."""
        return line_diff(_json_lines(self.before), _json_lines(self.options))


class Review(Struct, frozen=True, kw_only=True):
    """A project as it was read once, and what of it is approved."""

    manifest: Manifest
    """What an approval would record."""
    layers: list[SettingsLayer]
    """Empty where the project has no settings."""
    copies: dict[str, bytes]
    before: Manifest | None = None
    copies_before: dict[str, bytes] = {}
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
        different = {file.path for file in self.files() if file.is_different}
        reviewed, covered = [], []
        for definition in (d for layer in self.layers for d in _definitions(layer)):
            hook, change, before = definition.hook, Change.NEW, None
            pins = self.manifest.named_by(hook)
            notes = list(_notes(hook, self.manifest.project))
            if self.before is not None and definition in approved:
                change = Change.SAME
                pins_before = self.before.named_by(hook)
                if (
                    pins_before.keys() & different
                    or self.before.tree != self.manifest.tree
                ):
                    change = Change.CHANGED
                    text = "unchanged; a file that it uses changed"
                    notes.insert(0, ("", text))
            else:
                place = (definition.event, hook.name)
                namesakes = [d for d in approved if (d.event, d.hook.name) == place]
                if namesakes:
                    change, before = Change.CHANGED, namesakes[0]
            covered += [definition, before]
            files = tuple(path for path in pins if pins[path].kind is PinKind.FILE)
            reviewed.append(ReviewedHook(change, definition, before, files, notes))
        removed = (definition for definition in approved if definition not in covered)
        return [*reviewed, *(ReviewedHook(Change.REMOVED, d) for d in removed)]

    def changed_options(self) -> list[ChangedOptions]:
        """The settings files with other options than were approved."""
        old = _other_settings(self.before.layers() if self.before else [])
        new = _other_settings(self.layers)
        return [
            ChangedOptions(file, old.get(file, {}), new.get(file, {}))
            for file in {**old, **new}
            if old.get(file, {}) != new.get(file, {})
        ]

    def files(self) -> list[ReviewedFile]:
        """Every path that is or was approved."""
        old, new = self.before.pins() if self.before else {}, self.manifest.pins()
        files = []
        for path in sorted({**old, **new}):
            before, pin = old.get(path, ABSENT), new.get(path, ABSENT)
            is_same = before.holds(pin)
            change = Change.SAME if is_same else Change.CHANGED
            if path not in new:
                change = Change.REMOVED
            elif path not in old:
                change = Change.NEW
            files.append(ReviewedFile(path, change, before, pin))
        return files

    def content_lines(self, file: ReviewedFile) -> list[str]:
        """The text of a file as it was read for the approval, in lines."""
        text = _text_of(self.copies.get(file.pin.digest), file.pin)
        if text is None:
            return [f"(not text, or too long to show; SHA-256 {file.pin.digest})"]
        return _text_lines(text)

    def file_diff(self, name: str, file: ReviewedFile) -> list[str]:
        """The diff of a file, in lines; a note where no line tells the change."""
        old, new, lines = file.before, file.pin, []
        if old.kind is not new.kind:
            lines.append(f"was {old.kind}, is {new.kind}")
        if old.link != new.link:
            lines.append(f"link: was {old.link!r}, is {new.link!r}")
        if old.mode != new.mode and old.kind is new.kind:
            lines.append(f"permissions: were {old.mode:o}, are {new.mode:o}")
        if PinKind.FILE not in {old.kind, new.kind} or old.digest == new.digest:
            return lines
        before = _text_of(self.copies_before.get(old.digest), old)
        after = _text_of(self.copies.get(new.digest), new)
        if before is None or after is None:
            return [*lines, "its bytes changed (not text, or too long to show)"]
        diff = line_diff(
            _text_lines(before),
            _text_lines(after),
            (f"{name} (trusted)", f"{name} (now)"),
            context=3,
        )
        return [*lines, *(diff or ["its bytes changed, and no line that can be shown"])]


def review_project(project: str) -> Review:
    """Compare a project with its approval; raises ``HooklineError``."""
    path, record = record_path(project), None
    if path is not None and record_problem(project) is None:
        record = load_record(path)
    review = _read_project(project)
    if record is None:
        return replace(review, is_unchanged=not review.has_hooks)
    pins, settings = review.manifest.pins(), review.manifest.settings
    alike = [state for state in record.states if state.settings == settings]
    is_unchanged = (
        bool(review.layers)
        and record.version == VERSION
        and any(not differences(state.pins(), pins) for state in alike)
    )
    before = alike[0] if alike and not is_unchanged else next(iter(record.states), None)
    return replace(
        review,
        before=before,
        copies_before={} if is_unchanged else load_copies(project),
        is_unchanged=is_unchanged,
    )


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
    tree = pin_project(layers, project, copies)
    if len(tree) > MAX_PATHS:
        problem = f"holds more than {MAX_PATHS} files, too many to approve"
        raise SettingsError(problem, place.folder)
    files = {}
    for hook in (hook for layer in layers for _, _, hook in layer.hooks()):
        files[hook_id(hook)] = pin_named_files(hook, project, copies)
        if len(files[hook_id(hook)]) > MAX_PATHS:
            problem = f"names more than {MAX_PATHS} files, too many to approve"
            raise SettingsError(f"hook {hook.name!r} {problem}")
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
            options = {k: v for k, v in group.items() if k not in {"hooks", "matcher"}}
            for raw in _objects(group.get("hooks")):
                alone = {"hooks": {name: [{**group, "hooks": [raw]}]}}
                for event, parsed, hook in parse_layer(alone, layer.source).hooks():
                    yield Definition(event, parsed.matcher, hook, options, raw)


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
    paths = NamedPaths(hook, project)
    pinned = dict.fromkeys((*paths.roles, *paths.listed))
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
    folders = [f"{project}/{PROJECT_FOLDER}", *paths.listed]
    for path in paths.roles:
        if os.path.isdir(path) and not is_within_any(path, folders):  # noqa: PTH112
            why = "it is a folder: list it in trustFiles if code is loaded from there"
            unpinned[path, why] = None
    for use in paths.unpinned:
        is_data = use.path not in pinned and os.path.isfile(use.path)  # noqa: PTH113
        if use.why or is_data:
            unpinned[use.path, use.why] = None
    for script, role in paths.roles.items():
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


def line_diff(
    old: list[str],
    new: list[str],
    names: tuple[str, str] = ("trusted", "now"),
    *,
    context: int = 100,
) -> list[str]:
    """A unified diff; one of long texts has a single hunk."""
    if old == new:
        return []
    if max(len(old), len(new)) <= MAX_COMPARED_LINES:
        return list(unified_diff(old, new, *names, lineterm="", n=context))
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    removed, added = (lines[head : len(lines) - tail] for lines in (old, new))
    start = max(0, head - context)
    before, after = old[start:head], old[len(old) - tail :][:context]
    around = len(before) + len(after)
    sizes = (len(removed) + around, len(added) + around)
    marked = ((" ", before), ("-", removed), ("+", added), (" ", after))
    return [
        f"--- {names[0]}",
        f"+++ {names[1]}",
        f"@@ -{start + 1},{sizes[0]} +{start + 1},{sizes[1]} @@",
        *(f"{mark}{line}" for mark, lines in marked for line in lines),
    ]


def _common(old: list[str], new: list[str]) -> int:
    """How many lines both start with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))


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
