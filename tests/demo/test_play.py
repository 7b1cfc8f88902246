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

EVENTS = (
    "BeforeTool",
    "AfterTool",
    "BeforeModel",
    "AfterModel",
    "BeforeToolSelection",
    "BeforeAgent",
)
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


def test_the_demo_shows_every_effect_and_checks_the_project(tmp_path: Path) -> None:
    output = demo(tmp_path)
    for event in EVENTS:
        assert event in output
    for effect in (
        "blocked",
        "path config.py → src/config.py",
        "[e-mail], [phone]",
        "only list_files, read_file",
        "Project rule: settings come from the environment.",
        "stopped: the same test failed 3 times",
        "no access key is in it",
        "src/app.py is still there",
    ):
        assert effect in output
    assert ESCAPE not in output
    assert max(map(len, output.splitlines())) <= 80
    assert list(tmp_path.iterdir()) == []


def test_the_demo_is_the_same_every_time_but_for_the_milliseconds(
    tmp_path: Path,
) -> None:
    first, second = (
        MILLISECONDS.sub(" # ms", demo(tmp_path, "--plain")) for _ in range(2)
    )
    assert first == second


def test_plain_is_ascii_without_boxes(tmp_path: Path) -> None:
    output = demo(tmp_path, "--plain")
    assert output.isascii()
    assert "config.py -> src/config.py" in output


@pytest.mark.parametrize("colour", [True, False])
def test_the_demo_has_colour_on_a_terminal_unless_no_color_is_set(
    tmp_path: Path, colour: bool
) -> None:
    output = on_a_terminal(tmp_path, **({} if colour else {"NO_COLOR": "1"}))
    has_colour = re.search(r"\x1b\[(\d;)*3[1-7]m", output) is not None
    assert has_colour is colour
    assert "Summary" in output


def test_a_kept_project_can_be_played_with(tmp_path: Path) -> None:
    demo(tmp_path, "--plain", "--keep", "try-it")
    assert (tmp_path / "try-it" / "src" / "config.py").exists()
    fired = subprocess.run(
        [
            *(sys.executable, "-m", "hookline.cli.main", "fire", "BeforeTool"),
            *("--cwd", "try-it", "--settings", "try-it/.hookline/settings.json"),
            *("--tool", "write_file"),
            *("--tool-input", '{"path": "a", "content": "AKIAIOSFODNN7EXAMPLE"}'),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert fired.returncode == 2
    assert "access key" in fired.stdout


def test_keep_rejects_a_directory_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    ended = subprocess.run(
        [sys.executable, "-m", "hookline.cli.main", "demo", "--keep", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert "new directory" in ended.stderr


def test_the_demos_project_holds_no_compiled_files(tmp_path: Path) -> None:
    """Installing the package compiles the demo's own files too."""
    compileall.compile_dir(Path(play.__file__).parent, quiet=2)
    Project(tmp_path).create()
    assert list(tmp_path.rglob("*.pyc")) == []
    assert (tmp_path / "src" / "app.py").exists()
