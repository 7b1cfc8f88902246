"""Output that cannot be written never changes a verdict or ends in a traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.cli.main import COMMANDS
from tests.support.commandline import hookline

MAIN = f"{sys.executable} -m hookline.cli.main"
FIRE = f"{MAIN} fire BeforeTool --tool x --settings settings.json"
BUFFERED = [{"PYTHONUNBUFFERED": ""}, {"PYTHONUNBUFFERED": "1"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Settings with a hook that blocks, and says so beyond ASCII."""
    hook = {"type": "command", "name": "tür → \U0001f512"}
    hooks = {
        "BeforeTool": [{"hooks": [{**hook, "command": "echo 'nö →' >&2; exit 2"}]}],
        "AfterTool": [{"hooks": [{**hook, "command": "true"}]}],
    }
    tmp_path.joinpath("settings.json").write_text(json.dumps({"hooks": hooks}))
    return tmp_path


def shell(
    line: str, folder: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={**os.environ, **(env or {})},
        capture_output=True,
        check=False,
    )


ENCODINGS = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "ascii, strict": {"PYTHONIOENCODING": "ascii:strict"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "C locale": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
}


@pytest.mark.parametrize("env", ENCODINGS.values(), ids=list(ENCODINGS))
@pytest.mark.parametrize("words", ["", "--json", "-v"])
def test_block_is_exit_2_in_any_encoding(
    folder: Path, words: str, env: dict[str, str]
) -> None:
    """Issue 12.19."""
    done = shell(f"{FIRE} {words}", folder, env)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert b"n" in done.stdout


def test_characters_that_cannot_be_shown_are_escaped(folder: Path) -> None:
    done = shell(FIRE, folder, ENCODINGS["ascii"])
    assert rb"blocked: n\xf6 \u2192" in done.stdout


LOST = {
    "closed": ">&-",
    "full": ">/dev/full",
    "both closed": ">&- 2>&-",
    "both full": ">/dev/full 2>/dev/full",
    "all closed": ">&- 2>&- <&-",
    "stderr closed": "2>&-",
    "stderr full": "2>/dev/full",
}


@pytest.mark.parametrize("env", BUFFERED, ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("words", ["", "--json", "-v"])
@pytest.mark.parametrize("lost", LOST.values(), ids=list(LOST))
def test_block_is_exit_2_if_its_output_is_lost(
    folder: Path, lost: str, words: str, env: dict[str, str]
) -> None:
    done = shell(f"{FIRE} {words} {lost}", folder, env)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("env", BUFFERED, ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("words", ["", "--json"])
def test_block_is_exit_2_if_nobody_reads(
    folder: Path, words: str, env: dict[str, str]
) -> None:
    # The reader is gone before anything is written.
    line = f"{{ sleep 0.2; {FIRE} {words}; echo $? > status; }} | true"
    done = shell(line, folder, env)
    assert folder.joinpath("status").read_text() == "2\n"
    assert b"Traceback" not in done.stderr


def test_allowed_is_exit_0_if_its_output_is_lost(folder: Path) -> None:
    done = shell(f"{FIRE.replace('BeforeTool', 'AfterTool')} >/dev/full", folder)
    assert done.returncode == 0
    assert b"standard output: No space left" in done.stderr


@pytest.mark.parametrize("env", BUFFERED, ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("words", ["schema", "paths", "--help", "help fire"])
def test_command_whose_output_is_lost_fails(
    folder: Path, words: str, env: dict[str, str]
) -> None:
    done = shell(f"{MAIN} {words} >/dev/full", folder, env)
    assert done.returncode == 1
    assert done.stderr.decode().count("\n") == 1
    assert b"standard output: No space left" in done.stderr


@pytest.mark.parametrize("lost", ["2>/dev/full", "2>&-", ">&- 2>&- <&-"])
def test_usage_error_is_exit_1_if_nobody_can_be_told(folder: Path, lost: str) -> None:
    assert shell(f"{MAIN} nonsense {lost}", folder).returncode == 1


@pytest.mark.parametrize("env", ENCODINGS.values(), ids=list(ENCODINGS))
def test_help_is_shown_in_any_encoding(folder: Path, env: dict[str, str]) -> None:
    for words in ((), *((name,) for name in COMMANDS)):
        assert hookline(*words, "--help", cwd=folder, env=env).returncode == 0


def read_only(line: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a line of shell with the folder mounted read-only."""
    script = (
        f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} "
        f"|| exit 99; cd {folder}; {line}"
    )
    done = subprocess.run(
        ["unshare", "-rm", "bash", "-c", script],
        cwd="/",
        env={**os.environ, "XDG_STATE_HOME": f"{folder}/state"},
        capture_output=True,
        check=False,
    )
    if done.returncode == 99 or b"unshare" in done.stderr:
        pytest.skip("may not mount")
    return done


@pytest.fixture
def trusted(folder: Path) -> Path:
    """The same as a trusted project, with its state beside it."""
    project = folder / "project"
    project.joinpath(".hookline").mkdir(parents=True)
    folder.joinpath("settings.json").rename(project / ".hookline" / "settings.json")
    state = {"XDG_STATE_HOME": str(folder / "state")}
    assert hookline("trust", "--yes", cwd=project, env=state).returncode == 0
    return folder


READ_ONLY = {
    "trust --revoke": 1,
    "trust --list": 0,
    "fire BeforeTool --tool x": 2,
    "fire BeforeTool --tool x --record": 2,
    "fire BeforeTool --tool x --journal journal": 2,
    "log": 0,
    "stats": 0,
    "init": 1,
    "replay": 0,
}


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
@pytest.mark.parametrize(("words", "status"), READ_ONLY.items(), ids=list(READ_ONLY))
def test_read_only_file_system_is_a_clear_error(
    trusted: Path, words: str, status: int
) -> None:
    """Issue 12.19: no traceback, and a verdict stays what it is."""
    done = read_only(f"cd project; {MAIN} {words}", trusted)
    assert done.returncode == status
    assert b"Traceback" not in done.stderr
    if status == 1:
        assert b"Read-only file system" in done.stderr


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_timeouts_that_cannot_be_counted_leave_the_verdict_alone(
    folder: Path,
) -> None:
    hook = {"type": "command", "command": "sleep 9", "timeout": 50, "onError": "block"}
    hooks = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    folder.joinpath("settings.json").write_text(json.dumps(hooks))
    done = read_only(FIRE, folder)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
