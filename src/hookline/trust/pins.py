"""Which files a hook names, and pins: what those files were when they were trusted.

A pin is the bytes, the permissions and the kind of one path. Nothing here executes or
imports anything, and nothing here waits: a pipe or a device in a file's place is opened
without blocking.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate, islice

from msgspec import Struct

from hookline.settings.model import HookConfig, HookType, SettingsLayer
from hookline.settings.places import (
    PROJECT_FOLDER,
    is_within,
    module_folders,
    resolved,
)
from hookline.shell.files import command_files
from hookline.shell.parse import project_variables
from hookline.shell.uses import (
    FileUse,
    Form,
    Role,
    imported_names,
    modules_beside,
)

MAX_COPY_BYTES = 256 * 1024
"""A longer file is pinned by its digest alone: there is no copy to show."""

MAX_PINNED_BYTES = 256 * 1024 * 1024
"""A longer file is not read, and cannot be approved: events wait for the check."""

MAX_TREE_ENTRIES = 20_000

_SOME_MORE = 100
_CHUNK = 1024 * 1024
_DATA = frozenset({Role.READ, Role.WRITTEN})
_NODE_ENDINGS = (".js", ".cjs", ".mjs", ".ts", ".json", "/index.js", "/package.json")
_SYSTEM = (
    *("/bin/", "/sbin/", "/lib", "/usr/", "/opt/", "/etc/", "/dev/", "/proc/", "/sys/"),
    *("/run/", "/var/", "/nix/", "/snap/", "/System/", "/Library/", "/Applications/"),
)
"""Programs there are updated by their own tools, and are no part of a project."""
_TEMPORARY = ("/dev/shm/", "/var/tmp/", "/var/folders/")  # noqa: S108 - only compared
"""Folders of the system where anybody can write."""
# Non-blocking: a named pipe may have taken the file's place since it was seen.
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_CACHE = "__pycache__"
_IGNORED = r"\.DS_Store|Thumbs\.db|.*~|\..*\.sw.|\.#.*|#.*#|.*\.hooktest\.toml"
_ISOLATED = (
    rb"(?i:python)[\d.]*[}\"']*(?:\s+-\S+)*\s+-[A-Za-z]*[EI]|[\"']-[A-Za-z]*[EI][A-Za-z]*[\"']"
    rb"|\benv\s*=|\benv\s+-|PYCACHE|unset\s+PYTHON|environ\.(?:pop|clear)"
)
"""Code that may start Python without the variable that keeps it from old caches."""
_SQLITE_FILES = {
    "": (b"SQLite format 3\0",),
    "-wal": (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"),
    "-shm": (b"\x18\xe2\x2d\x00", b"\x00\x2d\xe2\x18", b"\0\0\0\0"),
    "-journal": (b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", b"\0\0\0\0"),
}
"""How the files of a database start, by the ending of their names."""
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH | stat.S_ISUID | stat.S_ISGID


class PinKind(StrEnum):
    """What is at a path."""

    FILE = "file"
    FOLDER = "folder"
    ABSENT = "absent"
    UNREADABLE = "unreadable"
    OTHER = "other"
    TOO_LARGE = "too large"


class Pin(Struct, frozen=True, omit_defaults=True):
    """What is at a path, to the byte."""

    kind: PinKind
    digest: str = ""
    """SHA-256 of a file's bytes."""
    mode: int = 0
    """Its permissions."""
    link: str | None = None
    """Where the path is a symbolic link: its text. The rest is about its target."""

    def holds(self, now: Pin) -> bool:
        """Whether what is there now does what was approved.

        Permissions may change as long as nobody else may write, and a program still
        starts: without its ``x`` a guard would not.
        """
        gained = now.mode & ~self.mode & _WRITABLE_BY_OTHERS
        lost = self.mode & ~now.mode & stat.S_IXUSR
        same = (self.kind, self.digest, self.link) == (now.kind, now.digest, now.link)
        return same and not gained and not lost


class Treatment(StrEnum):
    """What an approval does about a file that a hook names."""

    PINNED = "pinned"
    UNPINNABLE = "cannot be pinned"
    DATA = "data, not pinned"


