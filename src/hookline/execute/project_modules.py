"""Import the modules of a trusted project for its own python hooks (decision 0152).

Nothing of it reaches other code: ``sys.path`` stays as it is, and each project has
names of its own in ``sys.modules``. What runs is compiled from bytes that were
approved, never from a ``.pyc``, which anybody who can write there can forge.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec, spec_from_file_location
from itertools import count
from types import ModuleType
from typing import Any

from hookline.plan import UnapprovedModuleError
from hookline.settings.model import Approval
from hookline.settings.places import PROJECT_FOLDER, is_within, module_folders

_INSTALLED = ("/site-packages/", "/dist-packages/")
_NEVER_OWN = frozenset({*sys.stdlib_module_names, "hookline"})
"""No file of a project takes the place of these."""

PREFIX = "_hookline_project_"
"""How the names of all projects in ``sys.modules`` start; a number follows."""

_numbers = count(1)
_open: dict[str, ProjectModules] = {}


class ProjectModules:
    """The modules of one project, as its hooks import them."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._prefix = f"{PREFIX}{next(_numbers)}"
        self._roots = module_folders(project)
        self._folders: dict[str, list[str]] = {}
        """Where the modules of a package are looked for."""
        self._tops: dict[str, list[str] | None] = {}
        """Where each top-level name is; None if it is not the project's."""
        self._approvals: list[Approval | None] = []
        root = ModuleType(self._prefix)
        root.__path__ = []
        sys.modules[self._prefix] = root
        _open[self._prefix] = self
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)

    def load(self, name: str, approval: Approval | None) -> ModuleType | None:
        """Import a module of the project; None if it is not one.

        ``approval`` is that of a hook; None where every project is trusted.
        """
        if approval not in self._approvals:
            self._approvals.append(approval)
            self._tops.clear()
        if self._top(name.partition(".")[0]) is None:
            return None
        return import_module(f"{self._prefix}.{name}")

    def close(self) -> None:
        """Forget all modules; functions that still run keep theirs."""
        _open.pop(self._prefix, None)
        inside = f"{self._prefix}."
        for name in [one for one in sys.modules if f"{one}.".startswith(inside)]:
            sys.modules.pop(name, None)

    def spec(self, full_name: str) -> ModuleSpec:
        """Find one module below the project's own name; raises ``ImportError``."""
        parent, _, step = full_name.rpartition(".")
        is_top = parent == self._prefix
        folders = (self._top(step) if is_top else self._folders.get(parent)) or []
        file = self._file(folders, step)
        if file is not None:
            return self._file_spec(full_name, file)
        places = list(filter(self._is_package, _below(folders, step)))
        if not places:
            name = full_name.removeprefix(f"{self._prefix}.")
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        spec = ModuleSpec(full_name, None, is_package=True)
        self._folders[full_name] = places
        return spec

    def read(self, path: str) -> bytes:
        """The bytes of a module, as approved; raises ``UnapprovedModuleError``."""
        with open(path, "rb") as file:  # noqa: PTH123
            source = file.read()
        if None in self._approvals:
            return source
        import hashlib

        digest, known = hashlib.sha256(source).hexdigest(), self._digests(path)
        if digest in known:
            return source
        if known:
            raise UnapprovedModuleError(f"{path} changed since it was approved: {_RUN}")
        problem = f"{path} is not approved: move it into {PROJECT_FOLDER}, or list it "
        raise UnapprovedModuleError(f"{problem}in trustFiles of the hook, and {_RUN}")

    def import_name(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """``__import__`` for code of the project: its own modules first."""
        top = name.partition(".")[0]
        if level or self._top(top) is None:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        own = f"{self._prefix}.{name}"
        if fromlist:
            return builtins.__import__(own, globals, locals, fromlist)
        import_module(own)
        return sys.modules[f"{self._prefix}.{top}"]

    def _top(self, name: str) -> list[str] | None:
        if name not in self._tops:
            own = None if name in _NEVER_OWN else self._find_top(name)
            self._tops[name] = own
        return self._tops[name]

    def _find_top(self, name: str) -> list[str] | None:
        file = self._file(self._roots, name)
        if file is not None and self._is_approved(file):
            return self._roots
        # What nobody approved never hides an installed module.
        spec = _installed(name)
        if spec is not None:
            own = self._is_inside(spec)
            return [os.path.dirname(one) for one in _places(spec)] if own else None  # noqa: PTH120
        found = file or any(map(self._is_package, _below(self._roots, name)))
        return self._roots if found else None

    def _file(self, folders: list[str], step: str) -> str | None:
        """The file of a module, an approved one before any other."""
        found = [
            path
            for stem in _below(folders, step)
            for path in (f"{stem}/__init__.py", f"{stem}.py")
            if os.path.isfile(path)  # noqa: PTH113
        ]
        return next(filter(self._is_approved, found), None) or next(iter(found), None)

    def _is_package(self, folder: str) -> bool:
        """Whether a folder is a package without code of its own.

        An empty one would hide that an optional module is missing.
        """
        return os.path.isdir(folder) and any(  # noqa: PTH112
            one is None or one.has_files_in(folder) for one in self._approvals
        )

    def _is_approved(self, path: str) -> bool:
        return None in self._approvals or bool(self._digests(path))

    def _is_inside(self, spec: ModuleSpec) -> bool:
        """Whether a module that Python finds by itself is a file of the project."""
        return any(
            is_within(os.path.realpath(path), self._project)
            and not any(part in path for part in _INSTALLED)
            for path in _places(spec)
        )

    def _digests(self, path: str) -> set[str]:
        found = (one.digest_of(path) for one in self._approvals if one is not None)
        return {digest for digest in found if digest is not None}

    def _file_spec(self, full_name: str, file: str) -> ModuleSpec:
        is_package = file.endswith("/__init__.py")
        if is_package:
            self._folders[full_name] = [os.path.dirname(file)]  # noqa: PTH120
        loader = _ApprovedLoader(full_name, file, self)
        spec = spec_from_file_location(
            full_name,
            file,
            loader=loader,
            submodule_search_locations=[] if is_package else None,
        )
        assert spec is not None  # it has a loader
        if is_package:
            spec.submodule_search_locations = []  # for no other finder to look there
        return spec


_RUN = "run 'hookline trust'"


def _below(folders: list[str], step: str) -> list[str]:
    return [f"{folder}/{step}" for folder in folders]


def _installed(top: str) -> ModuleSpec | None:
    try:
        return find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return None  # such as '__main__' of a script


def _places(spec: ModuleSpec) -> list[str]:
    """The file or folders of a top-level module, as a package is named."""
    if spec.submodule_search_locations is not None:
        return list(spec.submodule_search_locations)
    return [spec.origin] if spec.origin and spec.has_location else []


class _ApprovedLoader(SourceFileLoader):
    """Compiles approved source; reads and writes no cache."""

    def __init__(self, name: str, path: str, modules: ProjectModules) -> None:
        super().__init__(name, path)
        self._modules = modules

    def get_code(self, fullname: str) -> Any:
        """Compile what was approved."""
        source = self._modules.read(self.path)
        return compile(source, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        """Run it, with imports that find the project's modules."""
        own: Callable[..., ModuleType] = self._modules.import_name
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": own}
        super().exec_module(module)


class _Finder:
    """Finds the modules of all projects by their own names."""

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        """Find a module of a project; None for every other."""
        modules = _open.get(name.partition(".")[0])
        return None if modules is None else modules.spec(name)


_finder = _Finder()
