"""A command that needs no shell ends the same with bash and without it.

protocol.md#process: leaving bash out makes no difference. A hook that names its shell
is always run by it, so that both ways can be compared.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.execute.command import direct_start
from tests.support.fired import verdict_as_data
from tests.support.workspace import Workspace

BASH = shutil.which("bash") or ""
pytestmark = pytest.mark.skipif(not BASH, reason="needs bash")

PLAIN = tomllib.loads(Path(__file__).with_name("plain_commands.toml").read_text())


@pytest.fixture
def project(tmp_path: Path) -> Workspace:
    folder = tmp_path / "a project's $dir"
    for name, text in PLAIN["files"].items():
        file = folder / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)
        file.chmod(0o755)
    (folder / "plain-file").write_text("echo never")
    (folder / "secret").write_text("#!/bin/sh\n")
    (folder / "secret").chmod(0o400)
    return Workspace(folder)


async def both_ways(
    project: Workspace, command: str, env: dict[str, str]
) -> list[dict[str, Any]]:
    """What the same command comes to by its shell, and as Hookline starts it."""
    verdicts = []
    for more in ({"shell": BASH}, {}):
        hook = project.runs(command, env=env, **more)
        ended = verdict_as_data(await project.fire("BeforeTool", hook))
        [ran] = ended["hooks"]
        # env prints in the order of the environment, which may differ.
        lines = sorted(ran.pop("stdout", "").splitlines())
        verdicts.append({**ran, "lines": lines, "blocked": ended.get("blocked")})
    return verdicts


async def test_plain_command_ends_the_same_with_and_without_bash(
    project: Workspace, subtests: pytest.Subtests
) -> None:
    env = {"PATH": f"{project.folder}/sub:{os.environ['PATH']}"}
    for command in PLAIN["commands"]:
        with subtests.test(command):
            by_shell, without = await both_ways(project, command, env)
            assert without == by_shell


async def test_environment_reaches_the_program_the_same(
    project: Workspace, subtests: pytest.Subtests
) -> None:
    for env in PLAIN["environments"]:
        for command in ("env", "wc -c", "sub/tool", "./args.sh a"):
            with subtests.test(command, env=env):
                by_shell, without = await both_ways(project, command, env)
                assert without == by_shell


async def test_start_up_file_of_bash_is_still_read(project: Workspace) -> None:
    startup = project.folder.parent / "startup"
    startup.write_text("echo from the start-up file")
    env = {"BASH_ENV": str(startup)}
    by_shell, without = await both_ways(project, "wc -c", env)
    assert without == by_shell
    assert "from the start-up file" in without["lines"]


@pytest.mark.parametrize("is_direct", [True, False])
def test_only_plain_commands_are_started_without_bash(
    project: Workspace, is_direct: bool
) -> None:
    """By the function itself: from outside both look the same, but for the time."""
    folder = str(project.folder)
    env = {"PWD": folder, "PATH": f"{folder}/sub:/usr/bin:/bin"}
    env["HOOKLINE_PROJECT_DIR"] = folder
    for command in PLAIN["direct" if is_direct else "by_bash"]:
        assert (direct_start(command, env) is not None) is is_direct, command
    only_sub = {**env, "PATH": f"{folder}/sub"}
    assert direct_start("cat", only_sub) is None


@given(st.text(alphabet="ab$\"' {}_./-=;*~\\#&|", max_size=12))
def test_nothing_that_needs_bash_is_started_without_it(text: str) -> None:
    """The arguments are those that bash would pass."""
    program = direct_start(f"cat {text}", {"PATH": "/usr/bin:/bin"})
    if program is not None:
        assert not set(text) & set("$'{};*~\\#&|")
        printed = subprocess.run(
            ["bash", "-c", f"printf '%s\\0' {text}"], capture_output=True, check=True
        ).stdout
        words = printed.decode().split("\0")[:-1]
        expected = [] if words == [""] and '"' not in text else words
        assert program.argv == ["cat", *expected]
