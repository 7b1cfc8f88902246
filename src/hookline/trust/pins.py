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
from contextlib import suppress
from enum import StrEnum
from itertools import accumulate, islice

from msgspec import Struct

from hookline.settings.locations import PROJECT_FOLDER
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
    own = f"{project}/{PROJECT_FOLDER}/"
    inside = (path for path in _inside(hook, project) if not f"{path}/".startswith(own))
    return list(dict.fromkeys((*inside, *_imported_files(hook))))


def _inside(hook: HookConfig, project: str) -> list[str]:
    return [one for one in hook_paths(hook, project) if one.startswith(f"{project}/")]


def trust_paths(hook: HookConfig, project: str) -> list[str]:
    """Full paths of a hook's ``trustFiles``; they may be anywhere."""
    from string import Template

    variables = project_variables(project)
    given = (Template(text).safe_substitute(variables) for text in hook.trust_files)
    return [_join(project, os.path.expanduser(path)) for path in given]  # noqa: PTH111


def names_nothing(hook: HookConfig, project: str) -> bool:
    """Whether a hook names no existing file that is pinned."""
    outside = (*_imported_files(hook), *trust_paths(hook, project))
    return not any(map(os.path.exists, (*_inside(hook, project), *outside)))


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
            stems = list(accumulate((folder, *steps), "{}/{}".format))[1:]
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
        for name in accumulate(steps, "{}.{}".format):
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
    link = None
    with suppress(OSError, ValueError):  # most paths are no links
        link = os.readlink(path)  # noqa: PTH115
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - no Path on this path
    except (FileNotFoundError, NotADirectoryError):
        return Pin(PinKind.ABSENT, link=link)
    except (OSError, ValueError):
        return Pin(PinKind.UNREADABLE, link=link)
    if stat.S_ISREG(mode):
        return _pin_of_file(path, link, copies)
    return Pin(PinKind.FOLDER if stat.S_ISDIR(mode) else PinKind.OTHER, link=link)


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
    found |= {
        path: take_pin(path, copies) for path in islice(_walk(folder, skipped), most)
    }
    if known is None and len(found) > most:
        raise TooManyFilesError(folder)
    return found


def pin_named_files(
    hook: HookConfig,
    project: str,
    copies: dict[str, bytes] | None = None,
    known: Pins | None = None,
) -> dict[str, Pin]:
    """Pin every file outside ``.hookline`` that a hook names."""
    found = {path: take_pin(path, copies) for path in named_paths(hook, project)}
    for path in trust_paths(hook, project):
        found |= take_tree(path, copies=copies, known=known)
        found[path] = take_pin(path, copies)
    return found


def take_stamp(paths: Iterable[str]) -> Stamp:
    """What the file system says about paths: cheap, and different after a change."""
    return tuple(map(_stamp_of, paths))


def newest_ns(stamp: Stamp) -> int:
    """When the last of the changes that a stamp knows of was made."""
    return max((max(one[0], one[1]) for one in stamp if one is not None), default=0)


def differences(before: Pins, now: Pins) -> list[str]:
    """The paths that are not as they were, sorted."""
    paths = () if before == now else sorted(before.keys() | now.keys())
    return [one for one in paths if before.get(one, ABSENT) != now.get(one, ABSENT)]


def _stamp_of(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    # A change of mode or owner shows in st_ctime_ns, which nobody can set.
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _pin_of_file(path: str, link: str | None, copies: dict[str, bytes] | None) -> Pin:
    import hashlib

    # Non-blocking: a named pipe may have taken the file's place since it was seen.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        with open(os.open(path, flags), "rb") as file:  # noqa: PTH123
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return Pin(PinKind.OTHER, link=link)
            head = file.read(MAX_COPY_BYTES + 1)
            digest = hashlib.sha256(head)
            while piece := file.read(_CHUNK):
                digest.update(piece)
    except OSError:
        return Pin(PinKind.UNREADABLE, link=link)
    name = digest.hexdigest()
    if copies is not None and len(head) <= MAX_COPY_BYTES:
        copies[name] = head
    return Pin(PinKind.FILE, name, stat.S_IMODE(found.st_mode), link)


def _walk(folder: str, skipped: Collection[str]) -> Iterator[str]:
    """Every path below a folder, also through links to folders, each folder once."""
    # os.walk is recursive in Python 3.11: a deep tree would raise.
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
        paths = [path for name in names if (path := f"{current}/{name}") not in skipped]
        yield from paths
        waiting += filter(os.path.isdir, paths)
