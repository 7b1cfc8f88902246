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
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate, chain, islice, product
from string import Template

from msgspec import Struct
from msgspec.structs import replace

from hookline.settings.model import HookConfig, HookType, SettingsLayer
from hookline.settings.places import (
    PROJECT_FOLDER,
    folders_above,
    is_within,
    module_folders,
    resolved,
)
from hookline.shell.files import command_files
from hookline.shell.parse import project_variables
from hookline.shell.uses import FileUse, Form, Role, imported_names, modules_beside

MAX_COPY_BYTES = 256 * 1024
"""A longer file is pinned by its digest alone: there is no copy to show."""

MAX_PINNED_BYTES = 256 * 1024 * 1024
"""A longer file is not read, and cannot be approved: events wait for the check."""

MAX_PATHS = 20_000
"""That can be approved with one hook."""

YOUNG_NS = 2_000_000_000
"""The coarsest clock of a file system: a younger file may have changed twice unseen."""

_CHUNK = 1024 * 1024
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
_IGNORED = r"(?s)\.DS_Store|Thumbs\.db|.*~|\..*\.sw.|\.#.*|#.*#|.*\.hooktest\.toml"
_ISOLATED = (
    rb"(?i:python)[\d.]*[}\"']*(?:\s+-\S+)*\s+-[A-Za-z]*[EI]|[\"']-[A-Za-z]*[EI][A-Za-z]*[\"']"
    rb"|\benv\s*=|\benv\s+-|PYCACHE|unset\s+PYTHON|environ\.(?:pop|clear)"
)
"""Code that may start Python without the variable that keeps it from old caches."""
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
    size: int = 0
    mode: int = 0
    """Its permissions."""
    link: str | None = None
    """Where the path is a symbolic link: its text. The rest is about its target."""

    def holds(self, other: Pin) -> bool:
        """Whether another pin of the path does what this one did.

        Permissions may change as long as nobody else may write, and a program still
        starts: without its ``x`` a guard would not.
        """
        gained = other.mode & ~self.mode & _WRITABLE_BY_OTHERS
        lost = self.mode & ~other.mode & stat.S_IXUSR
        return not gained and not lost and replace(other, mode=self.mode) == self


Pins = Mapping[str, Pin]
Times = tuple[int, int, int, int, int]

ABSENT = Pin(PinKind.ABSENT)


