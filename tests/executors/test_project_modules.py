"""Issue 17: python hooks find modules of their trusted project, and of no other.

Rule: nothing unapproved of the project is executed.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.protocol.results import FailureCause
from tests.support.project import Project

HOOK = {"type": "python", "name": "guard", "function": "checks:guard"}
SAYS = "def guard(event):\n    return {{'decision': 'deny', 'reason': {}}}\n"


def says(expression: str) -> str:
    return SAYS.format(expression)


RAN = "import os; os.environ['RAN'] = __file__\n"
"""What no test may run."""


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("RAN", raising=False)
    path, modules = list(sys.path), {one.partition(".")[0] for one in sys.modules}
    yield
    assert "RAN" not in os.environ
    monkeypatch.undo()
    assert sys.path == path
    left = {one.partition(".")[0] for one in sys.modules} - modules
    assert not {one for one in left if one.startswith(("_hookline_project", "checks"))}


LAYOUTS = {
    "in .hookline": {".hookline/checks.py": says("'found'")},
    "in the project folder": {"checks.py": says("'found'")},
    "in src": {"src/checks.py": says("'found'")},
    "helper beside it": {
        ".hookline/checks.py": "from words import WORD\n" + says("WORD"),
        ".hookline/words.py": "WORD = 'found'\n",
    },
    "helper of the project": {
        ".hookline/checks.py": "from tools import (\n  words,\n)\n" + says("words.W"),
        "tools/__init__.py": "from .words import W\n",
        "tools/words.py": "from tools.deeper import W\n",
        "tools/deeper/__init__.py": "from ..letters import W\n",
        "tools/letters.py": "W = 'found'\n",
    },
    "import inside the function": {
        "checks.py": "def guard(event):\n    import lists.words as words\n"
        "    return {'decision': 'deny', 'reason': words.W}\n",
        "lists/words.py": "W = 'found'\n",
    },
    "dataclass with text annotations": {
        "checks.py": "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "@dataclass\nclass A:\n    b: str = 'found'\n" + says("A().b"),
    },
    "names of the standard library": {
        ".hookline/checks.py": "import json, types\nfrom hookline.script import block\n"
        "def guard(event):\n    types.SimpleNamespace\n"
        "    return block(json.loads('\"found\"'))\n",
        **dict.fromkeys(("json.py", "types.py", "hookline/__init__.py"), RAN),
        **dict.fromkeys(("sitecustomize.py", ".hookline/json.py"), RAN),
    },
}


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=list(LAYOUTS))
async def test_a_module_of_a_trusted_project_is_found(
    project: Project, files: dict[str, str]
) -> None:
    for name, text in files.items():
        project.write(name, text)
    project.settings(HOOK)
    assert (await project.fire()).aggregated.hook_results == []  # not trusted yet
    project.trust()
    result = await project.fire()
    assert (result.blocked, result.reason) == (True, "found"), result.aggregated.errors
    assert list(project.folder.rglob("__pycache__")) == []


async def test_modules_are_found_where_every_project_is_trusted(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKLINE_TRUST", "all")
    project.write(".hookline/checks.py", "import words\n" + says("words.W"))
    project.write("words.py", "W = 'found'\n")
    project.settings(HOOK)
    assert (await project.fire()).reason == "found"


async def test_a_linked_module_is_followed_to_what_was_approved(
    project: Project, tmp_path: Path
) -> None:
    target = tmp_path / "shared.py"
    target.write_text(says("'shared'"))
    (project.write(".hookline/x", "").parent / "checks.py").symlink_to(target)
    project.settings(HOOK)
    project.trust()
    assert (await project.fire()).reason == "shared"
    target.write_text(RAN + says("'other'"))
    assert "changed since it was approved" in ((await project.fire()).reason or "")


async def test_modules_of_the_same_name_stay_apart(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nested projects and the user, each with a module of the same name."""
    users = tmp_path / "users"
    users.mkdir()
    users.joinpath("checks.py").write_text(says("'the user'"))
    monkeypatch.syspath_prepend(str(users))
    inner = Project(project.folder / "inner", project.state)
    for one, word in ((project, "outer"), (inner, "inner")):
        one.write(".hookline/checks.py", "import words\n" + says("words.W"))
        one.write("words.py", f"W = {word!r}\n")
        one.settings(HOOK)
        one.trust()
    (project.folder / ".git").mkdir()
    user = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": [HOOK]}]}})
    try:
        async with inner.system() as hooks:
            fired = await hooks.event_handler.fire_before_tool_event("t", {})
        async with HookSystem(Config("s", inner.folder, user)) as hooks:
            theirs = await hooks.event_handler.fire_before_tool_event("t", {})
        assert Path(sys.modules["checks"].__file__ or "").parent == users
        assert "words" not in sys.modules
    finally:
        sys.modules.pop("checks", None)
    assert sorted((fired.reason or "").split("\n")) == ["inner", "outer"]
    assert theirs.reason == "the user"


