"""Output that cannot be written never changes a verdict or ends in a traceback."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.commandline import hookline

MAIN = f"{sys.executable} -m hookline.cli.main"
FIRE = f"{MAIN} fire BeforeTool --tool x --settings settings.json"
Environment = dict[str, str]
Ended = subprocess.CompletedProcess[bytes]


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


def shell(line: str, folder: Path, env: Environment | None = None) -> Ended:
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={**os.environ, **(env or {})},
        capture_output=True,
        check=False,
    )


def each_line(
    cases: Sequence[tuple[str, Environment]], folder: Path
) -> list[tuple[str, Ended]]:
    """Lines of shell, each in its environment, two at a time."""
    lines, environments = zip(*cases, strict=True)
    with ThreadPoolExecutor(2) as threads:
        run = threads.map(shell, lines, itertools.repeat(folder), environments)
        return list(zip(map(str, cases), run, strict=True))


ENCODINGS = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "ascii, strict": {"PYTHONIOENCODING": "ascii:strict"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "C locale": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
}
WORDS = ("", "--json", "-v")


def test_block_is_exit_2_in_any_encoding(
    folder: Path, subtests: pytest.Subtests
) -> None:
    cases = [(FIRE, env) for env in ENCODINGS.values()]
    cases += [(f"{FIRE} {words}", ENCODINGS["ascii, strict"]) for words in WORDS[1:]]
    for name, ended in each_line(cases, folder):
        with subtests.test(name):
            assert ended.returncode == 2
            assert b"Traceback" not in ended.stderr
            assert b"n" in ended.stdout
    shown = shell(FIRE, folder, ENCODINGS["ascii"]).stdout
    assert rb"blocked: n\xf6 \u2192" in shown, "what cannot be shown is escaped"


HELP = """
import sys
from hookline.cli.main import COMMANDS, main
for words in ([], *([name] for name in COMMANDS)):
    sys.argv = ["hookline", *words, "--help"]
    assert main() == 0, words
"""


def test_help_is_shown_in_any_encoding(folder: Path) -> None:
    for env in ENCODINGS.values():
        subprocess.run(
            [sys.executable, "-c", HELP],
            cwd=folder,
            env={**os.environ, **env},
            stdout=subprocess.DEVNULL,
            check=True,
        )


LOST = [
    *(">&-", ">/dev/full", ">&- 2>&-", ">/dev/full 2>/dev/full", ">&- 2>&- <&-"),
    *("2>&-", "2>/dev/full"),
]
BUFFERED, UNBUFFERED = {"PYTHONUNBUFFERED": ""}, {"PYTHONUNBUFFERED": "1"}


def test_block_is_exit_2_if_its_output_is_lost(
    folder: Path, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, Environment]] = [
        (f"{FIRE} {words} {lost}", BUFFERED) for lost in LOST for words in WORDS
    ]
    cases += [(f"{FIRE} {lost}", UNBUFFERED) for lost in LOST]
    for name, ended in each_line(cases, folder):
        with subtests.test(name):
            assert ended.returncode == 2
            assert b"Traceback" not in ended.stderr


def test_status_stays_if_nobody_reads(folder: Path, subtests: pytest.Subtests) -> None:
    """A block is exit 2, and findings are exit 1."""
    folder.joinpath("broken.json").write_text("{")
    commands = [(f"{MAIN} check broken.json", BUFFERED)]
    commands += itertools.product((FIRE, f"{FIRE} --json"), (BUFFERED, UNBUFFERED))
    # The reader is gone before anything is written.
    before, after = "{ sleep 0.2;", "; } | true; exit ${PIPESTATUS[0]}"
    cases = [(f"{before} {command}{after}", env) for command, env in commands]
    for name, ended in each_line(cases, folder):
        with subtests.test(name):
            assert ended.returncode == (1 if " check " in name else 2)
            assert b"Traceback" not in ended.stderr


def test_other_command_whose_output_is_lost_fails_and_says_so(
    folder: Path, subtests: pytest.Subtests
) -> None:
    """What is allowed stays allowed; a usage error is one that nobody is told of."""
    allowed = FIRE.replace("BeforeTool", "AfterTool")
    commands = [f"{MAIN} {it}" for it in ("schema", "paths", "--help", "help fire")]
    lines = [f"{command} >/dev/full" for command in (allowed, *commands)]
    cases = list(itertools.product(lines, (BUFFERED, UNBUFFERED)))
    for name, ended in each_line(cases, folder):
        with subtests.test(name):
            assert ended.returncode == (0 if "AfterTool" in name else 1)
            assert ended.stderr.count(b"\n") == 1
            assert b"standard output: No space left" in ended.stderr
    untold = [f"{MAIN} nonsense {it}" for it in ("2>/dev/full", "2>&-", LOST[4])]
    for name, ended in each_line([(line, {}) for line in untold], folder):
        with subtests.test(name):
            assert ended.returncode == 1


def read_only(line: str, folder: Path) -> Ended:
    """Run a line of shell with the folder mounted read-only."""
    script = (
        f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} "
        f"|| exit 99; cd {folder}; {line}"
    )
    ended = subprocess.run(
        ["unshare", "-rm", "bash", "-c", script],
        cwd="/",
        env={**os.environ, "XDG_STATE_HOME": f"{folder}/state"},
        capture_output=True,
        check=False,
    )
    if ended.returncode == 99 or b"unshare" in ended.stderr:
        pytest.skip("may not mount")
    return ended


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
def test_read_only_file_system_is_a_clear_error(
    folder: Path, subtests: pytest.Subtests
) -> None:
    """No traceback, and a verdict stays what it is."""
    project = folder / "project"
    project.joinpath(".hookline").mkdir(parents=True)
    folder.joinpath("settings.json").rename(project / ".hookline" / "settings.json")
    state = {"XDG_STATE_HOME": str(folder / "state")}
    assert hookline("trust", "--yes", cwd=project, env=state).returncode == 0
    for words, status in READ_ONLY.items():
        ended = read_only(f"cd project; {MAIN} {words}", folder)
        with subtests.test(words):
            assert ended.returncode == status
            assert b"Traceback" not in ended.stderr
            assert (b"Read-only file system" in ended.stderr) or status != 1


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_timeouts_that_cannot_be_counted_leave_the_verdict_alone(
    folder: Path,
) -> None:
    hook = {"type": "command", "command": "sleep 9", "timeout": 50, "onError": "block"}
    hooks = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    folder.joinpath("settings.json").write_text(json.dumps(hooks))
    ended = read_only(FIRE, folder)
    assert ended.returncode == 2
    assert b"Traceback" not in ended.stderr