class NamedPaths:
    """The paths that a hook names and that are pinned; some do not exist yet.

    Files outside the project count where the hook runs them and they do not belong to
    the system. ``"!path"`` in ``trustFiles`` leaves out what the hook does not run.
    """

    def __init__(self, hook: HookConfig, project: str) -> None:
        self._project = project
        self._own_folder = f"{project}/{PROJECT_FOLDER}"
        self.roles: dict[str, Role] = {}
        self.folders: dict[str, None] = {}
        """Folders whose list of files decides which files these are."""
        self.unpinned: list[FileUse] = []
        """What cannot be pinned, or is data."""
        self.listed: list[str] = []
        """What ``trustFiles`` adds; it may be anywhere."""
        self.excluded: list[str] = []
        variables = project_variables(project)
        for text in hook.trust_files:
            path = Template(text.removeprefix("!")).safe_substitute(variables)
            paths = self.excluded if text.startswith("!") else self.listed
            paths.append(resolved(path, project))
        env = tuple(hook.env.items())
        for use in _command_uses(hook.command or "", project, hook.shell, env):
            self._add(use)
        if hook.type is HookType.PYTHON and hook.function is not None:
            self._add_function(hook.function.partition(":")[0])
        if hook.type is HookType.CEDAR:
            self._add_policies(hook)
        for path, role in [*self.roles.items()]:
            if role is not Role.CODE and is_within_any(path, self.excluded):
                del self.roles[path]

    @property
    def outside(self) -> list[str]:
        """Those that are not pinned anyway, with everything in ``.hookline``."""
        return [
            path
            for path in self.roles
            if not is_within(path, self._own_folder)
            or re.fullmatch(_IGNORED, os.path.basename(path))  # noqa: PTH119
            or f"/{_CACHE}/" in path
        ]

    def _add(self, use: FileUse) -> None:
        if use.why or use.role in {Role.READ, Role.WRITTEN}:
            self.unpinned.append(use)
        elif use.form is Form.PATTERN:
            from glob import iglob

            # The folder too: what is added to it later may match as well.
            self.folders[re.split(r"/[^/]*[*?\[]", use.path)[0]] = None
            matches = iglob(use.path, recursive=True, include_hidden=True)  # noqa: PTH207
            for path in islice(matches, MAX_PATHS + 1):
                self._add_path(path, use.role)
                self.folders[os.path.dirname(path)] = None  # noqa: PTH120
        elif use.form is Form.MODULE:
            self._add_module(use.path)
        elif use.form is Form.IMPORTS:
            self._add_shadowing(use.path)
        elif use.form is not Form.BARE or os.path.lexists(use.path):
            self._add_path(use.path, use.role, use.form)

    def _add_path(self, path: str, role: Role, form: Form = Form.FILE) -> None:
        """Add one path, and what running it would load from beside it."""
        if not self._counts(path, role) or self.roles.get(path) is Role.CODE:
            return
        self.roles[path] = role
        if role is not Role.CODE:
            return
        if os.path.isdir(path):  # noqa: PTH112
            self._add_path(f"{path}/__main__.py", role, Form.PYTHON)
        elif form is Form.NODE and not os.path.isfile(path):  # noqa: PTH113
            self.roles |= dict.fromkeys((path + end for end in _NODE_ENDINGS), role)
        if is_within(path, self._own_folder):
            return  # everything there is pinned
        if form is Form.PYTHON or is_python(path):
            root = os.path.dirname(path)  # noqa: PTH120
            self._add_shadowing(root)
            self._add_imports(
                [path],
                lambda importer: (root, os.path.dirname(importer)),  # noqa: PTH120
                is_script=True,
            )

    def _counts(self, path: str, role: Role) -> bool:
        inside = f"{self._project}/"
        if path.startswith(inside):
            return True
        is_program = path.startswith(_SYSTEM) and not path.startswith(_TEMPORARY)
        if role is Role.CODE and not is_program:
            return path != self._project
        return os.path.realpath(path).startswith(inside)

    def _add_module(self, stem: str) -> None:
        """A module or package of the project, and the packages around it."""
        if not stem.startswith(f"{self._project}/"):
            return
        paths = [f"{stem}.py", f"{stem}/__main__.py", f"{stem}/__init__.py"]
        while (stem := os.path.dirname(stem)) != self._project:  # noqa: PTH120
            paths.append(f"{stem}/__init__.py")
        for path in paths:
            self._add_path(path, Role.CODE)
        # By the names of its packages, too: from the folder that Python is run in.
        self._add_imports(filter(os.path.isfile, paths), self._folders_around)

    def _add_shadowing(self, folder: str) -> None:
        """The modules in a folder that Python takes before its own."""
        self.folders[folder] = None
        for module in modules_beside(f"{folder}/"):
            name = os.path.basename(module).partition(".")[0]  # noqa: PTH119
            if name in sys.stdlib_module_names or name.endswith("customize"):
                is_package = os.path.isdir(module)  # noqa: PTH112
                path = f"{module}/__init__.py" if is_package else module
                self.roles[path] = Role.CODE

    def _add_function(self, module: str) -> None:
        """The module of a Python hook, where it is and where it might be."""
        folders = module_folders(self._project)
        for folder in folders:
            self._add_module(f"{folder}/{module.replace('.', '/')}")
        paths = [path for folder in folders for path in _module_paths(folder, module)]
        files = list(filter(os.path.isfile, paths))
        self.roles |= dict.fromkeys(files or _installed_files(module), Role.CODE)

        self._add_imports(files, lambda path: (*folders, *self._folders_around(path)))

    def _folders_around(self, path: str) -> list[str]:
        above = folders_above(os.path.dirname(path))  # noqa: PTH120
        return [folder for folder in above if is_within(folder, self._project)]

    def _add_imports(
        self,
        modules: Iterable[str],
        folders_of: Callable[[str], Iterable[str]],
        *,
        is_script: bool = False,
    ) -> None:
        """What modules import by name from ``folders_of(importer)``.

        For a script a top-level module counts before it exists: Python would find it
        first.
        """
        pending, searched = [*modules], set[str]()
        while pending:
            importer = pending.pop()
            searched.add(importer)
            names = imported_names(_head(importer).decode("utf-8", "replace"))
            for name, folder in product(names, dict.fromkeys(folders_of(importer))):
                paths = _module_paths(folder, name)
                files = list(filter(os.path.isfile, paths))
                self.roles |= dict.fromkeys(files, Role.CODE)
                if is_script:
                    self.roles |= dict.fromkeys(paths[:2], Role.CODE)
                pending += {*files} - searched

    def _add_policies(self, hook: HookConfig) -> None:
        """The files of a cedar hook: nothing is loaded from beside them."""
        names = [*hook.policies, *((hook.schema,) if hook.schema else ())]
        if hook.entities is not None:
            path = resolved(hook.entities, self._project)
            if is_within_any(path, self.excluded):  # data, unlike the others
                self.unpinned.append(FileUse(path, Role.READ))
            else:
                names.append(hook.entities)
        for path in (resolved(name, self._project) for name in names):
            if self._counts(path, Role.CODE):
                self.roles[path] = Role.CODE