def forge(module: Path, flags: int) -> None:
    """Cache other code for a module, as valid for Python as can be."""
    code, found = compile(RAN + says("'forged'"), str(module), "exec"), module.stat()
    stamp = struct.pack("<II", int(found.st_mtime), found.st_size)
    words = struct.pack("<I", flags) + (b"\0" * 8 if flags else stamp)
    cached = Path(importlib.util.cache_from_source(str(module)))
    cached.parent.mkdir(exist_ok=True)
    cached.write_bytes(importlib.util.MAGIC_NUMBER + words + marshal.dumps(code))


@pytest.mark.parametrize("flags", [0, 1], ids=["by time", "unchecked hash"])
async def test_no_forged_cache_is_run(project: Project, flags: int) -> None:
    """Of the module, and of what it imports."""
    files = project.write("checks.py", "import words\n" + says("words.W"))
    words = project.write("words.py", "W = 'approved'\n")
    project.settings(HOOK)
    project.trust()
    for module in (files, words):
        forge(module, flags)
    assert (await project.fire()).reason == "approved"


async def test_a_module_that_the_host_imported_is_not_used(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may come from bytes that were exchanged and put back."""
    monkeypatch.syspath_prepend(str(project.folder))
    file = project.write("checks.py", says("'exchanged'"))
    importlib.import_module("checks")
    file.write_text(says("'approved'"))
    project.settings(HOOK)
    project.trust()
    try:
        assert (await project.fire()).reason == "approved"
    finally:
        del sys.modules["checks"]


async def test_a_changed_helper_blocks_and_an_approved_one_is_loaded_again(
    project: Project,
) -> None:
    project.write("checks.py", "import words\n" + says("words.W"))
    project.write("words.py", "W = 'old'\n")
    project.settings(HOOK)
    project.trust()
    seen = []
    async with project.system() as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        seen.append((await fire("t", {})).reason)
        project.write("words.py", RAN + "W = 'new'\n")
        seen.append((await fire("t", {})).reason)
        project.write("words.py", "W = 'newer'\n")
        project.trust()
        seen.append((await fire("t", {})).reason)
    assert (seen[0], seen[2]) == ("old", "newer")
    assert "words.py changed since it was approved" in (seen[1] or "")


async def test_what_nobody_approved_is_not_run(project: Project) -> None:
    """It does not hide an installed module, and takes no guard out of the way."""
    project.write(
        ".hookline/checks.py",
        "installed, name = 'msg' + 'spec', 'lat' + 'er'\n"
        "def guard(event):\n    __import__(installed).json\n    __import__(name)\n",
    )
    project.settings(HOOK)
    project.trust()
    project.write("later.py", RAN)
    project.write("msgspec.py", RAN)
    (ran,) = (await project.fire()).aggregated.hook_results
    assert ran.cause is FailureCause.CHANGED
    assert f"{project.folder}/later.py is not approved: move it into .hookline" in (
        ran.error or ""
    )


async def test_a_module_that_is_exchanged_after_the_check_blocks(
    project: Project,
) -> None:
    """The bytes that are compiled are compared themselves."""
    swaps = "import os\nos.rename('evil.py', 'words.py')\nimport words\n"
    project.write("checks.py", swaps + says("words.W"))
    project.write("words.py", "W = 'approved'\n")
    project.settings(HOOK)
    project.trust()
    project.write("evil.py", RAN)
    before = Path.cwd()
    os.chdir(project.folder)
    try:
        result = await project.fire()
    finally:
        os.chdir(before)
    assert result.blocked
    assert "changed" in (result.reason or "")


OPTIONAL = """
try:
    import speedups
except ImportError:
    from re import search as check
else:
    check = speedups.search
def guard(event):
    return {'decision': 'deny', 'reason': 'found'} if check('a', 'a') else None
"""


@pytest.mark.parametrize("folder", ["speedups", "src/speedups/sub"])
async def test_an_empty_folder_is_no_module(project: Project, folder: str) -> None:
    """Issue 17: as a package without code it would make a guard crash."""
    project.write(".hookline/checks.py", OPTIONAL)
    project.settings(HOOK)
    project.trust()
    (project.folder / folder).mkdir(parents=True)
    assert (await project.fire()).reason == "found"