class HookFile(Struct, frozen=True):
    """A file that a hook names, for a person who reviews the hook."""

    path: str
    """A full path; the word as it is written where it cannot be pinned."""
    treatment: Treatment
    why: str = ""
    """Where it cannot be pinned: the reason, and what to do about it."""


class TooManyFilesError(Exception):
    """A folder holds more than can be pinned."""


Pins = Mapping[str, Pin]

ABSENT = Pin(PinKind.ABSENT)


class NamedPaths(Struct, frozen=True):
    """The paths that a hook names and that are pinned, in ``.hookline`` or not."""

    roles: dict[str, Role]
    folders: tuple[str, ...] = ()
    """Folders whose list of files decides which files these are."""
    unpinned: tuple[FileUse, ...] = ()
    """What cannot be pinned, or is data."""


def named_paths(hook: HookConfig, project: str) -> NamedPaths:
    """Find the paths that a hook names; those that do not exist yet count too.

    Files outside the project count where the hook runs them and they do not belong to
    the system. ``"!path"`` in ``trustFiles`` leaves out what the hook does not run.
    """
    found = _Finder(project)
    uses = _file_uses(hook, project)
    for use in uses:
        found.add(use)
    found.add_function(hook)
    excluded = _excluded(hook, project)
    policies = _cedar_uses(hook, project, excluded)
    found.add_policies(policies)
    roles = {
        path: role
        for path, role in found.roles.items()
        if role is Role.CODE or not _is_in_any(path, excluded)
    }
    every = (*uses, *policies)
    unpinned = (use for use in every if use.why or use.role in _DATA)
    return NamedPaths(roles, tuple(found.folders), tuple(unpinned))


def paths_to_pin(hook: HookConfig, project: str) -> list[str]:
    """The named paths that are not pinned anyway, with everything in ``.hookline``."""
    own = f"{project}/{PROJECT_FOLDER}"
    named = named_paths(hook, project).roles
    return [path for path in named if not is_within(path, own) or is_ignored(path)]


def hook_files(hook: HookConfig, project: str) -> list[HookFile]:
    """What an approval does about each file that a hook names."""
    named = named_paths(hook, project)
    own = f"{project}/{PROJECT_FOLDER}"
    listed = [own, *trust_paths(hook, project)]
    pinned = dict.fromkeys((*named.roles, *listed[1:]))
    found = [HookFile(path, Treatment.PINNED) for path in pinned if _exists(path)]
    for path in named.roles:
        if os.path.isdir(path) and not any(is_within(path, one) for one in listed):  # noqa: PTH112
            why = "it is a folder: list it in trustFiles if code is loaded from there"
            found.append(HookFile(path, Treatment.UNPINNABLE, why))
    for use in named.unpinned:
        if use.why:
            found.append(HookFile(use.path, Treatment.UNPINNABLE, use.why))
        elif use.path not in pinned and os.path.isfile(use.path):  # noqa: PTH113
            found.append(HookFile(use.path, Treatment.DATA))
    for path, role in named.roles.items():
        is_script = role is Role.CODE and hook.type is not HookType.CEDAR
        if is_script and _is_python(path) and not is_within(path, own):
            found += _unpinned_modules(path, pinned, listed)
    return list(dict.fromkeys(found))


def _unpinned_modules(
    script: str, pinned: Collection[str], listed: Collection[str]
) -> Iterator[HookFile]:
    for module in modules_beside(script):
        is_listed = any(is_within(module, one) for one in listed)
        if not is_listed and not any(is_within(one, module) for one in pinned):
            name = os.path.basename(script)  # noqa: PTH119
            why = f"{name} can import it: move both into .hookline, or list it in "
            yield HookFile(module, Treatment.UNPINNABLE, f"{why}trustFiles")


def trust_paths(hook: HookConfig, project: str) -> list[str]:
    """Full paths of a hook's ``trustFiles``; they may be anywhere."""
    given = (text for text in hook.trust_files if not text.startswith("!"))
    return [_expanded(text, project) for text in given]


def _excluded(hook: HookConfig, project: str) -> list[str]:
    given = (text[1:] for text in hook.trust_files if text.startswith("!"))
    return [_expanded(text, project) for text in given]


def _expanded(text: str, project: str) -> str:
    from string import Template

    return resolved(Template(text).safe_substitute(project_variables(project)), project)


