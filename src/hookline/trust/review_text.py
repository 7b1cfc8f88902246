"""A review as text, line by line: what ``hookline trust`` and the page show.

Texts of the project are escaped and indented, so that none can pass for the review.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from difflib import unified_diff
from typing import Any

import msgspec
from msgspec import Struct

from hookline.protocol.events import HookEventName
from hookline.protocol.values import encode, printable
from hookline.settings.check import risky_variables
from hookline.settings.model import (
    REQUIRED_BY_TYPE,
    HookConfig,
    HookType,
    SettingsLayer,
)
from hookline.settings.parse import parse_layer
from hookline.settings.places import PROJECT_FOLDER, is_within
from hookline.shell.uses import Role, modules_beside

from .pins import (
    ABSENT,
    NamedPaths,
    Pin,
    PinKind,
    differences,
    is_python,
    is_within_any,
)
from .review import Review

Paint = Callable[[str, str], str]
"""Gives a text a colour, or ``bold``."""

MAX_COMPARED_LINES = 500
"""Comparing takes time that grows with the square of the lines, and more."""
_STYLES = {"new": "yellow", "trusted": "green"}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "blue"}
_INDENT = " " * 9
_UNUSUAL = {
    PinKind.ABSENT: "  does not exist; creating it is a change",
    PinKind.UNREADABLE: "  cannot be read, so its content is not pinned",
    PinKind.OTHER: "  is not a regular file, so its content is not pinned",
}


class Definition(Struct, frozen=True):
    """One hook, with everything that its settings say about it."""

    event: HookEventName
    matcher: str | None
    hook: HookConfig
    group: dict[str, Any]
    """The other keys of its group, as they are written."""
    raw: dict[str, Any]
    """All its keys as they are written, those that nobody knows too."""

    def lines(self) -> list[str]:
        """The definition as text, for a diff."""
        group = {"event": self.event.value, "matcher": self.matcher, **self.group}
        return _json_lines({"group": group, "hook": self.raw})


class ReviewText:
    """Everything that an approval would cover."""

    def __init__(self, review: Review, paint: Paint = lambda text, _: text) -> None:
        self._review = review
        self._project = review.manifest.project
        self._paint = paint
        before = review.before
        self._layers_before = before.layers() if before is not None else []
        self._pins_before = before.pins() if before is not None else {}
        self._pins = review.manifest.pins()
        different = differences(self._pins_before, self._pins)
        self._different = dict.fromkeys(different)

    def lines(self, *, show: bool) -> Iterator[str]:
        """All lines; with the text of new and changed files if they are to be shown."""
        yield from (self._paint(escaped(self._project), "bold"), "")
        for layer in self._review.layers:
            for warning in layer.warnings:
                yield f"{self._paint('warning', 'yellow')}  {escaped(warning)}"
        yield from self._hooks()
        yield from self._options()
        yield from self._files(show=show)

    def _hooks(self) -> Iterator[str]:
        """Every hook of the project, and those of the approval that are gone."""
        manifest, before = self._review.manifest, self._review.before
        approved = _definitions(self._layers_before)
        covered: list[Definition | None] = []
        for definition in _definitions(self._review.layers):
            hook, previous, change = definition.hook, None, "new"
            notes = list(_notes(hook, self._project))
            if before is not None and definition in approved:
                change = "trusted"
                is_used = not before.named_by(hook).keys().isdisjoint(self._different)
                if is_used or before.tree != manifest.tree:
                    change = "changed"
                    notes.insert(0, ("", "unchanged; a file that it uses changed"))
            else:
                place = (definition.event, hook.name)
                namesakes = (d for d in approved if (d.event, d.hook.name) == place)
                if previous := next(namesakes, None):
                    change = "changed"
            covered += [definition, previous]
            yield from self._definition(change, definition)
            for path, pin in manifest.named_by(hook).items():
                if pin.kind is PinKind.FILE:
                    yield f"{_INDENT}pins   {self._relative(path)}"
            for path, note in notes:
                about = path and f"{self._relative(path)} "
                yield f"{_INDENT}note   {about}{escaped(note)}"
            if previous is not None:
                diff = line_diff(previous.lines(), definition.lines())
                yield from self._diff(diff, _INDENT)
            yield ""
        for definition in approved:
            if definition not in covered:
                yield from self._definition("removed", definition)
                yield ""

    def _definition(self, change: str, definition: Definition) -> Iterator[str]:
        """A hook with every key that is set, whether Hookline knows it or not."""
        hook = definition.hook
        mark = self._paint(f"{change:8}", _STYLES.get(change, "red"))
        name = self._paint(escaped(hook.name), "bold")
        where = f"{definition.event.value} {escaped(definition.matcher or '*')}"
        yield f"{mark} {name}  on {where}  ({hook.type.value})"
        headline = {"type": hook.type.value, "name": hook.name}
        key = REQUIRED_BY_TYPE.get(hook.type, "")
        if isinstance(runs := getattr(hook, key, None), str):
            headline[key] = runs
            yield f"{_INDENT}runs   {escaped(runs)}"
        for key, value in definition.group.items():
            yield f"{_INDENT}{escaped(key)} of the group: {_json(value)}"
        for key, value in definition.raw.items():
            if value != headline.get(key):
                yield f"{_INDENT}{escaped(key)}: {_json(value)}"
        caution = self._paint("caution", "red")
        for variable in risky_variables(hook.env):
            text = "changes which programs or files the command uses: look at it "
            yield f"{_INDENT}{caution} {escaped(variable)} {text}closely"
        for variable in hook.allowed_env:
            text = "of your environment may be sent to this url"
            yield f"{_INDENT}{caution} {escaped(variable)} {text}"

    def _options(self) -> Iterator[str]:
        """What settings files say beside their hooks, where that is not as approved."""
        options_before = _other_settings(self._layers_before)
        options_now = _other_settings(self._review.layers)
        for file in {**options_before, **options_now}:
            before, options = options_before.get(file, {}), options_now.get(file, {})
            if before == options:
                continue
            yield f"{self._paint('options', 'yellow')}  {escaped(file)}"
            if before:
                diff = line_diff(_json_lines(before), _json_lines(options))
                yield from self._diff(diff, _INDENT)
            else:
                for key, value in options.items():
                    yield f"{_INDENT}{escaped(key)}: {_json(value)}"
            yield ""

    def _files(self, *, show: bool) -> Iterator[str]:
        """Every path that would be approved, and what changed in those that were."""
        review, paint = self._review, self._paint
        # Of plain folders nobody has to be told.
        pinned = {
            path: pin
            for path, pin in sorted(self._pins.items())
            if pin.kind is not PinKind.FOLDER or pin.link is not None
        }
        if pinned:
            yield f"Files included in this approval ({len(pinned):,}):"
            for path, pin in pinned.items():
                size = ""
                if pin.kind is PinKind.FILE:
                    unit = "byte" if pin.size == 1 else "bytes"
                    size = f"  {pin.size:,} {unit}"
                target = "" if pin.link is None else f" -> {escaped(pin.link)}"
                line = f"{self._relative(path)}{target}{size}"
                yield f"  {self._change(path):8} {line}{_UNUSUAL.get(pin.kind, '')}"
            yield ""
        for path in self._different if review.before is not None else ():
            before = self._pins_before.get(path, ABSENT)
            pin = self._pins.get(path, ABSENT)
            # The text of a new one follows.
            if not (show and before == ABSENT and pin.kind is PinKind.FILE):
                name = self._relative(path)
                yield f"{paint('changed', 'red')} {name}"
                yield from self._diff(self._file_diff(name, before, pin), "  ")
                yield ""
        for path, pin in pinned.items() if show else ():
            if pin.kind is PinKind.FILE and self._change(path) != "trusted":
                yield paint(self._relative(path), "bold")
                text = _text_of(review.copies.get(pin.digest), pin)
                lines = [f"(not text, or too long to show; SHA-256 {pin.digest})"]
                for line in lines if text is None else _text_lines(text):
                    yield "  | " + printable(line, keep="\t")
                yield ""

    def _change(self, path: str) -> str:
        """How a path that would be approved differs from the approval."""
        if path not in self._pins_before:
            return "new"
        return "changed" if path in self._different else "trusted"

    def _file_diff(self, name: str, old: Pin, new: Pin) -> list[str]:
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
        before = _text_of(self._review.copies_before.get(old.digest), old)
        after = _text_of(self._review.copies.get(new.digest), new)
        if before is None or after is None:
            return [*lines, "its bytes changed (not text, or too long to show)"]
        names = (f"{name} (trusted)", f"{name} (now)")
        diff = line_diff(_text_lines(before), _text_lines(after), names, context=3)
        return [*lines, *(diff or ["its bytes changed, and no line that can be shown"])]

    def _diff(self, lines: list[str], indent: str) -> Iterator[str]:
        for line in lines:
            text, style = printable(line, keep="\t"), _DIFF_STYLES.get(line[:1])
            yield indent + (text if style is None else self._paint(text, style))

    def _relative(self, path: str) -> str:
        is_inside = path.startswith(f"{self._project}/")
        return escaped(os.path.relpath(path, self._project) if is_inside else path)


def _definitions(layers: list[SettingsLayer]) -> list[Definition]:
    """The hooks of layers; parsed one by one, so that each keeps what is written."""
    definitions = []
    for layer in layers:
        events = layer.raw.get("hooks")
        for name, groups in events.items() if isinstance(events, dict) else ():
            for group in _objects(groups):
                options = dict(group)
                hooks = _objects(options.pop("hooks", None))
                options.pop("matcher", None)
                for raw in hooks:
                    alone = {"hooks": {name: [{**group, "hooks": [raw]}]}}
                    parsed = parse_layer(alone, layer.source).hooks()
                    definitions += [
                        Definition(event, parsed_group.matcher, hook, options, raw)
                        for event, parsed_group, hook in parsed
                    ]
    return definitions


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


def escaped(text: str) -> str:
    """Keep a text on one line, with its line breaks and long gaps visible."""
    shown = printable(text, keep="\t")
    return re.sub(r"[ \t]{9,}", lambda gap: f" [{len(gap[0])} blanks] ", shown)


def _json(value: Any) -> str:
    return escaped(encode(value).decode())