@lru_cache(maxsize=256)
def _command_uses(
    command: str, project: str, shell: str | None, env: tuple[tuple[str, str], ...]
) -> tuple[FileUse, ...]:
    hook_env = dict(env)
    variables = {**project_variables(project), "HOOKLINE_PYTHON": "python3", **hook_env}
    return tuple(command_files(command, project, variables, shell, hook_env))


def _module_paths(folder: str, name: str) -> list[str]:
    """Where a module and the packages around it may be, from the outermost."""
    stems = islice(accumulate((folder, *name.split(".")), "{}/{}".format), 1, None)
    return [path for stem in stems for path in (f"{stem}.py", f"{stem}/__init__.py")]


def _installed_files(module: str) -> list[str]:
    """The files that importing an installed module would run; imports none."""
    from importlib.machinery import PathFinder
    from importlib.util import find_spec

    files, folders = [], None
    # Where it cannot be found, loading it fails too, and says so.
    with suppress(ImportError, ValueError, AttributeError):
        for name in accumulate(module.split("."), "{}.{}".format):
            spec = PathFinder.find_spec(name, folders) if folders else find_spec(name)
            if spec is not None and spec.origin is not None and spec.has_location:
                files.append(os.path.abspath(spec.origin))  # noqa: PTH100
            folders = spec and spec.submodule_search_locations
            if not folders:
                break
    return files