def _cedar_uses(
    hook: HookConfig, project: str, excluded: Collection[str]
) -> list[FileUse]:
    """The files of a cedar hook; only entities are data that may be left out."""
    if hook.type is not HookType.CEDAR:
        return []
    names = (*hook.policies, *((hook.schema,) if hook.schema else ()))
    uses = [FileUse(resolved(name, project), Role.CODE) for name in names]
    if hook.entities is not None:
        path = resolved(hook.entities, project)
        left_out = _is_in_any(path, excluded)
        uses.append(FileUse(path, Role.READ if left_out else Role.CODE))
    return uses


def _is_in_any(path: str, folders: Iterable[str]) -> bool:
    return any(is_within(path, one) for one in folders)


def names_nothing(hook: HookConfig, project: str) -> bool:
    """Whether a hook names no existing file that is pinned."""
    named = (*named_paths(hook, project).roles, *trust_paths(hook, project))
    return not any(map(_exists, named))


def _exists(path: str) -> bool:
    return os.path.lexists(path) and not os.path.isdir(path)  # noqa: PTH112


def _file_uses(hook: HookConfig, project: str) -> tuple[FileUse, ...]:
    if hook.command is None and not hook.env:
        return ()
    env = tuple(hook.env.items())
    return _uses_of(hook.command or "", project, hook.shell, env)


@lru_cache(maxsize=256)
def _uses_of(
    command: str, project: str, shell: str | None, env: tuple[tuple[str, str], ...]
) -> tuple[FileUse, ...]:
    own = dict(env)
    variables = {**project_variables(project), "HOOKLINE_PYTHON": "python3", **own}
    return tuple(command_files(command, project, variables, shell, own))


