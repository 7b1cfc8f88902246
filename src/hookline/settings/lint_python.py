"""The findings of ``hookline check`` in python hooks; nothing is imported or run."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from hookline.errors import nearest
from hookline.protocol.values import describe

from .fields import Report, Severity
from .places import module_folders

_MAX_BYTES = 1024 * 1024


def check_function(function: str, project: Path, report: Report) -> None:
    """Report a function that its module in the project does not have.

    A module that is not in the project may be installed where the agent runs.
    """
    module, _, name = function.partition(":")
    folders = module_folders(str(project))
    file = _file_of(module, folders)
    if file is not None:
        _check_module(file, name, project, report)
    elif module.endswith(".py") and _file_of(module[:-3], folders):
        meant = f"{module[:-3]}:{name}"
        message = f"no module {describe(module)}: did you mean {meant!r}?"
        report.add(message)
    elif near := nearest(module, _modules(folders), 0.75):
        message = f"no module {describe(module)} in the project"
        report.add(f"{message}: did you mean {near!r}?", Severity.WARNING)


def _file_of(module: str, folders: list[str]) -> str | None:
    stem = module.replace(".", "/")
    paths = (f"{one}/{stem}{end}" for one in folders for end in ("/__init__.py", ".py"))
    return next(filter(os.path.isfile, paths), None)


def _modules(folders: list[str]) -> Iterator[str]:
    for folder in filter(os.path.isdir, folders):
        for name in os.listdir(folder):  # noqa: PTH208
            if name.endswith(".py"):
                yield name.removesuffix(".py")


def _check_module(file: str, name: str, project: Path, report: Report) -> None:
    shown = os.path.relpath(file, project)
    try:
        with open(file, "rb") as opened:  # noqa: PTH123
            tree = ast.parse(opened.read(_MAX_BYTES))
    except SyntaxError as error:
        report.add(f"{shown}, line {error.lineno}: {error.msg}")
        return
    except (OSError, ValueError, RecursionError, MemoryError):
        return  # loading it will say more
    names = set(_names(tree))
    if name.partition(".")[0] in names or not names.isdisjoint({"*", "__getattr__"}):
        return
    near = nearest(name, names)
    hint = f": did you mean {near!r}?" if near else ""
    message = f"{shown} has no function {describe(name)}{hint}"
    report.add(message, Severity.WARNING)


def _names(tree: ast.Module) -> Iterator[str]:
    """What a module defines or imports, anywhere: a function may be made in an if."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