def is_within_any(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of the folders, or in one."""
    return any(is_within(path, folder) for folder in folders)


def is_python(path: str) -> bool:
    """Whether a file is a Python script, by its name or its first line."""
    return path.endswith(".py") or b"python" in _head(path).partition(b"\n")[0]


def _head(path: str) -> bytes:
    """The start of a regular file; nothing where it cannot be read."""
    try:
        with open(os.open(path, _READ_FLAGS), "rb") as file:  # noqa: PTH123
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(MAX_COPY_BYTES) if regular else b""
    except (OSError, ValueError):
        return b""


def differences(before: Pins, after: Pins) -> list[str]:
    """The paths that are not as they were, sorted."""
    paths = () if before == after else sorted(before.keys() | after.keys())
    return [
        path
        for path in paths
        if not before.get(path, ABSENT).holds(after.get(path, ABSENT))
    ]


def times_of(
    path: str, look: Callable[[str], os.stat_result] = os.stat
) -> Times | None:
    """What the file system says of a path: inode, device, size, mtime and ctime.

    Nobody can set a ctime; a change of mode or owner shows in it. None where it is
    missing.
    """
    try:
        return _times(look(path))
    except (OSError, ValueError):
        return None


def _times(status: os.stat_result) -> Times:
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_ino, status.st_dev, status.st_size, *times)


_known_pins: dict[str, tuple[Times, Pin]] = {}
"""Of files that were read, and their times then: as git does, a file is read again if
these differ, or if it was so young that a second change might not have shown."""


def take_pin(path: str, copies: dict[str, bytes] | None = None) -> Pin:
    """Look at one path; the bytes of small files go into ``copies`` by digest."""
    import hashlib

    link = None
    with suppress(OSError, ValueError):  # most paths are no links
        link = os.readlink(path)  # noqa: PTH115
    try:
        status = os.stat(path)  # noqa: PTH116 - no Path on this path
        if stat.S_ISDIR(status.st_mode):
            return Pin(PinKind.FOLDER, mode=stat.S_IMODE(status.st_mode), link=link)
        times, pin = _known_pins.get(path, (None, ABSENT))
        if copies is None and times == _times(status) and pin.link == link:
            return pin
        if not stat.S_ISREG(status.st_mode):
            return Pin(PinKind.OTHER, link=link)
        now_ns = time.time_ns()
        with open(os.open(path, _READ_FLAGS), "rb") as file:  # noqa: PTH123
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):  # exchanged meanwhile
                return Pin(PinKind.OTHER, link=link)
            head = file.read(MAX_COPY_BYTES + 1)
            digest = hashlib.sha256(head)
            # The size is asked first: 200 GB are not read up to the limit.
            while os.fstat(file.fileno()).st_size <= MAX_PINNED_BYTES:
                piece = file.read(_CHUNK)
                digest.update(piece)
                if not piece:
                    break
            else:
                return Pin(PinKind.TOO_LARGE, link=link)
            size = file.tell()
    except (FileNotFoundError, NotADirectoryError):
        return Pin(PinKind.ABSENT, link=link)
    except (OSError, ValueError):
        return Pin(PinKind.UNREADABLE, link=link)
    mode = stat.S_IMODE(status.st_mode)
    pin = Pin(PinKind.FILE, digest.hexdigest(), size, mode, link)
    if copies is not None and len(head) <= MAX_COPY_BYTES:
        copies[pin.digest] = head
    if now_ns - status.st_ctime_ns > YOUNG_NS:
        if len(_known_pins) >= 2 * MAX_PATHS:
            _known_pins.clear()
        _known_pins[path] = (_times(status), pin)
    return pin


def pin_named_files(
    hook: HookConfig,
    project: str,
    copies: dict[str, bytes] | None = None,
    approved: Iterable[str] = (),
) -> dict[str, Pin]:
    """Pin what a hook names and what it was approved with, but for ``.hookline``."""
    named = NamedPaths(hook, project)
    listed = [
        path
        for folder in named.listed
        for path in _walk(folder)
        if not is_within_any(path, named.excluded)
    ]
    paths = dict.fromkeys((*listed, *approved, *named.outside[: MAX_PATHS + 1]))
    return {path: take_pin(path, copies) for path in paths}


def pin_project(
    layers: Sequence[SettingsLayer],
    project: str,
    copies: dict[str, bytes] | None = None,
) -> dict[str, Pin]:
    """Pin everything under ``.hookline``, but for what is ignored there.

    Caches of Python count where a hook may start Python without our environment.
    """
    folder, caches = f"{project}/{PROJECT_FOLDER}", list[str]()
    pins = {path: take_pin(path, copies) for path in _walk(folder, caches)}
    if caches:
        hooks = [hook for layer in layers for _, _, hook in layer.hooks()]
        lines = ("\n".join((h.command or "", h.shell or "", *h.env)) for h in hooks)
        code = (line.encode("utf-8", "replace") for line in lines)
        if any(hook.type is HookType.PYTHON for hook in hooks) or any(
            re.search(_ISOLATED, text) for text in chain(code, map(_head, pins))
        ):
            paths = (path for cache in caches for path in _walk(cache))
            pins |= {path: take_pin(path, copies) for path in paths}
    return pins


def _walk(folder: str, caches: list[str] | None = None) -> list[str]:
    """A folder and every path below it, also through links, each folder once.

    Soon after ``MAX_PATHS`` it ends: more make no difference. With ``caches``, which
    gets those of Python, what is ignored is left out.
    """
    paths = [folder]
    # os.walk is recursive in Python 3.11: a deep tree would raise.
    pending, visited = [folder], set[tuple[int, int]]()
    while pending and len(paths) <= MAX_PATHS:
        folder = pending.pop()
        try:
            status = os.stat(folder)  # noqa: PTH116
            names = sorted(os.listdir(folder))  # noqa: PTH208
        except OSError:
            continue  # it is pinned as what it is: no folder, or not to be looked into
        if (status.st_dev, status.st_ino) in visited:
            continue
        visited.add((status.st_dev, status.st_ino))
        for name in names:
            path = f"{folder}/{name}"
            is_folder = os.path.isdir(path)  # noqa: PTH112
            if caches is not None and is_folder and name == _CACHE:
                caches.append(path)
            elif caches is None or is_folder or not re.fullmatch(_IGNORED, name):
                paths.append(path)
                pending += [path] if is_folder else []
    return paths[: MAX_PATHS + 1]