class _Finder:
    """Turns uses of files into paths, by looking at what is there."""

    def __init__(self, project: str) -> None:
        self._project = project
        self.roles: dict[str, Role] = {}
        self.folders: dict[str, None] = {}

    def add(self, use: FileUse) -> None:
        """Add the paths of one use."""
        if use.why or use.role in _DATA:
            return
        if use.form is Form.PATTERN:
            self._add_pattern(use)
        elif use.form is Form.MODULE:
            self._add_modules(use.path)
        elif use.form is Form.IMPORTS:
            self._add_shadowing(use.path)
        elif use.form is not Form.BARE or os.path.lexists(use.path):
            self.add_path(use.path, use.role, use.form)

    def add_function(self, hook: HookConfig) -> None:
        """Add the module of a Python hook, where it is and where it might be."""
        if hook.type is HookType.PYTHON and hook.function is not None:
            name = hook.function.partition(":")[0].replace(".", "/")
            self._add_modules(f"{self._project}/{name}")
            self._add_modules(f"{self._project}/src/{name}")
            own = self._own_modules([name], f"{self._project}/.")
            found = own or _imported_files(hook.function)
            self.roles |= dict.fromkeys(found, Role.CODE)
            self._follow_imports(own)

    def _follow_imports(self, waiting: list[str]) -> None:
        """What modules of the project import from it, by name."""
        seen = set[str]()
        while waiting:
            path = waiting.pop()
            seen.add(path)
            self.roles[path] = Role.CODE
            names = imported_names(_head(path).decode("utf-8", "replace"))
            stems = [name.replace(".", "/") for name in names]
            waiting += {*self._own_modules(stems, path)} - seen

    def _own_modules(self, stems: Iterable[str], importer: str) -> list[str]:
        """The files of modules, seen from another module of the project."""
        folders = module_folders(self._project)
        folder = os.path.dirname(importer)  # noqa: PTH120
        while is_within(folder, self._project):
            folders.append(folder)
            folder = os.path.dirname(folder)  # noqa: PTH120
        found = (
            path
            for stem in stems
            for one in accumulate(stem.split("/"), "{}/{}".format)
            for folder in dict.fromkeys(folders)
            for path in (f"{folder}/{one}.py", f"{folder}/{one}/__init__.py")
        )
        return list(filter(os.path.isfile, found))

    def add_policies(self, uses: Iterable[FileUse]) -> None:
        """Add the files of a cedar hook: nothing is loaded from beside them."""
        for use in uses:
            if use.role is Role.CODE and self._counts(use.path, use.role):
                self.roles[use.path] = use.role

    def add_path(self, path: str, role: Role, form: Form = Form.FILE) -> None:
        """Add one path, and what running it would load from beside it."""
        if not self._counts(path, role):
            return
        before = self.roles.get(path)
        self.roles[path] = Role.CODE if before is Role.CODE else role
        if role is not Role.CODE or before is Role.CODE:
            return
        if os.path.isdir(path):  # noqa: PTH112
            self.add_path(f"{path}/__main__.py", role, Form.PYTHON)
        elif form is Form.NODE and not os.path.isfile(path):  # noqa: PTH113
            self.roles |= dict.fromkeys((path + one for one in _NODE_ENDINGS), role)
        if form is Form.PYTHON or _is_python(path):
            self._add_imports(path)

    def _counts(self, path: str, role: Role) -> bool:
        inside = f"{self._project}/"
        if path.startswith(inside):
            return True
        is_program = path.startswith(_SYSTEM) and not path.startswith(_TEMPORARY)
        if role is Role.CODE and not is_program:
            return path != self._project
        return os.path.realpath(path).startswith(inside)

    def _add_pattern(self, use: FileUse) -> None:
        from glob import iglob

        folder = re.split(r"/[^/]*[*?\[]", use.path)[0]
        # The folder too: what is added to it later may match as well.
        self.folders[folder] = None
        matches = iglob(use.path, recursive=True, include_hidden=True)  # noqa: PTH207
        for path in islice(matches, MAX_TREE_ENTRIES + 1):
            self.add_path(path, use.role)
            self.folders[os.path.dirname(path)] = None  # noqa: PTH120

    def _add_modules(self, stem: str) -> None:
        """A module or package, and the packages around it."""
        if not stem.startswith(f"{self._project}/"):
            return
        for path in (f"{stem}.py", f"{stem}/__main__.py", f"{stem}/__init__.py"):
            self.add_path(path, Role.CODE)
        while (stem := os.path.dirname(stem)) != self._project:  # noqa: PTH120
            self.add_path(f"{stem}/__init__.py", Role.CODE)

    def _add_imports(self, script: str) -> None:
        """What a Python script imports from its own folder, by name."""
        root = os.path.dirname(script)  # noqa: PTH120
        if is_within(script, f"{self._project}/{PROJECT_FOLDER}"):
            return  # everything there is pinned
        self._add_shadowing(root)
        waiting, seen = [script], set[str]()
        while waiting:
            path = waiting.pop()
            seen.add(path)
            folders = {root, os.path.dirname(path)}  # noqa: PTH120
            for name in imported_names(_head(path).decode("utf-8", "replace")):
                for folder in folders:
                    modules = _module_files(folder, name)
                    self.roles |= dict.fromkeys(modules, Role.CODE)
                    waiting += {*filter(os.path.isfile, modules)} - seen

    def _add_shadowing(self, folder: str) -> None:
        """The modules in a folder that Python takes before its own."""
        self.folders[folder] = None
        for module in modules_beside(f"{folder}/"):
            name = os.path.basename(module).partition(".")[0]  # noqa: PTH119
            if name in sys.stdlib_module_names or name.endswith("customize"):
                is_package = os.path.isdir(module)  # noqa: PTH112
                path = f"{module}/__init__.py" if is_package else module
                self.roles[path] = Role.CODE


def _module_files(folder: str, name: str) -> list[str]:
    """Where a module may be; that of a package's name counts before it exists."""
    stems = list(accumulate((folder, *name.split(".")), "{}/{}".format))[1:]
    found = [path for one in stems for path in (f"{one}.py", f"{one}/__init__.py")]
    return [*found[:2], *filter(os.path.isfile, found[2:])]


def _is_python(path: str) -> bool:
    if path.endswith(".py"):
        return True
    return b"python" in _head(path).partition(b"\n")[0]


def _head(path: str) -> bytes:
    """The start of a regular file; nothing where it cannot be read."""
    try:
        with open(os.open(path, _READ_FLAGS), "rb") as file:  # noqa: PTH123
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(MAX_COPY_BYTES) if regular else b""
    except (OSError, ValueError):
        return b""


