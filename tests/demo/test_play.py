"""``hookline demo``, as a person or a log sees it."""

from __future__ import annotations

import compileall
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.demo import play
from hookline.demo.play import Project
from hookline.protocol.events import HookEventName
from tests.support.commandline import run_command

EFFECTS = ("added", "asked", "blocked", "changed", "noted", "restricted", "stopped")
MILLISECONDS = re.compile(r" *[\d.]+ ms")
ESCAPE = "\x1b"


def demo(folder: Path, *options: str, **env: str) -> str:
    """What the demonstration prints, without a terminal."""
    ended = subprocess.run(
        [sys.executable, "-m", "hookline.cli.main", "demo", *options],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "80", **env},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def on_a_terminal(folder: Path, **env: str) -> str:
    """What the demonstration prints on a terminal of 80 columns."""
    pty = pytest.importorskip("pty")
    read, write = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "hookline.cli.main", "demo"],
        cwd=folder,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **env},
        stdin=write,
        stdout=write,
        stderr=write,
    ) as process:
        os.close(write)
        output = b""
        while piece := _read(read):
            output += piece
    os.close(read)
    assert process.returncode == 0
    return output.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""  # the other side of a terminal is closed


FACTS = (
    "path config.py → src/config.py",
    "Ada Byron, [e-mail], [phone].",
    "only list_files, read_file",
    "Read keys from the environment.",
    "the same test failed 3 times",
    "no access key is in it",
    "src/app.py is still there",
)


def test_the_demo_shows_every_event_and_effect_on_one_screen(tmp_path: Path) -> None:
    """Issue 17: short by default, still naming every event and effect."""
    output = demo(tmp_path, PATH=with_hookline())
    rows = [line.split() for line in output.splitlines() if line.startswith("  ")]
    assert {row[0] for row in rows} >= {event.value for event in HookEventName}
    assert {row[2] for row in rows if len(row) > 2} >= set(EFFECTS)
    for fact in FACTS:
        assert fact in output
    assert ESCAPE not in output
    assert max(map(len, output.splitlines())) <= 80
    assert output.count("\n") <= 35
    assert list(tmp_path.iterdir()) == []
    check_next_steps(output, tmp_path, with_hookline(), is_on_path=True)


def test_all_shows_every_message_and_every_run(tmp_path: Path) -> None:
    output = demo(tmp_path, "--all")
    for shown in (*FACTS, "  you  Yes.", "SessionEnd", "asked again", "15 runs"):
        assert shown in output
    assert max(map(len, output.splitlines())) <= 80
    assert len(output.splitlines()) > 100


def test_the_demo_fits_40_columns(tmp_path: Path) -> None:
    """Issue 17: at 40 columns it is still readable: wrapped, and no table."""
    for style in ((), ("--all",)):
        output = demo(tmp_path, *style, COLUMNS="40", PATH=with_hookline())
        assert max(map(len, output.splitlines())) <= 40
        words = " ".join(output.split())
        for fact in (*FACTS, "BeforeToolSelection read-only restricted"):
            assert fact in words


def with_hookline() -> str:
    """A path on which our command is found: what comes next says ``hookline``."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def check_next_steps(output: str, folder: Path, path: str, *, is_on_path: bool) -> None:
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
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "hookline fire BeforeTool" in ended.stdout


def test_what_to_do_next_can_be_typed_without_hookline_on_the_path(
    tmp_path: Path,
) -> None:
    """Issue 17: the demo ends with what to do next."""
    path = "/usr/bin:/bin"
    check_next_steps(demo(tmp_path, PATH=path), tmp_path, path, is_on_path=False)


def test_plain_is_ascii_and_the_same_every_time_and_its_project_can_be_kept(
    tmp_path: Path,
) -> None:
    """Only the milliseconds differ."""
    words = ("--all", "--plain")
    first, second = (
        MILLISECONDS.sub(" # ms", demo(tmp_path, *words, *more))
        for more in ((), ("--keep", "try-it"))
    )
    assert first.isascii()
    assert "config.py -> src/config.py" in first
    assert second.startswith(first.partition("Next, in")[0])
    assert (tmp_path / "try-it" / "src" / "config.py").exists()
    fired = run_command(
        *("fire", "BeforeTool", "--cwd", "try-it", "--tool", "write_file"),
        *("--settings", "try-it/.hookline/settings.json"),
        *("--tool-input", '{"path": "a", "content": "AKIAIOSFODNN7EXAMPLE"}'),
        cwd=tmp_path,
    )
    assert fired.returncode == 2
    assert "access key" in fired.stdout


@pytest.mark.parametrize("colour", [True, False])
def test_the_demo_has_colour_on_a_terminal_unless_no_color_is_set(
    tmp_path: Path, colour: bool
) -> None:
    output = on_a_terminal(tmp_path, **({} if colour else {"NO_COLOR": "1"}))
    has_colour = re.search(r"\x1b\[(\d;)*3[1-7]m", output) is not None
    assert has_colour is colour
    assert "hookline init" in output


def test_keep_rejects_a_directory_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    ended = run_command("demo", "--keep", ".", cwd=tmp_path)
    assert ended.returncode == 1
    assert "new directory" in ended.stderr


def test_the_demos_project_holds_no_compiled_files(tmp_path: Path) -> None:
    """Installing the package compiles the demo's own files too."""
    compileall.compile_dir(Path(play.__file__).parent, quiet=2)
    Project(tmp_path).create()
    assert list(tmp_path.rglob("*.pyc")) == []
    assert (tmp_path / "src" / "app.py").exists()
