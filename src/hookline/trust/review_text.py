"""A review as text, line by line: what ``hookline trust`` and the page show.

Texts of the project are escaped and indented, so that none can pass for the review.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from hookline.protocol.values import encode, printable

from .pins import ABSENT, PinKind
from .review import Change, Review, ReviewedHook, line_diff

Paint = Callable[[str, str], str]
"""Gives a text a colour, or ``bold``."""

_STYLES = {Change.NEW: "yellow", Change.SAME: "green"}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "blue"}
_INDENT = " " * 9


class ReviewText:
    """Everything that an approval would cover."""

    def __init__(self, review: Review, paint: Paint = lambda text, _: text) -> None:
        self._review = review
        self._project = review.manifest.project
        self._paint = paint

    def lines(self, *, show: bool) -> Iterator[str]:
        """All lines; with the text of new and changed files if they are to be shown."""
        review, paint = self._review, self._paint
        yield from (paint(escaped(self._project), "bold"), "")
        for layer in review.layers:
            for warning in layer.warnings:
                yield f"{paint('warning', 'yellow')}  {escaped(warning)}"
        for hook in review.hooks():
            yield from self._hook(hook)
        for options in review.changed_options():
            yield f"{paint('options', 'yellow')}  {escaped(options.file)}"
            if options.before:
                yield from self._diff(options.diff(), _INDENT)
            else:
                for key, value in options.options.items():
                    yield f"{_INDENT}{escaped(key)}: {_json(value)}"
            yield ""
        files = review.files()
        if pinned := [file for file in files if file.is_pinned]:
            yield f"Files included in this approval ({len(pinned):,}):"
            for file in pinned:
                link, size, note = file.pin.link, "", file.note and f"  {file.note}"
                if file.pin.kind is PinKind.FILE:
                    unit = "byte" if file.pin.size == 1 else "bytes"
                    size = f"  {file.pin.size:,} {unit}"
                target = "" if link is None else f" -> {escaped(link)}"
                name = self._relative(file.path)
                yield f"  {file.change.value:8} {name}{target}{size}{note}"
            yield ""
        for file in files if review.before is not None else ():
            is_new = file.before == ABSENT and file.pin.kind is PinKind.FILE
            # The text of a new one follows.
            if file.is_different and not (show and is_new):
                name = self._relative(file.path)
                yield f"{paint('changed', 'red')} {name}"
                yield from self._diff(review.file_diff(name, file), "  ")
                yield ""
        for file in files if show else ():
            if file.pin.kind is PinKind.FILE and file.change is not Change.SAME:
                yield paint(self._relative(file.path), "bold")
                for line in review.content_lines(file):
                    yield "  | " + printable(line, keep="\t")
                yield ""

    def _hook(self, reviewed: ReviewedHook) -> Iterator[str]:
        definition, hook = reviewed.definition, reviewed.definition.hook
        style = _STYLES.get(reviewed.change, "red")
        mark = self._paint(f"{reviewed.change.value:8}", style)
        name = self._paint(escaped(hook.name), "bold")
        where = f"{definition.event.value} {escaped(definition.matcher or '*')}"
        yield f"{mark} {name}  on {where}  ({hook.type.value})"
        for command in definition.runs.values():
            yield f"{_INDENT}runs   {escaped(command)}"
        for key, value in definition.other_keys():
            yield f"{_INDENT}{escaped(key)}: {_json(value)}"
        for variable, text in definition.cautions():
            caution = self._paint("caution", "red")
            yield f"{_INDENT}{caution} {escaped(variable)} {text}"
        if reviewed.change is not Change.REMOVED:
            for path in reviewed.files:
                yield f"{_INDENT}pins   {self._relative(path)}"
        for path, note in reviewed.notes:
            about = path and f"{self._relative(path)} "
            yield f"{_INDENT}note   {about}{escaped(note)}"
        if reviewed.before is not None:
            diff = line_diff(reviewed.before.lines(), definition.lines())
            yield from self._diff(diff, _INDENT)
        yield ""

    def _diff(self, lines: list[str], indent: str) -> Iterator[str]:
        for line in lines:
            text, style = printable(line, keep="\t"), _DIFF_STYLES.get(line[:1])
            yield indent + (text if style is None else self._paint(text, style))

    def _relative(self, path: str) -> str:
        is_inside = path.startswith(f"{self._project}/")
        return escaped(os.path.relpath(path, self._project) if is_inside else path)


def escaped(text: str) -> str:
    """Keep a text on one line, with its line breaks and long gaps visible."""
    shown = printable(text, keep="\t")
    return re.sub(r"[ \t]{9,}", lambda gap: f" [{len(gap[0])} blanks] ", shown)


def _json(value: Any) -> str:
    return escaped(encode(value).decode())