def _imported_files(function: str) -> list[str]:
    """The files that importing a Python hook would run, found without importing any."""
    from importlib.machinery import PathFinder
    from importlib.util import find_spec

    found, folders = [], None
    steps = function.partition(":")[0].split(".")
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


def take_pin(
    path: str,
    copies: dict[str, bytes] | None = None,
    look: Callable[[bytes], None] | None = None,
) -> Pin:
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
        return _pin_of_file(path, link, copies, look)
    if stat.S_ISDIR(mode):
        return Pin(PinKind.FOLDER, mode=stat.S_IMODE(mode), link=link)
    return Pin(PinKind.OTHER, link=link)


def take_tree(
    folder: str,
    copies: dict[str, bytes] | None = None,
    known: Pins | None = None,
    *,
    journals: Iterable[str] = (),
    keep_caches: bool = False,
) -> dict[str, Pin]:
    """Look at a folder and everything below it, by full path.

    Where ``known`` is given, the walk ends soon after it has found more than that: the
    folder has changed, and walking all of it would take too long. What editors and file
    managers leave there is not looked at, nor the files of a journal. Caches of Python
    count where the project may start Python without our environment.
    """
    most = MAX_TREE_ENTRIES if known is None else len(known) + _SOME_MORE
    found, caches = {folder: take_pin(folder)}, list[str]()
    isolated = keep_caches

    def look(content: bytes) -> None:
        nonlocal isolated
        isolated = isolated or bool(re.search(_ISOLATED, content))

    left_out = {path for one in journals for path in journal_files(one)}
    paths = (path for path in _walk(folder, caches) if path not in left_out)
    for path in islice(paths, most):
        found[path] = take_pin(path, copies, look)
    for path in islice(_walk_all(caches) if isolated else (), most):
        found[path] = take_pin(path, copies)
    if known is None and len(found) > most:
        raise TooManyFilesError(folder)
    return found


def pin_project(
    layers: Sequence[SettingsLayer],
    project: str,
    copies: dict[str, bytes] | None = None,
    known: Pins | None = None,
) -> dict[str, Pin]:
    """Pin everything under ``.hookline``, but for what is ignored there."""
    hooks = [hook for layer in layers for _, _, hook in layer.hooks()]
    return take_tree(
        f"{project}/{PROJECT_FOLDER}",
        copies,
        known,
        journals=_unnamed_journals(layers, hooks, project),
        keep_caches=any(map(starts_isolated, hooks)),
    )


def _unnamed_journals(
    layers: Sequence[SettingsLayer], hooks: list[HookConfig], project: str
) -> list[str]:
    """The files of the project's journals, unless a hook names or runs them."""
    given = [layer.options.journal for layer in layers]
    journals = [one for one in given if isinstance(one, str) and one.strip()]
    if not journals:
        return []
    named = [one for hook in hooks for one in named_paths(hook, project).roles]
    paths = [_expanded(one, project) for one in journals]
    return [one for one in paths if not any(is_within(path, one) for path in named)]


def is_ignored(path: str) -> bool:
    """Whether files of this name are not looked at in a folder."""
    folder, name = os.path.split(path)
    return bool(re.fullmatch(_IGNORED, name)) or f"/{_CACHE}/" in f"{folder}/"


def starts_isolated(hook: HookConfig) -> bool:
    """Whether a hook may load caches of Python from beside its files."""
    text = "\n".join((hook.command or "", hook.shell or "", *hook.env))
    in_process = hook.type is HookType.PYTHON
    return in_process or bool(re.search(_ISOLATED, text.encode("utf-8", "replace")))


def journal_files(journal: str) -> list[str]:
    """The files of a journal: regular ones that start as SQLite's do."""
    found: list[str] = []
    for ending, starts in _SQLITE_FILES.items():
        path = journal + ending
        is_ours = not os.path.islink(path) and _head(path).startswith(starts)  # noqa: PTH114
        if is_ours or (found and ending and _is_empty(path)):
            found.append(path)
        elif not ending:
            return []
    return found


def _is_empty(path: str) -> bool:
    with suppress(OSError):
        found = os.lstat(path)
        return stat.S_ISREG(found.st_mode) and not found.st_size
    return False


