"""The public callables: their parameters, and what their docstrings explain.

Read from the source, so that adapters count whose frameworks are not installed here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

from .pages import ROOT

SOURCE = ROOT / "src"
API = ROOT / "docs" / "reference" / "python"
_LISTED = re.compile(r"^::: (\S+)$((?:\n {4}.*)*)", re.MULTILINE)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Parameters(Struct, frozen=True):
    """One public callable."""

    name: str
    """Dotted, as on its page: ``hookline.agent.hooked_tool``."""
    names: frozenset[str]
    """Its parameters."""
    optional: frozenset[str]
    """Those with a default."""
    takes_any: bool
    """Whether it takes other keywords too."""
    docs: str
    """Its docstring, and that of its class."""

    @property
    def called(self) -> str:
        """The name that it is called by on pages."""
        name = self.name.removesuffix(".__init__")
        return name.rpartition(".")[2]


def public_callables() -> list[Parameters]:
    """All on the pages of the Python API: functions, constructors, methods."""
    found: dict[str, Parameters] = {}
    for page in sorted(API.glob("*.md")):
        for name, options in _LISTED.findall(page.read_text()):
            for one in _callables(name, _members(options)):
                found.setdefault(one.name, one)
    return list(found.values())


def _members(options: str) -> set[str] | None:
    """The methods that a page shows; None for all."""
    listed = re.search(r"members: (?:false|\[(.*)\])", options)
    return None if listed is None else set(re.findall(r"\w+", listed[1] or ""))


def _callables(name: str, members: set[str] | None) -> Iterator[Parameters]:
    tree = _tree(name)
    if tree is not None:  # a module: all that it defines
        for one in tree.body:
            if isinstance(one, Function | ast.ClassDef) and one.name[0] != "_":
                yield from _callables(f"{name}.{one.name}", members)
        return
    node = _definition(name)
    if isinstance(node, Function):
        yield _parameters(name, node, "")
    elif isinstance(node, ast.ClassDef):
        docs = ast.get_docstring(node) or ""
        if fields := _fields(node):
            listed = " ".join(fields)  # each has its own line on the page
            yield Parameters(f"{name}.__init__", fields, frozenset(), False, listed)
        for method, one in _methods(node):
            if _is_shown(method, members):
                yield _parameters(f"{name}.{method}", one, docs)


def _methods(node: ast.ClassDef) -> Iterator[tuple[str, Function]]:
    """The methods of a class, and what is made of one: ``fire = wait(fire_async)``."""
    found = {one.name: one for one in node.body if isinstance(one, Function)}
    yield from found.items()
    for one in node.body:
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call):
            for given in one.value.args:
                if isinstance(given, ast.Name) and given.id in found:
                    yield ast.unparse(one.targets[0]), found[given.id]


def _fields(node: ast.ClassDef) -> frozenset[str]:
    """The fields of a struct, which its constructor takes."""
    if not any(
        isinstance(base, ast.Name) and base.id == "Struct" for base in node.bases
    ):
        return frozenset()
    assigned = [one for one in node.body if isinstance(one, ast.AnnAssign)]
    return frozenset(
        one.target.id for one in assigned if isinstance(one.target, ast.Name)
    )


def _is_shown(method: str, members: set[str] | None) -> bool:
    if members is None:
        return method == "__init__" or method[0] != "_"
    return method == "__init__" or method in members


def _parameters(name: str, node: Function, docs: str) -> Parameters:
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    optional = positional[len(positional) - len(given.defaults) :]
    optional += [
        one
        for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if default is not None
    ]
    every = {one.arg for one in (*positional, *given.kwonlyargs)} - {"self", "cls"}
    return Parameters(
        name=name,
        names=frozenset(every),
        optional=frozenset(one.arg for one in optional),
        takes_any=given.kwarg is not None,
        docs=f"{docs}\n{ast.get_docstring(node) or ''}",
    )


def _definition(name: str) -> ast.AST:
    """What a public name is; of overloads the implementation."""
    module, _, attribute = name.rpartition(".")
    found = _in_module(module, attribute)
    assert found is not None, f"{name} is not defined"
    return found


def _in_module(module: str, name: str) -> ast.AST | None:
    tree = _tree(module)
    if tree is None:
        return None
    node = _last(tree, name)
    if node is not None:
        return node
    for one in ast.walk(tree):
        if isinstance(one, ast.ImportFrom):
            for alias in one.names:
                if (alias.asname or alias.name) == name:
                    return _in_module(_absolute(module, one), alias.name)
    return None


def _last(tree: ast.Module, name: str) -> ast.AST | None:
    """The last definition of a name in a module."""
    found: ast.AST | None = None
    for one in tree.body:
        if isinstance(one, Function | ast.ClassDef) and one.name == name:
            found = one
        targets = getattr(one, "targets", [getattr(one, "target", None)])
        if any(isinstance(it, ast.Name) and it.id == name for it in targets):
            found = one
    return found


def _absolute(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    file = _file(module)
    steps = module.split(".")
    is_package = file is not None and file.stem == "__init__"
    above = steps[: len(steps) - node.level + (1 if is_package else 0)]
    return ".".join([*above, *filter(None, [node.module])])


def _file(module: str) -> Path | None:
    """The stub of a package, which names all it has, or the source of a module."""
    path = SOURCE / Path(*module.split("."))
    places = (path / "__init__.pyi", path / "__init__.py", path.with_suffix(".py"))
    return next((place for place in places if place.is_file()), None)


@cache
def _tree(module: str) -> ast.Module | None:
    file = _file(module)
    return None if file is None else ast.parse(file.read_text())
