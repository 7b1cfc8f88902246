"""Which files a hook names, and pins: what those files were when they were trusted.

Rather one file too many than one too few: too many costs a question now and then, too
few is a guard that can be edited. A pin is the bytes, the permissions and the kind of
one path. Nothing here executes or imports anything, and nothing here waits: a pipe or
a device in a file's place is opened without blocking.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import islice

from msgspec import Struct

from hookline.settings.model import HookConfig, HookType, Stamp
from hookline.shelltext import path_words, project_variables

MAX_COPY_BYTES = 256 * 1024
"""A longer file is pinned by its digest alone: there is no copy to show."""

MAX_TREE_ENTRIES = 20_000

_MAX_MATCHES = 1000
_MODULE = r"-m[\s'\"]*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"
_SOME_MORE = 100
_CHUNK = 1024 * 1024


class PinKind(StrEnum):
    """What is at a path."""

    FILE = "file"
    FOLDER = "folder"
    ABSENT = "absent"
    UNREADABLE = "unreadable"
    OTHER = "other"


class Pin(Struct, frozen=True, omit_defaults=True):
    """What is at a path, to the byte."""

    kind: PinKind
    digest: str = ""
    """SHA-256 of a file's bytes."""
    mode: int = 0
    """A file's permissions: without its ``x`` a guard would not start."""
    link: str | None = None
    """Where the path is a symbolic link: its text. The rest is about its target."""


class TooManyFilesError(Exception):
    """A folder holds more than can be pinned."""


Pins = Mapping[str, Pin]

ABSENT = Pin(PinKind.ABSENT)


def hook_paths(hook: HookConfig, project: str) -> list[str]:
    """Full paths that a hook names, in the project or not, existing or not.

    They may start at the project or at any folder in it that is named. A bare word
    without a dot or a slash counts where such a file exists: ``make`` is a program.
    """
    words = dict.fromkeys(_path_words(hook, project))
    named = (_join(project, word) for word in words)
    inside = (path for path in named if path.startswith(f"{project}/"))
    folders = list(dict.fromkeys((project, *filter(os.path.isdir, inside))))
    found: list[str] = []
    for path, word in ((_join(base, word), word) for word in words for base in folders):
        if "/" in word or "." in word or os.path.lexists(path):
            found += (path, f"{path}/__main__.py") if os.path.isdir(path) else (path,)  # noqa: PTH112 - pathlib is slow
    return list(dict.fromkeys((*found, *_module_places(hook, folders))))


def named_paths(hook: HookConfig, project: str) -> list[str]:
    """The files to pin for one hook; all of ``.hookline`` is pinned anyway."""
    inside = (
        path
        for path in hook_paths(hook, project)
        if path.startswith(f"{project}/")
        and not f"{path}/".startswith(f"{project}/.hookline/")
    )
    return list(dict.fromkeys((*inside, *_imported_files(hook))))


def trust_paths(hook: HookConfig, project: str) -> list[str]:
    """Full paths of a hook's ``trustFiles``; they may be anywhere."""
    from string import Template

    variables = project_variables(project)
    given = (Template(text).safe_substitute(variables) for text in hook.trust_files)
    return [_join(project, os.path.expanduser(path)) for path in given]  # noqa: PTH111


def names_nothing(hook: HookConfig, project: str) -> bool:
    """Whether a hook names no existing file that is pinned."""
    named = (one for one in hook_paths(hook, project) if one.startswith(f"{project}/"))
    paths = (*named, *_imported_files(hook), *trust_paths(hook, project))
    return not any(map(os.path.exists, paths))


def _join(folder: str, path: str) -> str:
    return os.path.normpath(os.path.join(folder, path))  # noqa: PTH118


def _path_words(hook: HookConfig, project: str) -> Iterator[str]:
    # Only the command is shell text; another value counts as one quoted word.
    values = (hook.shell or "", *hook.env.values())
    quoted = ("'" + value.replace("'", " ") + "'" for value in values)
    for text in (hook.command or "", *quoted):
        for word in path_words(text, project):
            yield word
            if "*" in word or "?" in word:
                from glob import escape, iglob

                # The folder too: what is added to it later may match as well.
                yield os.path.dirname(word)  # noqa: PTH120
                matches = iglob(os.path.join(escape(project), word))  # noqa: PTH118, PTH207
                yield from islice(matches, _MAX_MATCHES)


def _module_places(hook: HookConfig, folders: list[str]) -> Iterator[str]:
    """Where the modules may be that a hook runs."""
    names = re.findall(_MODULE, hook.command or "")
    if hook.type is HookType.PYTHON and hook.function is not None:
        names.append(hook.function.partition(":")[0])
        folders = [*folders, f"{folders[0]}/src"]
    for folder in folders:
        for steps in (name.split(".") for name in names):
            stems = ["/".join((folder, *steps[: end + 1])) for end in range(len(steps))]
            yield from (f"{stems[-1]}.py", f"{stems[-1]}/__main__.py")
            yield from (f"{stem}/__init__.py" for stem in stems)


