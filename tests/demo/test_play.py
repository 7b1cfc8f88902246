"""``hookline demo``, as a person or a log sees it."""

from __future__ import annotations

import compileall
import os
import re
import subprocess
from pathlib import Path

import pytest

from hookline.demo import play
from hookline.demo.play import Project
from hookline.protocol.events import HookEventName
from tests.support.command_project import CommandProject

EFFECTS = ("added", "asked", "blocked", "changed", "noted", "restricted", "stopped")
MILLISECONDS = re.compile(r" *[\d.]+ ms")
ESCAPE = "\x1b"
FACTS = (
    "path config.py → src/config.py",
    "Ada Byron, [e-mail], [phone].",
    "only list_files, read_file",
    "Read keys from the environment.",
    "the same test failed 3 times",
    "no access key is in it",
    "src/app.py is still there",
)


@pytest.fixture
def project(tmp_path: Path) -> CommandProject:
    return CommandProject(tmp_path)


def demo(project: CommandProject, *options: str, **env: str) -> str:
    """What the demonstration prints, without a terminal."""
    ended = project.run("demo", *options, env={"COLUMNS": "80", **env})
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_the_demo_shows_every_event_and_effect_on_one_screen(
    project: CommandProject,
) -> None:
    """Short by default, still naming every event and effect."""
    output = demo(project)
    rows = [line.split() for line in output.splitlines() if line.startswith("  ")]
    assert {row[0] for row in rows} >= {event.value for event in HookEventName}
    assert {row[2] for row in rows if len(row) > 2} >= set(EFFECTS)
    for fact in FACTS:
        assert fact in output
    assert ESCAPE not in output
    assert max(map(len, output.splitlines())) <= 80
    assert output.count("\n") <= 35
    assert list(project.project.iterdir()) == []
    check_next_steps(output, project, is_on_path=True)


def test_all_shows_every_message_and_every_run(project: CommandProject) -> None:
    output = demo(project, "--all")
    for shown in (*FACTS, "  you  Yes.", "SessionEnd", "asked again", "15 runs"):
        assert shown in output
    assert max(map(len, output.splitlines())) <= 80
    assert len(output.splitlines()) > 100


def test_the_demo_fits_40_columns(project: CommandProject) -> None:
    """At 40 columns it is still readable: wrapped, and no table."""
    for style in ((), ("--all",)):
        output = demo(project, *style, COLUMNS="40")
        assert max(map(len, output.splitlines())) <= 40
        words = " ".join(output.split())
        for fact in (*FACTS, "BeforeToolSelection read-only restricted"):
            assert fact in words


def check_next_steps(output: str, project: CommandProject, *, is_on_path: bool) -> None:
    """What comes next can be typed, by really running it in a shell."""
    _, _, after = output.partition("Next, in a project of yours:")
    steps = [line.partition("  # ")[0].strip() for line in after.strip().splitlines()]
    assert ("export PATH=" in steps[0]) is not is_on_path
    *typed, install, look, again = steps
    assert install == "hookline install claude"
    assert [look, again] == ["hookline inspect", "hookline demo --all"]
    script = " && ".join([*typed[:-1], f"{typed[-1]} --yes", f"{install} --dry-run"])
    ended = subprocess.run(
        script,
        shell=True,
        cwd=project.project,
        env={**os.environ, **project.env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "hookline fire BeforeTool" in ended.stdout


def test_plain_is_ascii_and_the_same_every_time_and_its_project_can_be_kept(
    project: CommandProject,
) -> None:
    """Only the milliseconds differ."""
    words = ("--all", "--plain")
    first, second = (
        MILLISECONDS.sub(" # ms", demo(project, *words, *more))
        for more in ((), ("--keep", "try-it"))
    )
    assert first.isascii()
    assert "config.py -> src/config.py" in first
    assert "hookline inspect" in first
    assert second.startswith(first.partition("Next, in")[0])
    assert project.path("try-it/src/config.py").exists()
    fired = project.run(
        *("fire", "BeforeTool", "--cwd", "try-it", "--tool", "write_file"),
        *("--settings", "try-it/.hookline/settings.json"),
        *("--tool-input", '{"path": "a", "content": "AKIAIOSFODNN7EXAMPLE"}'),
    )
    assert fired.returncode == 2
    assert "access key" in fired.stdout


def test_the_demo_has_colour_on_a_terminal_unless_no_color_is_set(
    project: CommandProject,
) -> None:
    """Where hookline is not on the PATH, its next steps start with how to find it."""
    project.env |= {"TERM": "xterm-256color", "PATH": "/usr/bin:/bin"}
    colour = re.compile(r"\x1b\[(\d;)*3[1-7]m")
    assert colour.search(project.on_terminal("demo", stream="stdout"))
    project.env["NO_COLOR"] = "1"
    output = project.on_terminal("demo", stream="stdout")
    assert not colour.search(output)
    check_next_steps(output.replace("\r\n", "\n"), project, is_on_path=False)


def test_the_demos_project_holds_no_compiled_files(tmp_path: Path) -> None:
    """Installing the package compiles the demo's own files too."""
    compileall.compile_dir(Path(play.__file__).parent, quiet=2)
    Project(tmp_path).create()
    assert list(tmp_path.rglob("*.pyc")) == []
    assert (tmp_path / "src" / "app.py").exists()
