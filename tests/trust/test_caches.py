"""Compiled modules come from a private folder, never from beside a hook's files."""

from __future__ import annotations

import importlib.util
import json
import os
import stat
import sys
from pathlib import Path

import pytest

from hookline.protocol.results import FailureCause
from hookline.trust.gate import private_cache
from tests.support.project import GUARD, Project

HELPER = "REASON = 'the good one'\n"
FORGED = "REASON = 'the forged'\nimport sys; sys.exit(0)\n"
SCRIPT = "import helper, sys; print(helper.REASON, file=sys.stderr); sys.exit(2)"


def guarded(project: Project, folder: str, option: str = "", **more: object) -> None:
    project.write(f"{folder}/helper.py", HELPER)
    project.write(f"{folder}/guard.py", SCRIPT)
    command = f'"$HOOKLINE_PYTHON" {option} {folder}/guard.py'
    project.settings({**GUARD, "command": command, **more})
    assert project.trust() == 0


def forge(project: Project, folder: str) -> Path:
    """A ``.pyc`` that Python does not compare with its source."""
    import _imp
    from importlib._bootstrap_external import (  # type: ignore[attr-defined]
        _code_to_hash_pyc,
    )

    source = project.folder / folder / "helper.py"
    code = compile(FORGED, str(source), "exec")
    content = _code_to_hash_pyc(code, _imp.source_hash(0, b""), checked=False)
    path = Path(importlib.util.cache_from_source(str(source)))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def caches(project: Project) -> list[Path]:
    return list((project.state / "hookline/pycache").glob("*/*"))


@pytest.mark.parametrize("folder", ["tools", ".hookline/hooks"])
async def test_forged_cache_beside_a_pinned_module_is_not_loaded(
    project: Project, folder: str
) -> None:
    """An unchecked ``.pyc`` replaced a pinned module."""
    guarded(project, folder)
    forge(project, folder)
    assert (await project.fire()).reason == "the good one"


@pytest.mark.parametrize("option", ["-I", "-E", "-Bs -E"])
async def test_cache_is_pinned_where_python_ignores_the_environment(
    project: Project, option: str
) -> None:
    guarded(project, ".hookline/hooks", option)
    forge(project, ".hookline/hooks")
    result = await project.fire()
    assert [hook.cause for hook in result.aggregated.hook_results] == [
        FailureCause.CHANGED
    ]


async def test_cache_is_pinned_where_a_script_starts_python_on_its_own(
    project: Project,
) -> None:
    project.write(".hookline/hooks/helper.py", HELPER)
    project.write(".hookline/hooks/guard.py", SCRIPT)
    start = '"$HOOKLINE_PYTHON" -c pass; exec env -i python3 .hookline/hooks/guard.py'
    project.write(".hookline/hooks/guard.sh", start)
    project.settings(GUARD)
    project.trust()
    forge(project, ".hookline/hooks")
    result = await project.fire()
    assert result.aggregated.hook_results[0].cause is FailureCause.CHANGED