def _imported_files(hook: HookConfig) -> list[str]:
    """The files that importing a Python hook would run, found without importing any."""
    if hook.type is not HookType.PYTHON or hook.function is None:
        return []
    from importlib.machinery import PathFinder
    from importlib.util import find_spec

    found, folders = [], None
    steps = hook.function.partition(":")[0].split(".")
    try:
        for end in range(1, len(steps) + 1):
            name = ".".join(steps[:end])
            spec = PathFinder.find_spec(name, folders) if folders else find_spec(name)
            if spec is not None and spec.origin is not None and spec.has_location:
                found.append(os.path.abspath(spec.origin))  # noqa: PTH100
            folders = spec and spec.submodule_search_locations
            if not folders:
                break
    except (ImportError, ValueError, AttributeError):
        pass  # loading it will fail too, and say so
    return found


def take_pin(path: str, copies: dict[str, bytes] | None = None) -> Pin:
    """Look at one path; the bytes of small files go into ``copies`` by digest."""
    link = _link_text(path)
    try:
        found = os.stat(path)  # noqa: PTH116 - no Path on this path
    except (FileNotFoundError, NotADirectoryError):
        return Pin(PinKind.ABSENT, link=link)
    except (OSError, ValueError):
        return Pin(PinKind.UNREADABLE, link=link)
    if stat.S_ISDIR(found.st_mode):
        return Pin(PinKind.FOLDER, link=link)
    if not stat.S_ISREG(found.st_mode):
        return Pin(PinKind.OTHER, link=link)
    return _pin_of_file(path, link, copies)


def take_tree(
    folder: str,
    skipped: Collection[str] = (),
    copies: dict[str, bytes] | None = None,
    known: Pins | None = None,
) -> dict[str, Pin]:
    """Look at a folder and everything below it, by full path.

    Where ``known`` is given, the walk ends soon after it has found more than that: the
    folder has changed, and walking all of it would take too long.
    """
    most = MAX_TREE_ENTRIES if known is None else len(known) + _SOME_MORE
    found = {folder: take_pin(folder)}
    for path in _walk(folder, skipped):
        if len(found) >= most:
            if known is None:
                raise TooManyFilesError(folder)
            break
        found[path] = take_pin(path, copies)
    return found


def take_stamp(paths: Iterable[str]) -> Stamp:
    """What the file system says about paths: cheap, and different after a change."""
    return tuple(map(_stamp_of, paths))


def newest_ns(stamp: Stamp) -> int:
    """When the last of the changes that a stamp knows of was made."""
    return max((max(one[0], one[1]) for one in stamp if one is not None), default=0)


def difference(before: Pins, now: Pins) -> str | None:
    """The first path that is not as it was, if any."""
    if before == now:
        return None
    for path in sorted(before.keys() | now.keys()):
        if before.get(path, ABSENT) != now.get(path, ABSENT):
            return path
    return None


def _stamp_of(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    # A change of mode or owner shows in st_ctime_ns, which nobody can set.
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _link_text(path: str) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115
    except (OSError, ValueError):
        return None  # no link, which is the rule


def _pin_of_file(path: str, link: str | None, copies: dict[str, bytes] | None) -> Pin:
    import hashlib

    digest = hashlib.sha256()
    # Non-blocking: a named pipe may have taken the file's place since it was seen.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    head, pieces = b"", 0
    try:
        with open(os.open(path, flags), "rb", buffering=0) as file:  # noqa: PTH123
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return Pin(PinKind.OTHER, link=link)
            while piece := file.read(_CHUNK):
                digest.update(piece)
                head, pieces = head or piece, pieces + 1
    except OSError:
        return Pin(PinKind.UNREADABLE, link=link)
    name = digest.hexdigest()
    if copies is not None and pieces <= 1 and len(head) <= MAX_COPY_BYTES:
        copies[name] = head
    return Pin(PinKind.FILE, name, stat.S_IMODE(found.st_mode), link)


def _walk(folder: str, skipped: Collection[str]) -> Iterator[str]:
    """Every path below a folder, also through links to folders, each folder once."""
    waiting, seen = [folder], set()
    while waiting:
        current = waiting.pop()
        try:
            place = os.stat(current)  # noqa: PTH116
            if (place.st_dev, place.st_ino) in seen:
                continue
            seen.add((place.st_dev, place.st_ino))
            names = sorted(os.listdir(current))  # noqa: PTH208
        except OSError:
            continue  # it is pinned as what it is: no folder, or not to be looked into
        for name in names:
            path = f"{current}/{name}"
            if path in skipped:
                continue
            yield path
            if os.path.isdir(path):  # noqa: PTH112
                waiting.append(path)
