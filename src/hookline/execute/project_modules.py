"""Import what the python hooks of a project name, as it was approved (decision 0152).

Nothing of a project's own modules reaches other code: ``sys.path`` stays as it is, and
each project has names of its own in ``sys.modules``. An installed module that a hook
names is imported under its own name. What runs is compiled from bytes that were
approved, never from a ``.pyc``, which anybody who can write there can forge.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from itertools import accumulate
from types import CodeType, ModuleType

from hookline.plan import UnapprovedModuleError
from hookline.settings.model import Approval
from hookline.settings.places import PROJECT_FOLDER, is_within, module_folders

_INSTALLED = ("/site-packages/", "/dist-packages/")
_NEVER_OWN = frozenset({*sys.stdlib_module_names, "hookline"})
"""No file of a project takes the place of these."""
_RUN = "run 'hookline trust'"


_open: dict[str, ProjectModules] = {}
_installed_names: dict[str, Callable[[str], bytes]] = {}
"""Installed modules that are imported just now, and what reads their files."""


class ProjectModules:
    """The modules of one project, as its hooks import them."""

    def __init__(self, project: str, namespace: str) -> None:
        self._project = project
        self._namespace = namespace
        self._roots = module_folders(project)
        self._folders: dict[str, list[str]] = {}
        """Where the modules of a package are looked for."""
        self._tops: dict[str, list[str] | None] = {}
        """Where each top-level name is; None if it is not the project's."""
        self._trusts_all = False
        self._digests: dict[str, set[str]] = {}
        """What was approved of each file, with one hook or another."""
        root = sys.modules[namespace] = ModuleType(namespace)
        root.__path__ = []
        _open[namespace] = self
        if _Finder not in sys.meta_path:
            sys.meta_path.insert(0, _Finder)

    def load(self, name: str, approval: Approval | None) -> ModuleType:
        """Import a module of the project, or an installed one as it was approved.

        ``approval`` is that of a hook; None where every project is trusted.
        """
        self._trusts_all |= approval is None
        for path, digest in approval.digests.items() if approval else ():
            self._digests.setdefault(path, set()).add(digest)
        self._tops.clear()
        if self._top(name.partition(".")[0]) is not None:
            return import_module(f"{self._namespace}.{name}")
        packages = list(accumulate(name.split("."), "{}.{}".format))
        if approval is not None:
            _installed_names.update(dict.fromkeys(packages, self.read))
        try:
            return import_module(name)
        finally:
            for package in packages:
                _installed_names.pop(package, None)

    def close(self) -> None:
        """Forget all modules; functions that still run keep theirs."""
        _open.pop(self._namespace, None)
        inside = f"{self._namespace}."
        for name in [name for name in sys.modules if f"{name}.".startswith(inside)]:
            sys.modules.pop(name, None)

    def spec(self, full_name: str) -> ModuleSpec:
        """Find one module below the project's own name; raises ``ImportError``."""
        parent, _, step = full_name.rpartition(".")
        is_top = parent == self._namespace
        folders = (self._top(step) if is_top else self._folders.get(parent)) or []
        file = self._file(folders, step)
        if file is not None:
            is_package = file.endswith("/__init__.py")
            if is_package:
                self._folders[full_name] = [os.path.dirname(file)]  # noqa: PTH120
            loader = _ApprovedLoader(full_name, file, self.read, self.import_name)
            spec = ModuleSpec(full_name, loader, origin=file, is_package=is_package)
            spec.has_location = True
            return spec
        packages = [f"{folder}/{step}" for folder in folders]
        packages = [folder for folder in packages if self._is_package(folder)]
        if not packages:
            name = full_name.removeprefix(f"{self._namespace}.")
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        self._folders[full_name] = packages
        return ModuleSpec(full_name, None, is_package=True)

    def read(self, path: str) -> bytes:
        """The bytes of a module, as approved; raises ``UnapprovedModuleError``."""
        with open(path, "rb") as file:  # noqa: PTH123
            source = file.read()
        digests = self._digests.get(path, ())
        if self._trusts_all or sha256(source).hexdigest() in digests:
            return source
        if digests:
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
        full_name = f"{self._namespace}.{name}"
        if fromlist:
            return builtins.__import__(full_name, globals, locals, fromlist)
        import_module(full_name)
        return sys.modules[f"{self._namespace}.{top}"]

    def _top(self, name: str) -> list[str] | None:
        if name not in self._tops:
            is_own = name not in _NEVER_OWN
            self._tops[name] = self._find_top(name) if is_own else None
        return self._tops[name]

    def _find_top(self, name: str) -> list[str] | None:
        file = self._file(self._roots, name)
        if file is not None and self._is_approved(file):
            return self._roots
        # What nobody approved never hides an installed module.
        try:
            spec = find_spec(name)
        except (ImportError, ValueError, AttributeError):
            spec = None  # such as '__main__' of a script
        if spec is not None:
            paths = list(spec.submodule_search_locations or ())
            if not paths and spec.origin is not None and spec.has_location:
                paths = [spec.origin]
            # Python may find the project's files by itself.
            is_own = any(
                is_within(os.path.realpath(path), self._project)
                and not any(part in path for part in _INSTALLED)
                for path in paths
            )
            return [os.path.dirname(path) for path in paths] if is_own else None  # noqa: PTH120
        packages = (self._is_package(f"{folder}/{name}") for folder in self._roots)
        return self._roots if file or any(packages) else None

    def _file(self, folders: list[str], step: str) -> str | None:
        """The file of a module, an approved one before any other."""
        files = [
            path
            for folder in folders
            for path in (f"{folder}/{step}/__init__.py", f"{folder}/{step}.py")
            if os.path.isfile(path)  # noqa: PTH113
        ]
        return next(filter(self._is_approved, files), next(iter(files), None))

    def _is_package(self, folder: str) -> bool:
        """Whether a folder is a package without code of its own.

        An empty one would hide that an optional module is missing.
        """
        inside = f"{folder}/"
        return os.path.isdir(folder) and (  # noqa: PTH112
            self._trusts_all or any(path.startswith(inside) for path in self._digests)
        )

    def _is_approved(self, path: str) -> bool:
        return self._trusts_all or path in self._digests


class _ApprovedLoader(SourceFileLoader):
    """Compiles approved source; reads and writes no cache."""

    def __init__(
        self,
        name: str,
        path: str,
        read: Callable[[str], bytes],
        import_name: Callable[..., ModuleType] | None = None,
    ) -> None:
        super().__init__(name, path)
        self._read = read
        self._import_name = import_name

    def get_code(self, fullname: str) -> CodeType:
        """Compile what was approved."""
        code: CodeType = compile(
            self._read(self.path), self.path, "exec", dont_inherit=True
        )
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Run it; one of a project with imports that find the project's modules."""
        if self._import_name is not None:
            imports = {**vars(builtins), "__import__": self._import_name}
            module.__dict__["__builtins__"] = imports
        super().exec_module(module)


class _Finder:
    """Finds the modules of all projects, and installed ones that have to be checked."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of a project, or as others find it; None for every other."""
        modules = _open.get(name.partition(".")[0])
        if modules is not None:
            return modules.spec(name)
        read = _installed_names.get(name)
        if read is None:
            return None
        for finder in sys.meta_path:
            spec = None
            if finder is not _Finder:
                spec = finder.find_spec(name, path, target)
            if spec is None:
                continue
            if spec.has_location and spec.origin is not None:
                read(spec.origin)
                if spec.origin.endswith(".py"):
                    spec.loader = _ApprovedLoader(name, spec.origin, read)
            return spec
        return None
