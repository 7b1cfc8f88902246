"""Functions for expressions beside CEL's own: paths and command lines.

They read nothing but where paths lead to. What they cannot judge raises, so that the
rule fails instead of saying no.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import lru_cache
from threading import local
from typing import Any

_MAX_PATH = 4096
_MAX_PATTERN = 1000
_MAX_CHOICES = 100
MAX_EXPANDED = 2000


class _Folders(local):
    """Where relative paths start, for the evaluation that is running."""

    cwd = "/"
    project = "/"


folders = _Folders()


def within(path: str, folder: str) -> bool:
    """Whether a path leads into a folder, or to it, whatever it is spelled like.

    The path is relative to the working directory, the folder to the project.
    """
    return _is_within(real_path(path), _real(folder, folders.project))


def glob(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern, as it is spelled or where it leads to.

    A relative pattern starts at the project; ``**/x`` matches in every folder.
    """
    if len(pattern) > _MAX_PATTERN:
        raise ValueError(f"a pattern has at most {_MAX_PATTERN} characters")
    project = os.path.realpath(folders.project)
    spelled = os.path.normpath(_absolute(path, folders.cwd))
    flags = re.IGNORECASE if _folds_case(_existing(project)) else 0
    candidates = {spelled, real_path(path), _from_project(spelled, project)}
    globs = _globs(pattern, project, flags)
    return any(
        _matches(parts, candidate) for candidate in candidates for parts in globs
    )


def programs(line: str) -> list[str]:
    """The names of all programs that a shell line would start."""
    from hookline.shell.commands import programs as read

    return read(line)


def programs_of_words(words: list[Any]) -> list[str]:
    """The same for a command that is given word by word."""
    return programs(_line_of(words))


def runs(line: str, pattern: str) -> bool:
    """Whether a shell line would run a command like this; ``*`` is any text."""
    from hookline.shell.commands import runs as read

    return read(line, pattern)


def runs_of_words(words: list[Any], pattern: str) -> bool:
    """The same for a command that is given word by word."""
    return runs(_line_of(words), pattern)


def _line_of(words: list[Any]) -> str:
    import shlex

    return shlex.join(map(str, words))


NAMES = frozenset({"within", "glob", "programs", "runs"})
"""How expressions call them."""


def find(name: str, args: list[Any]) -> Callable[..., Any] | None:
    """The function for such arguments; None if there is none."""
    kinds = [type(arg) for arg in args]
    if kinds == [list] and name == "programs":
        return programs_of_words
    if kinds == [list, str] and name == "runs":
        return runs_of_words
    if any(kind is not str for kind in kinds):
        return None
    functions = {"within": within, "glob": glob, "runs": runs}
    return functions.get(name, programs)


def real_path(path: str) -> str:
    """Where a path of the event leads to."""
    return _real(path, folders.cwd)


def _real(path: str, start: str) -> str:
    return os.path.realpath(_absolute(path, start))


def _absolute(path: str, start: str) -> str:
    if len(path) > _MAX_PATH:
        raise ValueError(f"a path has at most {_MAX_PATH} characters")
    if path != path.strip():
        raise ValueError("blanks around a path: some tools remove them, others do not")
    if path[:7].lower() == "file://":
        from urllib.parse import unquote, urlsplit

        path = unquote(urlsplit(path).path)
    return os.path.join(start, os.path.expanduser(path))  # noqa: PTH111, PTH118


def _from_project(spelled: str, project: str) -> str:
    """A path spelled by way of the project's own name, as if it were resolved."""
    folder = os.path.normpath(folders.project)
    inside = spelled.startswith(f"{folder}/")
    return project + spelled[len(folder) :] if inside else spelled


def _is_within(path: str, folder: str) -> bool:
    if path == folder or path.startswith(f"{folder.rstrip('/')}/"):
        return True
    # The file system knows which names mean the same folder.
    try:
        folder_status = os.stat(folder)  # noqa: PTH116
    except OSError:
        return _is_within_unmade(path, folder)
    while True:
        try:
            path_status = os.stat(path)  # noqa: PTH116
            if (path_status.st_dev, path_status.st_ino) == (
                folder_status.st_dev,
                folder_status.st_ino,
            ):
                return True
        except OSError:
            pass  # not made yet
        parent = os.path.dirname(path)  # noqa: PTH120
        if parent == path:
            return False
        path = parent


def _is_within_unmade(path: str, folder: str) -> bool:
    """The same for a folder that does not exist."""
    if not _folds_case(_existing(folder)):
        return False
    path, folder = path.casefold(), folder.casefold()
    return path == folder or path.startswith(f"{folder}/")


def _existing(path: str) -> str:
    while not os.path.lexists(path) and path not in {"", "/"}:
        path = os.path.dirname(path)  # noqa: PTH120
    return path


@lru_cache(maxsize=64)
def _folds_case(folder: str) -> bool:
    """Whether names in another case mean the same files here."""
    parent, name = os.path.split(folder)
    other = name.swapcase()
    if other == name:
        return parent not in {"", folder} and _folds_case(parent)
    try:
        return os.path.samefile(folder, f"{parent}/{other}")  # noqa: PTH121
    except OSError:
        return False


Parts = tuple[re.Pattern[str] | None, ...]
"""Of a glob: a pattern for each name, None for ``**``."""


def _matches(parts: Parts, path: str) -> bool:
    """Whether a path matches; in steps, because a regular expression could hang."""
    names = path.split("/")[1:]
    reached = {0}
    for part in parts:
        if part is None:
            reached = set(range(min(reached), len(names) + 1))
        else:
            ahead = (i for i in reached if i < len(names))
            reached = {i + 1 for i in ahead if part.fullmatch(names[i])}
        if not reached:
            return False
    return len(names) in reached


@lru_cache(maxsize=1024)
def _globs(pattern: str, project: str, flags: int) -> tuple[Parts, ...]:
    """A pattern for absolute paths: one glob for each choice of its braces."""
    import fnmatch

    globs = []
    for text in _choices(pattern):
        start = os.path.expanduser(text)  # noqa: PTH111
        if not start.startswith(("/", "**/")):
            start = f"{_escaped(project)}/{start}"
        names = [name for name in start.split("/") if name not in {"", "."}]
        texts = (None if name == "**" else fnmatch.translate(name) for name in names)
        parts = (None if text is None else re.compile(text, flags) for text in texts)
        globs.append(tuple(parts))
    return tuple(globs)


def _escaped(path: str) -> str:
    """A path as a glob that matches nothing else."""
    return re.sub(r"([*?[])", r"[\1]", path.rstrip("/"))


def _choices(pattern: str) -> list[str]:
    """A pattern without braces, once for each choice that they give."""
    patterns, texts = [pattern], []
    while patterns:
        text = patterns.pop()
        braces = re.search(r"\{([^{}]*)\}", text)
        if braces is None:
            texts.append(text)
            continue
        if len(patterns) + len(texts) > _MAX_CHOICES:
            raise ValueError(f"a pattern has at most {_MAX_CHOICES} choices")
        before, after = text[: braces.start()], text[braces.end() :]
        patterns += [f"{before}{choice}{after}" for choice in braces[1].split(",")]
    if sum(map(len, texts)) > MAX_EXPANDED:
        raise ValueError(
            f"the choices of a pattern have at most {MAX_EXPANDED} characters in all"
        )
    return texts
