"""Python hooks find modules of their trusted project, and of no other.

Rule: nothing unapproved of the project is executed.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import struct
import sys
import tomllib
from collections.abc import Iterator
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


def trusted(project: Project, files: dict[str, str]) -> None:
    """Write files and the settings that name the hook, and trust them."""
    for name, text in files.items():
        project.write(name, text)
    project.settings(HOOK)
    assert project.trust() == 0


RAN = "import os; os.environ['RAN'] = __file__\n"
"""What no test may run."""


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("RAN", raising=False)
    path, modules = list(sys.path), {name.partition(".")[0] for name in sys.modules}
    yield
    assert "RAN" not in os.environ
    monkeypatch.undo()
    assert sys.path == path
    left = {name.partition(".")[0] for name in sys.modules} - modules
    assert not {
        name for name in left if name.startswith(("_hookline_project", "checks"))
    }


USES_WORDS = {"checks.py": "import words\n" + says("words.W")}
LAYOUTS = tomllib.loads(Path(__file__).with_name("project_modules.toml").read_text())


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=list(LAYOUTS))
async def test_module_of_a_trusted_project_is_found(
    project: Project, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        project.write(name, text)
    project.settings(HOOK)
    assert (await project.fire()).aggregated.hook_results == []  # not trusted yet
    with monkeypatch.context() as sealed:
        sealed.setenv("HOOKLINE_TRUST", "all")
        assert (await project.fire()).reason == "found"
    project.trust()
    result = await project.fire()
    assert (result.blocked, result.reason) == (True, "found"), result.aggregated.errors
    assert list(project.folder.rglob("__pycache__")) == []


async def test_linked_module_is_followed_to_what_was_approved(
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
    for owner, word in ((project, "outer"), (inner, "inner")):
        owner.write(".hookline/checks.py", "import words\n" + says("words.W"))
        owner.write("words.py", f"W = {word!r}\n")
        owner.settings(HOOK)
        owner.trust()
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
    code, status = compile(RAN + says("'forged'"), str(module), "exec"), module.stat()
    stamp = struct.pack("<II", int(status.st_mtime), status.st_size)
    words = struct.pack("<I", flags) + (b"\0" * 8 if flags else stamp)
    cached = Path(importlib.util.cache_from_source(str(module)))
    cached.parent.mkdir(exist_ok=True)
    cached.write_bytes(importlib.util.MAGIC_NUMBER + words + marshal.dumps(code))


@pytest.mark.parametrize("flags", [0, 1], ids=["by time", "unchecked hash"])
async def test_no_forged_cache_is_run(project: Project, flags: int) -> None:
    """Of the module, and of what it imports."""
    trusted(project, {**USES_WORDS, "words.py": "W = 'approved'\n"})
    for name in ("checks.py", "words.py"):
        forge(project.folder / name, flags)
    assert (await project.fire()).reason == "approved"


async def test_module_that_the_host_imported_is_not_used(
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


async def test_changed_helper_blocks_and_an_approved_one_is_loaded_again(
    project: Project,
) -> None:
    trusted(project, {**USES_WORDS, "words.py": "W = 'old'\n"})
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
    code = (
        "installed, name = 'msg' + 'spec', 'lat' + 'er'\n"
        "def guard(event):\n    __import__(installed).json\n    __import__(name)\n"
    )
    trusted(project, {".hookline/checks.py": code})
    project.write("later.py", RAN)
    project.write("msgspec.py", RAN)
    (ran,) = (await project.fire()).aggregated.hook_results
    assert ran.cause is FailureCause.CHANGED
    assert f"{project.folder}/later.py is not approved: move it into .hookline" in (
        ran.error or ""
    )


async def test_module_that_is_exchanged_after_the_check_blocks(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes that are compiled are compared themselves."""
    swaps = "import os\nos.rename('evil.py', 'words.py')\nimport words\n"
    files = {"checks.py": swaps + says("words.W"), "words.py": "W = 'approved'\n"}
    trusted(project, files)
    project.write("evil.py", RAN)
    monkeypatch.chdir(project.folder)
    result = await project.fire()
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
async def test_empty_folder_is_no_module(project: Project, folder: str) -> None:
    """As a package without code it would make a guard crash."""
    trusted(project, {".hookline/checks.py": OPTIONAL})
    (project.folder / folder).mkdir(parents=True)
    assert (await project.fire()).reason == "found"


@pytest.fixture
def installed(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module on the search path, outside of the project that names it."""
    module = project.folder.parent / "site" / "sealed_guards" / "files.py"
    module.parent.mkdir(parents=True)
    module.with_name("__init__.py").write_text("")
    module.write_text(says("'approved'"))
    monkeypatch.syspath_prepend(str(module.parent.parent))
    function = "sealed_guards.files:guard"
    project.settings({"type": "python", "name": "guard", "function": function})
    yield module
    for name in ("sealed_guards.files", "sealed_guards"):
        sys.modules.pop(name, None)


async def test_installed_module_runs_from_the_approved_bytes(
    project: Project, installed: Path
) -> None:
    project.trust()
    forge(installed, 0)
    assert (await project.fire()).reason == "approved"


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("files.py", "sealed_guards/files.py changed since it was approved"),
        ("files/__init__.py", "files/__init__.py was added since it was approved"),
    ],
)
async def test_installed_module_that_changed_is_not_imported(
    project: Project, installed: Path, file: str, problem: str
) -> None:
    """And no package that was put in front of it."""
    project.trust()
    other = installed.parent / file
    other.parent.mkdir(exist_ok=True)
    other.write_text(RAN + says("'other'"))
    result = await project.fire()
    assert result.blocked
    assert problem in (result.reason or "")


async def test_installed_module_that_is_exchanged_after_the_check_does_not_run(
    project: Project, installed: Path
) -> None:
    """By its own package, which is imported first."""
    other = installed.with_name("other")
    swaps = f"import os\nif os.path.exists({str(other)!r}):\n"
    swaps += f"    os.rename({str(other)!r}, {str(installed)!r})\n"
    installed.with_name("__init__.py").write_text(swaps)
    project.trust()
    other.write_text(RAN + says("'other'"))
    result = await project.fire()
    assert result.blocked
    assert "changed" in (result.reason or "")
