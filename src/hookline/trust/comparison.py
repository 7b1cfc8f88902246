"""What changed since an approval, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

import msgspec

from hookline.protocol.values import encode

from .pins import Pin, PinKind
from .records import copy_of

MAX_COMPARED_LINES = 500
"""Comparing takes time that grows with the square of the lines, and more."""


def file_diff(
    path: str, old: Pin, new: Pin, copies: dict[str, bytes], *, quick: bool = False
) -> list[str]:
    """The diff of a file, in lines; a note instead where no line tells the change."""
    lines = list(_changed_properties(old, new))
    if PinKind.FILE not in {old.kind, new.kind} or old.digest == new.digest:
        return lines
    before = text_of(copy_of(old.digest), old)
    after = text_of(copies.get(new.digest), new)
    if before is None or after is None:
        return [*lines, "its bytes changed (not text, or too long to show)"]
    names = (f"{path} (trusted)", f"{path} (now)")
    texts = text_lines(before), text_lines(after)
    found = list(_line_diff(*texts, names, quick=quick))
    return [*lines, *(found or ["its bytes changed, and no line that can be shown"])]


def text_lines(text: str) -> list[str]:
    """The lines as programs see them: a form feed, say, ends none."""
    return text.removesuffix("\n").split("\n") if text else []


def json_lines(value: dict[str, Any]) -> list[str]:
    """Settings as indented JSON, in lines."""
    return msgspec.json.format(encode(value), indent=2).decode().split("\n")


def definition_diff(
    before: list[str], now: list[str], *, quick: bool = False
) -> list[str]:
    """The diff of definitions or of other settings, in lines."""
    names = ("trusted", "now")
    return list(_line_diff(before, now, names, context=100, quick=quick))


def _changed_properties(old: Pin, new: Pin) -> Iterator[str]:
    if old.kind is not new.kind:
        yield f"was {old.kind}, is {new.kind}"
    if old.link != new.link:
        yield f"link: was {old.link!r}, is {new.link!r}"
    if old.mode != new.mode and old.kind is new.kind:
        yield f"permissions: were {old.mode:o}, are {new.mode:o}"


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


def text_of(content: bytes | None, pin: Pin) -> str | None:
    """The content of a pinned file, None where it is not text or was not kept."""
    if pin.kind is not PinKind.FILE:
        return ""
    if content is None:
        return None
    # A few odd bytes keep no shell from running a script: they must not hide it.
    text = content.decode("utf-8", "replace")
    odd = sum(c == "\ufffd" or not (c.isprintable() or c.isspace()) for c in text)
    return text if odd * 10 <= len(text) else None
