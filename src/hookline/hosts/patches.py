"""Read a patch in the form that models write for ``apply_patch``: file by file.

A patch that a host applies never gives fewer files here than it touches, nor other
lines for a file: sections end where Codex ends them. What only a more lenient reader
takes for a file is shown as well: one event too many, never one too few.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

Wire = dict[str, Any]
Part = tuple[str, Wire]

PATCH_MARK = "*** Begin Patch"
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: ?(.*)", re.DOTALL)
_MOVE = re.compile(r"\*\*\* Move to: ?(.*)", re.DOTALL)
_END = "*** End Patch"
# What hosts trim around a marker; those in JavaScript also a byte order mark.
_SPACE = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_MARK = "\ufeff"
_DROPPED = re.compile(r"[\t\r\n]")
_WORD = r"""'[^']*'|"[^"]*"|(?:\\.|[^\s;&|<>()'"\\])+"""
_CD = re.compile(rf"(?:^|[\s;&|(])cd[ \t]+(?:--[ \t]+)?({_WORD})")
_ONLY_CD = re.compile(rf"\s*cd[ \t]+(?:{_WORD})\s*&&\s*(?:apply_patch|applypatch)\b")
_PLAIN = re.compile(r"[^$`\\~*?\[{!]*")
_EXPANSION = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|`[^`]*`|\$\w+")
_MOST_FOLDERS, _MOST_CHARACTERS = 16, 4096


class _Section(Struct):
    """One file of a patch, with the lines of its change."""

    action: str
    path: str
    lines: list[str] = []
    moves: list[str] = []


def patch_parts(text: str, folder: str = "") -> list[Part]:
    """Our tool and its input for every file that a patch touches.

    Relative paths are those of ``folder``.
    """
    sections = _sections(text)
    plain = text.replace("\r\n", "\n")
    if "\r" in plain:
        # A line end of its own for Copilot, a part of the line for Codex.
        sections += _sections(plain.replace("\r", "\n"))
    return [part for section in sections for part in _parts(section, folder)]


def command_parts(command: str) -> list[Part]:
    """The files of the patches in a shell command, none for other commands."""
    marks = [match.start() for match in re.finditer(re.escape(PATCH_MARK), command)]
    if not marks:
        return []
    folders = dict.fromkeys(_folders(command, marks))
    if len(marks) != 1 or len(folders) != 1 or not _ONLY_CD.match(command):
        # Where the shell goes is a guess: guards see the path as it is written, too.
        folders[""] = None
    return [part for folder in folders for part in patch_parts(command, folder)]


def _folders(command: str, marks: list[int]) -> Iterator[str]:
    """Where a shell is at each mark, after the ``cd`` before it, as far as they tell.

    Bounded: a command that nobody can read through is still one that guards see.
    """
    moves = [(match.start(), match[1].strip("'\"")) for match in _CD.finditer(command)]
    folders, at = [""], 0
    for mark in marks[:_MOST_FOLDERS]:
        for start, word in moves[at : at + _MOST_FOLDERS]:
            if start < mark:
                at += 1
                joined = [
                    posixpath.join(folder, reading)
                    for folder in folders
                    for reading in _readings(word)
                ]
                short = [path for path in joined if len(path) <= _MOST_CHARACTERS]
                folders = [*dict.fromkeys(short)][:_MOST_FOLDERS] or [""]
        yield from folders


def _readings(word: str) -> list[str]:
    """What ``cd`` may go to.

    Codex takes the word as it is written, or a literal piece of one with variables in
    it; a shell takes away the backslashes.
    """
    if _PLAIN.fullmatch(word) or len(word) > _MOST_CHARACTERS:
        return [word]
    pieces = filter(None, _EXPANSION.split(word))
    return [word, re.sub(r"\\(.)", r"\1", word), *pieces, ""]


def _sections(text: str) -> list[_Section]:
    sections: list[_Section] = []
    # The file that a line belongs to, and the one that a lenient reader has opened.
    current: list[_Section] = []
    for raw in text.split("\n"):
        line = raw.removesuffix("\r")
        trimmed = line.rstrip(_SPACE).lstrip(_SPACE + _MARK)
        # In an update, a marker with space before it is a line of the file.
        is_update = bool(current) and current[0].action == "Update"
        strict = line.rstrip(_SPACE) if is_update else trimmed
        if marker := _FILE.fullmatch(strict):
            current = [_Section(marker[1], marker[2])]
            sections += current
            continue
        if strict == _END:
            current = []
            continue
        move = _MOVE.fullmatch(trimmed)
        for section in current:
            section.lines.append(line)
            section.moves += [move[1]] if move else []
        if marker := _FILE.fullmatch(trimmed):
            current[1:] = [_Section(marker[1], marker[2])]
            sections.append(current[-1])
    return sections


def _parts(section: _Section, folder: str) -> Iterator[Part]:
    lines = section.lines
    new = _side(lines, "+")
    for path in _paths(section.path, folder):
        if section.action == "Add":
            content = "\n".join(line[1:] for line in lines if line.startswith("+"))
            yield "write_file", {"path": path, "content": content}
        elif section.action == "Delete":
            yield "delete_file", {"path": path}
        else:
            sides = {"old_string": _side(lines, "-"), "new_string": new}
            yield "replace", {"path": path, **sides}
        if section.moves:
            yield "delete_file", {"path": path}
    for move in section.moves:
        for path in _paths(move, folder):
            yield "write_file", {"path": path, "content": new}


def _paths(written: str, folder: str) -> list[str]:
    """The path of a marker, and what hosts make of one with odd characters in it.

    Codex keeps the space around it and drops tabs and carriage returns within.
    """
    spellings = [written, written.strip(_SPACE + _MARK), _DROPPED.sub("", written)]
    return [posixpath.join(folder, path) for path in dict.fromkeys(spellings)]


def _side(lines: list[str], mark: str) -> str:
    """The lines of a change as they were (``-``) or will be (``+``)."""
    side = (line for line in lines if line[:1] in (mark, " ", ""))
    return "\n".join(line[1:] for line in side)
