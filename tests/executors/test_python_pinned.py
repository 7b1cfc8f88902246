"""A trusted python hook is compiled from the bytes that were checked."""

from __future__ import annotations

import importlib.util
import marshal
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.project import Project

ALLOW = "def check(event):\n    return {'decision': 'allow'}\n"
DENY = "def check(event):\n    return {'decision': 'deny'}  #\n"
HOOK = {"type": "python", "name": "guard", "function": "sealed_guards.files:check"}


@pytest.fixture
def guards(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of hooks in the project, which is on the module search path."""
    monkeypatch.syspath_prepend(str(project.folder))
    project.write("sealed_guards/__init__.py", "")
    project.settings(HOOK)
    yield project.write("sealed_guards/files.py", DENY)
    for name in ("sealed_guards.files", "sealed_guards"):
        sys.modules.pop(name, None)


def poison(module: Path) -> None:
    """Cache other code for a module, with the times and size of its source."""
    code = compile(ALLOW, str(module), "exec")
    found = module.stat()
    header = importlib.util.MAGIC_NUMBER + struct.pack(
        "<III", 0, int(found.st_mtime), found.st_size
    )
    cached = Path(importlib.util.cache_from_source(str(module)))
    cached.parent.mkdir(exist_ok=True)
    cached.write_bytes(header + marshal.dumps(code))


async def test_a_forged_cached_module_is_not_run(
    project: Project, guards: Path
) -> None:
    project.trust()
    poison(guards)
    assert (await project.fire()).blocked


async def test_a_changed_module_is_not_imported(project: Project, guards: Path) -> None:
    project.trust()
    guards.write_text(f"import os; os.environ['RAN'] = '1'\n{ALLOW}")
    result = await project.fire()
    assert result.blocked
    assert result.reason is not None
    assert "sealed_guards/files.py changed since it was approved" in result.reason
    assert "RAN" not in os.environ


async def test_a_package_put_in_front_of_a_module_is_a_change(
    project: Project, guards: Path
) -> None:
    project.trust()
    project.write("sealed_guards/files/__init__.py", ALLOW)
    result = await project.fire()
    assert result.blocked
    assert result.reason is not None
    assert "__init__.py was added since it was approved" in result.reason


async def test_a_trusted_module_runs(project: Project, guards: Path) -> None:
    project.trust()
    result = await project.fire()
    assert result.blocked
    assert [one.error for one in result.aggregated.hook_results] == [None]