def test_cache_is_pinned_for_functions_in_this_process(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write(".hookline/helper.py", HELPER)
    function = {"type": "python", "name": "f", "function": "os.path:exists"}
    project.settings(function)
    project.trust()
    project.write(".hookline/__pycache__/helper.cpython-311.pyc", "x")
    assert project.trust("--cwd", str(project.folder)) == 1
    assert "__pycache__" in capsys.readouterr().out


async def test_what_is_compiled_is_kept_between_runs_in_a_private_folder(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    guarded(project, "tools")
    assert (await project.fire()).reason == "the good one"
    (folder,) = caches(project)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    compiled = list(folder.rglob("helper.*.pyc"))
    times = [path.stat().st_mtime_ns for path in compiled]
    assert len(times) == 1
    assert (await project.fire()).reason == "the good one"
    assert [path.stat().st_mtime_ns for path in compiled] == times
    assert not list(project.folder.rglob("__pycache__"))


async def test_hooks_own_variable_does_not_choose_another_folder(
    project: Project,
) -> None:
    script = "import sys; print(sys.pycache_prefix, file=sys.stderr); sys.exit(2)"
    project.write(".hookline/guard.py", script)
    command = '"$HOOKLINE_PYTHON" .hookline/guard.py'
    env = {"PYTHONPYCACHEPREFIX": "cache"}
    project.settings({**GUARD, "command": command, "env": env})
    project.trust()
    reason = str((await project.fire()).reason)
    assert reason.startswith(str(project.state))


@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_folder_that_others_can_use_is_not_used(project: Project, mode: int) -> None:
    cache = private_cache(str(project.folder), ())
    folder = Path(cache["PYTHONPYCACHEPREFIX"])
    assert folder.is_dir()
    folder.chmod(mode)
    other = private_cache(str(project.folder), ())
    assert not os.path.isdir(other["PYTHONPYCACHEPREFIX"])  # noqa: PTH112
    assert other["PYTHONDONTWRITEBYTECODE"] == "1"


def test_link_in_its_place_is_not_used(project: Project) -> None:
    folder = Path(private_cache(str(project.folder), ())["PYTHONPYCACHEPREFIX"])
    folder.rmdir()
    folder.symlink_to(project.folder)
    other = private_cache(str(project.folder), ())
    assert not os.path.isdir(other["PYTHONPYCACHEPREFIX"])  # noqa: PTH112


def test_no_cache_is_kept_inside_the_project(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(project.folder / "state"))
    cache = private_cache(str(project.folder), ())
    assert not cache["PYTHONPYCACHEPREFIX"].startswith(str(project.folder))


async def test_what_was_compiled_from_a_swapped_module_is_never_used(
    project: Project,
) -> None:
    """The source it claims to come from has the time and the size of the good one."""
    guarded(project, "tools")
    assert (await project.fire()).reason == "the good one"
    helper = project.folder / "tools/helper.py"
    good = helper.stat()
    forged = FORGED.replace("\nimport sys; sys.exit(0)\n", "\n").ljust(len(HELPER))
    assert len(forged) == len(HELPER)
    script = json.dumps(
        f"import os\nopen({str(helper)!r}, 'w').write({forged!r})\n"
        f"os.utime({str(helper)!r}, ns=({good.st_mtime_ns}, {good.st_mtime_ns}))"
    )
    back = json.dumps(
        f"import os\nopen({str(helper)!r}, 'w').write({HELPER!r})\n"
        f"os.utime({str(helper)!r}, ns=({good.st_mtime_ns}, {good.st_mtime_ns}))"
    )
    attack = f"exec({script})\nimport helper\nexec({back})\n"
    project.write("tools/guard.py", f"{attack}{SCRIPT}".replace("sys.exit(2)", ""))
    project.trust()
    swapped = await project.fire()
    assert swapped.aggregated.hook_results[0].cause is FailureCause.CHANGED
    project.write("tools/guard.py", SCRIPT)
    os.utime(helper, ns=(good.st_atime_ns, good.st_mtime_ns))
    assert (await project.fire()).reason == "the good one"


@pytest.mark.parametrize("verdict", [0, 2])
async def test_what_was_compiled_in_an_exchanged_folder_is_never_used(
    project: Project, verdict: int
) -> None:
    """The folder is put back: its files have the times and the size that they had."""
    project.write("tools/helper.py", "CODE = 2; REASON = 'the good one'\n")
    script = """
import os, sys
if os.path.exists("evil"):
    os.rename("tools", "good"); os.rename("evil", "tools")
    import helper
    os.rename("tools", "evil"); os.rename("good", "tools")
import helper; print(helper.REASON, file=sys.stderr); sys.exit(helper.CODE)
"""
    project.write("tools/guard.py", script)
    project.settings({**GUARD, "command": '"$HOOKLINE_PYTHON" tools/guard.py'})
    assert project.trust() == 0
    forged = f"CODE = {verdict}; REASON = 'the forged  '\n"
    helper = project.folder / "tools/helper.py"
    evil = project.write("evil/helper.py", forged)
    os.utime(evil, ns=(helper.stat().st_mtime_ns, helper.stat().st_mtime_ns))
    assert evil.stat().st_size == helper.stat().st_size
    assert (await project.fire()).blocked
    (project.folder / "evil").rename(project.folder / "gone")
    assert (await project.fire()).reason == "the good one"


def test_only_a_few_states_are_kept(project: Project) -> None:
    for number in range(40):
        private_cache(str(project.folder), number)
    assert len(caches(project)) <= 16
    assert sys.pycache_prefix is None