def pin_named_files(
    hook: HookConfig,
    project: str,
    copies: dict[str, bytes] | None = None,
    known: Pins | None = None,
) -> dict[str, Pin]:
    """Pin every file outside ``.hookline`` that a hook names."""
    paths = paths_to_pin(hook, project)
    if known is None and len(paths) > MAX_TREE_ENTRIES:
        raise TooManyFilesError(project)
    most = MAX_TREE_ENTRIES if known is None else len(known) + _SOME_MORE
    found = {path: take_pin(path, copies) for path in paths[:most]}
    excluded = _excluded(hook, project)
    for path in trust_paths(hook, project):
        listed = take_tree(path, copies, known, keep_caches=True)
        listed[path] = take_pin(path, copies)
        found |= {
            one: pin for one, pin in listed.items() if not _is_in_any(one, excluded)
        }
    return found


def differences(before: Pins, now: Pins) -> list[str]:
    """The paths that are not as they were, sorted."""
    paths = () if before == now else sorted(before.keys() | now.keys())
    return [
        path
        for path in paths
        if not before.get(path, ABSENT).holds(now.get(path, ABSENT))
    ]


def _pin_of_file(
    path: str,
    link: str | None,
    copies: dict[str, bytes] | None,
    look: Callable[[bytes], None] | None,
) -> Pin:
    import hashlib

    try:
        with open(os.open(path, _READ_FLAGS), "rb") as file:  # noqa: PTH123
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return Pin(PinKind.OTHER, link=link)
            if found.st_size > MAX_PINNED_BYTES:
                return Pin(PinKind.TOO_LARGE, link=link)
            head = file.read(MAX_COPY_BYTES + 1)
            digest = hashlib.sha256(head)
            while piece := file.read(_CHUNK):
                digest.update(piece)
                if file.tell() > MAX_PINNED_BYTES:  # it grows meanwhile
                    return Pin(PinKind.TOO_LARGE, link=link)
    except OSError:
        return Pin(PinKind.UNREADABLE, link=link)
    name = digest.hexdigest()
    if look is not None:
        look(head)
    if copies is not None and len(head) <= MAX_COPY_BYTES:
        copies[name] = head
    return Pin(PinKind.FILE, name, stat.S_IMODE(found.st_mode), link)


def _walk(folder: str, caches: list[str]) -> Iterator[str]:
    """Every path below a folder, also through links to folders, each folder once.

    What is ignored is left out; ``caches`` gets the folders of Python's caches.
    """
    # os.walk is recursive in Python 3.11: a deep tree would raise.
    waiting, seen = [folder], set[tuple[int, int]]()
    while waiting:
        current = waiting.pop()
        paths = [f"{current}/{name}" for name in _names(current, seen)]
        caches += [one for one in paths if one.endswith(f"/{_CACHE}")]
        kept = [path for path in paths if not _is_left_out(path)]
        yield from kept
        waiting += filter(os.path.isdir, kept)


def _walk_all(folders: list[str]) -> Iterator[str]:
    waiting, seen = list(folders), set[tuple[int, int]]()
    while waiting:
        current = waiting.pop()
        paths = [current, *(f"{current}/{name}" for name in _names(current, seen))]
        yield from paths
        waiting += filter(os.path.isdir, paths[1:])


def _names(folder: str, seen: set[tuple[int, int]]) -> list[str]:
    """The names in a folder that was not seen yet."""
    try:
        place = os.stat(folder)  # noqa: PTH116
        if (place.st_dev, place.st_ino) in seen:
            return []
        seen.add((place.st_dev, place.st_ino))
        return sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []  # it is pinned as what it is: no folder, or not to be looked into


def _is_left_out(path: str) -> bool:
    """Whether a file is one that editors leave; a folder of such a name is not."""
    name = os.path.basename(path)  # noqa: PTH119
    if name == _CACHE:
        return os.path.isdir(path)  # noqa: PTH112
    if not re.fullmatch(_IGNORED, name, re.DOTALL):
        return False
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    # Emacs locks a file by a link to nowhere.
    is_lock = stat.S_ISLNK(mode) and not os.path.exists(path)  # noqa: PTH110
    return stat.S_ISREG(mode) or (is_lock and name.startswith(".#"))
